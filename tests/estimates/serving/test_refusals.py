"""What cannot be names its option and the nearest value that can; that value is then accepted."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.overflow import Account, overflows
from planner.estimates.serving.refusals import DEGREES, completed, refusals
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.traffic import Traffic
from tests.estimates.serving.situations import BF16, FP8, clock, model

CHAT = Traffic(n_input_tokens=2048, n_output_tokens=64)


def told(name, traffic=CHAT, **degrees):
    table = deployments(formats=BF16, **degrees)
    found = refusals(model(name), table, traffic)
    return {one.where: one for one in found}


def account(name, traffic=CHAT, *, formats=FP8, **degrees):
    timer = clock("h20-nvl8-x1", "sglang")
    return Account(
        model=model(name),
        engine=timer.engine,
        table=deployments(formats=formats, **degrees),
        traffic=traffic,
        hbm_bytes=timer.device.hbm_bytes,
    )


@pytest.mark.parametrize(
    ("name", "degrees", "nearest"),
    [
        ("qwen3-8b", {"n_tensor": 3}, {"--tp": [2, 4]}),  # 32 heads, 8 of keys
        ("qwen3-8b", {"n_stages": 40}, {"--pp": [36]}),
        ("qwen3-8b", {"n_tensor": 3, "n_stages": 40}, {"--tp": [2, 4], "--pp": [36]}),
        ("qwen3-8b", {"n_expert_parallel": 2}, {"--ep": [1]}),
        # 256 experts over 4 × 3 devices: 4 of them, or four times a power of two
        ("deepseek-v3", {"n_tensor": 4, "n_data": 3, "n_expert_parallel": 24}, {"--ep": [16, 32]}),
        # beside the nearest tensor degree, 2
        (
            "deepseek-v3",
            {"n_tensor": 3, "n_expert_parallel": 3},
            {"--tp": [2, 4], "--ep": [2, 4]},
        ),
    ],
)
def test_a_degree_that_no_engine_runs_names_the_nearest_ones(name, degrees, nearest):
    found = told(name, **degrees)
    assert {
        option: [int(n) for n in re.findall(rf"{option} (\d+)", problem.remedy)]
        for option, problem in found.items()
    } == nearest
    spec = model(name)
    columns = {option: column for column, option in DEGREES.items()}
    mended = degrees | {columns[option]: values[0] for option, values in nearest.items()}
    tensor, expert = mended.get("n_tensor", 1), mended.get("n_expert_parallel", 1)
    data, _ = completed(spec, tensor=tensor, data=None, expert=expert)
    assert is_valid(spec, deployments(formats=BF16, **(mended | {"n_data": data})))[0]


def test_options_that_say_nothing_are_refused_all_at_once():
    found = told(
        "qwen3-8b",
        Traffic(n_input_tokens=100, n_output_tokens=1, n_shared_tokens=5000),
        overlaps=True,
        batch=8,
    )
    assert found.keys() == {"--overlap", "--output", "--shared"}
    assert "--shared 100" in found["--shared"].remedy
    assert "--output 2" in found["--output"].remedy
    ranks = {"n_data": 8, "n_expert_parallel": 8, "overlaps": True}
    assert told("qwen3-30b-a3b", batch=1, **ranks).keys() == {"--overlap"}
    assert not told("qwen3-30b-a3b", batch=2, **ranks)
    assert not told("qwen3-8b")


def test_experts_are_dealt_over_ranks_and_dense_models_have_none():
    mixture, dense = model("deepseek-v3"), model("qwen3-8b")
    assert completed(mixture, tensor=4, data=None, expert=32) == (8, 32)
    assert completed(mixture, tensor=2, data=8, expert=None) == (8, 16)
    assert completed(mixture, tensor=8, data=None, expert=None) == (1, 1)
    assert completed(dense, tensor=2, data=2, expert=None) == (2, 1)
    assert completed(dense, tensor=2, data=None, expert=8) == (1, 8)


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({"chunk_tokens": 10_000_000}, "--chunk"),
        ({"traffic": Traffic(n_input_tokens=10_000_000, n_output_tokens=64)}, "--input"),
        ({"traffic": Traffic(n_input_tokens=64, n_output_tokens=9_000_000)}, "--output"),
    ],
)
def test_the_largest_value_that_fits_fits_and_one_more_does_not(asked, option):
    one = account("qwen3-8b", **asked)
    (problem,) = overflows(one)
    assert problem.where == option
    most = int(re.search(rf"{option} (\d+)", problem.remedy)[1])
    column = {"--input": "n_input_tokens", "--output": "n_output_tokens"}.get(option)
    for n, fits in ((most, True), (most + 1, False)):
        traffic, table = one.traffic, one.table
        if column:
            traffic = replace(traffic, **{column: float(n)})
        else:
            table = replace(table, chunk_tokens=np.array([float(n)]))
        again = replace(one, traffic=traffic, table=table)
        assert (not overflows(again)) == fits


def test_values_that_are_both_too_large_are_mended_together():
    traffic = Traffic(n_input_tokens=500_000, n_output_tokens=64)
    one = account("qwen3-8b", traffic, formats=BF16, chunk_tokens=10_000_000)
    values = {p.where: int(re.search(rf"{p.where} (\d+)", p.remedy)[1]) for p in overflows(one)}
    assert values.keys() == {"--chunk", "--input"}
    mended = replace(
        one,
        traffic=replace(traffic, n_input_tokens=float(values["--input"])),
        table=replace(one.table, chunk_tokens=np.array([float(values["--chunk"])])),
    )
    assert not overflows(mended)


@pytest.mark.parametrize(("shares", "option"), [((0.8, 0.4), "--chunk"), ((0.4, 0.8), "--input")])
def test_of_two_values_that_fit_one_without_the_other_the_larger_is_named(shares, option):
    """Shares of what each may be alone, so of the room beside the weights."""
    most = {}
    for name, asked in (
        (
            "--chunk",
            {"chunk_tokens": 10_000_000, "traffic": Traffic(n_input_tokens=1, n_output_tokens=64)},
        ),
        (
            "--input",
            {"traffic": Traffic(n_input_tokens=10_000_000, n_output_tokens=64), "chunk_tokens": 1},
        ),
    ):
        (problem,) = overflows(account("qwen3-8b", **asked))
        most[name] = int(re.search(rf"{name} (\d+)", problem.remedy)[1])
    chunk, prompt = (round(share * most[name]) for share, name in zip(shares, most, strict=True))
    one = account(
        "qwen3-8b", Traffic(n_input_tokens=prompt, n_output_tokens=64), chunk_tokens=chunk
    )
    assert [problem.where for problem in overflows(one)] == [option]


@pytest.mark.parametrize(
    ("degrees", "remedy"),
    [({}, {"n_tensor": 16}), ({"n_expert_parallel": 4, "n_data": 4}, {"n_data": 16})],
)
def test_weights_that_do_not_fit_name_the_least_degrees_with_which_they_do(degrees, remedy):
    one = account("deepseek-v3", **degrees)
    (problem,) = overflows(one)
    assert problem.where == "--weights"
    assert re.search(r"weights take \d+ GB of a device", problem.fact)
    for name, degree in remedy.items():
        assert f"{DEGREES[name]} {degree}" in problem.remedy
    scale = next(iter(remedy.values())) // degrees.get("n_data", 1)
    grown = {name: degree * scale for name, degree in degrees.items()} | remedy
    assert not overflows(account("deepseek-v3", **grown))
    halved = {name: degree // 2 for name, degree in grown.items()}
    assert overflows(account("deepseek-v3", **halved))
