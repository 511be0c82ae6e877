"""What phases that take turns hold of a device: one cache, the larger of both phases.

The toy model keeps 16 layers × 4 heads × 2 × 128 numbers of 2 bytes, 32 KiB, of each token; a
request reads 256 tokens and writes 32.
"""

from __future__ import annotations

import math
from itertools import product

import pytest

from planner import NoPlanError, Targets, plan
from planner.estimates.phases import passes
from planner.specs.ask.targets import Speculation
from planner.specs.records.devices import Workload
from tests import requests
from tests.planning.test_planning import phase_choices, referee_meshes
from tests.planning.test_speculation import DRAFT
from tests.requests import MODEL, WORKLOAD, torus

TOKEN_BYTES = 2**15


def solve(cluster, *, prefill, decode, **choices):
    filled = {"workload": WORKLOAD, "weights_formats": ("bf16",), "targets": Targets()} | choices
    return plan(MODEL, cluster, batches=decode, prefill_batches=prefill, **filled)


def one_device(hbm_bytes=64e9):
    return requests.with_memory(torus(1, 1, 1), hbm_bytes)


@pytest.mark.parametrize(
    ("prefill", "decode", "n_held"),
    [
        pytest.param(4, 8, 8 * 288, id="prefill fills the decode batch"),
        pytest.param(8, 8, 8 * 288, id="as many: the cache is there once"),
        pytest.param(16, 8, 8 * 288 + 8 * 256, id="8 of 16 wait"),
    ],
)
def test_no_sequence_is_held_twice(prefill, decode, n_held):
    memory = solve(one_device(), prefill=(prefill,), decode=(decode,)).deployment.memory
    assert memory.fullest == "prefill"
    assert memory.decode_kv_bytes == decode * 288 * TOKEN_BYTES
    assert memory.prefill_kv_bytes == prefill * 256 * TOKEN_BYTES
    assert memory.written_kv_bytes == decode * 32 * TOKEN_BYTES
    assert memory.kv_bytes == n_held * TOKEN_BYTES
    parts = memory.weights_bytes + memory.activation_bytes + memory.reserve_bytes
    assert memory.used_bytes == parts + n_held * TOKEN_BYTES


def test_a_decode_pass_is_the_fullest_where_prompts_are_short():
    """One prompt of 8 tokens in a pass, or 64 sequences: activations of 8 tokens, or of 64."""
    short = Workload(n_input_tokens=8, n_output_tokens=32)
    best = solve(one_device(), prefill=(1,), decode=(64,), workload=short).deployment
    assert best.memory.fullest == "decode"
    assert best.memory.kv_bytes == best.memory.decode_kv_bytes == 64 * 40 * TOKEN_BYTES
    more = solve(one_device(), prefill=(8,), decode=(64,), workload=short).deployment.memory
    assert best.memory.activation_bytes == more.activation_bytes  # 64 tokens either way


@pytest.mark.parametrize("draft", [None, DRAFT], ids=["alone", "with a draft"])
@pytest.mark.parametrize(("prefill", "decode"), [(1, 64), (16, 16), (64, 1)])
def test_a_millionth_of_the_memory_decides_whether_a_plan_fits(prefill, decode, draft):
    """The memory that a plan takes is enough for it, and a little less is not for any plan."""
    speculation = draft and Speculation(draft=draft, lookaheads=(3,), acceptance=0.99)
    asked = {"prefill": (prefill,), "decode": (decode,), "objective": "latency"}
    roomy = solve(one_device(), speculation=speculation, **asked).deployment
    assert (roomy.draft is not None) == (draft is not None)
    needed = math.ceil(roomy.memory.used_bytes)
    tight = solve(one_device(needed), speculation=speculation, **asked).deployment
    assert tight.memory.used_bytes == roomy.memory.used_bytes
    smaller = one_device(needed * (1 - 1e-6))
    if draft:
        assert solve(smaller, speculation=speculation, **asked).deployment.draft is None
        return
    with pytest.raises(NoPlanError) as caught:
        solve(smaller, **asked)
    (obstacle,) = caught.value.conflict.obstacles
    assert (obstacle.name, obstacle.reachable) == ("hbm", roomy.memory.used_bytes)


def least_memory(cluster, batches, prefill_batches, targets):
    """Bytes of the fullest moment of the plan that needs least, one by one by the referee."""
    work, least = passes(WORKLOAD), math.inf
    for mesh, _ in referee_meshes(cluster):
        parts = (1,) if mesh.n_stages == 1 else (1, 2, 4, 8, 16, 32, 64)
        for stored in range(8):
            common = {"stored": stored, "weights_format": "bf16", "parts": parts}
            decodes = {
                tuple(sizes)
                for seconds, _, *sizes in phase_choices(
                    cluster, mesh, work=work["decode"], batches=batches, **common
                )
                if targets.tpot_s is None or seconds <= targets.tpot_s
            }
            prefills = {
                tuple(sizes)
                for _, _, *sizes in phase_choices(
                    cluster, mesh, work=work["prefill"], batches=prefill_batches, **common
                )
            }
            for (weights, cache, written, working), (_, kv, _, beside) in product(
                decodes, prefills
            ):
                peak = max(max(cache, kv + written) + beside, cache + working)
                least = min(least, weights + peak)
    return least + cluster.device.reserve_bytes


@pytest.mark.parametrize("tpot_s", [None, 0.003])
@pytest.mark.parametrize(
    ("prefill", "decode"), [((1, 4), (3, 64)), ((48, 64), (1, 3)), ((48,), (64,))]
)
def test_an_explanation_says_the_least_memory_that_any_plan_needs(prefill, decode, tpot_s):
    """Whichever moment is the fullest; the smallest devices have room for no plan at all."""
    cluster, targets = requests.with_memory(torus(2, 2, 2), 1.2e9), Targets(tpot_s=tpot_s)
    with pytest.raises(NoPlanError) as caught:
        solve(cluster, prefill=prefill, decode=decode, targets=targets)
    (found,) = (one for one in caught.value.conflict.obstacles if one.name == "hbm")
    assert found.reachable == pytest.approx(
        least_memory(cluster, decode, prefill, targets), rel=1e-7
    )
