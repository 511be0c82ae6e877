"""Faults of models that no single value shows: heads that do not divide, counts that differ.

Each check reads the raw table and speaks only where the values it needs are sound, so
that a file with a fault elsewhere is still checked in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.errors import Problem
from planner.specs.coherence import repeated
from planner.specs.models import MlaShape, ModelSpec, MoeShape, MtpShape
from planner.specs.schemas import DEFAULT_TOLERANCE
from planner.specs.tables import Table, is_count, literal, value_at


class _UnsoundError(Exception):
    """A value is missing or wrong; the schema says so."""


def model_problems(table: Table, shown: str) -> Iterator[Problem]:
    """Everything in a model file that is wrong only together with something else."""
    in_pieces = [*_moe_faults(table), *_mla_faults(table)]
    faults = [
        *_head_faults(table),
        *in_pieces,
        *_window_faults(table),
        *_variant_faults(table),
        # What does not fit together counts wrong besides: that is one fault, told once.
        *(() if in_pieces else _count_faults(table)),
        *_format_faults(table),
        *_checkpoint_faults(table),
    ]
    for key, value, fact, remedy in faults:
        text = literal(value)
        yield Problem(where=shown, key=key, value=text, fact=fact, remedy=remedy)
    lists = (("formats", "weights"), ("formats", "kv"), ("formats.published", "weights"))
    for section, name in lists:
        yield from repeated(value_at(table, section, name), f"{section}.{name}", shown)


_Faults = Iterator[tuple[str, object, str, str]]
"""Key, value, fact, remedy."""


def _head_faults(table: Table) -> _Faults:
    heads, kv_heads = _count(table, "shape", "n_heads"), _count(table, "shape", "n_kv_heads")
    served = _count(table, "shape", "n_heads_served")
    for key, n_heads in (("n_heads", heads), ("n_heads_served", served)):
        if "mla" not in table and n_heads and kv_heads and n_heads % kv_heads:
            fact = f"is not a multiple of n_kv_heads, {kv_heads}"
            yield f"shape.{key}", n_heads, fact, "each key-value head serves as many query heads"
    if heads and served and served < heads:
        fact = f"is fewer than n_heads, {heads}"
        yield "shape.n_heads_served", served, fact, "heads are padded, never dropped"


def _moe_faults(table: Table) -> _Faults:
    n_layers = _count(table, "shape", "n_layers")
    n_experts, n_active = (_count(table, "moe", key) for key in ("n_experts", "n_active_experts"))
    n_dense = _count(table, "moe", "n_dense_layers")
    if n_experts == 1:
        remedy = "leave [moe] out: `shape.d_ff` describes the FFN"
        yield "moe.n_experts", n_experts, "is a dense model", remedy
    if n_experts and n_active > n_experts:
        fact = f"is more than n_experts, {n_experts}"
        yield "moe.n_active_experts", n_active, fact, "a token visits each expert once at most"
    if n_layers and n_dense >= n_layers:
        fact = f"leaves none of {n_layers} layers to experts"
        yield "moe.n_dense_layers", n_dense, fact, "write fewer, or leave [moe] out"
    yield from _group_faults(table, n_experts)
    n_met = value_at(table, "check", "n_params_active")
    if "moe" not in table and n_met is not None:
        fact, remedy = "is of models with experts", "describe them in [moe], or leave it out"
        yield "check.n_params_active", n_met, fact, remedy


def _group_faults(table: Table, n_experts: int) -> _Faults:
    n_groups, n_chosen = (_count(table, "moe", key) for key in ("n_groups", "n_active_groups"))
    if n_experts and n_groups and n_experts % n_groups:
        yield "moe.n_groups", n_groups, f"does not divide n_experts, {n_experts}", ""
    if n_chosen and n_chosen > (n_groups or 1):
        fact = f"is more than n_groups, {n_groups or 1}"
        yield "moe.n_active_groups", n_chosen, fact, "routing is limited to some of them"


def _variant_faults(table: Table) -> _Faults:
    """A diffusion decoder without the numbers that time it, or another with them."""
    is_diffusion = value_at(table, "variant", "how") == "diffusion"
    for key in ("n_denoising_steps", "n_block_tokens"):
        value = value_at(table, "variant", key)
        if is_diffusion and value is None:
            yield f"variant.{key}", "", "is missing", "a diffusion decoder has it"
        elif value is not None and not is_diffusion:
            yield f"variant.{key}", value, "is of diffusion decoders only", ""


def _mla_faults(table: Table) -> _Faults:
    heads, kv_heads = _count(table, "shape", "n_heads"), _count(table, "shape", "n_kv_heads")
    d_head = _count(table, "shape", "d_head")
    d_rope, d_nope = _count(table, "mla", "d_rope"), _count(table, "mla", "d_nope")
    if d_head and d_rope and d_nope and d_head != d_rope + d_nope:
        fact = f"is not d_rope + d_nope, {d_rope + d_nope}"
        yield "shape.d_head", d_head, fact, f"with [mla], write `{d_rope + d_nope}`"
    if "mla" in table and heads and kv_heads and heads != kv_heads:
        fact = f"is not n_heads, {heads}"
        yield "shape.n_kv_heads", kv_heads, fact, f"with [mla] a head has its own: write `{heads}`"


def _window_faults(table: Table) -> _Faults:
    n_layers, n_windowed = (_count(table, section, "n_layers") for section in ("shape", "window"))
    if n_layers and n_windowed > n_layers:
        fact = f"is more than the model has, {n_layers}"
        yield "window.n_layers", n_windowed, fact, "count the layers that have a window"


def _format_faults(table: Table) -> _Faults:
    for key in ("weights", "kv"):
        listed = value_at(table, "formats", key)
        published = value_at(table, "formats.published", key)
        if not isinstance(listed, list) or not listed:
            continue
        for name in published if isinstance(published, list) else [published]:
            if isinstance(name, str) and name not in listed:
                fact = f"lacks one that is published, `{name}`"
                yield f"formats.{key}", listed, fact, "list it too"


def _checkpoint_faults(table: Table) -> _Faults:
    listed, known = value_at(table, "formats", "weights"), table.get("checkpoints")
    for name in known if isinstance(known, dict) and isinstance(listed, list) else ():
        if name not in listed:
            yield f"checkpoints.{name}", name, "is no format of `formats.weights`", "list it there"


def _count_faults(table: Table) -> _Faults:
    try:
        model = _model_of(table)
    except _UnsoundError:
        return
    tolerance = value_at(table, "check", "tolerance", default=DEFAULT_TOLERANCE)
    counts = (
        ("n_params", "", model.n_params, tolerance),
        ("n_params_active", "active ", model.n_params_active, DEFAULT_TOLERANCE),
    )
    yield from _mtp_faults(table, model)
    for key, which, counted, within in counts:
        published = value_at(table, "check", key)
        if not _is_positive(published) or not _is_positive(within):
            continue
        if abs(counted - published) > within * published:
            said = f"{counted:.4g} {which}parameters, {published:.4g} are published"
            remedy = f"mend the shape: they may differ by {within:.1%}"
            yield f"check.{key}", published, f"the shape has {said}", remedy


MTP_TOLERANCE = 0.05
"""Modules are published in whole billions."""


def _mtp_faults(table: Table, model: ModelSpec) -> _Faults:
    """Publishers count a module with its copies of both embeddings."""
    published = value_at(table, "mtp", "n_params")
    n_modules = _count(table, "mtp", "n_modules")
    if not _is_positive(published) or not n_modules:
        return
    one = replace(model, mtp=MtpShape(n_modules=1))
    counted = n_modules * (one.mtp_params + 2 * one.vocab_size * one.d_model)
    if abs(counted - published) > MTP_TOLERANCE * published:
        said = f"{counted:.4g} parameters, {published:.4g} are published"
        remedy = f"mend the shape or their number: they may differ by {MTP_TOLERANCE:.0%}"
        yield "mtp.n_params", published, f"such modules have {said}", remedy


def _model_of(table: Table) -> ModelSpec:
    """A model of the file's shape, to count its parameters.

    Raises:
        _UnsoundError: a value that counts is missing or wrong.
    """
    shape = _Counts(table, "shape")
    n_ffn_matrices, tied = shape["n_ffn_matrices"], value_at(table, "shape", "tied_embeddings")
    if n_ffn_matrices not in (2, 3) or not isinstance(tied, bool):
        raise _UnsoundError
    return ModelSpec(
        name="",
        title="",
        n_layers=shape["n_layers"],
        d_model=shape["d_model"],
        d_ff=shape["d_ff"],
        n_heads=shape["n_heads"],
        n_heads_served=shape["n_heads"],
        n_kv_heads=shape["n_kv_heads"],
        d_head=shape["d_head"],
        vocab_size=shape["vocab_size"],
        n_ffn_matrices=n_ffn_matrices,
        block="",
        tied_embeddings=tied,
        n_params_published=0.0,
        weights_formats=(),
        kv_format="",
        activation_format="",
        moe=_moe_of(table),
        mla=_mla_of(table),
    )


def _moe_of(table: Table) -> MoeShape | None:
    moe = _Counts(table, "moe")
    if not moe.is_given:
        return None
    return MoeShape(
        n_experts=moe["n_experts"],
        n_active_experts=moe["n_active_experts"],
        n_shared_experts=moe.spare("n_shared_experts"),
        d_expert=moe["d_expert"],
        n_dense_layers=moe.spare("n_dense_layers"),
    )


def _mla_of(table: Table) -> MlaShape | None:
    mla = _Counts(table, "mla")
    if not mla.is_given:
        return None
    return MlaShape(
        d_kv_latent=mla["d_kv_latent"],
        d_q_latent=mla.spare("d_q_latent") or None,
        d_rope=mla["d_rope"],
        d_nope=mla["d_nope"],
        d_value=mla["d_value"],
    )


class _Counts:
    """The counts of one section of a file; one that is not sound raises `_UnsoundError`."""

    def __init__(self, table: Table, section: str) -> None:
        self.table, self.section = table, section

    @property
    def is_given(self) -> bool:
        return self.section in self.table

    def __getitem__(self, key: str) -> int:
        if not (count := _count(self.table, self.section, key)):
            raise _UnsoundError
        return count

    def spare(self, key: str) -> int:
        """A count that may be zero, or left out."""
        return self[key] if value_at(self.table, self.section, key, default=0) != 0 else 0


def _count(table: Table, section: str, key: str) -> int:
    """A count of a section; 0 if it is missing or no positive whole number."""
    found = value_at(table, section, key)
    return found if is_count(found) else 0


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e30
