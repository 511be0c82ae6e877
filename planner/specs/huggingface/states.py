"""Recurrences as the fields of a config describe them: what they keep, and their parameters."""

from typing import Any

from planner.quantities.tables import packaged_table
from planner.specs.files.formulas import value_of
from planner.specs.huggingface.fields import Fields
from planner.specs.records.mixers import Recurrence, StateKind

_ROWS: dict[str, dict[str, Any]] = packaged_table("specs/huggingface/states.toml")
_FLAGS = {"true": True, "false": False}
_STATE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def recurrence(f: Fields, kind: StateKind, **said: int) -> Recurrence:
    """A recurrence of a kind, by the row of `states.toml`.

    Args:
        said: what its formulas name and no field of the config says as it is.
    """
    row = _ROWS[kind]
    for meaning, _, usual in (read.partition("=") for read in row["reads"].split()):
        if usual in _FLAGS:
            said[meaning] = f.flag(meaning, default=_FLAGS[usual])
        else:
            said[meaning] = f.count(meaning, int(usual) if usual else None)
    for field, formula in row["makes"].items():
        said[field] = int(value_of(formula, said))
    made: dict[str, Any] = {field: said[field] for field in row["makes"]}
    if "has_state_type" in row:
        made["state_bytes_per_number"] = _state_bytes(f)
    return Recurrence(kind=kind, **made)


def delta(f: Fields) -> Recurrence:
    n_key_heads, n_value_heads = f.count("n_key_heads"), f.count("n_value_heads")
    if f.is_sound("n_key_heads", "n_value_heads") and n_value_heads % n_key_heads:
        f.fault("n_value_heads", f"is not a multiple of the key heads, {n_key_heads}")
    return recurrence(f, "delta")


def rwkv6(f: Fields) -> Recurrence:
    d_model, d_head = f.count("d_model"), f.count("d_linear_head", 64)
    d_inner = f.count("d_linear", d_model)
    n_heads = max(1, d_inner // d_head)
    f.dismiss("n_heads")  # of whatever else a config says, there are as many as fit
    if f.is_sound("d_linear", "d_linear_head") and n_heads * d_head != d_inner:
        f.fault("d_linear_head", f"does not divide the width of time mixing, {d_inner}")
    d_mix, d_decay = (64, 128) if d_model == 4096 else (32, 64)  # of projections that make these
    widths = {"d_model": d_model, "d_inner": d_inner, "d_mix": d_mix, "d_decay": d_decay}
    return recurrence(f, "rwkv6", n_heads=n_heads, d_head=d_head, **widths)


def lightning(f: Fields) -> Recurrence:
    n_heads = f.count("n_heads")
    d_head = f.count("d_head", max(1, f.count("d_model") // n_heads))
    return recurrence(f, "lightning", n_heads=n_heads, d_head=d_head)


def mamba1(f: Fields, *, has_inner_norms: bool) -> Recurrence:
    is_usual = f.raw("n_time_rank") in (None, "auto")
    rank = -(-f.count("d_model") // 16) if is_usual else f.count("n_time_rank")
    return recurrence(f, "mamba1", rank=rank, has_inner_norms=has_inner_norms)


def mamba2(f: Fields, n_heads: int, d_head: int, *, is_normed: bool = True) -> Recurrence:
    mixer = recurrence(f, "mamba2", n_heads=n_heads, d_head=d_head, is_normed=is_normed)
    if f.is_sound("n_state_groups", "n_state_heads") and n_heads % mixer.n_groups:
        f.fault("n_state_groups", f"does not divide the heads of the state, {n_heads}")
    return mixer


def mamba2_beside(f: Fields, *, is_normed: bool = True) -> Recurrence:
    """Mamba 2 in models with attention too, whose heads may be left to the width of the state."""
    d_usual = f.count("expansion", 2) * f.count("d_model")
    d_inner = f.optional("d_state_inner") or d_usual
    n_heads = f.count("n_state_heads")
    if f.raw("d_state_head") in (None, "auto"):
        return mamba2(f, n_heads, max(1, d_inner // n_heads), is_normed=is_normed)
    return mamba2(f, n_heads, f.count("d_state_head"), is_normed=is_normed)


def _state_bytes(f: Fields) -> float:
    """States are kept in single precision unless the config says otherwise."""
    word = f.text("state_dtype", "float32")
    if word not in _STATE_BYTES:
        f.fault("state_dtype", "is no type of states", f"known are {', '.join(_STATE_BYTES)}")
    return _STATE_BYTES.get(word, 4.0)
