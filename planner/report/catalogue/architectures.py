"""A model as classes of layers: what each attends to, holds and keeps."""

from __future__ import annotations

from collections.abc import Iterator

from planner.report.catalogue.figures import described
from planner.report.documents.blocks import Document, Table, section
from planner.report.words import amount, plural
from planner.specs.architecture import Architecture, Experts, Ffn, LayerClass
from planner.specs.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence
from planner.specs.models import FORMAT_BYTES
from planner.units import show

_HEAD = ("class", "layers", "mixer", "FFN", "parameters", "KV a token", "state")
_ALIGN = "<><<>>>"
_NONE = "-"


def document(architecture: Architecture) -> Document:
    """One model: its layers class by class, its size, where its values come from."""
    rows = [_row(architecture, layer) for layer in architecture.layers]
    if architecture.predictors:
        rows.append(_row(architecture, architecture.predictors))
    sections = (
        section("layers", Table(heads=_HEAD, rows=rows, align=_ALIGN)),
        section("size", Table(rows=list(_size(architecture)))),
    )
    closing = [_sources(architecture)]
    return described(architecture.name, architecture.title, sections, closing)


def _row(architecture: Architecture, layer: LayerClass) -> tuple[str, ...]:
    n_params = layer.n_layers * layer.n_params(architecture.d_model)
    mixer = layer.mixer
    n_cached = layer.n_layers * mixer.d_cached if mixer else 0
    state_bytes = layer.n_layers * _state_bytes(mixer)
    width = FORMAT_BYTES[architecture.activation_format]
    return (
        layer.name,
        str(layer.n_layers),
        _mixer_text(mixer),
        _ffn_text(layer.ffn),
        amount(n_params),
        show(n_cached * width, "B") if n_cached else _NONE,
        show(state_bytes, "B") if state_bytes else _NONE,
    )


def _mixer_text(mixer: Mixer | None) -> str:
    if mixer is None:
        return _NONE
    if isinstance(mixer, GroupedAttention):
        gate = ", gated" if mixer.is_gated else ""
        return f"{mixer.n_heads} heads on {mixer.n_kv_heads}, {mixer.d_head} wide{gate}"
    if isinstance(mixer, LatentAttention):
        picked = mixer.indexer
        picks = f", {picked.n_selected_tokens} picked" if picked else ""
        return f"{mixer.n_heads} heads on {mixer.d_kv_latent} + {mixer.d_rope}{picks}"
    return f"{mixer.n_heads} of {mixer.d_key} × {mixer.d_value}"


def _ffn_text(ffn: Ffn | None) -> str:
    if ffn is None:
        return _NONE
    if isinstance(ffn, Experts):
        shared = f" + {ffn.d_shared}" if ffn.d_shared else ""
        return f"{ffn.n_active} of {ffn.n_experts} × {ffn.d_expert}{shared}"
    return f"{ffn.d_ff}{'' if ffn.n_matrices == 3 else ', plain'}"


def _state_bytes(mixer: Mixer | None) -> float:
    """Recurrent state in its own format, inputs of the convolution in 16 bits."""
    if not isinstance(mixer, Recurrence):
        return 0.0
    return mixer.n_state_numbers * mixer.state_bytes_per_number + mixer.n_conv_numbers * 2.0


def _size(architecture: Architecture) -> Iterator[tuple[str, str]]:
    tied = ", tied" if architecture.tied_embeddings else ""
    width = FORMAT_BYTES[architecture.activation_format]
    met = _active(architecture)
    yield "parameters", f"{amount(architecture.n_params)}, of which a token meets {met}"
    yield "embeddings", f"{architecture.vocab_size} × {architecture.d_model}{tied}"
    yield "weights", _weights(architecture)
    cached = architecture.cached_numbers_per_token()
    if cached:
        text = f"{show(cached * width, 'B')} a token, {architecture.activation_format}"
        yield "KV cache", text
    context = architecture.n_context_tokens
    if context and cached:
        held = show(architecture.cached_numbers(context) * width, "B")
        yield "at most", f"{held} a sequence of {context} tokens"
    if architecture.state_bytes():
        yield "state", f"{show(architecture.state_bytes(), 'B')} a sequence"
    variant = architecture.variant
    if variant:
        yield "variant of", f"{variant.of}, {variant.how}; quality: {variant.quality}"
        if variant.n_denoising_steps:
            steps = f"{variant.n_denoising_steps} passes a block of {variant.n_block_tokens} tokens"
            yield "denoising", steps


def _active(architecture: Architecture) -> str:
    if architecture.n_active_params == architecture.n_params:
        return "all"
    return amount(architecture.n_active_params)


def _weights(architecture: Architecture) -> str:
    if not architecture.published_weights:
        return "the config does not say their format"
    return ", ".join(
        f"{name} {show(architecture.n_params * FORMAT_BYTES[name], 'B')}"
        for name in architecture.published_weights
    )


def _sources(architecture: Architecture) -> str:
    n_defaults = sum("default of" in value.source for value in architecture.provenance)
    found = plural(len(architecture.provenance), "value")
    return f"{found}, {n_defaults or 'none'} of them the family's default"
