"""Arguments of the library that have a wrong type, and what is offered where nothing is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner import RequestError, SolverOptions, Targets, Workload, plan
from planner.specs.request import DEFAULT_BATCHES, default_batches
from planner.specs.targets import Degrees
from tests import requests
from tests.requests import MODEL, WORKLOAD, torus

WRONG = [
    ({"batches": [1.5]}, "--batch", "1.5"),
    ({"batches": 8}, "--batch", "8"),
    ({"batches": "1:8"}, "--batch", "'1:8'"),
    ({"batches": [True]}, "--batch", "True"),
    ({"batches": iter([1, 2])}, "--batch", "<list_iterator"),
    ({"prefill_batches": [None]}, "--prefill-batch", "None"),
    ({"weights_formats": "bf16"}, "--weights", "'bf16'"),
    ({"weights_formats": [8]}, "--weights", "8"),
    ({"kv_formats": "bf16"}, "--kv", "'bf16'"),
    ({"objective": None}, "--objective", "None"),
    ({"objective": ["cost"]}, "--objective", "['cost']"),
    ({"prefill": 3}, "--prefill", "3"),
    ({"workload": (2048, 64)}, "workload", "(2048, 64)"),
    ({"workload": Workload(n_input_tokens=2.5, n_output_tokens=1)}, "--input", "2.5"),
    ({"targets": 0.03}, "targets", "0.03"),
    ({"targets": Targets(tpot_s="30ms")}, "--latency-target", "'30ms'"),
    ({"targets": Targets(n_devices=2.5)}, "--max-devices", "2.5"),
    ({"targets": Targets(demand_tokens_per_s="9tok/s")}, "--demand", "'9tok/s'"),
    ({"targets": Targets(degrees=8)}, "degrees", "8"),
    ({"targets": Targets(degrees=Degrees(tensor=1.5))}, "--tp", "1.5"),
    ({"options": None}, "options", "None"),
    ({"options": SolverOptions(threads=1.5)}, "--threads", "1.5"),
    ({"options": SolverOptions(gap="1%")}, "--gap", "'1%'"),
    ({"options": SolverOptions(solver=None)}, "--solver", "None"),
    ({"speculation": "llama-3-8b"}, "speculation", "'llama-3-8b'"),
]


@pytest.mark.parametrize(("said", "where", "value"), WRONG, ids=[f"{w[1]} {w[2]}" for w in WRONG])
def test_an_argument_of_a_wrong_type_is_named(said, where, value):
    with pytest.raises(RequestError) as caught:
        plan(MODEL, torus(1, 1, 1), **{"workload": WORKLOAD, **said})
    (problem,) = caught.value.problems
    assert problem.where == where
    assert problem.value.startswith(value)


def test_names_in_place_of_records_say_what_makes_records_of_them():
    with pytest.raises(RequestError) as caught:
        plan("palm-540b", "tpu-v4-4x8x8")
    remedies = [problem.remedy for problem in caught.value.problems]
    assert remedies == ["`load_model` makes one of a name", "`load_cluster` makes one of a name"]


def test_whole_numbers_of_numpy_are_whole_numbers():
    batches = {"batches": np.array([8, 1]), "prefill_batches": [np.int64(2)]}
    found = requests.request(torus(1, 1, 1), **batches)
    assert found.batches == (1, 8)
    assert {type(batch) for batch in (*found.batches, *found.prefill_batches)} == {int}


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(RequestError) as caught:
        plan(MODEL, replace(torus(1, 1, 1), usd_per_hour=price))
    assert [problem.where for problem in caught.value.problems] == ["--price"]


@pytest.mark.parametrize(
    ("targets", "where"),
    [
        (Targets(demand_tokens_per_s=0.0), "--demand"),
        (Targets(demand_tokens_per_s=float("nan")), "--demand"),
        (Targets(quality_loss_fraction=-0.1), "--max-quality-loss"),
        (Targets(quality_loss_fraction=1.0), "--max-quality-loss"),
        (Targets(degrees=Degrees(pipeline=0)), "--pp"),
    ],
)
def test_amounts_that_mean_nothing_are_refused(targets, where):
    with pytest.raises(RequestError) as caught:
        plan(MODEL, torus(1, 1, 1), targets=targets)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_usual_batches_go_on_where_only_larger_ones_are_asked_for():
    assert default_batches(Targets(min_batch=1024)) == DEFAULT_BATCHES
    larger = default_batches(Targets(min_batch=2000))
    assert set(DEFAULT_BATCHES) < set(larger)
    assert {2000, 4000} <= set(larger)
    assert len(larger) - len(DEFAULT_BATCHES) <= 66


def test_a_batch_beyond_the_usual_ones_has_a_plan():
    """2000 sequences of 288 tokens fit four devices of 16 GB."""
    small = replace(MODEL, n_kv_heads=1)
    found = plan(small, torus(1, 2, 2), workload=WORKLOAD, targets=Targets(min_batch=2000))
    assert found.deployment.decode.batch >= 2000
