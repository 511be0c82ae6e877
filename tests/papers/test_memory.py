"""What fits: Table 1's contexts, the layouts that ran, and the batches that did not."""

from __future__ import annotations

import pytest

from tests.papers import rows
from tests.papers.memory import FITS_BY_ACCOUNT, TOO_LARGE_BY_ACCOUNT, fits, longest_context
from tests.papers.rows import Row
from tests.papers.timing import layout_choice

CONTEXTS = rows.of_table("Table 1")
OUT_OF_MEMORY = rows.out_of_memory()
RAN = (*rows.timed_on_tpu(), *rows.timed_on_a100())
ROWS = (*CONTEXTS, *OUT_OF_MEMORY)

TOLERANCE = 0.011
"""The paper rounds down: 166.6 tokens are printed as 165, and 43,000 has two digits."""


def cases(chosen: tuple[Row, ...], failing: dict[str, str]) -> list:
    """Rows as cases; those that do not reproduce are strict xfails with their reason."""
    marks = {
        name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in failing.items()
    }
    return [pytest.param(row, id=str(row), marks=marks.get(str(row), ())) for row in chosen]


@pytest.mark.parametrize("row", CONTEXTS, ids=str)
def test_the_longest_context_is_that_of_table_1(row: Row):
    assert longest_context(row) == pytest.approx(row.n_context, rel=TOLERANCE)


def test_sharding_over_the_batch_holds_32_times_the_context_of_multihead_attention():
    """64 ways instead of 1, and a cache per token that is 2 × 256 against 64 × 2 × 128 wide."""
    multihead, _, head_sharded, _, batch_sharded, _ = map(longest_context, CONTEXTS)
    assert batch_sharded / multihead == pytest.approx(32)
    assert batch_sharded / head_sharded == pytest.approx(64)


@pytest.mark.parametrize("row", cases(OUT_OF_MEMORY, FITS_BY_ACCOUNT))
def test_what_ran_out_of_memory_does_not_fit(row: Row):
    assert not fits(row)


@pytest.mark.parametrize("row", cases(RAN, TOO_LARGE_BY_ACCOUNT))
def test_what_ran_fits(row: Row):
    assert fits(row)


@pytest.mark.parametrize("row", rows.of_table("Table 2", "Table 3"), ids=str)
def test_the_papers_layouts_leave_the_reserve_free(row: Row):
    """The largest is PaLM 540B's prefill of a million tokens, 30 of 31 GiB."""
    assert layout_choice(row).stated_bytes <= 31 * 2**30
