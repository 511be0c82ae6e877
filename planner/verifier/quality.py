"""Which formats and variants may be served, and what they lose, by the judge's own reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.specs.architecture import Architecture
from planner.specs.models import ModelSpec
from planner.specs.request import Request
from planner.specs.targets import Targets

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
    for one in request.variants:
        model = _with_losses(one, request.targets.quality_loss_fraction)
        good = offered_formats(model, request.targets) if model else ()
        weights = good if is_usual else [name for name in request.weights_formats if name in good]
        caches = [name for name in request.kv_formats if name in one.kv_formats]
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
