"""Passes: equal to a count by hand, sensible when anything grows, overlapped as documented."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.steps import pass_time
from tests.estimates.serving.scalar import Count
from tests.estimates.serving.situations import BF16, FP8, clock, model

CUT = [
    *((name, tensor) for name in ("qwen3-8b", "qwen3-32b", "gpt-oss-120b") for tensor in (1, 2, 8)),
    *(("qwen3-30b-a3b", tensor) for tensor in (1, 2, 4)),  # whose experts no engine cuts in eight
]


@pytest.mark.parametrize(("name", "tensor"), CUT)
@pytest.mark.parametrize(("batch", "context"), [(1, 100.0), (64, 4096.0)])
def test_a_decode_pass_is_what_a_count_by_hand_gives(name, tensor, batch, context):
    table = deployments(formats=BF16, n_tensor=[tensor, 4], batch=[batch, 7])
    shape = PassShape(n_decoding=table.batch, context=np.array([context, 10.0]))
    timer = clock("h100-nvl8-x1", "vllm")
    arrays = pass_time(model(name), table, shape, BF16, timer).total_s[0]
    hand = Count(model(name), timer, tensor=tensor, weights="bf16", cache="bf16")
    assert arrays == pytest.approx(hand.decode_s(batch, context), rel=1e-9)


def test_one_call_for_many_equals_a_call_for_each():
    rng = np.random.default_rng(0)
    tensor, data = rng.choice([1, 2, 4, 8], 40), rng.choice([1, 2, 4], 40)
    batch = rng.integers(1, 200, 40).astype(float)
    timer = clock("h100-nvl8-x16", "sglang")

    def seconds(t, d, b):
        table = deployments(formats=FP8, n_tensor=t, n_data=d, n_expert_parallel=t * d, batch=b)
        work = PassShape(n_decoding=table.batch, context=2000.0)
        return pass_time(model("deepseek-v3"), table, work, FP8, timer).total_s

    at_once = seconds(tensor, data, batch)
    one_by_one = [seconds(*row)[0] for row in zip(tensor, data, batch, strict=True)]
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)


@pytest.mark.parametrize("name", ["qwen3-8b", "deepseek-v3", "gpt-oss-120b"])
def test_more_sequences_and_longer_contexts_never_take_less(name):
    timer = clock("h200-nvl8-x1", "sglang")
    batch = np.array([1.0, 2, 8, 32, 128, 512])
    table = deployments(formats=FP8, n_tensor=8, batch=batch)
    for context in (128.0, 4096.0):
        work = PassShape(n_decoding=batch, context=context)
        times = pass_time(model(name), table, work, FP8, timer).total_s
        assert np.all(np.diff(times) >= -1e-9)
    contexts = np.array([1.0, 100, 1000, 10_000, 100_000, 100_001])
    work = PassShape(n_decoding=batch * 0 + 16, context=contexts)
    assert np.all(np.diff(pass_time(model(name), table, work, FP8, timer).total_s) >= 0)


def test_more_memory_bandwidth_is_never_slower():
    timer = clock("h100-nvl8-x1", "trtllm")
    faster = replace(timer.device, hbm_bytes_per_s=2 * timer.device.hbm_bytes_per_s)
    table = deployments(formats=BF16, n_tensor=[1, 2, 4, 8], batch=32)
    work = PassShape(n_decoding=table.batch, context=3000.0)
    usual = pass_time(model("qwen3-32b"), table, work, BF16, timer).total_s
    quick = pass_time(model("qwen3-32b"), table, work, BF16, replace(timer, device=faster)).total_s
    assert np.all(quick < usual)


def test_two_micro_batches_hide_messages_in_the_documented_order():
    """Each part of the layers with experts, put together as the module says."""
    table = deployments(formats=FP8, n_data=128, n_expert_parallel=128, overlaps=True, batch=128)
    work = PassShape(n_decoding=table.batch, context=4989.0)
    timer = clock("h800-nvl8-x16", "sglang")
    found = pass_time(model("deepseek-v3"), table, work, FP8, timer)
    parts: dict[tuple[str, str], float] = {}
    for one in found.operations:
        key = (one.operation.layer, one.operation.part)
        parts[key] = parts.get(key, 0.0) + float(one.total_s[0])
    sparse = next(layer for layer, part in parts if part == "dispatch")
    dense = next(layer for layer, _ in parts if layer not in (sparse, "model"))

    def of(layer, *names):
        return sum(parts.get((layer, name), 0.0) for name in names)

    expected = of("model", "model")
    expected += 2 * of(dense, "project", "attend", "feed", "reduce")
    expected += 2 * max(of(sparse, "project", "share"), of(sparse, "dispatch"))
    expected += 2 * of(sparse, "feed")
    expected += 2 * max(of(sparse, "attend"), of(sparse, "combine"))
    assert found.total_s[0] == pytest.approx(expected, rel=1e-12)
    assert found.hidden_s[0] > 0.2 * found.total_s[0]
