"""`plan audit`: what runs, as options say it, to a call of the library and its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from planner.commands.asking import collect_machines
from planner.commands.options.reading import as_said, read_engines, read_layouts, with_paths
from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.estimates.serving.usual_engines import engines_of
from planner.report.files import Answer
from planner.results.engines import EngineDeployment
from planner.specs.ask.engine import DraftOptions
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.runtimes import ERDIL2025, LAYOUT_RUNTIMES, ROOFLINE

Named = Callable[[str], str]
"""A command, to the same with files as they were named."""


def audit(said: Said) -> Answer:
    """What runs, under an engine or as layouts, beside the best."""
    engine = said.engine or ROOFLINE.name
    measured = _measured(said, engine)
    is_layouts = engine == ROOFLINE.name
    said.refuse_under((engine,))
    options = read_layouts(said) if is_layouts else read_engines(said, ())
    load: Callable[[str], Any] = load_model if engine in LAYOUT_RUNTIMES else load_architecture
    model, cluster = said.load("--model", load), said.load("--topology", load_cluster)
    for pool in said.priced([cluster] if cluster else []):
        cluster = pool
    if engine in LAYOUT_RUNTIMES:
        _refuse_without_one(said, model, cluster)
    else:
        model = as_said(model, said)
        collect_machines([cluster] if cluster else [], (engine,), said)
    runs = said.sets() | {name: options[name] for name in ("workload", "options")}
    runs["weights_format"] = _only(said, "--weights", runs.get("weights_format"))
    runs["kv_format"] = _only(said, "--kv", runs.get("kv_format"))
    if not is_layouts:
        runs["chunk_tokens"] = _only(said, "--chunk", runs.pop("chunks", None))
        runs["drafting"] = _one_draft(said, options["drafting"])
    said.check()
    assert model is not None
    assert cluster is not None
    files = ("--model", said.model, model.name), ("--topology", said.topology, cluster.name)
    named = partial(with_paths, written=files)
    if not is_layouts:
        runs["degrees"] = options["targets"].degrees
        return _of_engine(said, named, model, cluster, measured=measured, **runs)
    runs.pop("engine", None)
    runs |= {"speculation": options["speculation"], "layouts": options["targets"].layouts}
    return _of_layouts(said, named, model, cluster, **runs)


def _of_layouts(said: Said, named: Named, *pool: Any, **runs: Any) -> Answer:  # noqa: ANN401
    from planner.planning.audit import audit as find, audit_curves

    answer = find(*pool, **runs)
    changes = (replace(change, command=named(change.command)) for change in answer.changes)
    answer = replace(answer, changes=tuple(changes))
    curves = () if said.html is None else audit_curves(answer)
    return reported(said, answer, curves=curves)


def _measured(said: Said, engine: str) -> tuple[Any, ...]:
    """The run that a file has, and its prediction; without, a speed has to be said."""
    if said.measured and said.metrics:
        said.refuse("--metrics", "and `--measured` say the same", "leave one of them out")
    if said.measured or said.metrics:
        from planner.commands.serving_runs import measured_run

        return () if engine in LAYOUT_RUNTIMES else measured_run(said)
    same = "and `--utilization` say the same"
    said.need_one("--batch", "--utilization", both=same, remedy="give it or `--utilization`")
    if not said.is_given("--speed"):
        said.refuse("--speed", "is not given", "write `--speed 70tok/s`")
    return ()


def _of_engine(
    said: Said,
    named: Named,
    *pool: Any,  # noqa: ANN401
    measured: tuple[Any, ...],
    **runs: Any,  # noqa: ANN401
) -> Answer:
    """What an engine runs, with its prediction and with the best.

    Args:
        measured: a run and its prediction, where a file has it; empty without.
    """
    from planner.planning.engine_audit import audit_engine as find

    answer = find(*pool, **runs)
    predicted = answer.predicted
    if isinstance(predicted, EngineDeployment):
        predicted = replace(predicted, command=named(predicted.command))
    answer = replace(answer, command=named(answer.command), predicted=predicted)
    return reported(said, answer, measured=measured)


def _only(said: Said, name: str, values: tuple[Any, ...] | None) -> Any:  # noqa: ANN401
    """The one value of an option of which what runs has one; None where none is said."""
    if values and len(values) > 1:
        said.refuse(name, "what runs has one", value=",".join(map(str, values)))
    return values[0] if values else None


def _one_draft(said: Said, drafting: DraftOptions | None) -> DraftOptions | None:
    """Drafts of one number of tokens; those of the reference model are refused before."""
    if drafting and said.engine != ERDIL2025.name and len(drafting.lookaheads) > 1:
        fact = "drafts one number of tokens: write `--lookahead 3`, if it is three"
        said.refuse("--lookahead" if said.is_given("--lookahead") else "--draft", fact)
    return drafting


def _refuse_without_one(said: Said, model: ModelSpec | None, cluster: ClusterSpec | None) -> None:
    """What runs was started by one engine, and where there are several nobody else knows which."""
    if model is None or cluster is None or said.engine is not None:
        return
    engines = engines_of(model, cluster)
    if engines:
        fact = f"does not say what runs {model.name} on {cluster.device.name}"
        remedy = f"write `--engine` {', '.join(engines)} or `{ROOFLINE.name}`"
        said.refuse("--engine", fact, remedy)
