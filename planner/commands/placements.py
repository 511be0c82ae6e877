"""`plan place` and `plan repair`: options to a placement on a cluster as it is, made or kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from planner.commands.asking import with_commands
from planner.commands.options.reading import (
    read_roles,
    read_targets,
    refuse_idle_utilisation,
    refuse_unsaid_lengths,
    tokens_at,
)
from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.errors import NoPlanError, Problem
from planner.placing.floorplans import floorplan_of
from planner.quantities.table import placed
from planner.report.files import Answer
from planner.running import begin
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.pools import SiteSpec, load_site
from planner.specs.files.state import load_state
from planner.specs.records.devices import AnyModel, Workload
from planner.specs.records.runtimes import ENGINES, ROOFLINE

if TYPE_CHECKING:
    from planner.results.conflicts import PlacementConflict
    from planner.results.floorplans import FloorPlan
    from planner.results.placements import Placement


DEFAULT_SITE = "h100-fat-tree-x64"
OF_EACH_MODEL = ("weights_formats", "kv_formats")
"""Arguments that are wishes of each model by itself."""


def place(said: Said) -> Answer:
    """Replicas, layouts and devices, chosen together."""
    from planner.placing.planning import place as find

    pool, wanted, keywords = read_place(said)
    begin("placing replicas")
    try:
        answer = find(pool, wanted, **keywords)
    except NoPlanError as error:
        error.conflict = with_commands(said, cast("PlacementConflict", error.conflict))
        raise
    floorplan = floorplan_of(pool, keywords["state"])
    files = drawings(said, answer, floorplan)
    return reported(said, answer, files=files, floorplan=floorplan, is_whole=said.ranks)


def read_place(said: Said) -> tuple[SiteSpec, list[Serve], dict[str, Any]]:
    """The pool, what is wanted of each model, and the other arguments of `place`.

    Raises:
        RequestError: with all that is wrong with them.
    """
    loaded = said.collect(lambda: load_site(said.topology or DEFAULT_SITE))
    pool = next(iter(said.priced([loaded] if loaded else [])), None)
    is_served = runs_engines(said.engine, pool)
    said.refuse_under(said.engine or (ENGINES if is_served else (ROOFLINE.name,)))
    keywords = read_placement(said)
    refuse_idle_utilisation(said)
    models = [said.collect(loader(name, is_served=is_served)) for name in said.model]
    if not models:
        said.refuse("--model", "names no model", "name one, like `--model deepseek-v3`")
    state = said.load("--state", load_state)
    n_output = keywords["workload"].n_written_tokens
    named = [model for model in models if model is not None]
    wanted = wishes_for(named, lambda _: n_output, said)
    said.check()
    assert pool is not None
    return pool, wanted, {"state": state, **keywords}


def loader(name: str, *, is_served: bool) -> Callable[[], AnyModel]:
    """Reads a model: layer by layer, where an engine may run it."""
    from planner.specs.files.reading import load_architecture, load_model

    if is_served:
        return lambda: load_architecture(name)
    return lambda: load_model(name)


def runs_engines(named: Sequence[str] | None, pool: SiteSpec | None) -> bool:
    """Whether an engine may run what is placed: it is named, or none is and there are nodes."""
    from planner.placing.asking import is_torus

    if named:
        return any(one != ROOFLINE.name for one in named)
    return pool is not None and not is_torus(pool)


def drawings(said: Said, answer: Placement, floorplan: FloorPlan) -> Iterator[tuple[str, str]]:
    """The drawing alone, where it is asked for."""
    if said.svg is not None:
        from planner.report.drawings.floorplans import drawing_file

        yield said.svg, drawing_file(answer, floorplan)


def read_placement(said: Said) -> dict[str, Any]:
    """Arguments of `place` but for the pool, its state and the models."""
    if said.is_given("--rate"):
        refuse_unsaid_lengths(said)
    keywords = {name: value for name, value in said.sets().items() if name not in OF_EACH_MODEL}
    usual = {"n_input_tokens": 1, "n_output_tokens": 1}  # of a repair they are as before
    return {
        **keywords,
        "engine": said.engine or None,
        "workload": Workload(**usual | said.sets("Workload")),
        "targets": read_targets(said, placed("each")),
        "limits": read_limits(said),
        "aligned": said.align,
        "options": SolverOptions(**said.sets("SolverOptions")),
        **read_roles(said),
    }


def read_limits(said: Said) -> dict[str, float]:
    """Limits that all replicas keep together."""
    values = {one.name: said.values[one.argument] for one in placed("all")}
    return {name: value for name, value in values.items() if value is not None}


def wishes_for(
    models: Sequence[AnyModel], n_output: Callable[[str], int], said: Said
) -> list[Serve]:
    """What is wanted of each model; a wish for a model that is not named is a problem.

    Args:
        n_output: tokens that a request for a model writes.
    """
    for option in ("--demand", "--rate", "--replicas"):
        _refuse_strangers(said, option, [model.name for model in models])
    return [
        Serve(
            model=model,
            demand_tokens_per_s=_demand(said, model.name, n_output),
            replicas=_of(said.replicas, model.name),
            weights_formats=said.weights or None,
            kv_formats=said.kv or None,
        )
        for model in models
    ]


def _refuse_strangers(said: Said, option: str, names: Sequence[str]) -> None:
    """Wishes for models that are not named, or for one of several that is not said."""
    from planner.specs.validation.problems import did_you_mean

    for name in said.values[option.lstrip("-")] if names else ():
        if name and name not in names:
            remedy = did_you_mean(name, names, otherwise=f"add `--model {name}`")
            said.refuse(option, "is of no model that is named", remedy, value=name)
        elif not name and len(names) > 1:
            remedy = f"write `{option} {names[0]}=…`"
            said.refuse(option, "is of which model?", remedy, value="")


def _demand(said: Said, name: str, n_output: Callable[[str], int]) -> float | None:
    """Output tokens a second, as they are said, or as so many requests come to."""
    from planner.quantities.units import show
    from planner.specs.files.ledger import remark

    demand: float | None = _of(said.demand, name)
    rate: float | None = _of(said.rate, name)
    if rate is None:
        return demand
    if demand is not None:
        said.refuse("--rate", f"cannot go with `--demand` of {name}", "say one of both", value="")
        return None
    tokens = tokens_at(said, rate, n_output(name))
    if tokens and not said.problems:
        served = f"{show(tokens, 'token/s')} on average"
        fact = f"of {name} is {served}: queues are kept short, not counted"
        remark(Problem(where="--rate", value=show(rate, "request/s"), fact=fact))
    return tokens


def _of(values: dict[str, Any], name: str) -> Any:  # noqa: ANN401 a rate or a count
    return values.get(name, values.get(""))


def repair(said: Said) -> Answer:
    """What stands, put right with the fewest moved bytes."""
    from planner.placing.repairing import repair as find
    from planner.report.saved import load_placement

    before = said.load("--placement", load_placement)
    engines = said.engine or (before.request.engines if before else None)
    said.refuse_under(engines or (ROOFLINE.name,))
    is_served = runs_engines(engines, None)
    keywords = read_placement(said)
    models = [said.collect(loader(name, is_served=is_served)) for name in said.model]
    pool = _repriced(said, before)
    state = said.load("--state", load_state)
    served = [model for model in models if model is not None]
    if before is not None and not said.model:
        served = [one.model for one in before.request.models]
    n_output = _outputs(said, keywords, before)
    demands = wishes_for(served, n_output, said)
    said.check()
    assert before is not None
    begin("placing replicas where they may move")
    answer = find(
        before,
        pool,
        _models(said, demands, before.request),
        state=state,
        loss=said.loss,
        **_changes(said, keywords, before.request),
    )
    floorplan = floorplan_of(answer.request.wanted.site, state)
    files = drawings(said, answer.placement, floorplan)
    return reported(said, answer, files=files, floorplan=floorplan, is_whole=said.ranks)


def _repriced(said: Said, before: Placement | None) -> SiteSpec | None:
    """The cluster that is named, or the old one where it has another price; none of neither."""
    pool: SiteSpec | None = said.load("--topology", load_site)
    if said.topology is None and said.price and before is not None:
        pool = before.request.site
    return next(iter(said.priced([] if pool is None else [pool])), None)


def _outputs(
    said: Said, keywords: dict[str, Any], before: Placement | None
) -> Callable[[str], int]:
    """Tokens that a request for a model writes: as is said, or as it was."""
    n_output: int = keywords["workload"].n_written_tokens
    if before is None or said.is_given("--output") or said.is_given("--samples"):
        return lambda name: n_output
    usual = before.request.workload
    own = {one.model.name: one.workload or usual for one in before.request.models}
    return lambda name: own.get(name, usual).n_written_tokens


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


def _models(said: Said, demands: list[Serve], before: PlacementRequest) -> tuple[Serve, ...] | None:
    """What is wanted of each model, where anything of it is said anew."""
    # a workload or a target on the command line is meant for all models
    anew = {"workload": said.sets("Workload"), "targets": _targets_said(said)}
    common = {name: None for name, fields in anew.items() if fields}
    own = any(getattr(one, name) is not None for one in before.models for name in common)
    parts = ("--model", "--demand", "--rate", "--replicas", "--weights", "--kv")
    if not any(map(said.is_given, parts)) and not own:
        return None
    stood = {one.model.name: one for one in before.models}
    return tuple(_changed(one, stood.get(one.model.name), common) for one in demands)


def _changed(demand: Serve, before: Serve | None, common: dict[str, None]) -> Serve:
    """A wish as it was, but for what is said."""
    if before is None:
        return demand
    names = ("demand_tokens_per_s", "replicas", "weights_formats", "kv_formats")
    said = {name: value for name in names if (value := getattr(demand, name)) is not None}
    return replace(before, model=demand.model, **said, **common)
