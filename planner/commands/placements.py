"""`plan place`: options to a placement on a cluster as it is, its answer to text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.roles import read_roles
from planner.commands.options.written import Written
from planner.commands.options.written_placements import WrittenPlacement
from planner.errors import Problem
from planner.quantities import placed
from planner.report.delivery import Answer, answered
from planner.report.paint import width
from planner.running.phases import begin
from planner.specs.runtimes import ENGINES, ROOFLINE

if TYPE_CHECKING:
    from planner.results.floorplans import FloorPlan
    from planner.results.placements import Placement
    from planner.specs.placement_request import AnyModel, Serve, SiteSpec

DEFAULT_SITE = "h100-fat-tree-x64"
_NOTHING_ASKED = WrittenPlacement()
_T = TypeVar("_T")


def place(
    written: Annotated[WrittenPlacement, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Choose replicas, layouts and devices together, on a cluster as it is."""
    from planner.placing.floorplans import floorplan_of
    from planner.placing.planning import place as find

    pool, wanted, keywords = read_place(written, said)
    begin("placing replicas")
    answer = find(pool, wanted, **keywords)
    floorplan = floorplan_of(pool, keywords["state"])
    from planner.report.placement import placement_line, placement_text

    def text() -> str:
        if written.quiet:
            return placement_line(answer)
        return placement_text(answer, width(), ranks=written.ranks, floorplan=floorplan)

    files = drawings(written, answer, floorplan)
    return answered(answer, text, is_json=written.json, files=files)


def read_place(
    written: WrittenPlacement, found: Arguments
) -> tuple[SiteSpec, list[Serve], dict[str, Any]]:
    """The pool, what is wanted of each model, and the other arguments of `place`.

    Raises:
        RequestError: with all that is wrong with them.
    """
    from planner.commands.options.reading import idle_utilisation
    from planner.specs.pools import load_site
    from planner.specs.state import load_state

    loaded = found.collect(lambda: load_site(written.topology or DEFAULT_SITE))
    pool = next(iter(found.priced(written.price, [loaded] if loaded else [])), None)
    is_served = runs_engines(read_engines(written.engine), pool)
    keywords, wishes = read_placement(written, found, is_served=is_served)
    has_demand = bool(written.rate or written.demand)
    found.problems += idle_utilisation(written.max_utilisation, has_demand=has_demand)
    found.refuse(keywords["engine"] or (ENGINES if is_served else (ROOFLINE.name,)))
    models = [found.collect(loader(name, is_served=is_served)) for name in written.model]
    if not models:
        remedy = "name one, like `--model deepseek-v3`"
        found.problems.append(Problem(where="--model", fact="names no model", remedy=remedy))
    state = None
    if written.state is not None:
        file = written.state
        state = found.collect(lambda: load_state(file))
    roles = read_roles(written, found)
    n_output = keywords["workload"].n_output_tokens
    named = [model for model in models if model is not None]
    wanted = wishes_for(named, wishes, lambda _: n_output, found)
    found.check()
    assert pool is not None
    return pool, wanted, {"state": state, **roles, **keywords}


def loader(name: str, *, is_served: bool) -> Callable[[], AnyModel]:
    """Reads a model: layer by layer, where an engine may run it."""
    from planner.specs.reading import load_architecture, load_model

    if is_served:
        return lambda: load_architecture(name)
    return lambda: load_model(name)


def runs_engines(named: Sequence[str] | None, pool: SiteSpec | None) -> bool:
    """Whether an engine may run what is placed: it is named, or none is and there are nodes."""
    from planner.placing.asking import has_slices

    if named:
        return any(one != ROOFLINE.name for one in named)
    return pool is not None and not has_slices(pool)


def drawings(
    written: WrittenPlacement, answer: Placement, floorplan: FloorPlan
) -> Iterator[tuple[str, str]]:
    """Name and text of the files that were asked for."""
    if written.html is not None:
        from planner.report.floorplan_page import placement_page

        yield written.html, placement_page(answer, floorplan)
    if written.svg is not None:
        from planner.report.floorplan_drawing import drawing

        yield written.svg, drawing(answer, floorplan)


def read_placement(
    written: WrittenPlacement, found: Arguments, *, is_served: bool
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Arguments of `place`, and the wishes by model; "" is for all.

    Args:
        is_served: whether an engine may run the models: its kernels know more formats.
    """
    from planner.commands.options.by_name import by_name
    from planner.commands.options.counts import count
    from planner.commands.options.engines import known_formats
    from planner.commands.options.reading import (
        Faults,
        one_of,
        read,
        read_confidence,
        read_limit,
        sorts_of,
        unsaid_lengths,
        utilisation,
    )
    from planner.specs.placement_request import OBJECTIVES
    from planner.units import parse

    usual, faults = Written(), Faults()
    rest = Written(
        input=usual.input if written.input is None else written.input,
        output=usual.output if written.output is None else written.output,
        **{one.argument: getattr(written, one.argument) for one in placed("each")},
        max_quality_loss=written.max_quality_loss,
        weights=() if is_served else written.weights,
        kv=() if is_served else written.kv,
        batch=written.batch or usual.batch,
        solver=usual.solver if written.solver is None else written.solver,
        time_limit=written.time_limit,
        gap=usual.gap if written.gap is None else written.gap,
        threads=usual.threads if written.threads is None else written.threads,
        seed=usual.seed if written.seed is None else written.seed,
        proof=usual.proof if written.proof is None else written.proof,
        json=written.json,
        quiet=written.quiet,
    )
    asked, problems = read(rest)
    share = utilisation(written, faults)
    limits = {one.name: read_limit(one, written, faults) for one in placed("all")}
    wishes: dict[str, dict[str, Any]] = {
        "demand": by_name("--demand", written.demand, lambda text: parse(text, "token/s"), faults),
        "rate": by_name("--rate", written.rate, lambda text: parse(text, "request/s"), faults),
        "replicas": by_name("--replicas", written.replicas, count, faults),
        "formats": {
            "weights_formats": known_formats("--weights", written.weights, faults)
            if is_served
            else asked.weights_formats,
            "kv_formats": known_formats("--kv", written.kv, faults)
            if is_served
            else asked.kv_formats,
        },
    }
    keywords = {
        "engine": read_engines(written.engine),
        "workload": asked.workload,
        "targets": replace(asked.targets, max_utilisation=share),
        "objective": faults.read("--objective", written.objective, one_of("objective", OBJECTIVES)),
        "limits": {name: value for name, value in limits.items() if value is not None},
        "batches": asked.batches if written.batch else None,
        "most_devices": faults.read("--replica-devices", written.replica_devices, count),
        "aligned": written.align,
        "confidence": read_confidence(written.confidence, faults),
        "options": replace(asked.options, **sorts_of(written, faults)),
    }
    found.problems += [*problems, *faults.problems]
    if written.rate:
        found.problems += unsaid_lengths(written)
    return keywords, wishes


def read_engines(listed: Sequence[str]) -> tuple[str, ...] | None:
    """Engines that are named, once each; None where none is."""
    words = (word.strip() for text in listed for word in text.split(","))
    return tuple(dict.fromkeys(filter(None, words))) or None


def wishes_for(
    models: Sequence[AnyModel],
    wishes: dict[str, dict[str, Any]],
    n_output: Callable[[str], int],
    found: Arguments,
) -> list[Serve]:
    """What is wanted of each model; a wish for a model that is not named is a problem.

    Args:
        n_output: tokens that a request for a model writes.
    """
    from planner.specs.placement_request import Serve
    from planner.specs.values import did_you_mean

    names = [model.name for model in models]
    for option in ("demand", "rate", "replicas"):
        for key in wishes[option]:
            where = f"--{option}"
            if key and key not in names and names:
                remedy = did_you_mean(key, names, otherwise=f"add `--model {key}`")
                fact = "is of no model that is named"
                found.problems.append(Problem(where=where, value=key, fact=fact, remedy=remedy))
            elif not key and len(names) > 1:
                fact, remedy = "is of which model?", f"write `{where} {names[0]}=…`"
                found.problems.append(Problem(where=where, fact=fact, remedy=remedy))
    return [
        Serve(
            model=model,
            demand_tokens_per_s=_demand(wishes, model.name, n_output, found),
            replicas=_of(wishes["replicas"], model.name),
            **wishes["formats"],
        )
        for model in models
    ]


def _demand(
    wishes: dict[str, dict[str, Any]], name: str, n_output: Callable[[str], int], found: Arguments
) -> float | None:
    """Output tokens a second, as they are said, or as so many requests come to."""
    from planner.specs.ledger import remark
    from planner.units import show

    demand: float | None = _of(wishes["demand"], name)
    rate: float | None = _of(wishes["rate"], name)
    if rate is None:
        return demand
    if demand is not None:
        fact, remedy = f"cannot go with `--demand` of {name}", "say one of both"
        found.problems.append(Problem(where="--rate", fact=fact, remedy=remedy))
        return None
    tokens = rate * n_output(name)
    fact = f"of {name} is {show(tokens, 'token/s')} on average: queues are kept short, not counted"
    if not found.problems:
        remark(Problem(where="--rate", value=show(rate, "request/s"), fact=fact))
    return tokens


def _of(values: dict[str, Any], name: str) -> Any:  # noqa: ANN401 a rate or a count
    return values.get(name, values.get(""))
