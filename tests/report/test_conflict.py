"""Why there is no plan, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.results.obstacles import Obstacle
from tests.report.examples import CONFLICT, RELAXED
from tests.report.rendering import report_text

TPOT, COST = CONFLICT.obstacles


def test_the_message_is_fact_consequence_and_a_command():
    assert report_text(replace(CONFLICT, obstacles=(TPOT,)), 80) == (
        "error: no plan decodes `tiny-7b` on `toy-4x4x4` in 5 ms a token\n"
        "\n"
        "  Because a decode step reads all 7 GB of weights, which takes at least 11.8 ms,\n"
        "  TPOT ≤ 5 ms is out of reach.\n"
        "\n"
        "  limit  requested  best reachable\n"
        "  TPOT   ≤ 5 ms     12 ms\n"
        "\n"
        "  Closest: 32 devices 2×4×4, int8 weights, prefill WG XYZ batch 1, decode WS 2D\n"
        "  batch 64: TPOT 28 ms, TTFT 200 ms, $40/Mtoken, $96/h.\n"
        "\n"
        "  Looked at 12,345 candidates; HiGHS found no plan; each limit left out alone\n"
        "  admits one.\n"
        "\n"
        "hint: this has a plan: `plan --model tiny-7b --latency-target 13ms"
        " --max-cost '$20/Mtoken'`\n"
        "\n"
        "how sure      never compared with measurements: layouts on a roofline, dense\n"
        "              models on toy\n"
        "\n"
        "accuracy\n"
        "  times         layouts on a roofline for toy: not judged on dense models\n"
        "                there\n"
        "  schedule      turns: TPOT is a decode pass by itself; the KV cache held is\n"
        "                the larger of both phases"
    )


def test_a_limit_of_several_engines_is_named_once():
    assert str(replace(CONFLICT, obstacles=(TPOT, COST, TPOT))) == (
        "no plan exists: tpot, cost cannot hold together"
    )


def test_several_limits_are_named_together_and_each_has_its_reason():
    text = report_text(CONFLICT, 100)
    assert text.startswith(
        "error: no plan serves `tiny-7b` on `toy-4x4x4` within TPOT ≤ 5 ms and cost ≤ $20/Mtoken\n"
    )
    assert "  Because a decode step" in text
    assert "  And because every batch" in text
    assert "limit requested best reachable TPOT" in " ".join(text.split())
    assert "the others kept" not in text  # of some only, as the reason of each says
    assert "cost   ≤ $20/Mtoken  $31/Mtoken" in text


def test_what_does_not_fit_is_not_called_out_of_reach():
    memory = replace(TPOT, name="hbm", asked=32e9, dimension="B", reason="it takes 71 GB; too much")
    text = report_text(replace(CONFLICT, obstacles=(memory,)), 100)
    assert "Because it takes 71 GB, nothing fits: too much." in text


@pytest.mark.parametrize(
    ("name", "asked", "dimension", "head"),
    [
        ("ttft", 0.1, "s", "prefills 2048 tokens of `tiny-7b` on `toy-4x4x4` in 100 ms"),
        ("cost", 1e-6, "USD/token", "serves `tiny-7b` on `toy-4x4x4` for $1/Mtoken"),
        ("devices", 2, "1", "serves `tiny-7b` on 2 devices of `toy-4x4x4`"),
        ("batch", 900, "1", "decodes 900 sequences of `tiny-7b` together on `toy-4x4x4`"),
        ("hbm", 32e9, "B", "fits `tiny-7b` into the memory of `toy-4x4x4`"),
        ("novel", 1.0, "1", "serves `tiny-7b` on `toy-4x4x4` within novel ≤ 1"),
    ],
)
def test_one_limit_is_named_in_plain_words(name, asked, dimension, head):
    only = Obstacle(name=name, asked=asked, reachable=2.0, dimension=dimension, reason="so it is")
    text = report_text(replace(CONFLICT, obstacles=(only,)), 100)
    assert text.splitlines()[0] == f"error: no plan {head}"


def test_a_limit_of_several_conflicts_is_named_once():
    text = report_text(replace(CONFLICT, obstacles=(TPOT, COST, TPOT)), 100)
    assert text.startswith(report_text(CONFLICT, 100).partition("Closest")[0])


def test_sequences_are_counted_to_the_last_one():
    """Three significant digits would make 1030 and 1020 of them."""
    only = Obstacle(name="batch", asked=1025, reachable=1024, dimension="1", reason="so it is")
    text = report_text(replace(CONFLICT, obstacles=(only,)), 100)
    assert "decodes 1025 sequences" in text
    assert "decode batch  ≥ 1025     1024" in text


def test_a_batch_that_was_not_offered_is_not_called_impossible_alone():
    """The request offers 1 to 128: a batch of 129 fails for that reason, not for the devices'."""
    only = Obstacle(name="batch", asked=129, reachable=128, dimension="1", reason="so it is; why")
    text = report_text(replace(CONFLICT, obstacles=(only,)), 100)
    assert "decode batch ≥ 129 is out of reach: `--batch` offers at most 128." in text
    within = replace(only, asked=128)
    assert "`--batch`" not in report_text(replace(CONFLICT, obstacles=(within,)), 100)


def test_detail_after_a_semicolon_follows_the_consequence():
    detailed = replace(TPOT, reason="a pass takes 9 ms; 8 ms of it is weights.")
    text = report_text(replace(CONFLICT, obstacles=(detailed,)), 100)
    assert "Because a pass takes 9 ms, TPOT ≤ 5 ms is out of reach: 8 ms of it is weights." in text


def test_without_a_command_there_is_no_hint_and_without_a_deployment_nothing_is_closest():
    text = report_text(replace(CONFLICT, command="", closest=None), 100)
    assert "hint" not in text
    assert "Closest" not in text


def test_each_change_of_limits_says_what_it_takes_its_plan_and_its_command():
    text = " ".join(report_text(RELAXED, 80).split())
    assert (
        "TPOT ≤ 5 ms and cost ≤ $20/Mtoken conflict: without either the other can be met." in text
    )
    assert (
        "what to loosen The least first; a limit that doubles, or a least that is"
        " halved, counts 100 %: TPOT ≤ 6.4 ms (×1.28) and cost ≤ $25/Mtoken (×1.25), 53 % in all:"
        " 32 devices 2×4×4, int8 weights, prefill WG XYZ batch 1, decode WS 2D batch 64: TPOT"
        " 28 ms, TTFT 200 ms, $40/Mtoken, $96/h."
        " TPOT ≤ 12 ms (×2.4), decode batch ≥ 16 (÷2) and `--prefill cost`, 240 % in all:"
    ) in text
    assert text.count(RELAXED.relaxations[0].command) == 1  # of the hint
    assert text.count(RELAXED.relaxations[1].command) == 1
    assert "Closest" not in text


def test_limits_that_are_out_of_reach_by_themselves_are_said_to_be():
    text = report_text(replace(RELAXED, cores=(("tpot",), ("cost",))), 100)
    assert "Each of TPOT ≤ 5 ms and cost ≤ $20/Mtoken is out of reach by itself." in text
    devices = Obstacle(name="devices", asked=2, reachable=4.0, dimension="1", reason="so it is")
    several = replace(
        RELAXED, obstacles=(devices, COST, TPOT), cores=(("devices", "cost"), ("tpot",))
    )
    text = report_text(several, 100)
    assert "  TPOT ≤ 5 ms is out of reach by itself.\n" in text
    assert "devices ≤ 2 and cost ≤ $20/Mtoken conflict" in text


def test_replicas_are_exactly_as_many_as_are_asked_for():
    only = Obstacle(name="replicas", asked=9, reachable=8.0, dimension="1", reason="so it is")
    text = report_text(replace(CONFLICT, obstacles=(only,)), 100)
    assert "replicas = 9 is out of reach." in text
    assert "replicas  = 9        8" in text


def test_of_one_limit_alone_the_table_says_it_all():
    first = RELAXED.relaxations[0]
    only = replace(first, changes=first.changes[:1])
    text = report_text(replace(RELAXED, cores=(("tpot",),), relaxations=(only,)), 100)
    assert "what to loosen" not in text
    assert "Closest: 32 devices" in text
    assert "conflict:" not in text


def test_the_first_screen_ends_with_the_command():
    """What is impossible, why, what is reachable, and the command, before all other changes."""
    text = report_text(RELAXED, 100)
    assert text.index("best reachable") < text.index("hint: ") < text.index("what to loosen")
    lines = text.splitlines()
    assert [line.startswith("hint: ") for line in lines].index(True) < 24


def test_large_factors_are_written_out():
    """`÷1.07e+03` is no figure that people read."""
    far = replace(RELAXED.relaxations[0].changes[0], needed=0.005 * 1072.0)
    first = replace(RELAXED.relaxations[0], changes=(far, RELAXED.relaxations[0].changes[1]))
    text = report_text(replace(RELAXED, relaxations=(first,)), 100)
    assert "(×1,072)" in text
    assert "e+" not in text.partition("what to loosen")[2]
