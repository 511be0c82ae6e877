"""Faults of models that no single value shows: heads that do not divide, counts that differ.

Each check speaks only of values that are sound by themselves, by the fields of the record, so that
a file with a fault elsewhere is still checked, and a record that was altered as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from planner.quantities.tables import packaged_table
from planner.specs.files.file_layouts import DEFAULT_TOLERANCE
from planner.specs.files.formulas import value_of
from planner.specs.files.tables import is_count
from planner.specs.records.models import ModelSpec
from planner.specs.records.shapes import MtpShape
from planner.specs.validation.problems import Finding, repeated

Said = Mapping[str, Any]
"""Values of a record that are sound, by field."""

_RULES = packaged_table("specs/validation/model_coherence.toml")
"""Rules of counts that do not fit together, by the part of a model that they are of."""


def shape_faults(said: Said) -> Iterator[Finding]:
    """Everything in a model that is wrong only together with something else."""
    yield from _rule_faults(said, "heads")
    yield from _part_faults(said)
    yield from _rule_faults(said, "windows")
    yield from variant_faults(said)
    yield from _format_faults(said)
    yield from _checkpoint_faults(said)
    for name in ("weights_formats", "kv_formats", "published_weights"):
        yield from repeated(said.get(name, ()), name)


def file_faults(said: Said) -> Iterator[Finding]:
    """The same of a file, and where it counts other parameters than it says."""
    yield from shape_faults(said)
    # What does not fit together counts wrong besides: that is one fault, told once.
    if not [*_part_faults(said)]:
        yield from _count_faults(said)


def _rule_faults(said: Said, part: str) -> Iterator[Finding]:
    """What breaks the rules of `model_coherence.toml`."""
    has_mla = bool(said.get("mla"))
    for rule in _RULES[part]:
        names = rule["of"].split()
        keys = (name.replace(".", "_") for name in names)
        counts = dict(zip(keys, _counts(said, *names), strict=True))
        is_meant = rule.get("mla", has_mla) == has_mla and all(counts.values())
        if is_meant and value_of(rule["breaks"], counts) > 0:
            remedy = rule.get("remedy", "").format_map(counts)
            yield Finding(rule["field"], rule["fact"].format_map(counts), remedy)


def _part_faults(said: Said) -> Iterator[Finding]:
    """Faults of experts and of latent attention, of which parameters are counted."""
    yield from _rule_faults(said, "parts")
    if said.get("moe") is None and said.get("n_active_params_published") is not None:
        fact, remedy = "is of models with experts", "describe them in [moe], or leave it out"
        yield Finding("n_active_params_published", fact, remedy)
    d_head, d_rope, d_nope = _counts(said, "d_head", "mla.d_rope", "mla.d_nope")
    if d_head and d_rope and d_nope and d_head != d_rope + d_nope:
        fact = f"is not d_rope + d_nope, {d_rope + d_nope}"
        yield Finding("d_head", fact, f"with [mla], write `{d_rope + d_nope}`")


def variant_faults(said: Said) -> Iterator[Finding]:
    """A diffusion decoder without the numbers that time it, or another with them."""
    variant: Any = said.get("variant")
    for name in ("n_denoising_steps", "n_block_tokens") if variant else ():
        value, is_diffusion = getattr(variant, name), variant.how == "diffusion"
        if is_diffusion and value is None:
            yield Finding(f"variant.{name}", "is missing", "a diffusion decoder has it")
        elif value is not None and not is_diffusion:
            yield Finding(f"variant.{name}", "is of diffusion decoders only")


def _format_faults(said: Said) -> Iterator[Finding]:
    caches = [said["kv_format"]] if said.get("kv_format") else []
    for name, published in (
        ("weights_formats", said.get("published_weights", ())),
        ("kv_formats", caches),
    ):
        listed: Sequence[str] = said.get(name, ())
        for one in published if listed else ():
            if one not in listed:
                yield Finding(name, f"lacks one that is published, `{one}`", "list it too")


def _checkpoint_faults(said: Said) -> Iterator[Finding]:
    """Checkpoints in formats that the model does not have; of a file they are by format."""
    listed: Sequence[str] = said.get("weights_formats", ())
    for checkpoint in said.get("checkpoints", ()) if listed else ():
        name = checkpoint if isinstance(checkpoint, str) else checkpoint.format
        if name not in listed:
            fact = "is no format of `formats.weights`"
            yield Finding(f"checkpoints.{name}", fact, "list it there", value=name)


def _model_of(said: Said) -> ModelSpec | None:
    """The model as far as its parameters are counted; None if what counts is missing or unsound."""
    filled: dict[str, Any] = dict.fromkeys(
        ("name", "title", "kv_format", "activation_format", "block"), ""
    )
    filled |= {"weights_formats": (), "n_params_published": 0.0}
    kept = {one.name for one in fields(ModelSpec)} - {"variant", "checkpoints", "n_heads_served"}
    sound = {name: value for name, value in said.items() if name in kept and value != ()}
    parts = [said.get(name) for name in ("moe", "mla", "mtp")]
    if not all(part is None or is_dataclass(part) for part in parts):
        return None
    try:
        return ModelSpec(**filled | sound, n_heads_served=sound.get("n_heads", 0))
    except TypeError:
        return None


def _count_faults(said: Said) -> Iterator[Finding]:
    model = _model_of(said)
    if model is None:
        return
    tolerance = said.get("tolerance") or DEFAULT_TOLERANCE
    counts = (
        ("n_params_published", "", model.n_params, tolerance),
        ("n_active_params_published", "active ", model.n_params_active, DEFAULT_TOLERANCE),
    )
    yield from _mtp_faults(model)
    for name, which, counted, within in counts:
        published = said.get(name)
        if published and abs(counted - published) > within * published:
            has = f"{counted:.4g} {which}parameters, {published:.4g} are published"
            remedy = f"mend the shape: they may differ by {within:.1%}"
            yield Finding(name, f"the shape has {has}", remedy)


MTP_TOLERANCE = 0.05
"""Modules are published in whole billions."""


def _mtp_faults(model: ModelSpec) -> Iterator[Finding]:
    """Publishers count a module with its copies of both embeddings."""
    if model.mtp is None or model.mtp.n_params_published is None:
        return
    published = model.mtp.n_params_published
    single = replace(model, mtp=MtpShape(n_modules=1))
    counted = model.mtp.n_modules * (single.mtp_params + 2 * single.vocab_size * single.d_model)
    if abs(counted - published) > MTP_TOLERANCE * published:
        has = f"{counted:.4g} parameters, {published:.4g} are published"
        remedy = f"mend the shape or their number: they may differ by {MTP_TOLERANCE:.0%}"
        yield Finding("mtp.n_params_published", f"such modules have {has}", remedy)


def _counts(said: Said, *names: str) -> list[int]:
    """Counts by field, `moe.n_experts` of a part; 0 of those that are missing or none."""
    counts: list[Any] = []
    for name in names:
        part, _, field = name.rpartition(".")
        counts.append(getattr(said.get(part), field, None) if part else said.get(field))
    return [one if is_count(one) else 0 for one in counts]
