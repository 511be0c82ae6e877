"""Families that a search has pruned layer by layer: `block_configs` says what is left."""

from __future__ import annotations

from typing import Any

from planner.specs.architecture import FeedForward
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer
from planner.specs.mixers import GroupedAttention

_MULTIPLE = 256
_NO_ATTENTION_OF = ("replace_with_linear", "sparsify", "num_sink_tokens", "unshifted_sink",
                    "use_prefill_window_in_sink_attention", "window_length")  # fmt: skip


def nemotron_nas(f: Fields) -> Body:
    """Llama layers, some without attention, with fewer keys, or with a narrower FFN.

    FFN widths are two thirds of a multiple of `hidden_size`, rounded up to 256.
    Source: `modeling_decilm.py` of nvidia/Llama-3_3-Nemotron-Super-49B-v1.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    f.dismiss("d_ff", "n_kv_heads", "has_attention_bias", "has_ffn_bias")
    blocks = f.raw("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        f.fault("blocks", "is not a list of tables", "it says what is left of each layer")
        blocks = []
    elif len(blocks) != n_layers and f.is_sound("n_layers"):
        f.fault("blocks", f"has {len(blocks)} entries, but there are {n_layers} layers")
    return Body(
        layers=tuple(_layer(f, block, i) for i, block in enumerate(blocks)), n_other_params=d_model
    )


def _layer(f: Fields, block: dict[str, Any], i: int) -> Layer:
    attention, ffn = (_attention(f, block.get("attention"), i), _ffn(f, block.get("ffn"), i))
    n_norms = (attention is not None) + (ffn is not None)
    return Layer(mixer=attention, ffn=ffn, n_norm_params=n_norms * f.count("d_model"))


def _attention(f: Fields, table: Any, i: int) -> GroupedAttention | None:  # noqa: ANN401 as JSON
    table = _checked(f, table, f"[{i}].attention")
    if table.get("no_op"):
        return None
    n_heads, d_model = f.count("n_heads"), f.count("d_model")
    n_sharing = table.get("n_heads_in_group", 1)
    if not isinstance(n_sharing, int) or n_sharing < 1 or n_heads % n_sharing:
        f.fault("blocks", f"[{i}].attention.n_heads_in_group does not divide {n_heads} heads")
        n_sharing = 1
    d_head = max(1, d_model // n_heads)
    n_kv_heads = n_heads // n_sharing
    return GroupedAttention(
        n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_head, d_value_head=d_head
    )


def _ffn(f: Fields, table: Any, i: int) -> FeedForward | None:  # noqa: ANN401 as JSON has it
    table = _checked(f, table, f"[{i}].ffn")
    if table.get("no_op"):
        return None
    multiple = table.get("ffn_mult")
    if not isinstance(multiple, int | float) or not 0 < multiple < 1_000:
        f.fault("blocks", f"[{i}].ffn.ffn_mult is not a positive number")
        multiple = 1
    width = int(2 * multiple * f.count("d_model") / 3)
    return FeedForward(d_ff=-(-width // _MULTIPLE) * _MULTIPLE, n_matrices=3)


def _checked(f: Fields, table: Any, where: str) -> dict[str, Any]:  # noqa: ANN401 as JSON has it
    """The table, or an empty one; what is not understood in it is a fault."""
    if not isinstance(table, dict):
        f.fault("blocks", f"{where} is not a table")
        return {"no_op": True}
    for key in _NO_ATTENTION_OF:
        if table.get(key):
            f.fault("blocks", f"{where}.{key} is not understood", "layers without it are")
    return table
