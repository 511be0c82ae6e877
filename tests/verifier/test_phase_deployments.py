"""Replicas of one phase, recounted from their choice alone."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from planner.placing.fabrics.patterns import Beaten
from planner.placing.runtimes import Roofline
from planner.specs.ask.targets import Targets
from planner.specs.records.roles import DECODE, PREFILL
from planner.verifier.findings import with_differences
from planner.verifier.layouts.deployments import Context
from planner.verifier.runtimes.layouts import counted_single_phase
from tests.placing.test_phase_configurations import _domains, _request, _site

TARGETS = Targets(tpot_s=0.004, ttft_s=0.1, min_batch=2)


def _all(role):
    site = _site(4.0)
    request = _request(site, TARGETS)
    for domain in _domains(site):
        asked = replace(request, cluster=domain.cluster)
        for one in Roofline(request=request, roles=(role,)).on_nodes(0, domain, Beaten()):
            yield asked, one


def _wrong(asked, says):
    truth, wrong = counted_single_phase(asked, says, (), ground=Context(n_alike=2))
    return with_differences(wrong, says, truth)


@pytest.mark.parametrize("role", [PREFILL, DECODE])
def test_every_replica_is_recounted_to_what_it_says(role):
    n = 0
    for asked, one in _all(role):
        says = one.deployment(2)
        assert _wrong(asked, says) == []
        assert says.output_tokens_per_s == pytest.approx(one.output_tokens_per_s, rel=1e-12)
        assert (says.tpot_s, says.ttft_s) == pytest.approx((one.tpot_s, one.ttft_s), rel=1e-12)
        assert says.handed_bytes == one.handed_bytes
        n += 1
    assert n > 10


def _altered(says):
    yield replace(says, role=DECODE if says.role == PREFILL else PREFILL)
    yield replace(says, weights_format="fp4")
    yield replace(says, kv_format="fp4")
    for name in ("usd_per_hour", "n_output_tokens", "n_passes", "handed_bytes"):
        yield replace(says, **{name: getattr(says, name) * 2})
    yield replace(says, further={"power": 1.0})
    yield replace(says, phase=replace(says.phase, batch=says.phase.batch + 1))
    yield replace(says, phase=replace(says.phase, layout=f"{says.phase.layout}?"))
    for part in ("step", "phase", "memory"):
        record = says.phase.step if part == "step" else getattr(says, part)
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if not isinstance(value, float):
                continue
            other = replace(record, **{field.name: value * 1.01 + 1e-3})
            in_phase = part == "step"
            yield replace(
                says, **({"phase": replace(says.phase, step=other)} if in_phase else {part: other})
            )


@pytest.mark.parametrize("role", [PREFILL, DECODE])
def test_whatever_is_altered_is_found(role):
    asked, one = list(_all(role))[-1]
    says = one.deployment(2)
    altered = list(_altered(says))
    assert len(altered) > 20
    for other in altered:
        assert _wrong(asked, other), other


@pytest.mark.parametrize(
    ("role", "target"), [(PREFILL, "ttft_s"), (DECODE, "tpot_s"), (DECODE, "min_batch")]
)
def test_a_target_of_the_phase_that_is_not_kept_is_found(role, target):
    asked, one = next(_all(role))
    says = one.deployment(2)
    tight = {"ttft_s": says.ttft_s / 2, "tpot_s": says.tpot_s / 2, "min_batch": 10_000}[target]
    targets = replace(asked.targets, **{target: tight})
    (found,) = _wrong(replace(asked, targets=targets), says)
    assert "beyond" in found.fact
    others = {"ttft_s", "tpot_s"} - {target}
    if role == PREFILL:  # what the other phase has to keep is nothing to this one
        loose = replace(asked.targets, **dict.fromkeys(others, 1e-9), min_batch=10_000)
        assert _wrong(replace(asked, targets=loose), says) == []


def test_a_replica_that_does_not_fit_is_found():
    asked, one = next(_all(DECODE))
    device = asked.cluster.device
    small = replace(device, hbm_bytes=one.deployment().used_bytes * 0.99)
    cluster = replace(asked.cluster, device=small)
    found = _wrong(replace(asked, cluster=cluster), one.deployment(2))
    assert any("that are needed in decode" in wrong.fact for wrong in found)
