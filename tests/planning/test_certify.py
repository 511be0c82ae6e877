"""The judges of a plan reject every figure that is not so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import SolverError, Targets, plan, planning, verdict
from planner.estimates import referee
from tests.requests import MODEL, WORKLOAD, torus

OBJECTIVES = ("cost", "rent", "latency", "ttft", "throughput", "devices")


def solve(**choices):
    filled = {"workload": WORKLOAD, "batches": (1, 8, 64), "prefill_batches": (1, 4)} | choices
    return plan(MODEL, torus(1, 2, 2), **filled)


def altered(monkeypatch, change):
    """Let the description of a plan be another than what was found."""
    describe = planning.describe
    monkeypatch.setattr(planning, "describe", lambda *args: change(describe(*args)))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_objective_is_what_the_deployment_comes_to(objective):
    proof = solve(objective=objective).certificate
    assert proof.objective > 0
    assert proof.bound == pytest.approx(proof.objective, rel=1e-9)


def test_a_deployment_that_costs_something_else_is_refused(monkeypatch):
    altered(monkeypatch, lambda best: replace(best, usd_per_token=1.001 * best.usd_per_token))
    with pytest.raises(SolverError, match=r"cost .* is "):
        solve()


def test_a_time_that_the_referee_does_not_count_is_refused(monkeypatch):
    def slower(best):
        step = replace(best.decode.step, compute_s=best.decode.step.compute_s * (1 + 1e-6))
        return replace(best, decode=replace(best.decode, step=step))

    altered(monkeypatch, slower)
    with pytest.raises(SolverError, match="decode compute"):
        solve()


def test_bytes_that_the_referee_does_not_count_are_refused(monkeypatch):
    def smaller(best):
        return replace(best, memory=replace(best.memory, decode_kv_bytes=0.0))

    altered(monkeypatch, smaller)
    with pytest.raises(SolverError, match=r"memory .* is "):
        solve()


@pytest.mark.parametrize(
    ("targets", "name"),
    [
        (Targets(tpot_s=0.01), "tpot"),
        (Targets(ttft_s=0.5), "ttft"),
        (Targets(usd_per_token=3e-7), "cost"),
        (Targets(n_devices=2), "devices"),
        (Targets(min_batch=8), "batch"),
    ],
)
def test_a_target_that_the_referee_finds_broken_is_refused(monkeypatch, targets, name):
    """The plan keeps it; the judges are asked about a tenth of it (ten times the batch)."""
    judge = verdict.referee_verdict

    def stricter(table, posed, request, *rest):
        tight = {
            key: value * (10 if key == "min_batch" else 0.1)
            for key in Targets.__dataclass_fields__
            for value in [getattr(targets, key)]
            if isinstance(value, int | float)
        }
        return judge(table, posed, replace(request, targets=Targets(**tight)), *rest)

    assert solve(targets=targets)
    monkeypatch.setattr(planning, "referee_verdict", stricter)
    with pytest.raises(SolverError, match=name):
        solve(targets=targets)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_what_a_pass_needs_beside_its_cache_must_fit(monkeypatch, phase):
    """The referee counts 1 TB of activations in one phase."""
    count = referee.held_bytes

    def larger(*args, **work):
        held = count(*args, **work)
        here = (work["n_new_tokens"] == 1) == (phase == "decode")
        return replace(held, activation_bytes=1e12) if here else held

    monkeypatch.setattr(referee, "held_bytes", larger)
    with pytest.raises(SolverError, match=r"memory .* exceeds"):
        solve()
