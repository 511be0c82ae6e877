"""Candidates come in blocks: each arm once, each context whole, plans the same in any of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.errors import NoPlanError
from planner.estimates import candidates, speculation
from planner.estimates.candidates import machine_of, spread, table_of
from planner.planning.pareto import frontier
from planner.planning.plans import plan
from planner.programs import reduction
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.request import Workload
from planner.specs.ask.targets import SolverOptions, Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model

WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
SMALL = {"batches": (1, 4, 16, 64, 256), "prefill_batches": (1, 8)}
POOLS = {"nodes": ("llama-3.1-8b", "h100-nvl8-x2"), "torus": ("palm-62b", "tpu-v4-2x2x4")}


def request(model, pool, **asked):
    return make_request(
        load_model(model),
        load_cluster(pool),
        PlanOptions(
            workload=WORKLOAD,
            targets=asked.get("targets", Targets()),
            weights_formats=None,
            prefill=None,
            objective="cost",
            options=SolverOptions(),
            speculation=asked.get("speculation"),
            **SMALL,
        ),
    )


def table(name, **asked):
    one = request(*POOLS[name], **asked)
    return table_of(one, machine_of(one.cluster, one.model))


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("most", [1, 200, 10**9])
def test_each_arm_is_in_one_block_and_no_context_is_in_two(name, most, monkeypatch):
    monkeypatch.setattr(candidates, "BLOCK", most)
    found = table(name)
    blocks = list(found.blocks())
    arms = np.concatenate([block.arms for block in blocks])
    assert sorted(arms.tolist()) == list(range(len(found.arms)))
    contexts = [set(found.context[block.arms].tolist()) for block in blocks]
    assert sum(map(len, contexts)) == len(set.union(*contexts)) == len(found.contexts)
    assert (len(blocks) == 1) == (most == 10**9)
    for block in blocks:
        layouts = {tuple(row) for row in resting(found, block.arms)}
        assert block.n_candidates <= most or len(layouts) == 1
        assert (np.diff(block.arms) > 0).all()


def resting(found, arms):
    """What tells contexts apart but for their formats."""
    of = found.arms.take(arms)
    return np.stack([of.mesh, of.stored, of.data, of.sliced], axis=1).tolist()


@pytest.mark.parametrize("name", POOLS)
def test_what_a_little_more_memory_lets_in_is_what_did_not_fit_and_nothing_twice(name):
    """Also where some weights take a device to its last byte: those fit it already."""
    one = request(*POOLS[name])
    machine = machine_of(one.cluster, one.model)
    weights = np.unique(table_of(one, machine).contexts.weight_bytes)
    brim = float(weights[len(weights) // 2])
    device = replace(machine.device, hbm_bytes=brim, reserve_bytes=0.0)
    machine = replace(machine, device=device)

    def held(least, most):
        found = table_of(one, machine, weights_within=(least, most))
        return found.contexts.weight_bytes[found.context].tolist()

    fits, more, both = held(0.0, 1.0), held(1.0, 4.0), held(0.0, 4.0)
    assert max(fits) == brim < min(more)
    assert sorted(fits + more) == sorted(both)


def test_formats_of_a_layout_share_a_block(monkeypatch):
    """Each layout is evaluated once for all of its formats."""
    monkeypatch.setattr(candidates, "BLOCK", 1)
    found = table("nodes")
    place = {}
    for number, block in enumerate(found.blocks()):
        for row in resting(found, block.arms):
            assert place.setdefault(tuple(row), number) == number


def test_blocks_that_were_seen_are_remembered_as_far_as_there_is_room(monkeypatch):
    monkeypatch.setattr(candidates, "BLOCK", 200)
    monkeypatch.setattr(candidates, "MOST_REMEMBERED", 500)
    found = table("nodes")
    first, again = list(found.blocks()), list(found.blocks())
    same = [one is other for one, other in zip(first, again, strict=True)]
    assert any(same)
    assert not all(same)
    assert sum(block.n_candidates for block in found.remembered.values()) <= 500
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.prefill.pass_s, other.prefill.pass_s)
        np.testing.assert_array_equal(one.decodes[0].kv_bytes, other.decodes[0].kv_bytes)


def test_neighbours_come_far_apart():
    order = spread(list(range(100)))
    assert sorted(order) == list(range(100))
    assert all(abs(a - b) > 10 for a, b in pairwise(order))
    assert spread([7]) == [7]
    assert spread([]) == []


def timeless(certificate):
    """A certificate without the seconds that it took."""
    proofs = tuple(replace(proof, wall_s=0.0) for proof in certificate.proofs)
    return replace(certificate, wall_s=0.0, solve_s=0.0, proofs=proofs)


def answer(model, pool, **asked):
    try:
        served, devices = load_model(model), load_cluster(pool)
        found = plan(served, devices, "roofline", workload=WORKLOAD, **asked)
    except NoPlanError as error:
        return error.conflict
    return replace(found, certificate=timeless(found.certificate))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("nodes", {"targets": Targets(tpot_s=0.01)}),
        ("nodes", {"targets": Targets(tpot_s=0.01, ttft_s=0.1, usd_per_token=1e-6)}),
        ("nodes", {"targets": Targets(demand_tokens_per_s=5000.0)}),
        ("nodes", {"objective": "devices"}),
        ("nodes", {"objective": "throughput", "kv_formats": ("bf16", "fp8")}),
        ("nodes", {"targets": Targets(tpot_s=1e-4)}),
        ("torus", {"objective": "latency", "targets": Targets(n_devices=8)}),
    ],
    ids=["tpot", "three limits", "demand", "devices", "throughput", "in vain", "torus"],
)
def test_a_plan_is_the_same_in_any_blocks(name, asked, monkeypatch):
    """Deployment, runners-up, gains, bound, provers and the counts of all screens."""
    monkeypatch.setattr(reduction, "MOST_WHOLE", 0)
    whole = answer(*POOLS[name], **SMALL, **asked)
    monkeypatch.setattr(candidates, "BLOCK", 300)
    monkeypatch.setattr(candidates, "MOST_REMEMBERED", 0)
    assert answer(*POOLS[name], **SMALL, **asked) == whole


@pytest.mark.parametrize("y", ["cost", "rent"])
def test_the_points_of_a_frontier_are_the_same_in_any_blocks(y, monkeypatch):
    """What a block alone cannot see is dominated goes as dearer: the sum of both is the same."""

    def traced():
        model, pool = POOLS["nodes"]
        served, devices = load_model(model), load_cluster(pool)
        found = frontier(served, devices, "roofline", y=y, workload=WORKLOAD, **SMALL)
        counts = {one.name: one.n_candidates for one in found.proof.screens}
        together = sum(counts.pop(name, 0) for name in ("bound", "dominated"))
        return found.points, found.proof.status, counts, together + found.proof.n_solved

    whole = traced()
    monkeypatch.setattr(candidates, "BLOCK", 300)
    assert traced() == whole


def test_drafts_are_the_same_however_many_meshes_are_looked_at_together(monkeypatch):
    drafting = Speculation(draft=load_model("llama-3.1-8b"))
    one = request("llama-3.1-70b", "h100-nvl8-x1", speculation=drafting)
    machine = machine_of(one.cluster, one.model)
    whole = table_of(one, machine).drafts
    monkeypatch.setattr(speculation, "AT_ONCE", 1)
    monkeypatch.setattr(speculation, "MOST_COMPARED", 1)
    parts = table_of(one, machine).drafts
    for field in ("chosen", "pass_s", "held_bytes"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))
    assert (whole.chosen >= 0).any()
