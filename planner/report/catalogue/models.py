"""One model with its numbers and where they come from, by its shape or by classes of layers."""

from collections.abc import Iterable, Iterator

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.catalogue.figures import Figures, assumed_text, described, figures
from planner.report.documents.blocks import Document, Section, Table, section
from planner.report.words import amount, percent, plural
from planner.specs.records.architecture import Architecture, Experts, Ffn, LayerClass
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence

_FIGURES = packaged_table("report/words.toml")["model"]


def document(model: ModelSpec) -> Document:
    """One model: shape, size, sources."""
    padded = model.n_heads_served != model.n_heads
    values = {
        "model": model,
        "served": f", {model.n_heads_served} as served" if padded else "",
        "tied": ", tied embeddings" if model.tied_embeddings else "",
        "context": plural(model.n_context_tokens, "token") if model.n_context_tokens else "",
        "published": amount(model.n_params_published),
        "counted": amount(model.n_params),
        "as_served": amount(model.n_params_served),
        "as_published": _weights_text(model.n_params_served, model.published_weights),
        "weights": _weights_text(
            model.n_params_served,
            [name for name in model.weights_formats if name not in model.published_weights],
        ),
        "active": f"{amount(model.n_active_params_published)} parameters for a token"
        if model.n_active_params_published
        else "",
        "caches": ", ".join(name for name in model.kv_formats if name != model.kv_format),
        "kv": show(model.kv_bytes_per_token, "B"),
    }

    def filled(title: str, rows: Figures) -> Section:
        told = [(label, text.format(**values), key) for label, text, key in rows]
        return figures(title, told, model.provenance)

    sections = (
        filled("shape", _FIGURES["shape"]),
        *_parts(model),
        filled("size", _FIGURES["size"]),
    )
    return described(model.name, model.title, sections, [assumed_text(model.provenance)])


def _weights_text(n_params: float, formats: Iterable[str]) -> str:
    """`bf16 16 GB, fp8 8.03 GB`."""
    return ", ".join(f"{name} {show(n_params * FORMAT_BYTES[name], 'B')}" for name in formats)


def _parts(model: ModelSpec) -> list[Section]:
    """Origin, experts, latent attention, windows and predictors, where the model has them."""
    parts: list[tuple[str, Figures]] = []
    if model.variant:
        loss = model.variant.quality_loss_fraction
        rows = [
            ("of", f"{model.variant.of}, {model.variant.how}", "variant.of"),
            ("quality", model.variant.quality, "variant.quality"),
            ("loses", "unknown" if loss is None else percent(loss), "variant.quality_loss"),
        ]
        parts.append(("variant", rows))
    if model.moe:
        moe = model.moe
        shared = f", and {moe.n_shared_experts} shared" if moe.n_shared_experts else ""
        routed = f"{moe.n_active_experts} of {moe.n_experts} for a token{shared}"
        rows = [
            ("routed", routed, "moe.n_experts"),
            ("d_expert", f"{moe.d_expert}", "moe.d_expert"),
            ("layers", f"{model.n_moe_layers} of {model.n_layers}", "moe.n_dense_layers"),
        ]
        parts.append(("experts", rows))
    if model.mla:
        mla = model.mla
        rows = [
            ("KV latent", f"{mla.d_kv_latent}, and {mla.d_rope} rotated", "mla.d_kv_latent"),
            ("query latent", f"{mla.d_q_latent or 'none'}", "mla.d_q_latent"),
            ("head", f"{mla.d_nope} + {mla.d_rope}, value {mla.d_value}", "mla.d_nope"),
        ]
        parts.append(("latent attention", rows))
    if model.window:
        words = f"{model.window.n_layers} of {model.n_layers}"
        rows = [
            ("tokens", f"{model.window.n_tokens}", "window.n_tokens"),
            ("layers", words, "window.n_layers"),
        ]
        parts.append(("window", rows))
    if model.mtp:
        modules = f"{plural(model.mtp.n_modules, 'module')}, like the last layer"
        said = model.mtp.n_params_published
        both = f"; {amount(said)} with copies of both embeddings" if said else ""
        apart = f"{amount(model.mtp_params)}, in no other count{both}"
        rows = [("predicts", modules, "mtp.n_modules"), ("parameters", apart, "mtp.n_params")]
        parts.append(("further tokens", rows))
    return [figures(title, rows, model.provenance) for title, rows in parts]


_HEAD = ("class", "layers", "mixer", "FFN", "parameters", "KV a token", "state")
_ALIGN = "<><<>>>"
_NONE = "-"


def layers_document(architecture: Architecture) -> Document:
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
    encoders = architecture.n_encoder_params
    if encoders:
        yield "encoders", f"{amount(encoders)} besides, of images or sound, in 16 bits"
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
    return _weights_text(architecture.n_params, architecture.published_weights)


def _sources(architecture: Architecture) -> str:
    n_defaults = sum("default of" in value.source for value in architecture.provenance)
    n_values = plural(len(architecture.provenance), "value")
    return f"{n_values}, {n_defaults or 'none'} of them the family's default"
