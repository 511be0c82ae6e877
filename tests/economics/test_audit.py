"""What runs, beside what the reference model of [Erdil2025] says of it and of its pool."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import cache

import pytest

from planner import RequestError, verify
from planner.commands.cli import main
from planner.planning.engine_audit import audit_engine
from planner.planning.plans import plan
from planner.results.engines import EngineAudit
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import Workload
from planner.verifier.audits import judge_engine_audit
from tests.report.rendering import report_text

MODEL, POOL = "llama-3-70b", "h100-nvl8-x2"
WORK = Workload(n_input_tokens=2048, n_output_tokens=64)


@cache
def audited(model: str = MODEL, speed: float = 40.0, batch: int = 16, **degrees: int):
    return audit_engine(
        load_model(model),
        load_cluster(POOL),
        "erdil2025",
        speed_tokens_per_s=speed,
        degrees=Degrees(**(degrees or {"tensor": 8})),
        batch=batch,
        workload=WORK,
    )


def test_what_runs_is_predicted_by_its_own_degrees():
    for degrees in ({"tensor": 8}, {"tensor": 4, "pipeline": 2}):
        layout = audited(**degrees).predicted.layout
        assert layout.n_tensor == degrees["tensor"]
        assert layout.n_stages == degrees.get("pipeline", 1)
    given = plan(load_model(MODEL), load_cluster(POOL), "erdil2025", workload=WORK, batches=(16,),
                 targets=Targets(degrees=Degrees(tensor=8, pipeline=1)), objective="latency",
                 )  # fmt: skip
    found = audited()
    assert found.predicted == given.deployment
    assert found.prediction_factor == pytest.approx(1 / 40 / given.deployment.tpot_s)
    assert found.errors_off is None


def test_rent_is_over_decoded_tokens_alone():
    """8 devices at the price of their file for 16 × 40 tokens a second."""
    price = load_cluster(POOL).usd_per_hour
    assert audited().observed_usd_per_token == pytest.approx(8 * price / 3600 / (16 * 40))


def test_experts_that_are_not_divided_are_cut_like_the_rest():
    sliced = audited("mixtral-8x7b", tensor=4).predicted.layout
    divided = audited("mixtral-8x7b", tensor=4, expert=4).predicted.layout
    assert (sliced.n_expert, divided.n_expert) == (1, 4)


def test_the_best_of_an_audit_are_plans_of_the_pool():
    found = audited()
    best = plan(load_model(MODEL), load_cluster(POOL), "erdil2025", workload=WORK,
                targets=Targets(tpot_s=1 / 40))  # fmt: skip
    assert found.equal_speed is not None
    assert found.equal_speed.usd_per_token == pytest.approx(best.deployment.usd_per_token)
    ratio = found.observed_usd_per_token / best.deployment.usd_per_token
    assert found.cost_factor == pytest.approx(ratio)
    assert found.equal_cost.usd_per_token <= found.observed_usd_per_token * (1 + 1e-9)
    assert found.equal_cost.tpot_s < found.observed_tpot_s
    assert found.same_devices.n_devices <= 8
    assert found.same_devices.tpot_s <= found.predicted.tpot_s * (1 + 1e-9)


def test_the_plan_at_its_speed_is_a_command_that_ends_so(capsys):
    found = audited()
    command = shlex.split(found.command)[1:]
    assert main([*command, "--quiet"]) == 0
    assert found.equal_speed.summary in " ".join(capsys.readouterr().out.split())


def test_what_no_deployment_reaches_has_no_best():
    found = audited(speed=1e5)
    assert (found.equal_speed, found.cost_factor, found.command) == (None, None, "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"degrees": Degrees(tensor=1)}, "does not fit the devices by this account"),
        ({"degrees": Degrees(tensor=3)}, "is no degree of llama-3-70b"),
        ({"degrees": Degrees(tensor=8, data=2)}, "copies of its attention are whole replicas"),
        ({"degrees": Degrees(pipeline=4), "batch": 2}, "more stages than the 2 sequences"),
        ({"degrees": Degrees(tensor=8), "chunk_tokens": 512}, "without a serving engine"),
    ],
)
def test_what_the_reference_model_cannot_run_is_refused(asked, said):
    with pytest.raises(RequestError, match=said):
        audit_engine(load_model(MODEL), load_cluster(POOL), "erdil2025",
                     **{"speed_tokens_per_s": 20.0, "batch": 16} | asked)  # fmt: skip


def test_every_figure_is_counted_again_and_searched_again():
    found = audited()
    assert verify(found).is_true
    assert verify(found, prove=True).is_true

    def told(changed: EngineAudit, *, prove: bool = False) -> set[str]:
        return {one.pointer for one in verify(changed, prove=prove).falsehoods}

    slower = replace(found.predicted, tpot_s=0.02)
    assert "/answer/predicted/tpot_s" in told(replace(found, predicted=slower))
    cost = replace(found, observed_usd_per_token=1e-6)
    assert "/answer/observed_usd_per_token" in told(cost)
    assert told(replace(found, equal_cost=None), prove=True) == {"/answer/equal_cost"}
    beyond = replace(found, equal_speed=audited(batch=64).predicted, observed_tpot_s=1e-3)
    _, wrong = judge_engine_audit(beyond)
    assert any("breaks a limit: tpot" in one.fact for one in wrong)


def test_the_report_says_whose_model_and_that_prompts_are_left_out():
    text = report_text(audited(), 110)
    assert "by the model of Erdil 2025" in text.splitlines()[0]
    assert "decode only" in text
    assert "prefill is not planned" in text
    assert "where the time of a pass goes" in text
