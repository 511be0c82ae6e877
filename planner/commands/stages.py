"""`plan stages` and `plan layers`: models over unequal devices, cut into stages or placed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_stages import WrittenLayers, WrittenStages
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.results.staging import LayerPlacement, StagePlan

_NO_STAGES, _NO_LAYERS = WrittenStages(), WrittenLayers()
_GROUPS = "write `--groups h100-sxm:tp8x2,a100-80gb:tp4x3`"
_Said = Annotated[Arguments, Parameter(parse=False)]


def stages(
    written: Annotated[WrittenStages, Parameter(name="*")] = _NO_STAGES, *, said: _Said
) -> Answer:
    """Cut a model into pipeline stages on groups of unequal kinds, provably best."""
    from planner.placing.staging.asking import cut_stages, read_groups, word_problems
    from planner.specs.engines.files import load_engine
    from planner.specs.reading import load_architecture

    found = Arguments(problems=list(said.problems), hints=said.hints)
    asked = _asked(written, found)
    model = found.collect(lambda: load_architecture(written.model))
    engine = found.collect(lambda: load_engine(written.engine))
    groups = None
    named = written.groups
    if named is None:
        found.problems.append(Problem(where="--groups", fact="is not given", remedy=_GROUPS))
    elif engine is not None:
        groups = found.collect(lambda: read_groups(named, engine))
    found.problems += word_problems(
        phase=written.phase, objective=written.objective, solver=written.solver
    )
    _check_files(written, found)
    found.check()
    assert model is not None
    assert groups is not None
    return _stages_answer(written, cut_stages(model, groups, **asked))


def layers(
    written: Annotated[WrittenLayers, Parameter(name="*")] = _NO_LAYERS, *, said: _Said
) -> Answer:
    """Place layers on mixed machines for the most tokens a second, with a bound on any way."""
    from planner.commands.options.reading import Faults, proof_of
    from planner.placing.staging.placing import place_layers
    from planner.specs.layer_files import load_layers
    from planner.units import parse

    found = Arguments(problems=list(said.problems), hints=said.hints)
    faults = Faults()
    gap = faults.read("--gap", written.gap, lambda text: parse(text, "1", allow_zero=True))
    limit = faults.read("--time-limit", written.time_limit, lambda text: parse(text, "s"))
    proof = faults.read("--proof", written.proof, proof_of) or "two"
    found.problems += faults.problems
    spec = None
    path = written.machines
    if path is None:
        remedy = "write `plan layers FILE`; see examples/machines"
        found.problems.append(Problem(where="plan layers", fact="names no file", remedy=remedy))
    else:
        spec = found.collect(lambda: load_layers(Path(path)))
    _check_files(written, found)
    found.check()
    assert spec is not None
    best = place_layers(spec, gap=gap or 0.0, time_limit_s=limit, proof=proof)
    return _layers_answer(written, best)


def _asked(written: WrittenStages, found: Arguments) -> dict[str, Any]:
    """Arguments of `cut_stages`; what cannot be read is a problem."""
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults, proof_of
    from planner.specs.records import Workload
    from planner.units import parse

    faults = Faults()
    n_input = faults.read("--input", written.input, count) or 1
    n_output = faults.read("--output", written.output, count) or 1
    asked = {
        "engine": written.engine,
        "workload": Workload(n_input_tokens=n_input, n_output_tokens=n_output),
        "batch": faults.read("--batch", written.batch, count) or 1,
        "n_microbatches": faults.read("--micro-batches", written.micro_batches, count),
        "phase": written.phase,
        "weights_format": written.weights,
        "experts_format": written.experts,
        "cache_format": written.kv,
        "objective": written.objective,
        "solver": written.solver,
        "proof": faults.read("--proof", written.proof, proof_of) or "two",
        "time_limit_s": faults.read(
            "--time-limit", written.time_limit, lambda text: parse(text, "s")
        ),
    }
    found.problems += faults.problems
    return asked


def _stages_answer(written: WrittenStages, best: StagePlan) -> Answer:
    from planner.report.stages import stages_line, stages_text
    from planner.report.staging_page import stages_page

    files = () if written.html is None else ((written.html, stages_page(best)),)
    return answered(
        best,
        lambda: stages_line(best) if written.quiet else stages_text(best, width()),
        is_json=written.json,
        files=files,
    )


def _layers_answer(written: WrittenLayers, best: LayerPlacement) -> Answer:
    from planner.report.layers import layers_line, layers_text
    from planner.report.staging_page import layers_page

    files = () if written.html is None else ((written.html, layers_page(best)),)
    return answered(
        best,
        lambda: layers_line(best) if written.quiet else layers_text(best, width()),
        is_json=written.json,
        files=files,
    )


def _check_files(written: WrittenStages | WrittenLayers, found: Arguments) -> None:
    if written.json and written.quiet:
        found.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
