"""`plan repair`: what stands, a state and what is said anew to a repair, its answer to text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_placements import WrittenRepair
from planner.commands.placements import (
    drawings,
    loader,
    read_engines,
    read_placement,
    runs_engines,
    wishes_for,
)
from planner.errors import Problem
from planner.quantities import placed
from planner.report.delivery import Answer, answered
from planner.report.paint import width
from planner.running.phases import begin
from planner.specs.runtimes import ROOFLINE

if TYPE_CHECKING:
    from planner.results.placements import Placement
    from planner.specs.placement_request import PlacementRequest, Serve, SiteSpec

_NOTHING_STANDS = WrittenRepair()

_OF_TARGETS = {
    **{one.argument: one.target for one in placed("each")},
    "max_utilisation": "max_utilisation",
    "max_quality_loss": "quality_loss_fraction",
}
_OF_OPTIONS = {
    "solver": "solver",
    "time_limit": "time_limit_s",
    "gap": "gap",
    "threads": "threads",
    "seed": "seed",
    "proof": "proof",
}
_OF_WORKLOAD = {"input": "n_input_tokens", "output": "n_output_tokens"}
"""Options, and the fields of the records that they change."""


def repair(
    written: Annotated[WrittenRepair, Parameter(name="*")] = _NOTHING_STANDS,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Put what stands right after a failure, with the fewest moved bytes within a loss."""
    from planner.placing.floorplans import floorplan_of
    from planner.placing.repairing import repair as find
    from planner.specs.pools import load_site
    from planner.specs.state import load_state

    found = said
    before = _standing(written, found)
    engines = read_engines(written.engine) or (before.request.engines if before else None)
    found.refuse(engines or (ROOFLINE.name,))
    is_served = runs_engines(engines, None)
    keywords, wishes = read_placement(written, found, is_served=is_served)
    models = [found.collect(loader(name, is_served=is_served)) for name in written.model]
    loss = _loss(written, found)
    pool: SiteSpec | None = None
    if written.topology is not None:
        site = written.topology
        pool = found.collect(lambda: load_site(site))
    elif written.price and before is not None:
        pool = before.request.site
    pool = next(iter(found.priced(written.price, [] if pool is None else [pool])), None)
    file = written.state
    if file is None:
        remedy = "name what has failed: `--state state.toml`"
        found.problems.append(Problem(where="--state", fact="is not given", remedy=remedy))
    state = found.collect(lambda: load_state(file)) if file is not None else None
    served = [model for model in models if model is not None]
    if before is not None and not written.model:
        served = [one.model for one in before.request.models]
    n_output = _outputs(written, keywords, before)
    asked = wishes_for(served, wishes, n_output, found)
    found.check()
    assert before is not None
    begin("placing replicas where they may move")
    answer = find(
        before,
        pool,
        _models(written, asked, before.request),
        state=state,
        loss=loss,
        **_changes(written, keywords, before.request),
    )
    floorplan = floorplan_of(answer.request.wanted.site, state)
    from planner.report.repair import repair_line, repair_text

    def text() -> str:
        if written.quiet:
            return repair_line(answer)
        return repair_text(answer, width(), floorplan=floorplan)

    files = drawings(written, answer.placement, floorplan)
    return answered(answer, text, is_json=written.json, files=files)


def _outputs(
    written: WrittenRepair, keywords: dict[str, Any], before: Placement | None
) -> Callable[[str], int]:
    """Tokens that a request for a model writes: as is said, or as it was."""
    said: int = keywords["workload"].n_output_tokens
    if before is None or written.output is not None:
        return lambda name: said
    usual = before.request.workload
    own = {one.model.name: one.workload or usual for one in before.request.models}
    return lambda name: own.get(name, usual).n_output_tokens


def _standing(written: WrittenRepair, found: Arguments) -> Placement | None:
    path = written.placement
    if path is None:
        remedy = "name what `plan place … --json` wrote"
        problem = Problem(where="plan repair", fact="no placement is given", remedy=remedy)
        found.problems.append(problem)
        return None
    from planner.report.saved import load_placement

    return found.collect(lambda: load_placement(path))


def _loss(written: WrittenRepair, found: Arguments) -> float:
    from planner.commands.options.reading import Faults, below_one

    faults = Faults()
    loss = faults.read("--loss", written.loss, below_one("5%"))
    found.problems += faults.problems
    return loss or 0.0


def _changes(
    written: WrittenRepair, keywords: dict[str, Any], before: PlacementRequest
) -> dict[str, Any]:
    """Arguments of `repair` for what is said anew; what is not said is not among them."""
    limits = keywords["limits"]
    changes = {
        "engine": keywords["engine"],
        "workload": _altered(written, before.workload, keywords["workload"], _OF_WORKLOAD),
        "targets": _altered(written, before.targets, keywords["targets"], _OF_TARGETS),
        "options": _altered(written, before.options, keywords["options"], _OF_OPTIONS),
        "limits": {**before.limits, **limits} if limits else None,
        "objective": keywords["objective"],
        "batches": keywords["batches"],
        "most_devices": keywords["most_devices"],
        "aligned": written.align or None,
        "confidence": keywords["confidence"],
    }
    return {name: value for name, value in changes.items() if value is not None}


def _altered(written: WrittenRepair, old: Any, new: Any, options: dict[str, str]) -> Any:  # noqa: ANN401
    """A record with the fields that options say anew; None where they say nothing."""
    said = [name for option, name in options.items() if getattr(written, option) is not None]
    return replace(old, **{name: getattr(new, name) for name in said}) if said else None


def _models(
    written: WrittenRepair, asked: list[Serve], before: PlacementRequest
) -> tuple[Serve, ...] | None:
    """What is wanted of each model, where anything of it is said anew."""
    said_of_requests = {
        "workload": [written.input, written.output],
        "targets": [getattr(written, option) for option in _OF_TARGETS],
    }
    # a workload or a target on the command line is meant for all models
    common = {name: None for name, texts in said_of_requests.items() if any(texts)}
    own = any(getattr(one, name) is not None for one in before.models for name in common)
    parts = (
        written.model,
        written.demand,
        written.rate,
        written.replicas,
        written.weights,
        written.kv,
    )
    if not any(parts) and not own:
        return None
    stood = {one.model.name: one for one in before.models}
    return tuple(_changed(one, stood.get(one.model.name), common) for one in asked)


def _changed(one: Serve, before: Serve | None, common: dict[str, None]) -> Serve:
    """A wish as it was, but for what is said."""
    if before is None:
        return one
    names = ("demand_tokens_per_s", "replicas", "weights_formats", "kv_formats")
    said = {name: value for name in names if (value := getattr(one, name)) is not None}
    return replace(before, model=one.model, **said, **common)
