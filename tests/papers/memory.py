"""What memory holds: the contexts of Table 1, and whether a row's passes fit."""

from __future__ import annotations

from planner.specs.reading import load_cluster, load_model
from tests.papers import planned
from tests.papers.caches import kv_cache_bytes, longest_context_tokens
from tests.papers.rows import Row
from tests.papers.timing import passes

KV_SHARE = 0.3
"""[Pope2022] Table 1: "We reserve 30 % of the total memory for KV cache"."""

VARIANTS = {
    "multihead": (64, 128, 64),
    "multiquery-head-sharded": (1, 256, 1),
    "multiquery-batch-sharded": (1, 256, 64),
}
"""Key-value heads, their width, and ways in which 64 chips cut the cache.

Multi-head attention has the 64 heads of the padded model, a head for each chip; over
heads, the one head of multi-query attention is copied to every chip."""

FITS_BY_ACCOUNT = {
    "D.3 FT-TP16 B256": "the account finds 72 of 77 GiB. FasterTransformer's own buffers are not "
    "counted: it ran out with 9 to 12 GiB of them, where 2 GiB are reserved",
    "D.4 FT-TP16 B128": "the account finds 71 of 77 GiB; the same",
}
"""Rows that ran out of memory, though the account says that they fit."""

TOO_LARGE_BY_ACCOUNT = {
    "D.4 MT-NLG-total B1024": "bf16 weights and cache alone are 33 of the chip's 32 GiB: the run "
    "had another format, or cut the batch; the paper says neither",
}
"""Rows that ran, though the account says that they do not fit."""


def longest_context(row: Row) -> float:
    """Tokens of each sequence [tokens]."""
    device = load_cluster("tpu-v4-4x4x4").device
    n_kv_heads, d_head, n_ways = VARIANTS[row.attention]
    per_token = kv_cache_bytes(
        1,
        1,
        n_layers=load_model(row.model).n_layers,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        bytes_per_number=2.0,
    )
    budget = KV_SHARE * device.hbm_bytes * n_ways
    return float(longest_context_tokens(budget, row.batch, per_token))


def fits(row: Row) -> bool:
    """Whether a row has a plan; of FasterTransformer's pipelines, whether every pass fits."""
    if row.is_tpu or row.ffn in planned.SERVERS:
        return planned.fits(row)
    return all(
        bench.held_bytes(step).min()
        <= bench.machine.device.hbm_bytes - bench.machine.device.reserve_bytes
        for bench, step in passes(row)
    )
