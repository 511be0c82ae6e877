"""Which experts a step hits, and how full the fullest rank is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.calibration.routing import routed
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.popularity import reached
from planner.estimates.serving.steps import pass_time
from planner.specs.architecture import Experts
from tests.estimates.serving.situations import BF16, FP8, clock, model

QWEN = Experts(n_experts=128, n_active=8, d_expert=768, d_shared=0, n_matrices=3)
EVEN = replace(QWEN, loads=(1.0,) * 128)


@pytest.mark.parametrize("ranks", [1, 4])
def test_of_equally_popular_experts_as_many_are_hit_as_the_closed_form_says(ranks):
    tokens = np.array([1.0, 16.0, 300.0])
    found = reached(EVEN, tokens, ranks)
    assert found.rows == pytest.approx(tokens * 8 / ranks)
    assert found.n_hit == pytest.approx(128 / ranks * (1 - (1 - 8 / 128) ** tokens))


def test_popular_experts_leave_others_alone_and_fill_a_rank():
    tokens = np.array([16.0, 64.0])
    even, usual = (reached(one, tokens, 1) for one in (EVEN, QWEN))
    assert usual.rows == pytest.approx(even.rows)
    assert (usual.n_hit < 0.9 * even.n_hit).all()
    even, usual = (reached(one, tokens, 8) for one in (EVEN, QWEN))
    assert (usual.rows > 1.2 * even.rows).all()


def test_loads_that_are_known_stand_in_their_order():
    """All of a rank's load on its first two experts: half of all rows, and few experts."""
    loads = [1.0] * 128
    loads[:2] = [126.0, 126.0]
    found = reached(replace(QWEN, n_active=1, loads=tuple(loads)), np.array([1000.0]), 64)
    assert found.rows == pytest.approx([1000.0 * 252 / 378])
    assert found.n_hit == pytest.approx([2.0])


def test_deployments_of_several_ranks_are_told_apart():
    tokens, ranks = np.array([8.0, 8.0, 64.0]), np.array([1, 8, 8])
    found = reached(QWEN, tokens, ranks)
    for i in range(3):
        alone = reached(QWEN, tokens[i : i + 1], ranks[i])
        assert found.rows[i] == pytest.approx(alone.rows[0])
        assert found.n_hit[i] == pytest.approx(alone.n_hit[0])


def test_the_law_hits_as_many_experts_as_those_that_tables_were_measured_under():
    """Shapes and loads in which every expert could have a token."""
    cases = [
        (tokens, n_experts, n_active, 1, law)
        for n_experts, n_active in ((128, 8), (128, 4), (256, 8), (512, 10), (64, 6))
        for tokens in (32, 64, 128, 256, 1024)
        if tokens * n_active > n_experts
        for law in ("power_law_1.01", "power_law_1.2")
    ]
    tokens, n_experts, n_active, ways, law = map(np.array, zip(*cases, strict=True))
    _, hit = routed(tokens=tokens, n_experts=n_experts, n_active=n_active, ways=ways, law=law)
    ours = [
        reached(
            replace(QWEN, n_experts=case[1], n_active=case[2]), np.array([float(case[0])]), 1
        ).n_hit[0]
        for case in cases
    ]
    assert abs(np.mean(ours / hit) - 1.0) < 0.03
    assert np.abs(ours / hit - 1.0).max() < 0.35


def test_a_pass_of_popular_experts_reads_fewer_weights_and_is_sooner():
    qwen = model("qwen3-30b-a3b")
    even = qwen.with_loads([1.0] * 128)
    timer = clock("h100-nvl8-x1", "vllm")
    table = deployments(formats=BF16, batch=32)
    work = PassShape(n_decoding=np.array([32.0]), context=1000.0)
    usual, alike = (pass_time(one, table, work, BF16, timer).total_s[0] for one in (qwen, even))
    assert 0.5 < usual / alike < 0.97
    with pytest.raises(ValueError, match="no layer of qwen3-30b-a3b has 64 experts"):
        qwen.with_loads([1.0] * 64)


def test_static_scales_save_a_kernel_where_the_norm_before_quantises():
    """TensorRT-LLM fuses the two; vLLM quantises as it does where scales are found on the way."""
    static = replace(FP8, weights="fp8_static", experts="fp8_static")
    table = deployments(formats=FP8, batch=16)
    work = PassShape(n_decoding=np.array([16.0]), context=1000.0)

    def seconds(engine, formats):
        timer = clock("h100-nvl8-x1", engine)
        return pass_time(model("llama-3.1-8b"), table, work, formats, timer).total_s[0]

    assert seconds("vllm", static) == seconds("vllm", FP8)
    assert seconds("trtllm", static) < 0.97 * seconds("trtllm", FP8)
