"""`plan experts`: loads of experts and ranks, as options say them, to a placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_experts import WrittenExperts
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.equations.arrays import FloatArray
    from planner.results.experts import ExpertPlan
    from planner.specs.architecture import Architecture, Experts
    from planner.specs.experts_request import ExpertWeights

OF_THE_MODEL = -1
"""Groups of the model's own routing."""

_NOTHING_ASKED = WrittenExperts()


def experts(
    written: Annotated[WrittenExperts, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Place and replicate experts on ranks: least load of the fullest, with its bound."""
    from planner.placing.expert_placing import place_experts
    from planner.specs.expert_loads import load_coactivation, load_placement
    from planner.specs.reading import load_architecture

    found = Arguments(problems=list(said.problems), hints=said.hints)
    numbers = _numbers(written, found)
    name = written.model
    model = None if name is None else found.collect(lambda: load_architecture(name))
    block, n_layers = _experts_of(model, found)
    loads = _loads(written, numbers, block, found)
    pairs = present = None
    if written.coactivation is not None:
        path = written.coactivation
        pairs = found.collect(lambda: load_coactivation(path))
    if written.present is not None:
        placed = written.present
        present = found.collect(lambda: load_placement(placed))
    weights = _weights(written, model, block, found)
    n_slots = _slots(written, numbers, (weights.n_bytes, n_layers), found)
    found.check()
    assert loads is not None
    plan = place_experts(
        loads,
        n_ranks=numbers["--ranks"],
        n_slots=n_slots,
        n_nodes=numbers["--nodes"],
        n_groups=_groups(written, numbers, block),
        split=numbers["--split"],
        present=present,
        move_price=numbers["--move-price"],
        coactivation=pairs,
        slack=numbers["--slack"],
        weights=weights,
        gap=numbers["--gap"],
        seed=numbers["--seed"],
        proof=numbers["--proof"],
        time_limit_s=numbers["--time-limit"],
    )
    return _answer(written, plan)


def _answer(written: WrittenExperts, plan: ExpertPlan) -> Answer:
    from planner.report.experts import experts_line, experts_text

    is_short, show_all = written.quiet, written.all
    return answered(
        plan,
        lambda: experts_line(plan) if is_short else experts_text(plan, width(), show_all=show_all),
        is_json=written.json,
        files=_files(written, plan),
    )


def _files(written: WrittenExperts, plan: ExpertPlan) -> Iterator[tuple[str, str]]:
    if written.html is not None:
        from planner.report.experts_page import experts_page

        yield written.html, experts_page(plan)


def _numbers(written: WrittenExperts, found: Arguments) -> dict[str, Any]:
    """Counts, fractions and words; None where nothing is said or it cannot be read."""
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults, one_of, proof_of
    from planner.programs.experts import SPLITS
    from planner.specs.conforming import LARGEST_SEED
    from planner.specs.expert_loads import MOST_EXPERTS
    from planner.units import parse

    faults = Faults()

    def share(text: str) -> float:
        return parse(text, "1", example="1%", allow_zero=True)

    def groups(text: str) -> int:
        return OF_THE_MODEL if text.strip() == "model" else count(text)

    reads: dict[str, tuple[str | None, Any]] = {
        "--ranks": (written.ranks, count),
        "--slots": (written.slots, count),
        "--nodes": (written.nodes, count),
        "--groups": (written.groups, groups),
        "--experts": (written.experts, lambda text: count(text, most=MOST_EXPERTS)),
        "--layer": (written.layer, lambda text: count(text, least=0)),
        "--zipf": (written.zipf, lambda text: parse(text, "1", example="1.0", allow_zero=True)),
        "--memory": (written.memory, lambda text: parse(text, "B", example="20 GB")),
        "--move-price": (written.move_price, share),
        "--slack": (written.slack, share),
        "--gap": (written.gap, share),
        "--seed": (written.seed, lambda text: count(text, least=0, most=LARGEST_SEED)),
        "--proof": (written.proof, proof_of),
        "--time-limit": (written.time_limit, lambda text: parse(text, "s", example="60s")),
        "--split": (written.split, one_of("way to split", SPLITS)),
    }
    values = {option: faults.read(option, text, read) for option, (text, read) in reads.items()}
    if written.ranks is None:
        remedy = "write `--ranks 32`"
        faults.problems.append(Problem(where="--ranks", fact="is not given", remedy=remedy))
    faults.problems += _alone(written, values)
    if written.json and written.quiet:
        faults.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
    found.problems += faults.problems
    return values


def _alone(written: WrittenExperts, values: dict[str, Any]) -> list[Problem]:
    """Options that say nothing without another one."""
    pairs = (
        ("--layer", written.layer, "--loads", written.loads),
        ("--move-price", values["--move-price"], "--present", written.present),
        ("--slack", values["--slack"], "--coactivation", written.coactivation),
        ("--weights", written.weights, "--model", written.model),
    )
    found = [
        Problem(where=option, fact=f"means nothing without `{other}`")
        for option, said, other, given in pairs
        if said and not given
    ]
    if values["--groups"] == OF_THE_MODEL and written.model is None:
        fact, remedy = "no model is named", "write `--groups 8`, or name a `--model`"
        found.append(Problem(where="--groups", value="model", fact=fact, remedy=remedy))
    return found


def _experts_of(model: Architecture | None, found: Arguments) -> tuple[Experts | None, int | None]:
    """The experts of a model's layers, and how many layers have them."""
    from planner.specs.architecture import Experts

    if model is None:
        return None, None
    blocks = [layer for layer in model.layers if isinstance(layer.ffn, Experts)]
    if not blocks:
        fact = "has no experts"
        found.problems.append(Problem(where="--model", value=model.name, fact=fact))
        return None, None
    first = blocks[0].ffn
    assert isinstance(first, Experts)
    return first, sum(isinstance(model.layers[i].ffn, Experts) for i in model.order)


def _loads(
    written: WrittenExperts, numbers: dict[str, Any], block: Experts | None, found: Arguments
) -> FloatArray | None:
    """Loads of a file, or drawn ones."""
    from planner.specs.expert_loads import load_loads, zipf_loads

    if (written.loads is None) == (written.zipf is None):
        both = "is not given" if written.loads is None else "cannot go with `--zipf`"
        remedy = "name a file, or draw loads with `--zipf 1.0`"
        found.problems.append(Problem(where="--loads", fact=both, remedy=remedy))
        return None
    n_experts = numbers["--experts"] or (block.n_experts if block else None)
    if written.loads is None:
        if n_experts is None and written.experts is None:
            remedy = "write how many there are, or name a `--model`"
            problem = Problem(where="--experts", fact="is not given", remedy=remedy)
            found.problems.append(problem)
        if n_experts is None or numbers["--zipf"] is None:
            return None
        return zipf_loads(n_experts, numbers["--zipf"], seed=numbers["--seed"] or 0)
    path, layer = written.loads, numbers["--layer"]
    loads = found.collect(lambda: load_loads(path, layer=layer))
    if loads is not None and n_experts not in (None, len(loads)):
        fact = f"has {len(loads)} loads for {n_experts} experts"
        found.problems.append(Problem(where="--loads", value=path, fact=fact))
    return loads


def _weights(
    written: WrittenExperts, model: Architecture | None, block: Experts | None, found: Arguments
) -> ExpertWeights:
    from planner.specs.experts_request import ExpertWeights
    from planner.specs.quality import as_published
    from planner.specs.records import FORMAT_BYTES

    zipf = f"drawn by Zipf's law, exponent {written.zipf}, seed {written.seed}"
    source = zipf if written.loads is None else written.loads
    if written.layer is not None and written.loads is not None:
        source += f", layer {written.layer}"
    name = written.weights or (as_published(model)[0] if model else "bf16")
    if name not in FORMAT_BYTES:
        remedy = f"it is one of {', '.join(FORMAT_BYTES)}"
        found.problems.append(
            Problem(where="--weights", value=name, fact="no such number format", remedy=remedy)
        )
    if model is None or block is None:
        return ExpertWeights(source=source)
    n_bytes = block.expert_params(model.d_model) * FORMAT_BYTES.get(name, 0.0)
    return ExpertWeights(model=model.name, n_bytes=n_bytes, source=source)


def _slots(
    written: WrittenExperts,
    numbers: dict[str, Any],
    size: tuple[float | None, int | None],
    found: Arguments,
) -> int | None:
    """Slots of a rank, as many as its memory has room for."""
    n_bytes, n_layers = size
    asked: int | None = numbers["--slots"]
    if numbers["--memory"] is None:
        return asked
    if n_bytes is None or n_layers is None:
        fact, remedy = "says nothing without the bytes of an expert", "name a `--model`"
        found.problems.append(
            Problem(where="--memory", value=written.memory or "", fact=fact, remedy=remedy)
        )
        return asked
    if not n_bytes:  # its format cannot be read, which is said
        return asked
    room = int(numbers["--memory"] // (n_bytes * n_layers))
    if room < 1 or (asked is not None and asked > room):
        fact = f"has room for {room} experts of {n_layers} layers, {n_bytes / 1e6:.3g} MB each"
        remedy = f"write `--slots {room}`" if room else "take more memory or fewer bytes"
        found.problems.append(
            Problem(where="--memory", value=written.memory or "", fact=fact, remedy=remedy)
        )
    return asked or room


def _groups(written: WrittenExperts, numbers: dict[str, Any], block: Experts | None) -> int:
    """Groups of experts; `model` takes those of the model's routing."""
    asked = numbers["--groups"] or 0
    if asked >= 0:
        return int(asked)
    return block.n_groups if block and block.n_groups > 1 else 0
