"""Whether a row of [Pope2022] fits by this account, and why it disagrees with what ran."""

from __future__ import annotations

from research.reproduced import reproduced_row
from research.rows import Row

FITS_BY_ACCOUNT = {
    "D.3 FT-TP16 B256": "the account finds 72 of 77 GiB. FasterTransformer's own buffers are not "
    "counted: it ran out with 9 to 12 GiB of them, where 2 GiB are reserved",
    "D.4 FT-TP16 B128": "the account finds 71 of 77 GiB; the same",
}
"""Rows that ran out of memory, though the account says that they fit."""

_COPIED = "attention over heads has a copy of the cache on each chip, for which there is no room"
TOO_LARGE_BY_ACCOUNT = {
    "D.4 PaLM-prefill B1024": _COPIED,
    "D.4 PaLM-total B1024": _COPIED,
    "D.4 MT-NLG-total B1024": "bf16 weights and cache alone are 33 of the chip's 32 GiB: the run "
    "had another format, or cut the batch; the paper says neither",
}
"""Rows that ran, though the account says that they do not fit."""


def fits(row: Row) -> bool:
    """Whether a row that a table asks for has a plan."""
    one = reproduced_row(row)
    assert one is not None
    return one.answered is not None
