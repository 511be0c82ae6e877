"""What tables of accuracy say of a row is what its command answers."""

from __future__ import annotations

import json
import random

import pytest

from planner.commands.cli import main
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
    assert words(nobody)[words(nobody).index("--client") + 1] == "unknown"
    assert not {"--waves", "--polled"} & {*words(nobody)}


def test_a_client_adds_its_own_time_lengths_and_waves_by_hand(capsys):
    """As `clients/inferencex.toml` has them: 29.8 ms and 2.86 us of each of 0.9 × 1000 tokens, and
    ten waves of lengths that are 0.9 of those named; all else is as of a request of that length."""
    loop = ["predict", "--model", "llama-3.1-8b", "--device", "h200", "--in-flight", "16", "--json"]
    answers = []
    for more in (
        ["--input", "1000", "--output", "500", "--client", "inferencex"],
        ["--input", "900", "--output", "450", "--waves", "10"],
    ):
        assert main([*loop, *more]) == 0
        answers.append(json.loads(capsys.readouterr().out)["answer"])
    told, plain = answers
    parts = {one["name"]: one["seconds"] for one in told["ttft_parts"]}
    client_s = parts["between the client and the server"]
    assert client_s == pytest.approx(29.8e-3 + 2.86e-6 * 900)
    assert told["waves"]["n_waves"] == 10
    assert told["tpot_s"]["value"] == pytest.approx(plain["tpot_s"]["value"])
    assert told["ttft_s"]["value"] == pytest.approx(plain["ttft_s"]["value"] + client_s)
