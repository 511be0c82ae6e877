"""Half of any coefficient of a layout's account is seen before a plan goes out, or by hand here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import plan
from planner.errors import SolverError
from planner.specs.ask.targets import Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.verifier import quantities
from planner.verifier.layouts import deployments, phases
from planner.verifier.runtimes import erdil2025

PARTS = ("compute_s", "weights_s", "attention_s", "network_s", "overhead_s")
BYTES = ("weights_bytes", "kv_bytes", "activation_bytes")


def layouts(**asked):
    """Llama 70B on eight H100 within 30 ms, a request at a time read."""
    model, cluster = load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    return plan(model, cluster, "roofline", targets=Targets(tpot_s=0.03, **asked))


def drafted():
    draft = Speculation(draft=load_model("llama-3.1-8b"), acceptance=0.8, lookaheads=(3,))
    model, cluster = load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    targets = Targets(tpot_s=0.012)
    return plan(model, cluster, "roofline", targets=targets, objective="latency", speculation=draft)


def half_of(function, *fields):
    """A function that gives half of some of the fields of what it gives, or of a number."""

    def halved(*args, **named):
        found = function(*args, **named)
        if not fields:
            return found / 2
        return replace(found, **{name: getattr(found, name) / 2 for name in fields})

    return halved


@pytest.mark.parametrize("part", PARTS)
def test_half_of_a_part_of_a_pass(part, monkeypatch):
    monkeypatch.setattr(phases, "step_time", half_of(phases.step_time, part))
    with pytest.raises(SolverError, match="the account disagrees with the search"):
        layouts()


@pytest.mark.parametrize("part", BYTES)
def test_half_of_what_is_held(part, monkeypatch):
    monkeypatch.setattr(phases, "held_bytes", half_of(phases.held_bytes, part))
    with pytest.raises(SolverError, match="the account disagrees with the search"):
        layouts()


@pytest.mark.parametrize("name", ["planned_over_predicted", "fleet_usd_per_token"])
def test_half_of_a_margin_or_of_money(name, monkeypatch):
    monkeypatch.setattr(deployments, name, half_of(getattr(deployments, name)))
    with pytest.raises(SolverError, match="the account disagrees with the search"):
        layouts()


def test_half_of_the_power_of_a_device(monkeypatch):
    found = deployments.further_of

    def halved(*args):
        return {name: value / 2 for name, value in found(*args).items()}

    monkeypatch.setattr(deployments, "further_of", halved)
    with pytest.raises(SolverError, match="the account disagrees with the search: power"):
        layouts(further={"power": 8 * 700.0})


@pytest.mark.parametrize("name", ["count_pass", "count_bytes"])
def test_half_of_the_reference_model(name, monkeypatch):
    found = getattr(erdil2025, name)

    def halved(*args, **named):
        made = found(*args, **named)
        if isinstance(made, tuple):
            return tuple(one / 2 for one in made)
        return replace(made, memory_s=made.memory_s / 2, compute_s=made.compute_s / 2)

    monkeypatch.setattr(erdil2025, name, halved)
    with pytest.raises(SolverError, match="the account disagrees with the search"):
        plan(load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x1"), "erdil2025")


def test_what_no_array_has_by_hand():
    """Eight devices, one request of 2,048 tokens read in 77.5 ms, 160 that decode."""
    found = layouts().deployment
    before, after = found.prefill, found.decode
    for one, n_tokens in ((before, before.batch * 2048), (after, after.batch)):
        assert one.n_tokens == n_tokens
        flop = 2 * 70_553_706_496 * n_tokens
        assert one.mfu_fraction == pytest.approx(flop / (8 * 989.4e12) / one.step.total_s, rel=1e-3)
        assert one.n_kv_ways == 8  # of eight heads each device has one
        assert one.divisions == ()
    prefill_s = before.step.total_s / before.batch
    decode_s = 63 * after.step.total_s / after.batch
    assert found.request_s == pytest.approx(prefill_s + decode_s)
    assert found.usd_per_token == pytest.approx(found.usd_per_hour / 3600 * found.request_s / 64)
    share = found.prefill_usd_per_token / found.usd_per_token
    assert share == pytest.approx(prefill_s / found.request_s)


def test_a_round_of_drafts_by_hand():
    """Three drafted at 0.8 each yield 1 + 0.8 + 0.64 + 0.512 tokens."""
    found = drafted().deployment
    draft = found.draft
    assert draft is not None
    assert draft.n_yielded == pytest.approx(2.952)
    round_s = found.decode.step.total_s + 3 * draft.step.total_s
    assert found.tpot_s == pytest.approx(round_s / 2.952)
    assert found.decode.n_tokens == 4 * found.decode.batch


def test_the_power_of_all_devices_by_hand():
    limited = layouts(further={"power": 8 * 700.0}).deployment
    assert limited.further == {"power": limited.n_devices * 700.0}
    assert quantities.further_of((), limited, None) == {}
