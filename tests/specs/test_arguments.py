"""Arguments of the library that have a wrong type, and what is offered where nothing is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import planner
from planner import RequestError, SolverOptions, Targets, Workload, compare, frontier, plan
from planner.errors import Problem
from planner.estimates.kernel_files import load_kernels
from planner.specs.ask.defaults import default_batches
from planner.specs.ask.engine import PlanKeywords, PlanOptions
from planner.specs.ask.targets import Degrees
from planner.specs.files.engines import load_engine
from planner.specs.files.pools import load_site
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.validation.arguments import arguments_checked, conformed, raise_if_any
from planner.specs.validation.calls import CALLS
from planner_workshop.experts import loads as expert_loads
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


LOADERS = {
    **{
        name: (getattr(planner, name), argument)
        for argument, names in {
            "name_or_path": "load_model load_architecture load_cluster load_topology load_device "
            "load_pool load_calibrations",
            "path": "load_state load_layers load_placement load_traffic load_trace",
        }.items()
        for name in names.split()
    },
    "load_engine": (load_engine, "name_or_path"),
    "load_kernels": (load_kernels, "name_or_path"),
    "load_site": (load_site, "name_or_path"),
    "load_loads": (expert_loads.load_loads, "name"),
    "load_coactivation": (expert_loads.load_coactivation, "name"),
    "placement of experts": (expert_loads.load_placement, "name"),
}


@pytest.mark.parametrize("value", [None, 3, 2.5, b"x", ["x"], {"x": 1}, True])
@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_names_its_argument_where_it_is_no_name(name, value):
    load, argument = LOADERS[name]
    with pytest.raises(RequestError) as caught:
        load(value)
    (problem,) = caught.value.problems
    assert (problem.where, problem.value) == (argument, repr(value))


@pytest.mark.parametrize("name", planner.__all__)
def test_a_name_of_the_library_is_had_from_where_it_is_made(name):
    home, called = planner._homes()[name]
    assert (getattr(planner, name).__module__, called) == (home, getattr(planner, name).__name__)


def test_a_plan_takes_the_fields_of_its_options_by_name():
    assert PlanKeywords.__annotations__.keys() == {one.name for one in fields(PlanOptions)}


def test_every_loader_of_the_library_is_among_them():
    assert {name for name in dir(planner) if name.startswith("load_")} <= LOADERS.keys()


def test_names_in_place_of_records_say_what_makes_records_of_them():
    with pytest.raises(RequestError) as caught:
        plan("palm-540b", "tpu-v4-4x8x8")
    remedies = [problem.remedy for problem in caught.value.problems]
    assert remedies == [
        "`load_model` or `load_architecture` makes one",
        "`load_cluster` makes one of a name",
    ]


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


@arguments_checked(ranges="heeded")
def heeding(gap: float, n_boxes: int = 1, word: str = "fine") -> str:
    """Finds a fault of its own in a word."""
    raise_if_any([Problem(where="word", value=word, fact="is not fine")] if word != "fine" else [])
    return f"{gap} {n_boxes}"


@arguments_checked(ranges="later")
def handing_on(gap: float, *, n_boxes: int = 1, word: str = "fine") -> str:
    """Its ranges are judged by what it calls."""
    return heeding(gap, n_boxes, word)


def wheres(call) -> list[str]:
    with pytest.raises(RequestError) as caught:
        call()
    return [problem.where for problem in caught.value.problems]


@pytest.mark.parametrize("function", [heeding, handing_on])
def test_numbers_that_cannot_be_are_told_with_what_the_function_finds(function):
    assert function(0.5, n_boxes=np.int64(2)) == "0.5 2"
    assert wheres(lambda: function(2.0, n_boxes=-1, word="odd")) == ["--gap", "n_boxes", "word"]


def test_an_argument_of_another_type_is_told_before_the_function_is_called():
    assert wheres(lambda: heeding("1%", n_boxes=-1, word="odd")) == ["--gap", "n_boxes"]
    assert wheres(lambda: handing_on(0.5, n_boxes="2")) == ["n_boxes"]


def test_what_the_function_finds_of_an_argument_is_told_instead():
    @arguments_checked(ranges="heeded")
    def judging(gap: float) -> None:
        raise_if_any([Problem(where="--gap", fact="says more")])

    with pytest.raises(RequestError, match="says more") as caught:
        judging(-1.0)
    assert len(caught.value.problems) == 1


def test_faults_of_one_call_are_not_those_of_another():
    with pytest.raises(RequestError):
        heeding(-1.0)
    assert heeding(0.5) == "0.5 1"


@dataclass(frozen=True)
class Shelf:
    boxes: Sequence[int]
    n_rows: int = 1


@arguments_checked()
def counted(shelf: Shelf) -> int:
    return len(shelf.boxes)


@arguments_checked(ranges="later")
def counted_twice(shelf: Shelf, other: Shelf) -> int:
    return counted(shelf) + counted(other)


def test_what_conforms_is_not_looked_into_again_by_what_a_call_calls(monkeypatch):
    looked, validator = [], CALLS.validator
    monkeypatch.setattr(
        CALLS, "validator", lambda hint, name: looked.append(hint) or validator(hint, name)
    )
    shelf = Shelf([1, 2])
    assert counted_twice(shelf, shelf) == 4
    assert looked == [Shelf]


def test_what_conformed_in_one_call_is_looked_into_again_in_another():
    boxes = [1, 2]
    shelf = Shelf(boxes)
    assert counted(shelf) == 2
    boxes.append(-3)
    assert wheres(lambda: counted(shelf)) == ["shelf"]


def test_what_does_not_conform_is_told_wherever_it_is_handed():
    """As a fault of what it is handed on to, where that is who judges ranges."""
    wrong, odd = Shelf([1], n_rows=-1), Shelf(["1"])
    assert wheres(lambda: counted_twice(Shelf([1]), wrong)) == ["shelf"]
    assert wheres(lambda: counted_twice(odd, odd)) == ["shelf", "other"]


def test_a_call_with_other_arguments_than_there_are_is_pythons_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_box'"):
        heeding(0.5, n_box=2)


def test_arguments_that_are_handed_on_by_name_are_known_and_of_their_type():
    assert conformed({"gap": 1, "n_boxes": 2}, heeding) == {"gap": 1.0, "n_boxes": 2}
    assert wheres(lambda: conformed({"n_rank": 2, "word": 3}, heeding)) == ["n_rank", "word"]
    assert wheres(lambda: conformed({"gap": 0.1}, heeding, without=("gap",))) == ["gap"]


def test_a_survey_refuses_arguments_that_no_plan_has():
    pool = torus(1, 1, 1)
    assert wheres(lambda: compare([MODEL], [pool], bacthes=[1])) == ["bacthes"]
    assert wheres(lambda: compare([MODEL], [pool], batches=8)) == ["--batch"]
    assert wheres(lambda: compare(MODEL, [pool])) == ["models"]
    assert wheres(lambda: frontier(MODEL, pool, alpha=10**400)) == ["--alpha"]
