"""Options to arguments of the library."""

from __future__ import annotations

import pytest

from planner.commands.options.parsing import parse
from planner.commands.options.reading import read_engines, read_layouts
from planner.specs.ask.targets import DEFAULT_WORKLOAD, SolverOptions, Targets
from planner.specs.options.counts import DEFAULT_BATCHES


def test_defaults_are_those_of_the_library():
    asked = read_layouts(parse([]))
    assert asked == {
        "workload": DEFAULT_WORKLOAD,
        "targets": Targets(),
        "batches": tuple(DEFAULT_BATCHES),
        "options": SolverOptions(),
        "objective": "cost",
        "speculation": None,
    }
    assert "batches" not in read_engines(parse([]), ())


def test_every_option_is_read_in_si_units():
    words = {
        "--input": "4096",
        "--output": "128",
        "--latency-target": "30ms",
        "--ttft-target": "1.5 s",
        "--max-cost": "$20/Mtoken",
        "--max-devices": "64",
        "--min-batch": "16",
        "--max-rent": "$500/h",
        "--objective": "throughput",
        "--weights": "bf16,int8,bf16",
        "--batch": "1:4",
        "--prefill-batch": "1,8",
        "--prefill": "cost",
        "--solver": "cpsat",
        "--time-limit": "2min",
        "--gap": "1%",
        "--threads": "2",
        "--seed": "7",
        "--tp": "8",
        "--confidence": "90%",
    }
    said = parse([word for pair in words.items() for word in pair])
    asked = read_layouts(said)
    assert said.problems == []
    assert (asked["workload"].n_input_tokens, asked["workload"].n_output_tokens) == (4096, 128)
    targets = asked["targets"]
    assert (targets.tpot_s, targets.ttft_s, targets.usd_per_token) == (0.030, 1.5, 20e-6)
    assert (targets.n_devices, targets.min_batch, targets.degrees.tensor) == (64, 16, 8)
    assert targets.further == {"rent": 500.0}
    assert asked["objective"] == "throughput"
    assert asked["weights_formats"] == ("bf16", "int8")
    assert (asked["batches"], asked["prefill_batches"]) == ((1, 2, 3, 4), (1, 8))
    assert (asked["prefill"], asked["confidence"]) == ("cost", 0.9)
    assert asked["options"] == SolverOptions(
        solver="cpsat", time_limit_s=120.0, gap=0.01, threads=2, seed=7
    )


def test_every_fault_is_found_and_names_its_option():
    wrong = {
        "--input": "0",
        "--output": "x",
        "--latency-target": "30",
        "--ttft-target": "-1s",
        "--max-cost": "20",
        "--max-devices": "1.5",
        "--min-batch": "nan",
        "--objective": "speed",
        "--batch": "9:1",
        "--prefill-batch": "",
        "--prefill": "fast",
        "--solver": "gurobi",
        "--time-limit": "10 GB",
        "--gap": "200%",
        "--threads": "0",
        "--seed": "-1",
        "--weights": "int7",
        "--workspace": "2",
    }
    said = parse([word for pair in wrong.items() for word in pair])
    read_layouts(said)
    assert sorted(one.where for one in said.problems) == sorted(wrong)
    assert all(one.fact for one in said.problems)


@pytest.mark.parametrize(
    ("words", "layouts", "engines"),
    [
        (["--draft", "eagle"], ["--draft"], []),
        (["--draft", "palm-8b"], [], ["--draft"]),
        (["--draft", "eagle", "--acceptance", "0.8,0.5"], ["--acceptance", "--draft"], []),
    ],
)
def test_what_runtimes_read_otherwise_is_read_as_they_do(words, layouts, engines):
    said = parse(words)
    read_layouts(said)
    assert [one.where for one in said.problems] == layouts
    said = parse(words)
    read_engines(said, ())
    assert [one.where for one in said.problems] == engines


def test_a_share_of_a_capacity_needs_a_demand_and_is_one():
    for words, facts in (
        (["--max-utilisation", "80%"], ["is of a demand, and there is none"]),
        (["--max-utilisation", "0", "--demand", "1tok/s"], ["is no share of a capacity"]),
        (["--max-utilisation", "80%", "--demand", "1tok/s"], []),
    ):
        said = parse(words)
        targets = read_layouts(said)["targets"]
        assert [one.fact for one in said.problems] == facts
    assert targets.max_utilisation == 0.8


def test_a_rate_of_more_tokens_than_is_real_is_refused_in_the_words_that_were_written():
    said = parse(["--rate", "1e12req/s", "--input", "100", "--output", "300"])
    read_layouts(said)
    (wrong,) = said.problems
    assert (wrong.where, wrong.value) == ("--rate", "1e12req/s")
    assert wrong.fact.startswith("of 300 output tokens each is beyond anything real")
