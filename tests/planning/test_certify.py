"""A plan whose figures are not so never goes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import SolverError, plan
from planner.runtimes import roofline
from planner.verifier.layouts import phases
from tests.requests import MODEL, WORKLOAD, torus

OBJECTIVES = ("cost", "rent", "latency", "ttft", "throughput", "devices")


def solve(**choices):
    filled = {"workload": WORKLOAD, "batches": (1, 8, 64), "prefill_batches": (1, 4)} | choices
    return plan(MODEL, torus(1, 2, 2), **filled)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_objective_is_what_the_deployment_comes_to(objective):
    proof = solve(objective=objective).certificate
    assert proof.objective > 0
    assert proof.bound == pytest.approx(proof.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda best: replace(best, usd_per_hour=1.001 * best.usd_per_hour), "usd_per_hour"),
        (lambda best: replace(best, storage="E_xyz F"), "storage"),
        (lambda best: replace(best, n_replicas=2), "n_replicas"),
        (
            lambda best: replace(best, mesh=replace(best.mesh, n_devices=8)),
            r"mesh\.n_devices 8 is \d",
        ),
        (
            lambda best: replace(best, memory=replace(best.memory, decode_kv_bytes=0.0)),
            r"memory\.decode_kv_bytes",
        ),
    ],
)
def test_a_deployment_that_is_not_so_never_goes_out(monkeypatch, change, said):
    describe = roofline.describe
    monkeypatch.setattr(roofline, "describe", lambda *args: change(describe(*args)))
    with pytest.raises(SolverError, match=said):
        solve()


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_what_a_pass_needs_beside_its_cache_must_fit(monkeypatch, phase):
    """The verifier counts 1 TB of activations in one phase."""
    count = phases.held_bytes

    def larger(*args, **work):
        held = count(*args, **work)
        here = (work["n_new_tokens"] == 1) == (phase == "decode")
        return replace(held, activation_bytes=1e12) if here else held

    monkeypatch.setattr(phases, "held_bytes", larger)
    with pytest.raises(SolverError, match=r"capacity_bytes .* is less than|memory .* is 1\d{12}"):
        solve()
