"""Whether a row of [Pope2022] fits by this account, and why it disagrees with what ran."""

from __future__ import annotations

from research.reproduced import reproduced_row
from research.rows import Row

FITS_BY_ACCOUNT = {
    "D.3 FT-TP16 B256": "the account finds 72 of 77 GiB. What FasterTransformer allocates besides "
    "is not counted: both embeddings whole on each rank, 4.2 GB, and five buffers of d_model for "
    "every token of the batch, 3.1 GB of 15360 tokens (ParallelGpt.cc, "
    "ParallelGptContextDecoder.cc)",
    "D.4 FT-TP16 B128": "the account finds 71 of 77 GiB; the same, 4.2 and 3.4 GB of 16384 tokens",
}
"""Rows that ran out of memory, though the account says that they fit."""

TOO_LARGE_BY_ACCOUNT = {
    "D.4 MT-NLG-total B1024": "bf16 weights and cache alone are 33 of the chip's 32 GiB: the run "
    "had another format, or cut the batch; the paper says neither",
}
"""Rows that ran, though the account says that they do not fit."""


def fits(row: Row) -> bool:
    """Whether a row that a table asks for has a plan."""
    one = reproduced_row(row)
    assert one is not None
    return one.answered is not None
