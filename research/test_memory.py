"""What fits: the layouts that ran, and not the batches that did not."""

from __future__ import annotations

import pytest

from research import rows
from research.memory import FITS_BY_ACCOUNT, TOO_LARGE_BY_ACCOUNT, fits
from research.reproduced import is_asked
from research.rows import Row
from research.timing import layout_choice

OUT_OF_MEMORY = rows.out_of_memory()
RAN = tuple(row for row in (*rows.timed_on_tpu(), *rows.timed_on_a100()) if is_asked(row))
ROWS = (*rows.of_table("Table 1"), *OUT_OF_MEMORY)


def cases(chosen: tuple[Row, ...], failing: dict[str, str]) -> list:
    """Rows as cases; those that do not reproduce are strict xfails with their reason."""
    marks = {
        name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in failing.items()
    }
    return [pytest.param(row, id=str(row), marks=marks.get(str(row), ())) for row in chosen]


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
