"""What tables of accuracy say of a row is what its command answers."""

from __future__ import annotations

import random

import pytest

from research.sets.folds import rows
from research.sets.predicted import compared
from research.sets.rows import Served
from research.sets.typed import answered, command, words


def chosen(n_rows: int, seed: int) -> list[Served]:
    """Rows of all engines and sets, drawn at random."""
    return random.Random(seed).sample(list(rows()), n_rows)


def differing(some: list[Served]) -> list[str]:
    """Commands that answer otherwise than the table, or refuse what it predicts."""
    found = {one.row.name: one for one in compared(some)}
    differ = []
    for row in some:
        times, one = answered(row), found.get(row.name)
        table = None if one is None else (one.ttft_ms / 1e3, one.tpot_ms / 1e3)
        if (times is None) != (table is None) or (
            times is not None and times != pytest.approx(table, rel=1e-9)
        ):
            differ.append(command(row))
    return differ


def test_commands_answer_what_the_table_has():
    assert differing(chosen(50, seed=1)) == []


@pytest.mark.research
def test_three_hundred_commands_answer_what_the_table_has():
    assert differing(chosen(300, seed=2)) == []


def test_a_command_says_what_its_source_publishes_and_no_more():
    told = next(row for row in rows() if row.series.harness == "InferenceX" and row.data > 1)
    assert words(told)[words(told).index("--client") + 1] == "inferencex"
    nobody = next(row for row in rows() if not row.series.harness)
    assert not {"--client", "--waves", "--polled"} & {*words(nobody)}
