"""What is said where there is no plan: sets that conflict, and the least changes that have one.

Each is held against plans of the same request with other limits, which know nothing of conflicts.
"""

from __future__ import annotations

import json
from itertools import combinations
from random import Random

import pytest

from planner.quantities.table import QUANTITIES
from planner.results.conflicts import Conflict
from tests.conformance.conflicts import infeasible, words_of
from tests.conformance.test_options import ran

FEW, ALL = range(8), range(8, 100)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.research) for seed in ALL)]
N_POINTS = 6


@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_is_explained_by_sets_and_changes_of_which_nothing_can_be_spared(seed):
    request, limits = infeasible(seed)
    conflict = request.conflict(limits)
    cores_hold(request, limits, conflict)
    for one in conflict.relaxations:
        has_what_it_says(one)
    random = Random(seed)
    for size in range(1, len(limits) + 1):
        for names in combinations(limits, size):
            nothing_less_would_do(request, limits, conflict, (names, random))


def cores_hold(request, limits, conflict: Conflict) -> None:
    """Each set by itself has no plan, and has one without any of its limits."""
    assert conflict.cores
    for core in conflict.cores:
        of_core = {name: value for name, value in limits.items() if name in core}
        assert set(core) - {"hbm", "prefill_batch"} == of_core.keys()
        prefill = None
        if request.runtime == "roofline":
            prefill = "latency" if "prefill_batch" in core else "cost"
            assert "prefill_batch" not in core or request.has_plan(of_core, "cost")
        assert not request.has_plan(of_core, prefill)
        for name in of_core:
            rest = {other: value for other, value in of_core.items() if other != name}
            assert request.has_plan(rest, prefill), (core, name)


def has_what_it_says(one) -> None:
    """The command that is printed has a plan, as good as what is said of it."""
    code, out, err = ran("plan", (*words_of(one.command), "--json"))
    assert code == 0, err
    answer = json.loads(out)
    assert answer["certificate"]["objective"] == pytest.approx(one.objective, rel=1e-7)
    limits = {it.name: it.limit for it in one.changes if it.name in QUANTITIES}
    kept = {it["name"]: it["limit"] for it in answer["answer"]["limits"]}
    assert {name: kept[name] for name in limits} == pytest.approx(limits, rel=1e-9)


def nothing_less_would_do(request, limits, conflict: Conflict, drawn) -> None:
    """Where only some limits yield, by less than the cheapest change of them, there is no plan."""
    names, random = drawn
    known = [
        one.price_fraction
        for one in conflict.relaxations
        if {it.name for it in one.changes} <= {*names}
    ]
    last = conflict.relaxations[-1].price_fraction
    price = min(known, default=last if len(conflict.relaxations) == 3 else 30.0)
    for point in range(N_POINTS):
        shares = [random.expovariate(1.0) for _ in names]
        if point < len(names):
            shares = [float(i == point) for i in range(len(names))]
        loosened = dict(limits)
        for name, share in zip(names, shares, strict=True):
            by = 1.0 + price * (1.0 - 1e-6) * share / sum(shares)
            loosened[name] = loosened[name] / by if QUANTITIES[name].is_least else limits[name] * by
            if QUANTITIES[name].is_count:  # what lies between counts is the stricter one
                is_least = QUANTITIES[name].is_least
                loosened[name] = -(-loosened[name] // 1) if is_least else loosened[name] // 1
        assert not request.has_plan(loosened), (names, loosened, known)


ASKED = (
    "--engine vllm --price $1.11/h --max-rent $1/h --latency-target 5ms",
    "--engine vllm --price h100-sxm=$1.11/h --demand 300ktok/s",
    "--engine roofline --price $1.11/h --max-rent $1/h --latency-target 2ms",
    "--engine vllm --input 1500 --output 300 --rate 20req/s --max-power 1kW --latency-target 5ms",
    "--engine vllm --what-if hbm_bandwidth=0.5 --latency-target 2ms --ttft-target 9ms",
)


@pytest.mark.parametrize("words", ASKED)
def test_every_command_that_is_printed_has_a_plan(words):
    """With all that the request says beside its limits, such as a rent of the user's own."""
    words = ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", *words.split(), "--json")
    code, out, err = ran("plan", words)
    assert code == 1, err
    conflict = json.loads(out)["answer"]
    for command in {conflict["command"], *(it["command"] for it in conflict["relaxations"])}:
        code, _, err = ran("plan", (*words_of(command), "--quiet"))
        assert code == 0, f"{command}\n{err}"


PLACED = (
    "--max-rent $1/h",
    "--demand 2800tok/s --max-rent $10/h --max-power 3kW --max-utilisation 80%",
    "--replicas 7 --max-rent $10/h",
    "--rate 9req/s --roles apart --max-rent $10/h",
    "--model llama-3.1-8b --rate llama-3.1-8b=90req/s --demand llama-3.1-70b=9ktok/s"
    " --max-devices 3",
)


@pytest.mark.parametrize("words", PLACED)
def test_every_change_of_a_placement_that_is_printed_has_one(words):
    asked = "--model llama-3.1-70b --topology h200-nvl8-x1 --input 2000 --output 500 --json"
    code, out, err = ran("place", (*asked.split(), "--latency-target", "40ms", *words.split()))
    assert code == 1, err
    changes = json.loads(out)["answer"]["relaxations"]
    prices = [it["price_fraction"] for it in changes]
    assert prices
    assert prices == sorted(prices)
    for change in changes:
        assert change["command"] in err
        code, out, told = ran("plan", tuple(words_of(change["command"])))
        assert code == 0, f"{change['command']}\n{told}"
        found = json.loads(out)["certificate"]["objective"]
        assert found == pytest.approx(change["objective"], rel=1e-9)
