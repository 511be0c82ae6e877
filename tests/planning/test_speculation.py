"""Speculative decoding as a decision: the draft, its layout and its memory in one program."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner import Targets, plan
from planner.equations.speculation import expected_tokens
from planner.specs.ask.targets import SolverOptions, Speculation
from tests import requests
from tests.requests import MODEL, WORKLOAD, torus

BATCHES = (1, 3, 8, 21)
DRAFT = replace(
    MODEL,
    name="toy-draft",
    n_layers=4,
    d_model=1024,
    d_ff=4096,
    n_heads=8,
    n_heads_served=8,
    n_kv_heads=4,
    n_params_published=1e8,
)


def solve(cluster, speculation=None, **choices):
    filled = {"batches": BATCHES, "prefill_batches": (1,), "targets": Targets()} | choices
    return plan(MODEL, cluster, workload=WORKLOAD, speculation=speculation, **filled)


def test_a_draft_that_is_mostly_accepted_makes_decoding_faster():
    alone = solve(torus(1, 2, 2), objective="latency").deployment
    drafted = solve(torus(1, 2, 2), Speculation(draft=DRAFT), objective="latency").deployment
    assert drafted.draft is not None
    assert drafted.tpot_s < 0.7 * alone.tpot_s


def test_the_time_per_token_is_a_round_over_the_tokens_that_it_yields():
    best = solve(torus(1, 2, 2), Speculation(draft=DRAFT), objective="latency").deployment
    draft = best.draft
    yields = expected_tokens(draft.n_drafted, 0.8)
    round_s = best.decode.step.total_s + draft.n_drafted * draft.step.total_s
    assert best.tpot_s == pytest.approx(round_s / yields, rel=1e-12)
    assert best.decode.n_tokens == best.decode.batch * (draft.n_drafted + 1)


def test_a_draft_that_is_never_accepted_is_not_used():
    useless = Speculation(draft=DRAFT, acceptance=0.0)
    assert solve(torus(1, 2, 2), useless).deployment.draft is None


def test_a_draft_that_does_not_fit_beside_the_target_is_never_chosen():
    """The draft is faster in time, but its weights leave no room: 12 GB of 16."""
    huge = replace(DRAFT, n_layers=2, d_ff=1_000_000, n_params_published=6e9)
    cluster = torus(1, 1, 1)
    choices = {"objective": "latency", "weights_formats": ("bf16",), "batches": (1,)}
    assert solve(cluster, Speculation(draft=huge), **choices).deployment.draft is None
    roomy = requests.with_memory(cluster, 64e9)
    free = replace(roomy, device=replace(roomy.device, hbm_bytes_per_s=1e15))
    assert solve(free, Speculation(draft=huge), **choices).deployment.draft is not None


def test_a_millionth_of_the_memory_decides_whether_a_draft_is_chosen():
    """The same device with the memory that target and draft take together, and with less."""
    speculation = Speculation(draft=DRAFT, lookaheads=(3,))
    choices = {"objective": "latency", "weights_formats": ("bf16",), "batches": (3,)}
    roomy = solve(requests.with_memory(torus(1, 1, 1), 64e9), speculation, **choices).deployment
    assert roomy.draft is not None
    needed = math.ceil(roomy.memory.used_bytes)
    found = [
        solve(requests.with_memory(torus(1, 1, 1), size), speculation, **choices).deployment
        for size in (needed, needed * (1 - 1e-6))
    ]
    assert [one.draft is not None for one in found] == [True, False]
    assert found[1].memory.draft_bytes == 0
    assert found[1].tpot_s > found[0].tpot_s


@pytest.mark.parametrize("objective", ["cost", "latency", "throughput"])
def test_a_draft_on_offer_never_makes_the_plan_worse(objective):
    alone = solve(torus(1, 2, 2), objective=objective).certificate
    offered = solve(torus(1, 2, 2), Speculation(draft=DRAFT), objective=objective).certificate
    if objective == "throughput":
        assert offered.objective >= alone.objective
    else:
        assert offered.objective <= alone.objective


def test_more_lookaheads_to_choose_from_never_hurt():
    few = Speculation(draft=DRAFT, lookaheads=(2,))
    many = Speculation(draft=DRAFT, lookaheads=(1, 2, 3, 6))
    one = solve(torus(1, 2, 2), few, objective="latency").certificate.objective
    two = solve(torus(1, 2, 2), many, objective="latency").certificate.objective
    assert two <= one


def test_the_draft_is_counted_in_the_memory_of_a_device():
    best = solve(torus(1, 2, 2), Speculation(draft=DRAFT), objective="latency").deployment
    assert best.memory.draft_bytes == best.draft.held_bytes > 0
    assert best.memory.used_bytes <= best.memory.capacity_bytes


@pytest.mark.parametrize("solver", ["cpsat", "exhaustive"])
def test_all_solvers_choose_the_same_draft(solver):
    speculation = Speculation(draft=DRAFT)
    targets = Targets(tpot_s=0.003)
    one = solve(torus(1, 2, 2), speculation, targets=targets)
    two = solve(torus(1, 2, 2), speculation, targets=targets, options=SolverOptions(solver=solver))
    assert one.deployment == two.deployment
