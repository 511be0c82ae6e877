"""`plan repair`: what stands, a state and what is said anew to a repair, its answer to text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.commands.options.said import Said
from planner.commands.placements import drawings, loader, read_placement, runs_engines, wishes_for
from planner.commands.reporting import reported
from planner.quantities import placed
from planner.report.files import Answer
from planner.running.phases import begin
from planner.specs.runtimes import ROOFLINE

if TYPE_CHECKING:
    from planner.results.placements import Placement
    from planner.specs.placement_request import PlacementRequest, Serve, SiteSpec


def repair(said: Said) -> Answer:
    """What stands, put right with the fewest moved bytes."""
    from planner.placing.floorplans import floorplan_of
    from planner.placing.repairing import repair as find
    from planner.report.saved import load_placement
    from planner.specs.pools import load_site
    from planner.specs.state import load_state

    before = said.load("--placement", load_placement)
    engines = said.engine or (before.request.engines if before else None)
    said.refuse_under(engines or (ROOFLINE.name,))
    is_served = runs_engines(engines, None)
    keywords = read_placement(said)
    models = [said.collect(loader(name, is_served=is_served)) for name in said.model]
    pool: SiteSpec | None = said.load("--topology", load_site)
    if said.topology is None and said.price and before is not None:
        pool = before.request.site
    pool = next(iter(said.priced([] if pool is None else [pool])), None)
    state = said.load("--state", load_state)
    served = [model for model in models if model is not None]
    if before is not None and not said.model:
        served = [one.model for one in before.request.models]
    n_output = _outputs(said, keywords, before)
    asked = wishes_for(served, n_output, said)
    said.check()
    assert before is not None
    begin("placing replicas where they may move")
    answer = find(
        before,
        pool,
        _models(said, asked, before.request),
        state=state,
        loss=said.loss,
        **_changes(said, keywords, before.request),
    )
    floorplan = floorplan_of(answer.request.wanted.site, state)
    files = drawings(said, answer.placement, floorplan)
    return reported(said, answer, files=files, floorplan=floorplan, is_whole=said.ranks)


def _outputs(
    said: Said, keywords: dict[str, Any], before: Placement | None
) -> Callable[[str], int]:
    """Tokens that a request for a model writes: as is said, or as it was."""
    n_output: int = keywords["workload"].n_output_tokens
    if before is None or said.is_given("--output"):
        return lambda name: n_output
    usual = before.request.workload
    own = {one.model.name: one.workload or usual for one in before.request.models}
    return lambda name: own.get(name, usual).n_output_tokens


def _changes(said: Said, keywords: dict[str, Any], before: PlacementRequest) -> dict[str, Any]:
    """Arguments of `repair` for what is said anew; what is not said is not among them."""
    limits = keywords["limits"]
    targets = {name: getattr(keywords["targets"], name) for name in _targets_said(said)}
    changes = {
        **keywords,
        "workload": _altered(before.workload, said.sets("Workload")),
        "targets": _altered(before.targets, targets),
        "options": _altered(before.options, said.sets("SolverOptions")),
        "limits": {**before.limits, **limits} if limits else None,
        "aligned": said.align or None,
    }
    return {name: value for name, value in changes.items() if value is not None}


def _targets_said(said: Said) -> list[str]:
    """Fields of targets that are said anew, but for limits on all replicas together."""
    of_all = {one.target for one in placed("all")}
    return [name for name in said.sets("Targets") if name not in of_all]


def _altered(old: Any, said: dict[str, Any]) -> Any:  # noqa: ANN401 a record of one type
    """A record with the fields that are said anew; None where none is."""
    return replace(old, **said) if said else None


def _models(said: Said, asked: list[Serve], before: PlacementRequest) -> tuple[Serve, ...] | None:
    """What is wanted of each model, where anything of it is said anew."""
    # a workload or a target on the command line is meant for all models
    anew = {"workload": said.sets("Workload"), "targets": _targets_said(said)}
    common = {name: None for name, fields in anew.items() if fields}
    own = any(getattr(one, name) is not None for one in before.models for name in common)
    parts = ("--model", "--demand", "--rate", "--replicas", "--weights", "--kv")
    if not any(map(said.is_given, parts)) and not own:
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
