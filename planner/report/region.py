"""What of an answer was never compared with measurements, in words, and what stands beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.words import amount, percent, plural
from planner.results.engines import EngineDeployment
from planner.results.plans import Alternative, EnginePlan
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.runtimes import ModelKind, runtime_of
from planner.specs.region import (
    CLIENT,
    CONFIDENCE,
    IN_FLIGHT,
    LEAST_ROWS,
    LEAST_RUNS,
    LOADS,
    Outside,
    Setting,
    are_enough,
    is_near,
    measured,
    settings,
)

if TYPE_CHECKING:
    from planner.results.fleets import FleetPlan, OtherFleet
    from planner.results.placements import OtherPlacement, Placement, RunConfig
    from planner.specs.records.devices import AnyModel

_WORDS: Mapping[str, str] = packaged_table("report/words.toml")["region"]
"""A property with its value."""


def planned_words(confidence: float | None) -> str:
    """What times are planned against."""
    usual = percent(CONFIDENCE)
    if confidence is None:
        return f"as predicted inside the measured region, in {usual} of cases outside of it"
    return f"what holds in {percent(confidence)} of cases" if confidence else "what is predicted"


def outside_words(
    properties: Iterable[Outside], engine: str, device: str, kind: ModelKind
) -> list[str]:
    """Of each property that nothing measured has: what it is, and what was judged instead."""
    told: dict[tuple[str, str], list[Outside]] = {}
    for one in properties:
        alike = one.property if one.property == IN_FLIGHT else f"{one.property} {one.value}"
        told.setdefault((alike, _measured_text(one, engine, device, kind)), []).append(one)
    by_name = {one.property: one for one, *_ in told.values()}
    roles, stages = by_name.get("role"), by_name.get("pp")
    words = []
    for (_, text), several in told.items():
        name, value = several[0].property, _value(*several)
        if name == "role" and stages:
            continue
        if name == "pp" and roles:
            value = f"{value} in {roles.value}"
        words.append(f"{value}: {text}")
    return words


def region_rows(plan: EnginePlan) -> list[tuple[str, str]]:
    """The best of what was measured, and the best if all that is predicted held."""
    kinds = {it.name: it.kind for it in plan.request.models}
    device = plan.request.cluster.device

    def by(other: Alternative[EngineDeployment]) -> str:
        run, engine = other.deployment, f"{other.deployment.engine}: " if plan.rivals else ""
        beyond = run.outside if run != plan.deployment else ()
        words = outside_words(beyond, run.engine, device, kinds[run.model])
        return f"{engine}{'; '.join((run.summary, *words))}"

    is_free = plan.request.confidence is None
    return [*_beside(plan, plan.certificate.dimension, by)] if is_free else []


def replicas_region_rows(answer: Placement | FleetPlan) -> list[tuple[str, str]]:
    """The same of replicas, with how many of each recipe stand beside them."""
    if not answer.request.has_region:
        return []
    kinds = {one.name: model_kind(one) for one in answer.request.every_model}
    devices = {one.kind: one.device for one in answer.kinds}

    def words(recipes: Iterable[RunConfig]) -> str:
        each = (
            outside_words(it.deployment.outside, it.engine, devices[it.kind], kinds[it.model])
            for it in recipes
            if isinstance(it.deployment, EngineDeployment)
        )
        return "; ".join(dict.fromkeys(chain.from_iterable(each)))

    own = words(answer.recipes)

    def by(other: OtherPlacement | OtherFleet) -> str:
        n_of = Counter(one.recipe for one in other.replicas)
        each = [
            f"{n_of[i]} × {it.deployment.summary}, on {it.kind} under {runtime_of(it.engine).title}"
            for i, it in enumerate(other.recipes)
        ]
        beyond = words(other.recipes)
        return "; ".join([*each, *[beyond] * (beyond not in ("", own))])

    return [*_beside(answer, answer.certificate.dimension, by)]


def _beside(
    answer: EnginePlan | Placement | FleetPlan, dimension: str, by: Callable[[Any], str]
) -> Iterator[tuple[str, str]]:
    """The best of what was measured, and the best if all that is predicted held."""
    for label, other in (("inside", answer.inside), ("as predicted", answer.anywhere)):
        if other is None:
            yield label, "none is known to hold all limits"
            continue
        lost = other.loss_fraction
        change = f"{percent(abs(lost))} {'worse' if lost > 0 else 'better'}" if lost else "as good"
        yield label, f"{show(other.objective, dimension)}, {change}, by {by(other)}"


def model_kind(model: AnyModel) -> ModelKind:
    """Whether it has experts to be dealt."""
    if not isinstance(model, Architecture):
        return model.kind
    return "mixture" if any(isinstance(one.ffn, Experts) for one in model.layers) else "dense"


def _value(outside: Outside, *more: Outside) -> str:
    """What it is; of requests in flight from the least to the most of several deployments."""
    if outside.property == IN_FLIGHT:
        least, *_, most = sorted(int(one.value) for one in (outside, outside, *more))
        return f"{f'{least} to ' * (least < most)}{plural(most, 'request')} in flight"
    if outside.property == "lengths":
        return _lengths(*map(float, outside.value.split("/")))
    if " × " in outside.property:
        pairs = zip(outside.property.split(" × "), outside.value.split(" × "), strict=True)
        return " with ".join(_WORDS[name].format(value) for name, value in pairs)
    return _WORDS[outside.property].format(outside.value)


def _lengths(n_input: float, n_output: float) -> str:
    return f"{amount(round(n_input))} tokens in, {amount(round(n_output))} out"


def _measured_text(outside: Outside, engine: str, device: str, kind: ModelKind) -> str:
    """Where something like it was judged."""
    if outside.property == CLIENT:
        return "who measured does not say how requests were sent"
    if outside.property in ("device", "engine"):
        return f"not judged by {LEAST_ROWS} measurements of {LEAST_RUNS} runs"
    if outside.property in LOADS:
        return _nearest(outside, measured(engine, device, kind)[1])
    alike: dict[str, list[Setting]] = {}
    for it in settings():
        if it.kind == kind and it.value(outside.property) == outside.value:
            alike.setdefault(it.device, []).append(it)
    enough = {name for name in alike if are_enough(alike[name])}
    if not enough - {device}:
        return "judged under other engines" if enough else "judged on no device"
    return f"judged on {', '.join(sorted(enough - {device}))}, not there"


def _nearest(outside: Outside, here: Iterable[Setting]) -> str:
    """What was judged nearest; or that something near was, but too little."""
    if outside.property == IN_FLIGHT:
        wanted = int(outside.value)
        loads = {it.in_flight for it in here}
        nearest = min(loads, key=lambda n: abs(math.log(n / wanted)))
        is_close, words = is_near(nearest, wanted), str(nearest)
    else:
        n_input, n_output = map(float, outside.value.split("/"))

        def distance(lengths: tuple[int, int]) -> float:
            return math.dist((math.log(n_input), math.log(n_output)), tuple(map(math.log, lengths)))

        lengths = min(sorted({(it.n_input, it.n_output) for it in here}), key=distance)
        is_close = is_near(lengths[0], n_input) and is_near(lengths[1], n_output)
        words = _lengths(*lengths)
    few = f"judged near it by fewer than {LEAST_ROWS} measurements of {LEAST_RUNS} runs"
    return few if is_close else f"nearest judged {words}"
