"""Which experts a step hits, and how full the fullest rank is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planner.equations.routing import chances, expected_highest, fullest_balanced
from planner.estimates.serving import popularity
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.passes import parameter_bytes
from planner.estimates.serving.popularity import _fullest, with_copies
from planner.estimates.serving.rules import Context, Run
from planner.estimates.serving.steps import pass_time
from planner.specs.files.engines import load_engine
from planner.specs.records.architecture import EXPONENT, Experts
from planner.specs.records.served_formats import ServedFormats
from planner_workshop.experts.loads import zipf_loads
from planner_workshop.experts.program import ExpertProgram
from planner_workshop.experts.solvers.flat import greedy, race
from planner_workshop.experts.solvers.slots import Limits
from research.published.silicon_experts import routed
from tests.estimates.serving.situations import BF16, FP8, clock, model

QWEN = Experts(n_experts=128, n_active=8, d_expert=768, d_shared=0, n_matrices=3)
EVEN = replace(QWEN, loads=(1.0,) * 128)
DEEPSEEK = Experts(n_experts=256, n_active=8, d_expert=2048, d_shared=2048, n_matrices=3)


def reached(ffn, tokens, ranks, copies=0):
    """Of tokens (N,), with as many groups of experts and copies for each of them."""
    table = deployments(
        formats=BF16, n_expert_parallel=np.broadcast_to(ranks, tokens.shape), n_redundant=copies
    )
    rows, n_hit = popularity.reached(ffn, tokens, table)
    return SimpleNamespace(rows=rows, n_hit=n_hit)


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


def _imbalance(n_ranks, n_redundant):
    """Rows of the fullest device over the mean of all, in the long run."""
    return _fullest(DEEPSEEK, n_ranks, n_redundant).rows_per_token * n_ranks / DEEPSEEK.n_active


@pytest.mark.parametrize(("ranks", "copies"), [(32, 32), (64, 64), (72, 32)])
def test_copies_are_dealt_as_plan_experts_begins_and_hardly_worse_than_it_ends(ranks, copies):
    """The engines' own balancer, of which `plan experts` knows how far it is from any other."""
    load = zipf_loads(256, EXPONENT)
    program = ExpertProgram(load=load, n_ranks=ranks, n_slots=(256 + copies) // ranks)
    dealt = float(greedy(program).loads(load).max()) * ranks / load.sum()
    mine = _imbalance(ranks, copies)
    assert mine == pytest.approx(dealt, rel=1e-6)
    best = race(program, Limits(gap=0.0, until_s=0.0))
    least = best.bound * ranks / load.sum()
    assert 0.999 < least < mine * (1.0 + 1e-6) < 1.05 * least
    assert mine < 0.5 * _imbalance(64, 0)


def test_the_fullest_of_level_ranks_has_as_many_rows_as_chance_brings():
    """Tokens that choose at random, each rank's rows counted: the highest, on average."""
    n_ranks, copies, tokens, draws = 32, 32, 512, 200
    rng = np.random.default_rng(1)
    chance = chances(DEEPSEEK.expected_loads[0], 8)
    held = fullest_balanced(chance, n_ranks, copies)  # all ranks are as full, to a thousandth
    rows = rng.binomial(tokens, held, (draws, n_ranks, len(held))).sum(axis=2)
    found = reached(DEEPSEEK, np.array([float(tokens)]), n_ranks, copies)
    assert found.rows[0] == pytest.approx(rows.max(axis=1).mean(), rel=0.02)
    assert rows.max(axis=1).mean() > 1.1 * rows.mean()
    hit = 1.0 - (1.0 - held) ** tokens
    assert found.n_hit[0] == pytest.approx(hit.sum())


@pytest.mark.parametrize("n", [2, 8, 144])
def test_the_highest_of_several_normal_numbers(n):
    drawn = np.random.default_rng(0).standard_normal((20_000, n)).max(axis=1)
    assert expected_highest(n) == pytest.approx(drawn.mean(), abs=0.02)


def copies_of(name, engine, groups, weights="fp8", loads=None):
    served = model(name) if loads is None else model(name).with_loads(loads)
    spec = load_engine(engine)
    table = deployments(formats=BF16, n_data=groups, n_expert_parallel=groups)
    run = Run(role="decode", formats=ServedFormats(weights=weights, experts=weights, cache="bf16"))
    return with_copies(served, table, spec, Context(rules=spec.rules, run=run)).n_redundant.tolist()


def test_wide_groups_have_the_copies_that_their_engine_gives_them():
    groups = [8, 16, 24, 32, 64, 72, 80, 128]
    assert copies_of("deepseek-v3", "sglang", groups) == [0, 0, 0, 32, 64, 32, 0, 128]
    assert copies_of("deepseek-v3", "vllm", groups) == [0, 0, 0, 32, 64, 32, 0, 128]
    assert copies_of("deepseek-v3", "vllm", groups, "int4") == [0] * 8  # no kernels of them
    assert copies_of("deepseek-v3", "trtllm", groups) == [0] * 8  # not planned so
    assert copies_of("deepseek-v3", "sglang", groups, loads=[2.0] * 256) == [0] * 8  # level
    assert copies_of("gpt-oss-120b", "vllm", [32]) == [0]  # its class has none
    assert copies_of("gpt-oss-120b", "sglang", [32]) == [32]


def test_copies_are_held():
    """One more of nine experts of each layer, the one that drafts left out."""
    deepseek = model("deepseek-v3")
    table = deployments(formats=FP8, n_data=32, n_expert_parallel=32, n_redundant=[0, 32])
    without, held = parameter_bytes(deepseek, table, FP8)
    assert held - without == pytest.approx(58 * 3 * 7168 * 2048)
