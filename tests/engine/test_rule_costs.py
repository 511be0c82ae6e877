"""What a rule of an engine costs is what a plan without it gains, and nobody can say otherwise."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from planner import Targets, Workload, load_architecture, load_cluster, plan, verify
from planner.report.as_json import answer_json
from planner.specs.ask.defaults import RULE_SHARE
from planner.specs.files.engines import changed_rules
from planner.verifier.rivals import LEAST_GAIN
from tests.report.rendering import report_text

RULE = "attention-data-parallel"


WITHIN = Targets(tpot_s=0.05, ttft_s=3.0)


def asked(engine="trtllm", model="deepseek-v3", targets=WITHIN, pool="h100-nvl8-x4", **others):
    return plan(
        load_architecture(model),
        load_cluster(pool),
        engine,
        workload=Workload(n_input_tokens=2000, n_output_tokens=500),
        targets=targets,
        batches=range(8, 33),
        **others,
    )


@pytest.fixture(scope="module")
def best():
    return asked()


@pytest.fixture(scope="module")
def record(best):
    return answer_json(best)


def lifting(tmp_path, rule, engine="trtllm"):
    file = tmp_path / "own.toml"
    file.write_text(f'[rules]\nengine = "{engine}"\nlift = ["{rule}"]\n')
    return changed_rules(str(file))


def test_a_rule_costs_what_a_plan_without_it_gains(best, tmp_path):
    """The best of all plans, whatever would be simpler and nearly as good."""
    (cost,) = best.rule_costs
    with lifting(tmp_path, RULE):
        lifted = asked(prefer="objective")
    assert cost.rule == RULE
    assert cost.gain_fraction > 0.1
    assert cost.objective == pytest.approx(lifted.certificate.objective, rel=1e-9)
    gain = 1 - lifted.certificate.objective / best.certificate.objective
    assert cost.gain_fraction == pytest.approx(gain, rel=1e-9)
    assert cost.deployment.summary == lifted.deployment.summary
    assert min(cost.deployment.n_tensor, cost.deployment.n_data) > 1
    assert (cost.deployment.launch, cost.deployment.command) == (None, "")
    assert lifted.rule_costs == ()


@pytest.mark.parametrize(
    ("engine", "model", "objective", "rule"),
    [
        ("sglang", "deepseek-v3", "throughput", "experts-over-all-that-exchange"),
        ("vllm", "llama-3.1-70b", "cost", "equal-shares-of-nodes"),
    ],
)
def test_each_rule_that_costs_much_is_named_and_no_other(engine, model, objective, rule, tmp_path):
    pool = "h200-nvl8-x2" if engine == "sglang" else "h100-nvl8-x4"
    plain = asked(engine, model, objective=objective, pool=pool)
    with lifting(tmp_path, rule, engine):
        lifted = asked(engine, model, objective=objective, pool=pool)
    ends = plain.certificate.objective, lifted.certificate.objective
    worse, better = ends if objective == "cost" else tuple(reversed(ends))
    costs = {one.rule: one.gain_fraction for one in plain.rule_costs}
    if 1 - better / worse < RULE_SHARE:
        assert rule not in costs
    else:
        assert costs[rule] == pytest.approx(1 - better / worse, rel=1e-6)
    assert bool(costs) == (model != "llama-3.1-70b")


def test_the_report_says_what_the_engine_does_not_start_and_where_that_is_said(best):
    text = " ".join(report_text(best, 100).split())
    assert f"what rules of engines cost {100 * best.rule_costs[0].gain_fraction:.1f}" in text
    assert f"but for `{RULE}`: TensorRT-LLM 9e7f85f does not start it" in text
    assert "features/parallel-strategy.md" in text


def test_of_replicas_for_a_demand_rules_cost_rent(tmp_path):
    targets = replace(WITHIN, demand_tokens_per_s=1200.0)
    best = asked("trtllm", targets=targets)
    assert best.rule_costs
    assert verify(answer_json(best)).is_true
    for one in best.rule_costs:
        with lifting(tmp_path, one.rule, "trtllm"):
            assert asked("trtllm", targets=targets).certificate.objective <= one.objective * 1.0001


FALSE = {
    "more": lambda cost: cost.update(gain_fraction=0.2),
    "another price": lambda cost: cost.update(objective=cost["objective"] * 0.99),
    "another rule": lambda cost: cost.update(rule="equal-shares-of-nodes"),
    "no rule": lambda cost: cost.update(rule="experts"),
    "what starts": lambda cost: cost["deployment"].update(n_tensor=1, n_data=32),
    "faster": lambda cost: cost["deployment"].update(planned_tpot_s=0.04),
    "started": lambda cost: cost["deployment"].update(command="plan predict"),
    "unasked": lambda cost: cost["deployment"].update(engine="sglang"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_cost_of_a_rule_is_refused(record, name):
    answer = copy.deepcopy(record)
    assert verify(answer).is_true
    FALSE[name](answer["answer"]["rule_costs"][0])
    pointers = [one.pointer for one in verify(answer).falsehoods]
    assert any(one.startswith("/answer/rule_costs/0/") for one in pointers)


def test_a_cost_that_is_left_out_is_seen_by_a_new_search(record):
    answer = copy.deepcopy(record)
    answer["answer"]["rule_costs"] = []
    assert verify(answer).is_true  # nothing proves that there is none
    (told,) = verify(answer, prove=True).falsehoods
    assert (told.pointer, told.fact) == ("/answer/rule_costs", f"lack `{RULE}` of trtllm")


def test_costs_are_named_once(record):
    answer = copy.deepcopy(record)
    answer["answer"]["rule_costs"] *= 2
    (told,) = verify(answer).falsehoods
    assert told.pointer == "/answer/rule_costs/1/gain_fraction"
    assert LEAST_GAIN == RULE_SHARE
