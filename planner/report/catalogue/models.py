"""One model with its numbers and where they come from."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.catalogue.figures import Figures, assumed_text, described, figures
from planner.report.documents.blocks import Document, Section
from planner.report.lines import percent
from planner.report.words import amount, plural
from planner.specs.records import FORMAT_BYTES, ModelSpec
from planner.units import show

_SHAPE = (
    ("layers", "{model.n_layers}", "shape.n_layers"),
    ("d_model", "{model.d_model}", "shape.d_model"),
    ("d_ff", "{model.d_ff}", "shape.d_ff"),
    ("heads", "{model.n_heads}{served}", "shape.n_heads"),
    ("KV heads", "{model.n_kv_heads}", "shape.n_kv_heads"),
    ("d_head", "{model.d_head}", "shape.d_head"),
    ("vocabulary", "{model.vocab_size}{tied}", "shape.vocab_size"),
    ("FFN matrices", "{model.n_ffn_matrices}", "shape.n_ffn_matrices"),
    ("block", "{model.block}", "shape.block"),
    ("context", "{context}", "shape.context"),
)
_SIZE = (
    ("published", "{published} parameters", "check.n_params"),
    ("counted", "{counted} parameters", ""),
    ("active", "{active}", "check.n_params_active"),
    ("as served", "{as_served} parameters", "shape.n_heads_served"),
    ("weights", "{as_published}", "formats.published.weights"),
    ("  or in", "{weights}", "formats.weights"),
    ("KV cache", "{kv} a token, {model.kv_format}", "formats.published.kv"),
    ("  or in", "{caches}", "formats.kv"),
    ("activations", "{model.activation_format}", "formats.activation"),
)


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
        "as_published": _weights_text(model, model.published_weights),
        "weights": _weights_text(
            model, [name for name in model.weights_formats if name not in model.published_weights]
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

    sections = (filled("shape", _SHAPE), *_parts(model), filled("size", _SIZE))
    return described(model.name, model.title, sections, [assumed_text(model.provenance)])


def _weights_text(model: ModelSpec, formats: Sequence[str]) -> str:
    """`bf16 16 GB, fp8 8.03 GB`."""
    return ", ".join(
        f"{name} {show(model.n_params_served * FORMAT_BYTES[name], 'B')}" for name in formats
    )


def _parts(model: ModelSpec) -> list[Section]:
    """Origin, experts, latent attention, windows and predictors, where the model has them."""
    found: list[tuple[str, Figures]] = []
    if model.variant:
        loss = model.variant.quality_loss_fraction
        rows = [
            ("of", f"{model.variant.of}, {model.variant.how}", "variant.of"),
            ("quality", model.variant.quality, "variant.quality"),
            ("loses", "unknown" if loss is None else percent(loss), "variant.quality_loss"),
        ]
        found.append(("variant", rows))
    if model.moe:
        moe = model.moe
        shared = f", and {moe.n_shared_experts} shared" if moe.n_shared_experts else ""
        routed = f"{moe.n_active_experts} of {moe.n_experts} for a token{shared}"
        rows = [
            ("routed", routed, "moe.n_experts"),
            ("d_expert", f"{moe.d_expert}", "moe.d_expert"),
            ("layers", f"{model.n_moe_layers} of {model.n_layers}", "moe.n_dense_layers"),
        ]
        found.append(("experts", rows))
    if model.mla:
        mla = model.mla
        rows = [
            ("KV latent", f"{mla.d_kv_latent}, and {mla.d_rope} rotated", "mla.d_kv_latent"),
            ("query latent", f"{mla.d_q_latent or 'none'}", "mla.d_q_latent"),
            ("head", f"{mla.d_nope} + {mla.d_rope}, value {mla.d_value}", "mla.d_nope"),
        ]
        found.append(("latent attention", rows))
    if model.window:
        words = f"{model.window.n_layers} of {model.n_layers}"
        rows = [
            ("tokens", f"{model.window.n_tokens}", "window.n_tokens"),
            ("layers", words, "window.n_layers"),
        ]
        found.append(("window", rows))
    if model.mtp:
        modules = f"{plural(model.mtp.n_modules, 'module')}, like the last layer"
        said = model.mtp.n_params_published
        both = f"; {amount(said)} with copies of both embeddings" if said else ""
        apart = f"{amount(model.mtp_params)}, in no other count{both}"
        rows = [("predicts", modules, "mtp.n_modules"), ("parameters", apart, "mtp.n_params")]
        found.append(("further tokens", rows))
    return [figures(title, rows, model.provenance) for title, rows in found]
