"""Plans of layouts against the upper end of an interval: every pass so many times as long."""

from __future__ import annotations

import pytest

from planner import Serve, Targets, Workload, load_model, load_topology, place, plan, verify
from planner.equations.tails import sigmas
from planner.errors import RequestError
from planner.report.as_json import answer_json, digest_of
from planner.specs.ask.targets import Degrees, Speculation
from planner.specs.records.model_errors import roofline_error
from planner.specs.records.runtimes import judged_on
from tests.report.rendering import report_text

MODEL, POOL = load_model("llama-3.1-8b"), load_topology("h100-nvl8-x1")
ASKED = {"engine": "roofline", "workload": Workload(n_input_tokens=512, n_output_tokens=64)}
OF_ONE = {"batches": (16,), "prefill_batches": (1,), "targets": Targets(degrees=Degrees(tensor=2))}
"""That leave one deployment to choose, so that it is the same at any confidence."""


def planned(confidence, **asked):
    return plan(MODEL, POOL, confidence=confidence, **{**ASKED, **OF_ONE, **asked})


def upper(quantity, confidence, device=POOL.device):
    """Over which are as few cases as are left: as many are under what is predicted as over it."""
    return 1 + sigmas(2 * confidence - 1) * roofline_error(device, "dense", quantity)


@pytest.mark.parametrize("confidence", [0.6, 0.9])
def test_every_pass_takes_what_such_a_share_of_cases_is_within(confidence):
    plain, sure = (planned(one).deployment for one in (0.0, confidence))
    assert sure.tpot_s == pytest.approx(plain.tpot_s * upper("TPOT", confidence))
    assert sure.ttft_s == pytest.approx(plain.ttft_s * upper("TTFT", confidence))
    steps = sure.decode.step.parts(), plain.decode.step.parts()
    for (_, one_s), (_, other_s) in zip(*steps, strict=True):
        assert one_s == pytest.approx(other_s * upper("TPOT", confidence))


def test_passes_of_a_draft_take_longer_too():
    draft = Speculation(draft=load_model("llama-3.1-8b"), lookaheads=(2,))
    one = {"speculation": draft, "objective": "latency"}
    model = load_model("llama-3.1-70b")
    asked = {**ASKED, "batches": (1,), "targets": Targets(degrees=Degrees(tensor=8)), **one}
    plain, sure = (plan(model, POOL, confidence=c, **asked).deployment for c in (0.0, 0.9))
    assert plain.draft is not None
    for part in ("tpot_s", "draft.step.total_s"):
        values = [plain, sure]
        for name in part.split("."):
            values = [getattr(value, name) for value in values]
        assert values[1] == pytest.approx(values[0] * upper("TPOT", 0.9))


def test_more_confidence_is_never_cheaper_and_keeps_its_target():
    asked = {"batches": None, "prefill_batches": None, "targets": Targets(tpot_s=0.02)}
    found = [planned(share, **asked).deployment for share in (0.0, 0.5, 0.6, 0.9, 0.95)]
    costs = [one.usd_per_token for one in found]
    assert costs == sorted(costs)
    assert costs[0] == costs[1]
    assert costs[0] < costs[-1]
    assert all(one.planned_tpot_s <= 0.02 for one in found)


def test_who_verifies_counts_what_was_planned_by_itself():
    record = answer_json(planned(0.9))
    assert verify(record).is_true
    record["request"]["confidence"] = 0.8
    record["digest"] = digest_of(record)
    wrong = {one.pointer for one in verify(record).falsehoods}
    assert "/answer/deployment/decode/step/total_s" in wrong


def test_a_report_says_how_much_longer_passes_are_planned_to_take():
    text = " ".join(report_text(planned(0.9), 100).split())
    assert "what holds in 90 % of cases" in text
    assert f"decode {upper('TPOT', 0.9):.3g} times what is predicted" in text
    assert "planned" not in report_text(planned(0.0), 100)


@pytest.mark.parametrize("roles", ["together", "apart"])
def test_replicas_are_placed_by_what_is_planned(roles):
    wish = Serve(model=MODEL, replicas=None if roles == "apart" else 1)
    asked = {**ASKED, "batches": (8,), "roles": roles}
    plain, sure = (place(POOL, wish, confidence=one, **asked) for one in (0.0, 0.9))
    rates = [one.certificate.objective for one in (plain, sure)]
    assert rates[1] < rates[0] / upper("TPOT", 0.9) * 1.01
    assert verify(answer_json(sure)).is_true


@pytest.mark.parametrize(
    ("pool", "engine", "fact"),
    [
        ("tpu-v5e-16x16", "roofline", "nobody measured what tpu-v5e attains"),
        ("h100-nvl8-x1", "erdil2025", "nobody measured anything beside the reference model"),
    ],
)
def test_no_interval_is_said_where_nothing_was_measured(pool, engine, fact):
    with pytest.raises(RequestError) as refused:
        plan(MODEL, load_topology(pool), engine=engine, confidence=0.9)
    assert [one.where for one in refused.value.problems] == ["--confidence"]
    assert fact in refused.value.problems[0].fact


def test_decode_passes_that_are_known_to_be_quick_are_planned_as_they_were_measured():
    (judged,) = judged_on("roofline", POOL.device.name, "dense")
    found, plain = planned(None), planned(0.0).deployment
    assert judged.bias_fraction < -0.05
    expected = plain.tpot_s / (1 + judged.bias_fraction)
    assert found.deployment.tpot_s == pytest.approx(expected)
    assert found.deployment.ttft_s == plain.ttft_s
    assert "as it was measured on average" in report_text(found, 100)
    assert verify(answer_json(found)).is_true


def test_rooflines_that_were_held_against_whole_batches_are_planned_as_predicted():
    tpu = load_topology("tpu-v4-4x4x4")
    asked = {**ASKED, "batches": (16,), "prefill_batches": (1,), "objective": "latency"}
    found = [plan(MODEL, tpu, confidence=one, **asked).deployment for one in (None, 0.0)]
    assert found[0] == found[1]


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_decode_on_more_devices_than_were_measured_is_planned_longer(
    confidence,
):
    """[Pope2022] has 28.5 ms for 22.84 on up to 256 chips: beyond 64, passes take so much."""
    palm, tpu = load_model("palm-540b"), load_topology("tpu-v4-4x8x8")
    asked = {"weights_formats": ("int8",), "batches": (64,), "prefill_batches": (1,)}
    asked |= {"workload": Workload(n_input_tokens=2016, n_output_tokens=63)}
    asked |= {"engine": "roofline", "objective": "latency"}
    slower = upper("TPOT", confidence, tpu.device) if confidence else 1.0
    for n_devices, longer in ((64, 1.0), (256, 1 / (1 - 0.1985))):
        targets = Targets(degrees=Degrees(tensor=n_devices))
        times = [
            plan(palm, tpu, confidence=it, targets=targets, **asked) for it in (0.0, confidence)
        ]
        raw, planned_s = (it.deployment.tpot_s for it in times)
        assert planned_s / raw == pytest.approx(longer * slower, rel=1e-9)
        assert verify(answer_json(times[1])).is_true


def test_a_share_below_the_half_is_refused():
    with pytest.raises(RequestError) as refused:
        planned(0.3)
    assert "half of all cases" in refused.value.problems[0].fact
