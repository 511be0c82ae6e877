"""What a deployment is judged by and may lose, in the judge's own words: no coefficient of others.

`planner.quantities.table` says the same to programs and solvers. It is written here again so
that a figure which is wrong there, such as the power of a device, is seen to be wrong.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from planner.specs.ask.request import Request
from planner.specs.ask.targets import Targets
from planner.specs.records.architecture import Architecture
from planner.specs.records.models import ModelSpec
from planner.verifier.rules import TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One quantity of a deployment.

    Args:
        name: of its limit.
        dimension: of it, as `units.show` takes it.
        fields: of a deployment that hold it, SI; the first that the deployment has.
        target: field of `Targets` that limits it; of `Targets.further` where empty.
        objective: its name as an objective.
        is_rate: of which more is better.
        is_least: the limit is a least.
        relief: factor by which a limit on it is loosened to see what it costs.
        is_relieved: whether what that gains is said.
    """

    name: str
    dimension: str
    fields: tuple[str, ...] = ()
    target: str = ""
    objective: str = ""
    is_rate: bool = False
    is_least: bool = False
    relief: float = 1.1
    is_relieved: bool = True

    def of(self, deployment: object) -> float:
        """What a deployment has of it, SI.

        Raises:
            KeyError: no field of the deployment holds it.
        """
        for field in self.fields:
            try:
                return float(attrgetter(field)(deployment))
            except AttributeError:
                continue
        further: Mapping[str, float] = getattr(deployment, "further", {})
        return further[self.name]

    def is_kept(self, value: float, limit: float, tolerance: float) -> bool:
        """Whether a value is within a limit, both SI."""
        if self.is_least:
            return value >= limit * (1 - tolerance)
        return value <= limit * (1 + tolerance)


HBM = "hbm"
"""The limit that no option sets: what a device holds."""


def _measure(name: str, row: Mapping[str, Any]) -> Measure:
    return Measure(name=name, **{**row, "fields": tuple(row.get("fields", "").split())})


MEASURES: dict[str, Measure] = {
    name: _measure(name, row) for name, row in TABLES["measures"].items()
}
"""All of them by name, in the order in which limits are listed."""


def measure_of(objective: str) -> Measure:
    return next(one for one in MEASURES.values() if one.objective == objective)


def limits_of(targets: Targets) -> dict[str, float]:
    """What a request limits, by name, SI."""
    limits = {
        it.name: getattr(targets, it.target) if it.target else targets.further.get(it.name)
        for it in MEASURES.values()
    }
    return {name: float(limit) for name, limit in limits.items() if limit is not None}


def further_of(limits: Collection[str], deployment: Any, device: Any) -> dict[str, float]:  # noqa: ANN401 of any runtime
    """What is limited and no field of a deployment holds: the TDP of all of its devices [W]."""
    return {"power": deployment.n_devices * device.tdp_w} if "power" in limits else {}


def broken_limits(targets: Targets, deployment: object, tolerance: float) -> Iterator[str]:
    """What of a deployment is beyond a limit of a request, in words."""
    for name, limit in limits_of(targets).items():
        value = MEASURES[name].of(deployment)
        limit = limit / targets.max_utilisation if name == "demand" else limit
        if not MEASURES[name].is_kept(value, limit, tolerance):
            yield f"{name} {value!r} beyond {limit!r}"


_UNKNOWN = float("inf")


def published_formats(model: ModelSpec | Architecture) -> tuple[str, ...]:
    """Formats of weights as published; of 16 bits where that is `fp32`, in which nobody serves."""
    served = tuple(name for name in model.published_weights if name != "fp32")
    return served or (model.activation_format,)


def offered_formats(model: ModelSpec | Architecture, targets: Targets) -> tuple[str, ...]:
    """Formats of weights where none is named: published, or all within the limit on quality."""
    most = targets.quality_loss_fraction
    if most is None:
        return published_formats(model)
    losses = model.quality_losses
    kept = tuple(name for name in model.weights_formats if losses.get(name, _UNKNOWN) <= most)
    return kept or published_formats(model)


def served_requests(request: Request) -> Iterator[Request]:
    """The request, and the same of each variant that the limit on lost quality leaves."""
    yield request
    own = set(offered_formats(request.model, request.targets))
    is_usual = set(request.weights_formats) == own  # the user chose none
    for variant in request.variants:
        model = _with_losses(variant, request.targets.quality_loss_fraction)
        good = offered_formats(model, request.targets) if model else ()
        weights = good if is_usual else [name for name in request.weights_formats if name in good]
        caches = [name for name in request.kv_formats if name in variant.kv_formats]
        if model and weights and caches:
            formats = tuple(weights), tuple(caches)
            yield replace(request, model=model, weights_formats=formats[0], kv_formats=formats[1])


def _with_losses(variant: ModelSpec, most: float | None) -> ModelSpec | None:
    """A variant whose formats lose what it loses, too; None where all of them lose too much."""
    if most is None:
        return variant
    lost = variant.variant.quality_loss_fraction if variant.variant else None
    if lost is None:
        return None
    losses = {name: 1.0 - (1.0 - lost) * (1.0 - of) for name, of in variant.quality_losses.items()}
    is_kept = any(losses.get(name, _UNKNOWN) <= most for name in variant.weights_formats)
    return replace(variant, quality_losses=losses) if is_kept else None


def quality_words(model: ModelSpec | Architecture, weights: str, cache: str) -> str:
    """What the formats of a deployment lose: `int4 weights lose 1.2%, fp8 KV cache: not known`."""
    assumed = {one.key for one in model.provenance if one.is_assumed}
    caches = {model.kv_format: 0.0, **model.kv_quality_losses}
    parts = (
        ("weights", "lose", weights, published_formats(model), model.quality_losses, "quality"),
        ("KV cache", "loses", cache, (model.kv_format,), caches, "kv_quality"),
    )
    said = []
    for what, verb, name, published, losses, section in parts:
        loss = losses.get(name)
        if loss is None and name != published[0]:
            said.append(f"{name} {what}: not known")
        elif loss:
            share = f"{100 * loss:.4g}%" + " (assumed)" * (f"{section}.{name}" in assumed)
            said.append(f"{name} {what} {verb} {share}")
        elif name not in published:
            said.append(f"{name} {what} {verb} nothing")
    return ", ".join(said) or "as published"
