"""The judge has its own figures: what is wrong in those of the finder, it sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner import plan, verify
from planner.errors import NoPlanError, SolverError
from planner.quantities import table as quantities
from planner.quantities.table import MEMORY, QUANTITIES
from planner.specs.ask.quality import quality_words, usual_formats, with_variants
from planner.specs.ask.targets import Targets
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.records import model_errors
from planner.specs.records.correspondence import architecture_of
from planner.verifier import quantities as judged
from planner.verifier.quantities import HBM, MEASURES, limits_of
from planner.verifier.serving.evaluation import layers_of
from planner.verifier.serving.measured import deviation, roofline_deviation
from tests.verifier.answers import SOME, answer

MODELS = sorted(path.stem for path in Path(__file__).parents[2].glob("models/*.toml"))
LIMITS = {
    "tpot": Targets(tpot_s=0.007),
    "ttft": Targets(ttft_s=0.08),
    "cost": Targets(usd_per_token=6e-7),
    "devices": Targets(n_devices=4),
    "batch": Targets(min_batch=8),
    "demand": Targets(demand_tokens_per_s=2000.0),
    "replicas": Targets(n_replicas=2),
    "rent": Targets(further={"rent": 6.0}),
    "power": Targets(further={"power": 1400.0}),
}
"""Limits that decide what the plan is, by name."""

AGAINST = {"cost": "latency", "batch": "latency", "replicas": "cost", "demand": "cost"}


def _asked(name, *, is_objective):
    """A plan in which a quantity is what is best, or limited while another is."""
    aim = QUANTITIES[name].objective if is_objective else AGAINST.get(name, "cost")
    if name in ("devices", "rent", "power") and not is_objective:
        aim = "throughput"
    targets = Targets(tpot_s=0.02) if is_objective else LIMITS[name]
    model, cluster = load_architecture("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    return plan(model, cluster, "vllm", targets=targets, objective=aim, **SOME)


def _halved():
    """Every coefficient of every quantity that anything rests on."""
    for name, row in QUANTITIES.items():
        if row.objective and row.is_offered:
            yield name, "scale", True
        if row.option:
            yield name, "relief", False
            if name != "demand":  # whose row is a share of a replica, in no unit
                yield name, "scale", False
        if row.row is not None:
            yield name, "row", False


@pytest.mark.parametrize(("name", "what", "is_objective"), [*_halved()])
def test_an_answer_found_with_half_of_a_coefficient_is_refused(
    name, what, is_objective, monkeypatch
):
    row = QUANTITIES[name]
    wrong = replace(row, **{what: getattr(row, what) / 2})
    _asked(name, is_objective=is_objective)  # there is a plan
    with monkeypatch.context() as patch:
        patch.setitem(quantities.QUANTITIES, name, wrong)
        try:
            found = _asked(name, is_objective=is_objective)
        except (SolverError, NoPlanError):  # no answer goes out
            return
    assert not verify(found, prove=True).is_true


@pytest.mark.parametrize("name", ["tpot", "devices"])
def test_a_limit_that_the_finder_takes_for_half_is_seen_by_its_own_proof(name, monkeypatch):
    """The same search again says the same; one within what the plan uses has no such plan."""
    row = QUANTITIES[name]
    monkeypatch.setitem(quantities.QUANTITIES, name, replace(row, scale=row.scale / 2))
    found = verify(_asked(name, is_objective=False), prove=True)
    assert {one.pointer for one in found.falsehoods} == {"/certificate/objective"}


def test_both_know_the_same_quantities():
    assert HBM == MEMORY
    assert MEASURES.keys() == QUANTITIES.keys()
    for name, one in MEASURES.items():
        row = QUANTITIES[name]
        assert (one.dimension, one.objective, one.relief) == (
            row.dimension,
            row.objective,
            row.relief,
        )
        assert (one.is_rate, one.is_least) == (row.is_rate, row.is_least)
    for targets in LIMITS.values():
        assert limits_of(targets) == targets.limits()


@pytest.mark.parametrize("name", MODELS)
def test_both_read_the_same_layers_and_the_same_quality_of_a_model(name):
    model = load_model(name)
    ours, theirs = layers_of(model), architecture_of(model)
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        assert replace(one, name="") == replace(other, name="")
    if theirs.predictors:
        assert replace(ours.predictors, name="") == replace(theirs.predictors, name="")
    same = {"layers": theirs.layers, "predictors": theirs.predictors}
    assert replace(ours, **same) == theirs
    for most in (None, 0.0, 0.01, 0.1):
        targets = Targets(quality_loss_fraction=most)
        assert judged.offered_formats(model, targets) == usual_formats(model, targets)
    for weights in model.weights_formats:
        for cache in model.kv_formats:
            words = judged.quality_words(model, weights, cache)
            assert words == quality_words(model, weights, cache)


@pytest.mark.parametrize("most", [None, 0.05, 0.08, 0.3])
def test_both_let_the_same_variants_stand_in(most):
    asked = answer("plan among variants").request
    request = replace(asked, targets=replace(asked.targets, quality_loss_fraction=most))
    assert tuple(judged.served_requests(request)) == with_variants(request)


@pytest.mark.parametrize("kind", ["dense", "mixture"])
@pytest.mark.parametrize("quantity", model_errors.QUANTITIES)
def test_both_read_the_same_errors(kind, quantity):
    for runtime in ("vllm", "sglang", "trtllm", "unheard of"):
        there = model_errors.model_error(runtime, kind, quantity)
        assert deviation(runtime, kind, quantity) == there
    for name in ("tpu-v4-4x4x4", "h100-nvl8-x1", "tpu-v5e-4x4"):
        device = load_cluster(name).device
        there = model_errors.roofline_error(device, kind, quantity)
        assert roofline_deviation(device, kind, quantity) == there
