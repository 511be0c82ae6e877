"""Models as classes of layers, and as the one kind of layer that the layout programs shard.

`architecture_of` always succeeds. `model_spec_of` does where all layers attend in one way,
a window apart, and have FFNs or experts; what no layout knows is named.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from planner.errors import Problem, SpecError
from planner.specs.files.tables import Provenance
from planner.specs.huggingface.layers import Layer, class_of, classes_of, name_of
from planner.specs.records.architecture import Architecture, Experts, FeedForward, Ffn, LayerClass
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence
from planner.specs.records.models import MlaShape, ModelSpec, MoeShape, MtpShape, WindowShape
from planner.specs.records.served_formats import as_published
from planner.specs.validation.hints import from_fields, of_kind

_HINT = "`plan predict` and `--engine` know every kind of layer; `plan models {name}` lists these"


def architecture_of(model: ModelSpec) -> Architecture:
    """A model of a TOML file as classes of layers, with as many parameters.

    A file says how many layers have a window, not which: they are spread evenly, the first of all
    among them, as gpt-oss has it.
    """
    layers = [
        Layer(mixer=_mixer(model, windowed=windowed), ffn=_ffn(model, i), n_norm_params=0)
        for i, windowed in enumerate(_windows(model))
    ]
    classes, order = classes_of(layers)
    return from_fields(
        Architecture,
        model,
        layers=classes,
        order=order,
        predictors=_predictors(model, layers[-1]),
        is_parallel_block=model.is_parallel,
    )


def _predictors(model: ModelSpec, last: Layer) -> LayerClass | None:
    """Modules that predict further tokens: layers like the last one, each joined to an input."""
    if model.mtp is None:
        return None
    module = replace(last, n_other_params=2 * model.d_model**2)
    return class_of(module, model.mtp.n_modules, name=f"predictor: {name_of(module)}")


def _windows(model: ModelSpec) -> list[bool]:
    n_windows = model.window.n_layers if model.window else 0
    n_layers = model.n_layers
    ends = [-(-i * n_windows // n_layers) for i in range(n_layers + 1)]
    return [after > before for before, after in pairwise(ends)]


def _mixer(model: ModelSpec, *, windowed: bool) -> Mixer:
    if model.mla:
        return from_fields(
            LatentAttention, model.mla, n_heads=model.n_heads, d_value_head=model.mla.d_value
        )
    return from_fields(
        GroupedAttention,
        model,
        d_value_head=model.d_head,
        span="window" if windowed else "all",
        n_span_tokens=model.window.n_tokens if model.window and windowed else None,
    )


def _ffn(model: ModelSpec, i: int) -> Ffn:
    if model.moe is None or i < model.moe.n_dense_layers:
        return FeedForward(d_ff=model.d_ff, n_matrices=model.n_ffn_matrices)
    return from_fields(
        Experts,
        model.moe,
        n_active=model.moe.n_active_experts,
        d_shared=model.moe.n_shared_experts * model.moe.d_expert,
        n_matrices=model.n_ffn_matrices,
    )


def model_spec_of(
    architecture: Architecture, *, asked_by: str = "--model", written: str = ""
) -> ModelSpec:
    """The model that the layout programs shard.

    Norms and biases are counted nowhere in it; `n_params_published` is what the architecture
    counts, unless more is known.

    Args:
        architecture: the model.
        asked_by: the option that named it, for messages.
        written: how it was named; its name if empty.

    Raises:
        SpecError: a layer is of a kind that no layout knows; every such kind is named.
    """
    problems = [
        Problem(where=asked_by, value=written or architecture.name, fact=fact, remedy=remedy)
        for fact, remedy in dict.fromkeys(_unknown_to_layouts(architecture))
    ]
    SpecError.raise_if_any(problems, hint=_HINT.format(name=written or architecture.name))
    attention = architecture.layers[0].mixer
    assert isinstance(attention, GroupedAttention | LatentAttention)
    is_latent = isinstance(attention, LatentAttention)
    moe = _moe(architecture)
    dense = next((c.ffn for c in architecture.layers if isinstance(c.ffn, FeedForward)), None)
    ffn = architecture.layers[0].ffn
    assert ffn is not None
    return from_fields(
        ModelSpec,
        architecture,
        d_ff=dense.d_ff if dense else _d_ff_of_experts(architecture),
        n_heads=attention.n_heads,
        n_heads_served=attention.n_heads,
        n_kv_heads=getattr(attention, "n_kv_heads", attention.n_heads),
        d_head=attention.d_head,
        n_ffn_matrices=ffn.n_matrices,
        block="parallel" if architecture.is_parallel_block else "serial",
        norms_heads=getattr(attention, "norms_heads", False),
        n_params_published=architecture.n_params_published or float(architecture.n_params),
        published_weights=as_published(architecture),
        provenance=_provenance(architecture),
        n_active_params_published=float(architecture.n_active_params) if moe else None,
        moe=moe,
        mla=_mla(attention) if is_latent else None,
        window=_window(architecture),
        mtp=_mtp(architecture),
    )


def _unknown_to_layouts(architecture: Architecture) -> list[tuple[str, str]]:
    """Fact and remedy of each thing that no layout knows."""
    facts = [fact for layer in architecture.layers for fact in _unknown_in(layer)]
    return facts or _unlike_layers(architecture)


def _unlike_layers(architecture: Architecture) -> list[tuple[str, str]]:
    """What layouts know of all layers alike, and differs from one to the next."""
    ffns = list(filter(None, map(attrgetter("ffn"), architecture.layers)))
    kinds: dict[str, Sequence[object]] = {
        "layers that attend in different ways": [
            _without_span(it.mixer) for it in architecture.layers
        ],
        "windows of different widths": [it.n_span_tokens for it in _windows_of(architecture)],
        "FFNs of different shapes": of_kind(FeedForward, ffns),
        "experts of different shapes": of_kind(Experts, ffns),
        "gated and plain FFNs": [ffn.n_matrices for ffn in ffns],
    }
    facts = [f"has {what}" for what, all_of_it in kinds.items() if len({*all_of_it}) > 1]
    if not facts and not _dense_come_first(architecture):
        return [("has FFNs after layers with experts", "layouts know them before only")]
    return [(fact, "layouts know one") for fact in facts]


def _unknown_in(layer: LayerClass) -> list[tuple[str, str]]:
    """What no layout knows of one class of layers."""
    mixer, ffn = layer.mixer, layer.ffn
    many = "layer" if layer.n_layers == 1 else "layers"
    unknown = f"has {layer.n_layers} {many} of a kind that no layout shards, {layer.name}"
    if mixer is None or ffn is None or isinstance(mixer, Recurrence):
        return [(unknown, "")]
    reasons: dict[str, object] = {}
    if isinstance(mixer, LatentAttention):
        reasons["they attend to picked tokens"] = mixer.indexer
    if isinstance(mixer, GroupedAttention):
        unlike = (mixer.is_gated, mixer.shares_values, mixer.shares_projection)
        reasons |= {
            "they attend within chunks": mixer.span == "chunk",
            "they read another layer's cache": not mixer.makes_keys,
            "their projections are not those of plain attention": any(unlike),
            "values are not as wide as keys": mixer.d_value_head != mixer.d_head,
        }
    if isinstance(ffn, Experts):
        reasons["its experts are not of one width"] = ffn.d_latent or ffn.d_shared % ffn.d_expert
    return [(unknown, reason) for reason, holds in reasons.items() if holds]


def _without_span(mixer: Mixer | None) -> object:
    if isinstance(mixer, GroupedAttention):
        return mixer.n_heads, mixer.n_kv_heads, mixer.d_head
    return mixer


def _windows_of(architecture: Architecture) -> list[GroupedAttention]:
    mixers = of_kind(GroupedAttention, (layer.mixer for layer in architecture.layers))
    return [mixer for mixer in mixers if mixer.span == "window"]


def _dense_come_first(architecture: Architecture) -> bool:
    kinds = [isinstance(architecture.layers[i].ffn, Experts) for i in architecture.order]
    return kinds == sorted(kinds)


def _moe(architecture: Architecture) -> MoeShape | None:
    experts = next((c.ffn for c in architecture.layers if isinstance(c.ffn, Experts)), None)
    if experts is None:
        return None
    n_dense = sum(c.n_layers for c in architecture.layers if not isinstance(c.ffn, Experts))
    return from_fields(
        MoeShape,
        experts,
        n_active_experts=experts.n_active,
        n_shared_experts=experts.d_shared // experts.d_expert,
        n_dense_layers=n_dense,
    )


def _d_ff_of_experts(architecture: Architecture) -> int:
    """The width that one token meets, where no FFN is without experts."""
    experts = next(c.ffn for c in architecture.layers if isinstance(c.ffn, Experts))
    return experts.n_active * experts.d_expert + experts.d_shared


def _mla(attention: Mixer | None) -> MlaShape:
    assert isinstance(attention, LatentAttention)
    return from_fields(MlaShape, attention, d_value=attention.d_value_head)


def _window(architecture: Architecture) -> WindowShape | None:
    attentions = _windows_of(architecture)
    if not attentions or attentions[0].n_span_tokens is None:
        return None
    n_layers = sum(layer.n_layers for layer in architecture.layers if layer.mixer in attentions)
    return WindowShape(n_tokens=attentions[0].n_span_tokens, n_layers=n_layers)


def _mtp(architecture: Architecture) -> MtpShape | None:
    """Predictors, where they are layers like the last one."""
    layer = architecture.predictors
    last = architecture.layers[architecture.order[-1]]
    if layer is None or (layer.mixer, layer.ffn) != (last.mixer, last.ffn):
        return None
    return MtpShape(n_modules=layer.n_layers)


def _provenance(architecture: Architecture) -> tuple[Provenance, ...]:
    """Sources under the keys of a TOML model, for reports."""
    source = f"config.json of {architecture.name}"
    counted = Provenance(key="check.n_params", source=f"counted from the {source}")
    shape = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "d_head", "vocab_size",
             "n_ffn_matrices", "block")  # fmt: skip
    return (*(Provenance(key=f"shape.{key}", source=source) for key in shape), counted)
