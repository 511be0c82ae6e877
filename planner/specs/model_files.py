"""What files of models say: where each value of their records stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.specs.models import (
    Format,
    MlaShape,
    ModelSpec,
    MoeShape,
    MtpShape,
    WindowShape,
)
from planner.specs.served_formats import Checkpoint, RunFormat
from planner.specs.tables import Table
from planner.specs.validation.layouts import Section, lay_out, provenance, record_of
from planner.specs.validation.values import Share
from planner.specs.variants import Variant

DEFAULT_TOLERANCE = 0.02
"""Relative difference between parameters counted and published; of active ones always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """What the checkpoint of a format holds, as a file has it."""

    weights: RunFormat
    experts: RunFormat | None = None
    repository: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another checkpoint of the same shape."""

    repository: str
    source: str
    published: Format | None = None
    weights: RunFormat | None = None
    kv: Format | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile(ModelSpec):
    """A model as its file has it."""

    description: str = ""
    n_heads_served: int | None = None  # type: ignore[assignment]
    checkpoints: Mapping[Format, CheckpointEntry] = field(default_factory=dict)  # type: ignore[assignment]
    alias: tuple[Alias, ...] = ()
    tolerance: Share = DEFAULT_TOLERANCE


lay_out(
    ModelFile,
    Section("model", "name title repository family description", sourced=False),
    Section("", "variant", sourced=False),
    Section("shape", "n_layers d_model d_ff n_heads n_heads_served n_kv_heads d_head vocab_size"),
    Section("shape", "n_ffn_matrices block tied_embeddings norms_heads context=n_context_tokens"),
    Section("", "moe mla window mtp", sourced=False),
    Section("formats.published", "weights=published_weights kv=kv_format"),
    Section("formats", "weights=weights_formats kv=kv_formats activation=activation_format"),
    Section("", "checkpoints alias", sourced=False),
    Section("", "quality=quality_losses kv_quality=kv_quality_losses"),
    Section("check", "n_params=n_params_published n_params_active=n_active_params_published"),
    Section("check", "tolerance", sourced=False),
)
lay_out(
    Variant,
    Section("", "of how quality quality_loss=quality_loss_fraction"),
    Section("", "n_denoising_steps n_block_tokens"),
)
lay_out(
    MoeShape,
    Section("", "n_experts n_active_experts n_shared_experts d_expert n_dense_layers"),
    Section("", "n_groups n_active_groups"),
)
lay_out(MlaShape, Section("", "d_kv_latent d_q_latent d_rope d_nope d_value"))
lay_out(WindowShape, Section("", "n_tokens n_layers"))
lay_out(MtpShape, Section("", "n_modules n_params=n_params_published"))
lay_out(
    CheckpointEntry,
    Section("", "repository", sourced=False),
    Section("", "weights experts"),
)


def build_model(file: ModelFile, table: Table) -> ModelSpec:
    sources = tuple(provenance(ModelFile, table))
    said_by = {one.key: one.source for one in sources}
    variant = file.variant
    if variant is not None:
        quality = f"{variant.quality} ({said_by['variant.quality']})"
        variant = replace(variant, quality=quality)
    return record_of(
        ModelSpec,
        file,
        n_heads_served=file.n_heads_served or file.n_heads,
        provenance=sources,
        variant=variant,
        checkpoints=tuple(
            Checkpoint(
                format=name,
                weights=one.weights,
                experts=one.experts or one.weights,
                repository=one.repository,
                source=said_by[f"checkpoints.{name}.weights"],
            )
            for name, one in file.checkpoints.items()
        ),
    )
