"""What of a model a request may take: formats by their loss of quality, variants, contexts.

Unasked, a model is served as it is published, and in nothing else: other formats are offered
where they are named, or where a limit on lost quality says how much may be given up for them.

A model's file says, format by format, what share of a benchmark's score is lost against the
format that it was published in. A format of which it says nothing has no known loss, and a
limit forbids it. The usual format of the KV cache is the one that weights were measured with:
it loses nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from planner.errors import Problem
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import ModelSpec, Workload
from planner.specs.records.served_formats import as_published

if TYPE_CHECKING:
    from planner.specs.ask.request import Request
    from planner.specs.records.architecture import Architecture
    from planner.specs.records.devices import AnyModel

OPTION = "--max-quality-loss"


_Names = Sequence[str]
_Model = TypeVar("_Model", "ModelSpec", "Architecture")


def kv_losses(model: AnyModel) -> Mapping[str, float]:
    """Known relative loss of each format of the KV cache [1]."""
    return {model.kv_format: 0.0, **model.kv_quality_losses}


def activation_losses(model: AnyModel) -> Mapping[str, float]:
    """Known relative loss of each format of activations [1]."""
    return {"bf16": 0.0, "fp16": 0.0, **model.activation_losses}


def among_variants(
    model: AnyModel, variants: Sequence[_Model], targets: Targets
) -> tuple[_Model, ...]:
    """Variants that the limit on quality leaves, with what their formats lose against the model.

    What a variant and a format lose is compounded: each keeps its share of what is left, which
    is an assumption. A variant of which nothing is known is out as soon as there is a limit.
    """
    limit, kept = targets.quality_loss_fraction, []
    for variant in variants:
        loss = variant.variant.quality_loss_fraction if variant.variant else None
        if limit is None:
            kept.append(variant)
        elif loss is not None:
            losses = {
                name: 1.0 - (1.0 - loss) * (1.0 - own)
                for name, own in variant.quality_losses.items()
            }
            if any(losses.get(name, 1.0) <= limit for name in variant.weights_formats):
                kept.append(replace(variant, quality_losses=losses))
    return tuple(kept)


def with_variants(request: Request) -> tuple[Request, ...]:
    """The request, and with each variant in the model's place, in formats that it may take.

    Formats that were not chosen by the user are the variant's own usual ones.
    """
    usual = set(request.weights_formats) == set(usual_formats(request.model, request.targets))
    asking = [request]
    for model in among_variants(request.model, request.variants, request.targets):
        good = usual_formats(model, request.targets)
        weights = good if usual else tuple(f for f in request.weights_formats if f in good)
        caches = tuple(name for name in request.kv_formats if name in model.kv_formats)
        if weights and caches:
            asking.append(replace(request, model=model, weights_formats=weights, kv_formats=caches))
    return tuple(asking)


def variant_problems(
    model: ModelSpec, variants: Sequence[ModelSpec], workload: Workload
) -> Iterator[Problem]:
    """Models that do not say that they are variants of this one, or cannot serve its requests."""
    for variant in variants:
        of = variant.variant.of if variant.variant else ""
        if of != model.name:
            fact = f"is a variant of {of}" if of else "is not said to be a variant of any model"
            remedy = f'say so in its file: `[variant]`, `of = "{model.name}"`'
            yield Problem(where="--variants", value=variant.name, fact=fact, remedy=remedy)
        tokens = workload.n_input_tokens, workload.n_output_tokens
        yield from context_problems(variant, *tokens, asked_by="--variants")


def usual_formats(model: AnyModel, targets: Targets) -> tuple[str, ...]:
    """Weights formats that a model is offered in where none is named.

    As it is published; with a limit on lost quality, in all that are known to keep it. Where the
    limit leaves none, it is as without one, and `quality_problems` refuses it.
    """
    limit = targets.quality_loss_fraction
    published = as_published(model)
    if limit is None:
        return published
    return _within(model.weights_formats, model.quality_losses, limit) or published


def _within(formats: Sequence[str], losses: Mapping[str, float], limit: float) -> tuple[str, ...]:
    return tuple(name for name in formats if losses.get(name, float("inf")) <= limit)


def quality_problems(
    model: AnyModel, targets: Targets, weights: _Names, caches: _Names, activations: _Names = ()
) -> Iterator[Problem]:
    """Formats that were asked for and that the limit on quality forbids."""
    limit = targets.quality_loss_fraction
    if limit is None or not 0 <= limit < 1:
        return
    losses = model.quality_losses
    kept = _within(model.weights_formats, losses, limit)
    if not kept and set(weights) == set(as_published(model)):
        fact = f"forbids every format of `{model.name}`: {_losses(model.weights_formats, losses)}"
        remedy = _looser(model.weights_formats, losses)
        yield Problem(where=OPTION, value=percent(limit), fact=fact, remedy=remedy)
    else:
        yield from _forbidden("--weights", weights, kept, (losses, limit))
    known, sent = kv_losses(model), activation_losses(model)
    within = _within(model.kv_formats, known, limit)
    yield from _forbidden("--kv", caches, within, (known, limit))
    within = _within(tuple(sent), sent, limit)
    yield from _forbidden("--activations", activations, within, (sent, limit))


def _forbidden(
    option: str, names: Sequence[str], kept: Sequence[str], known: tuple[Mapping[str, float], float]
) -> Iterator[Problem]:
    losses, limit = known
    remedy = "write " + " or ".join(f"`{name}`" for name in kept) if kept else ""
    for name in names:
        if name in kept:
            continue
        said = f"`{OPTION} {percent(limit)}`"
        loss = losses.get(name)
        fact = f"has no known loss of quality, and {said} forbids it"
        if loss is not None:
            fact = f"loses {percent(loss)} of quality, more than {said}"
        yield Problem(where=option, value=name, fact=fact, remedy=remedy)


def _losses(formats: Sequence[str], losses: Mapping[str, float]) -> str:
    """`bf16 loses 0%, int4 1.2%; of int8 nothing is known`."""
    said = [f"{name} loses {percent(losses[name])}" for name in formats if name in losses]
    unknown = [name for name in formats if name not in losses]
    parts = [", ".join(said)] * bool(said)
    parts += [f"nothing is known of {', '.join(unknown)}"] * bool(unknown)
    return "; ".join(parts)


def _looser(formats: Sequence[str], losses: Mapping[str, float]) -> str:
    known = [losses[name] for name in formats if name in losses]
    if not known:
        return "say in `[quality]` of its file what each format loses"
    return f"write `{OPTION} {percent(min(known))}` or more"


def _is_assumed(model: AnyModel, key: str) -> bool:
    return any(value.key == key and value.is_assumed for value in model.provenance)


def quality_words(model: AnyModel, weights: str, cache: str, activations: str = "") -> str:
    """What formats lose against the published ones, as far as it is known.

    `as published`; `int4 weights lose 1.2%, fp8 KV cache: not known`.
    """
    published, sent = as_published(model), {"": 0.0, **activation_losses(model)}
    said = []
    for names, name, part, losses, section in (
        (published, weights, "weights lose", model.quality_losses, "quality"),
        ((model.kv_format,), cache, "KV cache loses", kv_losses(model), "kv_quality"),
        (("", "bf16", "fp16"), activations, "activations lose", sent, "activation_quality"),
    ):
        what, loss = part.rpartition(" ")[0], losses.get(name)
        if loss is None and name not in names[:1]:
            said.append(f"{name} {what}: not known")
        elif loss:
            assumed = " (assumed)" if _is_assumed(model, f"{section}.{name}") else ""
            said.append(f"{name} {part} {percent(loss)}{assumed}")
        elif name not in names:
            said.append(f"{name} {part} nothing")
    return ", ".join(said) or "as published"


def percent(fraction: float) -> str:
    """A fraction as an option takes it.

    >>> percent(0.008), percent(0.0)
    ('0.8%', '0%')
    """
    return f"{100 * fraction:.4g}%"


def diffusion_problems(model: AnyModel, asked_by: str = "--model") -> Iterator[Problem]:
    """One problem if a model is decoded by diffusion, where one token after the other is timed.

    Args:
        asked_by: the option that named it.
    """
    if model.variant is not None and model.variant.how == "diffusion":
        fact = "is decoded by diffusion, and here one token after the other is timed"
        remedy = "`plan` and `plan predict` time its passes, without drafts and with roles together"
        yield Problem(where=asked_by, value=model.name, fact=fact, remedy=remedy)


def context_problems(
    model: AnyModel, n_input_tokens: float, n_output_tokens: float, *, asked_by: str = "--model"
) -> Iterator[Problem]:
    """One problem if a request is longer than what a model attends to; none if nothing limits it.

    A sequence holds what it reads and what it writes. A drafter attends to the same sequence, and
    proposes nothing beyond its end: what it proposes counts no further.

    Args:
        model: that is to serve it, alone or by drafting.
        n_input_tokens, n_output_tokens: of the request.
        asked_by: the option that named the model.
    """
    longest = model.n_context_tokens
    if longest is None or n_input_tokens + n_output_tokens <= longest:
        return
    said = f"{n_input_tokens:.0f} in and {n_output_tokens:.0f} out"
    fact = f"attends to {longest} tokens at most, and a request has {said}"
    room = longest - n_output_tokens
    remedy = f"write `--input {room:.0f}` or less" if room >= 1 else "write fewer `--output`"
    yield Problem(where=asked_by, value=model.name, fact=fact, remedy=remedy)
