"""What many deployments have in common is timed once, and comes to what each has by itself."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from planner import load_architecture, load_cluster
from planner.estimates.serving import passes, steps
from planner.estimates.serving.operations import Operation
from planner.programs.rows import alike_rows
from planner.runtimes.engines import engine_candidates
from planner.specs.ask.engine import PlanOptions


def _choices(model: str, pool: str, engine: str):
    asked = PlanOptions(batches=(1, 3, 7, 32, 200))
    (found,) = engine_candidates(load_architecture(model), load_cluster(pool), engine, asked)
    return found.choices


@pytest.mark.parametrize(
    ("model", "pool", "engine"),
    [
        ("qwen3-30b-a3b", "h100-nvl8-x2", "sglang"),
        ("llama-3.1-70b", "h200-nvl8-x2", "vllm"),
        ("deepseek-v3", "b200-nvl8-x2", "trtllm"),
    ],
)
def test_every_deployment_has_the_times_that_it_has_by_itself(model, pool, engine, monkeypatch):
    grouped = _choices(model, pool, engine)
    monkeypatch.setattr(steps, "grouping_of", lambda columns: None)
    apart = _choices(model, pool, engine)
    assert len(grouped) > 500
    for field in fields(grouped):
        value = getattr(grouped, field.name)
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, getattr(apart, field.name), rtol=1e-12)


def test_an_operation_in_which_a_group_differs_is_timed_row_by_row():
    found = passes.grouping_of((np.array([1, 1, 2, 2, 1, 2]),))
    even = Operation(name="a", layer="l", part="ffn", family="gemm", arguments={"m": 3.0})
    same = np.array([5.0, 5.0, 7.0, 7.0, 5.0, 7.0])
    one = found.one_of_each(Operation(**{**_said(even), "arguments": {"m": same, "n": 2.0}}))
    assert one.arguments["m"].tolist() == [5.0, 7.0]
    assert found.spread(one.arguments["m"]).tolist() == same.tolist()
    differs = np.array([5.0, 5.0, 7.0, 7.0, 6.0, 7.0])
    assert found.one_of_each(Operation(**{**_said(even), "arguments": {"m": differs}})) is None


def _said(one: Operation) -> dict[str, object]:
    return {field.name: getattr(one, field.name) for field in fields(one)}


@pytest.mark.parametrize("scale", [1, 1 << 40])
def test_equal_rows_are_one_group_wherever_they_stand(scale):
    """Keys of a wide range are packed as well: two of 2⁴² and 2⁴³ values do not fit 64 bits."""
    keys = [scale * np.array([2, 2, 1, 1, -2, 1, 3]), scale * np.array([0, 0, 5, 5, 0, 4, 9])]
    first, group = alike_rows(keys)
    whole, at, which = np.unique(np.stack(keys, 1), axis=0, return_index=True, return_inverse=True)
    assert len(whole) == len(first)
    assert (first.tolist(), group.tolist()) == (at.tolist(), which.ravel().tolist())
    assert [len(one) for one in alike_rows([np.zeros(0, int)])] == [0, 0]
