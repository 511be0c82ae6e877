"""Whose the times of an answer are, what they mean, and how far off such times were.

Nothing here says more than `specs.records.runtimes` has of the same runtime, device and kind of
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.estimates.serving.usual_engines import why_no_engine
from planner.report.region import model_kind, outside_words
from planner.results.plans import AnyDeployment, AnyRequest, runtime_name
from planner.specs.ask.request import Request
from planner.specs.records import runtimes
from planner.specs.records.economics import EconomicsRequest

if TYPE_CHECKING:
    from planner.results.fleets import FleetPlan
    from planner.results.placements import Placement
    from planner.results.surveys import Curve
    from planner.specs.records.devices import AnyModel

_OF_AUDITS = ("predicted", "possible", "same_devices", "equal_speed", "equal_cost")
_SHOWN = ("deployment", "closest", *_OF_AUDITS)
"""Fields of answers whose deployments' times are shown."""


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


def inner_answers(answer: object) -> Iterator[object]:
    if is_kind(answer, "Comparison"):
        yield from (row.answer for row in getattr(answer, "rows", ()))
    elif is_kind(answer, "Repair", "LayoutPrediction"):
        yield getattr(answer, "placement", None) or getattr(answer, "plan", None)
    else:
        yield from (curve.frontier for curve in _curves(answer))


def is_kind(answer: object, *names: str) -> bool:
    """Whether an answer is of a kind: by its name, since to import all kinds takes long."""
    return any(one.__name__ in names for one in type(answer).__mro__)


def _times_in(answer: Any) -> Iterator[Times]:  # noqa: ANN401 any kind of answer
    if is_kind(answer, "Prediction"):
        own = answer.model_kind, answer.measured_by
        yield _of_engine(answer.engine, answer.device, *own, [answer])
    elif is_kind(answer, "Plan", "Audit", "EngineAudit", "Conflict", "Frontier"):
        yield from _of_shown(answer)
    elif is_kind(answer, "Placement"):
        yield from _of_recipes(answer, [one.model for one in answer.request.models])
    elif is_kind(answer, "FleetPlan"):
        yield from _of_recipes(answer, [it for one in answer.request.classes for it in one.models])
    else:
        for one in inner_answers(answer):
            yield from _times_in(one)


def _curves(answer: object) -> Iterable[Curve]:
    curves = getattr(answer, "curves", answer)
    return [one for one in curves if is_kind(one, "Curve")] if isinstance(curves, Iterable) else ()


def _of_shown(answer: Any) -> Iterator[Times]:  # noqa: ANN401 any of plans
    """Of every runtime of a deployment that is shown; of what was asked where none is."""
    known = (getattr(answer, name, None) for name in _SHOWN)
    each = (*getattr(answer, "points", ()), *getattr(answer, "relaxations", ()))
    shown: dict[str, list[AnyDeployment]] = {}
    for one in (*filter(None, known), *(it.deployment for it in each)):
        shown.setdefault(runtime_name(one), []).append(one)
    requests = (answer.request, *getattr(answer, "other_requests", ()))
    times = [it for one in requests for it in _of_request(one, shown) if it.runtime in shown]
    yield from times or _of_request(answer.request, {})


def _of_request(request: AnyRequest, shown: Mapping[str, Iterable[Any]]) -> Iterator[Times]:
    if isinstance(request, EconomicsRequest):
        is_mixture = request.served[0].target.model.n_experts > 1
        yield _of(runtimes.ERDIL2025.name, "", "mixture" if is_mixture else "dense")
        return
    if isinstance(request, Request):
        device, why = request.cluster.device.name, why_no_engine(request.model, request.cluster)
        used = shown.get(runtimes.ROOFLINE.name, ())
        yield _of_layouts(device, model_kind(request.model), used, request, why=why)
        return
    for kind in dict.fromkeys(one.kind for one in request.models):
        device, used = request.cluster.device, shown.get(request.engine, ())
        yield _of_engine(request.engine, device, kind, request.measured_by, used)


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
            yield _of_layouts(device, kind, [recipe.deployment], request)
        else:
            measured_by = measured.get((recipe.engine, device), ())
            yield _of_engine(recipe.engine, device, kind, measured_by, [recipe.deployment])


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
    device: str, kind: runtimes.ModelKind, used: Iterable[Any], request: object, *, why: str = ""
) -> Times:
    """Of a roofline; replicas of more devices than any that was measured are outside."""
    n_devices = max((one.mesh.n_devices for one in used if hasattr(one, "mesh")), default=0)
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
    used: Iterable[Any],
) -> Times:
    kernels = f"kernels measured under {', '.join(measured_by)}" if measured_by else ""
    whose = f"{runtimes.runtime_of(engine).title}'s schedule, {kernels or 'kernels assumed'}"
    outside = dict.fromkeys(it for one in used for it in one.outside)
    words = outside_words(outside, engine, device, kind)
    return _of(engine, device, kind, whose=whose, outside=words)


def _of_table(name: str, made_by: str, device: str, kind: runtimes.ModelKind) -> Times:
    whose = f"{runtimes.runtime_of(name).title}{', as predicted by ' * bool(made_by)}{made_by}"
    return _of(name, device, kind, whose=whose)
