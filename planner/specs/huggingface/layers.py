"""Layers one by one, as families read them, and as classes of equal ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.specs.huggingface.names import RECURRENCES
from planner.specs.records.architecture import Experts, FeedForward, Ffn, LayerClass
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer
from planner.specs.validation.hints import from_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer; see `LayerClass`."""

    mixer: Mixer | None
    ffn: Ffn | None
    n_norm_params: int
    n_other_params: int = 0
    n_borrowed_params: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a family makes of its fields.

    Args:
        layers: from input to output.
        predictor: a layer that predicts a further token; None without.
        n_predictors: how many such layers there are.
        n_other_params: what belongs to no layer: the final norm.
        is_parallel_block: attention and FFN read the same input.
    """

    layers: tuple[Layer, ...]
    predictor: Layer | None = None
    n_predictors: int = 0
    n_other_params: int = 0
    is_parallel_block: bool = False


def stacked(d_model: int, mixers: Iterable[Mixer], ffns: Iterable[Ffn]) -> Body:
    """Layers of a mixer and an FFN, a norm before each of both and one behind all of them."""
    layers = (
        Layer(mixer=mixer, ffn=ffn, n_norm_params=2 * d_model)
        for mixer, ffn in zip(mixers, ffns, strict=True)
    )
    return Body(layers=tuple(layers), n_other_params=d_model)


def classes_of(layers: Sequence[Layer]) -> tuple[tuple[LayerClass, ...], tuple[int, ...]]:
    """Classes of equal layers in the order of their first, and the class of each layer."""
    distinct = list(dict.fromkeys(layers))
    place = {layer: i for i, layer in enumerate(distinct)}
    order = tuple(place[layer] for layer in layers)
    names = [name_of(layer) for layer in distinct]
    classes = tuple(
        class_of(layer, order.count(i), name=_unlike(names, i, layer))
        for i, layer in enumerate(distinct)
    )
    return classes, order


def class_of(layer: Layer, n_layers: int, *, name: str) -> LayerClass:
    return from_fields(LayerClass, layer, name=name, n_layers=n_layers)


def name_of(layer: Layer) -> str:
    """`full attention, experts`."""
    parts = [mixer_name(layer.mixer)] if layer.mixer else []
    if layer.ffn:
        parts.append("experts" if isinstance(layer.ffn, Experts) else "FFN")
    parts += ["shared"] if layer.n_borrowed_params else []
    return ", ".join(parts) or "nothing"


def mixer_name(mixer: Mixer) -> str:
    if isinstance(mixer, LatentAttention):
        if mixer.indexer is None:
            return "latent attention"
        return "sparse latent attention" + (", shared picks" if mixer.indexer.is_shared else "")
    if isinstance(mixer, GroupedAttention):
        name = "full attention"
        if mixer.span != "all":
            name = f"{mixer.span} of {mixer.n_span_tokens}"
        return name if mixer.makes_keys else f"{name}, shared cache"
    return RECURRENCES[mixer.kind]


def _unlike(names: Sequence[str], i: int, layer: Layer) -> str:
    """A name that no other class has."""
    if names.count(names[i]) == 1:
        return names[i]
    if isinstance(layer.ffn, FeedForward):
        return f"{names[i]} of {layer.ffn.d_ff}"
    return f"{names[i]} ({names[: i + 1].count(names[i])})"
