"""Models as classes of layers, and as layouts shard them.

`architecture_of` always succeeds. `model_spec_of` does but where experts differ from layer to
layer, or are not of one width. Where all layers attend in one way, a window apart, and have FFNs
or experts, few numbers say what they are; else their classes do.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.files.tables import Provenance
from planner.specs.huggingface.layers import Layer, class_of, classes_of, name_of
from planner.specs.records.architecture import Architecture, Experts, FeedForward, Ffn, LayerClass
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence
from planner.specs.records.models import ModelSpec
from planner.specs.records.served_formats import as_published
from planner.specs.records.shapes import MlaShape, MoeShape, MtpShape, WindowShape, moe_shape
from planner.specs.validation.hints import from_fields, of_kind

_MIXERS = (GroupedAttention, LatentAttention, Recurrence)
"""In the order in which those of a model say what its heads are."""

_HINT = "`--engine vllm` knows every kind of layer; `plan models {name}` lists these"


def architecture_of(model: ModelSpec) -> Architecture:
    """A model of a TOML file as classes of layers, with as many parameters.

    A file says how many layers have a window, not which: they are spread evenly, the first of all
    among them, as gpt-oss has it.
    """
    if model.layers:
        return from_fields(Architecture, model, is_parallel_block=model.is_parallel)
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
    mixer = model.mixer_of(model.n_heads)
    if not windowed or model.window is None:
        return mixer
    assert isinstance(mixer, GroupedAttention)
    return replace(mixer, span="window", n_span_tokens=model.window.n_tokens)


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
    """The model as layouts shard it.

    Norms and biases of models of one kind of layers are counted nowhere; `n_params_published` is
    what the architecture counts, unless more is known.

    Args:
        architecture: the model.
        asked_by: the option that named it, for messages.
        written: how it was named; its name if empty.

    Raises:
        SpecError: no layout knows its experts; every reason is named.
    """
    problems = [
        Problem(where=asked_by, value=written or architecture.name, fact=fact, remedy=remedy)
        for fact, remedy in dict.fromkeys(_unknown_to_layouts(architecture))
    ]
    SpecError.raise_if_any(problems, hint=_HINT.format(name=written or architecture.name))
    attention = min(_mixers(architecture), key=lambda mixer: _MIXERS.index(type(mixer)))
    ffns = list(filter(None, map(attrgetter("ffn"), architecture.layers)))
    dense = next(iter(of_kind(FeedForward, ffns)), None)
    moe, of_one_kind = _moe(architecture), dict[str, Any]()
    if not _beyond_one_kind(architecture):
        window, mtp = _window(architecture), _mtp(architecture)
        of_one_kind = {"window": window, "mtp": mtp, "layers": (), "order": ()}
    return from_fields(
        ModelSpec,
        architecture,
        d_ff=dense.d_ff if dense else _inner_width(architecture),
        **_heads(attention),
        n_ffn_matrices=ffns[0].n_matrices if ffns else 2,
        block="parallel" if architecture.is_parallel_block else "serial",
        n_params_published=architecture.n_params_published or float(architecture.n_params),
        published_weights=as_published(architecture),
        provenance=_provenance(architecture),
        n_active_params_published=float(architecture.n_active_params) if moe else None,
        moe=moe,
        **of_one_kind,
    )


def _heads(mixer: Mixer) -> dict[str, Any]:
    """What a model says of its heads, those of states if nothing attends."""
    said: dict[str, Any] = {"n_heads": mixer.n_heads, "n_heads_served": mixer.n_heads}
    if isinstance(mixer, Recurrence):
        return said | {"n_kv_heads": mixer.n_groups, "d_head": mixer.d_value}
    said["d_head"] = mixer.d_head
    if isinstance(mixer, LatentAttention):
        mla = from_fields(MlaShape, mixer, d_value=mixer.d_value_head)
        return said | {"n_kv_heads": mixer.n_heads, "mla": mla}
    return said | {"n_kv_heads": mixer.n_kv_heads, "norms_heads": mixer.norms_heads}


def _mixers(architecture: Architecture) -> list[Mixer]:
    return list(filter(None, map(attrgetter("mixer"), architecture.layers)))


def _unknown_to_layouts(architecture: Architecture) -> list[tuple[str, str]]:
    """Fact and remedy of each thing that no layout knows."""
    experts = of_kind(Experts, map(attrgetter("ffn"), architecture.layers))
    facts = []
    if len({*experts}) > 1:
        facts.append(("has experts of different shapes", "layouts know one"))
    if any(one.d_latent or one.d_shared % one.d_expert for one in experts):
        fact = "has experts behind narrower projections, or shared ones of a part of a routed one"
        facts.append((fact, "layouts know experts of one width that read the residual stream"))
    return facts


def _beyond_one_kind(architecture: Architecture) -> bool:
    """Whether layers differ in more than windows and experts, or are of other kinds."""
    has_experts = [isinstance(architecture.layers[i].ffn, Experts) for i in architecture.order]
    if any(map(_is_unplain, architecture.layers)) or has_experts != sorted(has_experts):
        return True
    # what is one number of all layers
    ffns = list(filter(None, map(attrgetter("ffn"), architecture.layers)))
    kinds: list[Sequence[object]] = [
        [_without_span(it.mixer) for it in architecture.layers],
        [it.n_span_tokens for it in _windows_of(architecture)],
        of_kind(FeedForward, ffns),
        [ffn.n_matrices for ffn in ffns],
    ]
    return any(len({*it}) > 1 for it in kinds)


def _is_unplain(layer: LayerClass) -> bool:
    """Whether a class of layers is of another kind than the fields of one kind say."""
    mixer = layer.mixer
    if isinstance(mixer, LatentAttention):
        return layer.ffn is None or mixer.indexer is not None
    if not isinstance(mixer, GroupedAttention) or layer.ffn is None:
        return True
    unlike = mixer.is_gated or mixer.shares_values or mixer.shares_projection
    chunks = mixer.span == "chunk" or not mixer.makes_keys
    return unlike or chunks or mixer.d_value_head != mixer.d_head


def _without_span(mixer: Mixer | None) -> object:
    if isinstance(mixer, GroupedAttention):
        return mixer.n_heads, mixer.n_kv_heads, mixer.d_head
    return mixer


def _windows_of(architecture: Architecture) -> list[GroupedAttention]:
    mixers = of_kind(GroupedAttention, _mixers(architecture))
    return [mixer for mixer in mixers if mixer.span == "window"]


def _moe(architecture: Architecture) -> MoeShape | None:
    experts = next((c.ffn for c in architecture.layers if isinstance(c.ffn, Experts)), None)
    n_dense = sum(c.n_layers for c in architecture.layers if not isinstance(c.ffn, Experts))
    return None if experts is None else moe_shape(experts, n_dense_layers=n_dense)


def _inner_width(architecture: Architecture) -> int:
    """The width that one token meets where no FFN is without experts: of these, or of states."""
    for layer in architecture.layers:
        if isinstance(layer.ffn, Experts):
            return layer.ffn.n_active * layer.ffn.d_expert + layer.ffn.d_shared
    return max(mixer.n_output_rows for mixer in of_kind(Recurrence, _mixers(architecture)))


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
