"""Whose the times of an answer are, what they mean, and how far off such times were.

Nothing here says more than `specs.records.runtimes` has of the same runtime, device and kind of
model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.estimates.serving.usual_engines import why_no_engine
from planner.report.documents.blocks import Note, notes
from planner.report.region import model_kind, outside_words
from planner.report.words import calibrated_words, percent, plural, what_if_texts
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyDeployment, AnyRequest, runtime_name
from planner.specs.ask.request import Request
from planner.specs.records import runtimes
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.kernels import EngineSpec, inner_records
from planner.specs.records.roles import SCHEDULES_APART, TOGETHER
from planner.specs.region import Outside

if TYPE_CHECKING:
    from planner.results.fleets import FleetPlan
    from planner.results.placements import Placement
    from planner.results.surveys import Curve, Frontier
    from planner.specs.records.devices import AnyModel

_KINDS = {"dense": "dense models", "mixture": "mixtures of experts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Whose times an answer has, of one runtime, device and kind of model.

    Args:
        runtime, device: their names; no device where a runtime knows none by name.
        kind: of the model: `dense`, or `mixture` of experts.
        whose: what the times are made of.
        schedule: how its phases share the devices: `turns` or `interleaved`.
        judged: what such times were judged on; empty if nothing was measured there.
        why: no engine's times, where an engine's were to be expected; else empty.
        outside: settings of the answer that nothing it was judged on has, in words.
    """

    runtime: str
    device: str
    kind: runtimes.ModelKind
    whose: str
    schedule: runtimes.ScheduleName
    judged: tuple[runtimes.MeasuredErrors, ...]
    why: str = ""
    outside: tuple[str, ...] = ()


def times_of(answer: object) -> tuple[Times, ...]:
    """Of every runtime, device and kind of model that an answer has times of, each once."""
    return tuple(dict.fromkeys(_times_in(answer)))


def times_notes(answer: object) -> list[Note]:
    """What says so, what TPOT means, and what prices are of; none of an answer without times."""
    times = times_of(answer)
    texts = [*dict.fromkeys(_judged_text(one) for one in times if one.judged)]
    texts += _unjudged_texts([one for one in times if not one.judged])
    texts += dict.fromkeys(filter(None, (one.why for one in times)))
    texts += _outside_texts(times)
    said = what_if_texts(requests := _requests(answer))
    said += [f"times: {'; '.join(texts)}"] if texts else []
    engines = (engine for request in requests for _, engine in inner_records(request, EngineSpec))
    calibrations = dict.fromkeys(one.calibration for one in engines)
    said += [calibrated_words(one) for one in calibrations if one is not None]
    said += [f"schedule: {one}" for one in _schedules(answer, times)]
    return notes([*said, *_price_texts(answer)], kind="faint")


def _outside_texts(times: Iterable[Times]) -> list[str]:
    """Settings in use that nothing was measured with, each once."""
    outside = dict.fromkeys(words.partition(": ") for one in times for words in one.outside)
    named = ", ".join(f"{what} ({why})" for what, _, why in outside)
    return [f"outside of that, in use here: {named}"] if named else []


def _requests(answer: object) -> list[object]:
    """What was asked, of an answer and of those in it."""
    within = (request for inner in _inner(answer) for request in _requests(inner))
    return [*within, getattr(answer, "request", None)]


def _price_texts(answer: object) -> list[str]:
    """A text where an answer is chosen by prices of several dates, or of several sources."""
    prices = dict.fromkeys(_prices(answer))
    if len({(date, source) for _, date, source in prices}) < 2:
        return []
    dated = (f"{name} {date} ({source})" for name, date, source in prices)
    return [f"prices: not of one date and kind: {', '.join(dated)}; `--price` says others"]


def _prices(answer: object) -> Iterator[tuple[str, str, str]]:
    """Device, date and who says it, of each rent of a file that an answer is chosen by."""
    for one in _inner(answer):
        yield from _prices(one)
    for cluster in _clusters(getattr(answer, "request", None)):
        if cluster.usd_per_hour == cluster.device.usd_per_hour:
            said = (one for one in cluster.device.provenance if one.key == "price.on_demand")
            source = re.split("[,;]", next((one.source for one in said), "its file"))[0]
            yield cluster.device.name, cluster.device.price_date or "undated", source


def _inner(answer: object) -> Iterator[object]:
    if _is(answer, "Comparison"):
        yield from (row.answer for row in getattr(answer, "rows", ()))
    elif _is(answer, "Repair", "LayoutPrediction"):
        yield getattr(answer, "placement", None) or getattr(answer, "plan", None)
    else:
        yield from (curve.frontier for curve in _curves(answer))


def _clusters(request: object) -> list[ClusterSpec]:
    """Clusters that a request is of; none of a graph."""
    records = getattr(request, "records", request)
    site: Any = getattr(request, "site", getattr(records, "cluster", None))
    groups = [one.cluster for one in site.groups] if _is(site, "PoolSpec") else [site]
    return [one for one in groups if isinstance(one, ClusterSpec)]


def _schedules(answer: object, times: Iterable[Times]) -> Iterable[str]:
    """How phases share the devices, each once; a worker of one phase shares them with none."""
    role = getattr(answer, "role", TOGETHER) if _is(answer, "Prediction") else TOGETHER
    if role != TOGETHER:
        return (SCHEDULES_APART[role],)
    return dict.fromkeys(runtimes.runtime_of(one.runtime).schedule_words for one in times)


def _judged_text(times: Times) -> str:
    """`…: TPOT of dense models 5.3 % off in 2 measurements (…), bias −4 %`."""
    parts = []
    for errors in times.judged:
        bias = percent(errors.bias_fraction).replace("-", "−")
        sign = "+" if errors.bias_fraction > 0 else ""
        parts.append(
            f"{errors.quantity} of {_KINDS[times.kind]} {percent(errors.mean_error_fraction)} off "
            f"in {plural(errors.n_rows, 'measurement')} ({errors.rows}), bias {sign}{bias}"
        )
    return f"{times.whose} for {times.device}: {', '.join(parts)}"


def _unjudged_texts(times: Iterable[Times]) -> list[str]:
    """One for all devices of the same times and kind of model."""
    devices: dict[tuple[str, runtimes.ModelKind], list[str]] = {}
    for one in times:
        devices.setdefault((one.whose, one.kind), []).append(one.device)
    return [_unjudged_text(whose, kind, names) for (whose, kind), names in devices.items()]


def _unjudged_text(whose: str, kind: runtimes.ModelKind, devices: list[str]) -> str:
    if not any(devices):
        return f"{whose}: not judged on measurements"
    return f"{whose} for {', '.join(devices)}: not judged on {_KINDS[kind]} there"


def _is(answer: object, *names: str) -> bool:
    """Whether an answer is of a kind: by its name, since to import all kinds takes long."""
    return any(one.__name__ in names for one in type(answer).__mro__)


def _times_in(answer: Any) -> Iterator[Times]:  # noqa: ANN401 any kind of answer
    if _is(answer, "Prediction"):
        yield _of_engine(
            answer.engine, answer.device, answer.model_kind, answer.measured_by, answer.outside
        )
    elif _is(answer, "Plan"):
        yield from _of_request(answer.request, answer.deployment)
    elif _is(answer, "Audit", "EngineAudit", "Conflict"):
        yield from _of_request(answer.request)
    elif _is(answer, "Placement"):
        yield from _of_recipes(answer, [one.model for one in answer.request.models])
    elif _is(answer, "FleetPlan"):
        yield from _of_recipes(answer, [it for one in answer.request.classes for it in one.models])
    elif _is(answer, "Frontier"):
        yield from _of_frontier(answer)
    else:
        for one in _inner(answer):
            yield from _times_in(one)


def _curves(answer: object) -> Iterable[Curve]:
    curves = getattr(answer, "curves", answer)
    return [one for one in curves if _is(one, "Curve")] if isinstance(curves, Iterable) else ()


def _of_frontier(answer: Frontier) -> Iterator[Times]:
    """Of every runtime that a point is of."""
    if answer.cost_model.name == runtimes.ERDIL2025.name and isinstance(answer.request, Request):
        yield _of(runtimes.ERDIL2025.name, "", model_kind(answer.request.model))
        return
    names = {runtime_name(point.deployment) for point in answer.points}
    for request in (answer.request, *answer.other_requests):
        yield from (one for one in _of_request(request) if one.runtime in names)


def _of_request(request: AnyRequest, used: AnyDeployment | None = None) -> Iterator[Times]:
    if isinstance(request, EconomicsRequest):
        is_mixture = request.served[0].target.model.n_experts > 1
        yield _of(runtimes.ERDIL2025.name, "", "mixture" if is_mixture else "dense")
        return
    if isinstance(request, Request):
        device, why = request.cluster.device.name, why_no_engine(request.model, request.cluster)
        yield _of_layouts(device, model_kind(request.model), used, request, why=why)
        return
    outside = used.outside if isinstance(used, EngineDeployment) else ()
    for kind in dict.fromkeys(one.kind for one in request.models):
        device, measured_by = request.cluster.device, request.measured_by
        yield _of_engine(request.engine, device, kind, measured_by, outside)


def _of_recipes(answer: Placement | FleetPlan, served: Iterable[AnyModel]) -> Iterator[Times]:
    """Of each model on each kind of devices that one of its replicas has."""
    from planner.results.phase_deployments import TableDeployment

    models, request = {one.name: one for one in served}, answer.request
    made_by = {one.name: one.made_by for one in request.deployments}
    devices = {one.kind: one.device for one in answer.kinds}
    measured = {
        (one.engine.name, one.kernels.device): one.kernels.measured_by for one in request.tables
    }
    for recipe in answer.recipes:
        kind, device = model_kind(models[recipe.model]), devices[recipe.kind]
        if isinstance(recipe.deployment, TableDeployment):
            yield _of_table(recipe.deployment.table, made_by[recipe.deployment.table], device, kind)
        elif recipe.engine == runtimes.ROOFLINE.name:
            yield _of_layouts(device, kind, recipe.deployment, request)
        else:
            used = recipe.deployment
            outside = used.outside if isinstance(used, EngineDeployment) else ()
            measured_by = measured.get((recipe.engine, device), ())
            yield _of_engine(recipe.engine, device, kind, measured_by, outside)


def _of(
    name: str,
    device: str,
    kind: runtimes.ModelKind,
    *,
    whose: str = "",
    why: str = "",
    outside: Iterable[str] = (),
) -> Times:
    """Of a runtime, whose title says whose the times are unless something else does."""
    runtime = runtimes.runtime_of(name)
    return Times(
        runtime=name,
        device=device,
        kind=kind,
        whose=whose or runtime.title,
        schedule=runtime.schedule.name,
        judged=runtimes.judged_on(name, device, kind),
        why=why,
        outside=tuple(outside),
    )


def _of_layouts(
    device: str, kind: runtimes.ModelKind, used: object, request: object, *, why: str = ""
) -> Times:
    """Of a roofline; replicas of more devices than any that was measured are outside."""
    n_devices = getattr(getattr(used, "mesh", None), "n_devices", 0)
    share = getattr(request, "confidence", None)
    is_planned = share is None or share > 0.5
    outside = []
    for errors in runtimes.judged_on(runtimes.ROOFLINE.name, device, kind):
        if not errors.has(n_devices):
            known = f"; {errors.beyond}" if errors.beyond else ""
            planned = ", and decode is planned so" if is_planned and errors.beyond_fraction else ""
            most = f"measured on {errors.n_most_devices} at most"
            outside.append(f"{n_devices} devices: {most}{known}{planned}")
    return _of(runtimes.ROOFLINE.name, device, kind, why=why, outside=outside)


def _of_engine(
    engine: str,
    device: str,
    kind: runtimes.ModelKind,
    measured_by: tuple[str, ...],
    outside: tuple[Outside, ...] = (),
) -> Times:
    kernels = f"kernels measured under {', '.join(measured_by)}" if measured_by else ""
    whose = f"{runtimes.runtime_of(engine).title}'s schedule, {kernels or 'kernels assumed'}"
    words = outside_words(outside, engine, device, kind)
    return _of(engine, device, kind, whose=whose, outside=words)


def _of_table(name: str, made_by: str, device: str, kind: runtimes.ModelKind) -> Times:
    whose = f"{runtimes.runtime_of(name).title}{', as predicted by ' * bool(made_by)}{made_by}"
    return _of(name, device, kind, whose=whose)
