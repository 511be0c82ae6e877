"""The longest context of a config: its positions, stretched as its rotary embedding says.

`linear`, `dynamic` and `yarn` stretch the positions that they were trained with by a factor;
`yarn` says which these were. `llama3` and `longrope` give the stretched length itself, as all
configs do that stretch nothing. A recurrence without attention has no such limit.

Source: vLLM, `_get_and_verify_max_len`, which refuses longer requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.parts import Traits

_STRETCHING = ("linear", "dynamic", "yarn")
_LARGEST = 10_000
"""No factor is larger; one that is has lost its decimal point."""


def context_of(fields: Fields, traits: Traits) -> int | None:
    """Most tokens of one sequence, input and output together; None where nothing limits them."""
    n_positions = fields.optional("n_context_tokens")
    if n_positions is None:
        usual = None if fields.raw("has_alibi") is True else traits.n_context_tokens
        return None if usual is None else fields.count("n_context_tokens", usual)
    for meaning in ("rope_scaling", "rope_parameters"):
        rope = fields.raw(meaning)
        if isinstance(rope, Mapping):
            return _stretched(fields, meaning, n_positions, stretches=traits.stretches_context)
    return n_positions


def _stretched(fields: Fields, meaning: str, n_positions: int, *, stretches: bool) -> int:
    rope = fields.raw(meaning)
    kind = rope.get("rope_type", rope.get("type"))
    if not stretches or kind not in _STRETCHING:
        return n_positions
    factor = rope.get("factor")
    if factor is None:
        return n_positions
    if not _is_number(factor) or not 1.0 <= factor <= _LARGEST:
        fields.fault(meaning, "has a `factor` that is no number from 1", "write `4.0`")
        return n_positions
    trained = rope.get("original_max_position_embeddings") if kind == "yarn" else None
    if trained is not None and not (_is_number(trained) and 1 <= trained <= n_positions * factor):
        fact = "has `original_max_position_embeddings` that are no positions of it"
        fields.fault(meaning, fact, f"write how many it was trained with, `{n_positions}` at most")
        return n_positions
    return int((n_positions if trained is None else trained) * factor)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
