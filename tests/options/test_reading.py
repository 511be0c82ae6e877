"""Options as text to options as numbers."""

from __future__ import annotations

from dataclasses import fields

import pytest

from planner.commands.options.offered import flags, valued
from planner.commands.options.reading import read
from planner.commands.options.remade import option
from planner.commands.options.written import Written
from planner.specs.request import (
    DEFAULT_BATCHES,
    DEFAULT_WORKLOAD,
    OBJECTIVES,
    SolverOptions,
    Targets,
)


def test_defaults_are_those_of_the_library():
    asked, problems = read(Written())
    assert problems == ()
    assert asked.workload == DEFAULT_WORKLOAD
    assert asked.targets == Targets()
    assert asked.batches == tuple(DEFAULT_BATCHES)
    assert asked.options == SolverOptions()
    assert asked.objective == "cost"
    assert (asked.weights_formats, asked.prefill_batches, asked.prefill) == (None, None, None)


def test_every_option_is_read_in_si_units():
    asked, problems = read(
        Written(
            input="4096",
            output="128",
            latency_target="30ms",
            ttft_target="1.5 s",
            max_cost="$20/Mtoken",
            max_devices="64",
            min_batch="16",
            objective="throughput",
            weights=("bf16,int8", "bf16"),
            batch="1:4",
            prefill_batch="1,8",
            prefill="cost",
            solver="cpsat",
            time_limit="2min",
            gap="1%",
            threads="2",
            seed="7",
        )
    )
    assert problems == ()
    assert (asked.workload.n_input_tokens, asked.workload.n_output_tokens) == (4096, 128)
    assert asked.targets == Targets(
        tpot_s=0.030, ttft_s=1.5, usd_per_token=20e-6, n_devices=64, min_batch=16
    )
    assert asked.objective == "throughput"
    assert asked.weights_formats == ("bf16", "int8")
    assert asked.batches == (1, 2, 3, 4)
    assert asked.prefill_batches == (1, 8)
    assert asked.prefill == "cost"
    assert asked.options == SolverOptions(
        solver="cpsat", time_limit_s=120.0, gap=0.01, threads=2, seed=7
    )


def test_every_fault_is_found_and_names_its_option():
    wrong = {
        "input": "0",
        "output": "x",
        "latency_target": "30",
        "ttft_target": "-1s",
        "max_cost": "20",
        "max_devices": "1.5",
        "min_batch": "nan",
        "objective": "speed",
        "batch": "9:1",
        "prefill_batch": "",
        "prefill": "fast",
        "solver": "gurobi",
        "time_limit": "10 GB",
        "gap": "200%",
        "threads": "0",
        "seed": "-1",
    }
    _, problems = read(Written(**wrong, weights=("int7",)))
    assert sorted(p.where for p in problems) == sorted([*map(option, wrong), "--weights"])
    assert all(p.fact for p in problems)


def test_a_fault_leaves_a_default_behind_so_that_the_rest_can_be_checked():
    asked, problems = read(Written(objective="speed", solver="gurobi", input="0"))
    assert len(problems) == 3
    assert asked.objective == "cost"
    assert asked.options.solver == "highs"
    assert asked.workload.n_input_tokens == 1


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("objective", "latncy", "did you mean `latency`?"),
        ("objective", "Q", f"it is {', '.join(OBJECTIVES[:-1])} or {OBJECTIVES[-1]}"),
        ("solver", "HiGHS", "did you mean `highs`?"),
    ],
)
def test_a_misspelt_choice_is_recognised(name, value, remedy):
    (problem,) = read(Written(**{name: value}))[1]
    assert problem.remedy == remedy


def test_one_line_and_json_exclude_each_other():
    (problem,) = read(Written(json=True, quiet=True))[1]
    assert (problem.where, problem.fact) == ("--quiet", "cannot go with `--json`")


def test_every_option_is_either_a_flag_or_takes_a_value():
    assert {option(field.name) for field in fields(Written)} == {*flags(Written), *valued(Written)}
