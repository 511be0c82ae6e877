"""Runtime × quantity: a limit holds, binds, is judged, is explained and printed, or is refused.

Rows of the table of quantities and runtimes are covered as they come: nothing here names one.
"""

from __future__ import annotations

import json
import math
from functools import cache

import pytest

from planner.errors import RequestError
from planner.planning.plans import plan
from planner.quantities.table import QUANTITIES, Quantity, limited
from planner.report.as_json import digest_of
from planner.specs.ask.targets import Targets
from planner.specs.files.reading import load_cluster, load_model
from tests.conformance.asking import (
    REFUSED,
    RUNTIMES,
    Ran,
    asked,
    loosest,
    refuses,
    run,
    tightest,
    told,
)

CELLS = [
    (runtime, one.name)
    for runtime in RUNTIMES
    for one in limited()
    if (runtime, one.name) not in REFUSED
]
CLOSE = 1e-9

BESIDE = dict.fromkeys(("cost", "devices", "batch", "rent", "power"), ("--objective", "latency"))
"""Words beside which a limit is one: the cheapest plan has least of most quantities as it is."""


@cache
def at(runtime: str, name: str, limit: float, *words: str) -> Ran:
    """The plan with one limit, as JSON unless something else is said."""
    one = QUANTITIES[name]
    return asked(
        runtime, one.option, one.written(limit), *BESIDE.get(name, ()), *(words or ("--json",))
    )


def limit_of(ran: Ran, name: str) -> dict:
    return next(one for one in ran.answer["answer"]["limits"] if one["name"] == name)


def obstacle_of(ran: Ran, name: str) -> dict:
    return next(one for one in ran.answer["answer"]["obstacles"] if one["name"] == name)


def tight(runtime: str, one: Quantity) -> float:
    """A limit between what a plan uses unasked and the best that there is: these differ."""
    used = limit_of(at(runtime, one.name, loosest(one)), one.name)["used"]
    best = obstacle_of(at(runtime, one.name, tightest(one)), one.name)["reachable"]
    assert used != pytest.approx(best, rel=1e-6)
    middle = (used + best) / 2
    return float(round(middle)) if one.is_count else middle


@pytest.mark.parametrize(("runtime", "name"), sorted(REFUSED))
def test_what_a_runtime_cannot_count_is_refused_by_its_option(runtime, name):
    one = QUANTITIES[name]
    assert refuses(at(runtime, name, loosest(one)), one.option)


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_is_kept_and_told(runtime, name):
    one = QUANTITIES[name]
    limit = tight(runtime, one)
    ran = at(runtime, name, limit)
    found = limit_of(ran, name)
    assert one.is_kept(found["used"], limit, tolerance=CLOSE)
    assert found["limit"] == pytest.approx(limit, rel=1e-6)
    assert found["used"] == pytest.approx(told(one, ran.answer["answer"]["deployment"]))
    assert ran.answer["request"]["targets"][one.target or "further"]


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_that_is_no_amount_is_refused_by_its_option(runtime, name, limit):
    """From Python too, where no option's reader stands before it; nothing is planned first."""
    one = QUANTITIES[name]
    targets = Targets(**{one.target: limit} if one.target else {"further": {name: limit}})
    asked_of = load_model("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    with pytest.raises(RequestError) as caught:
        plan(*asked_of, engine=runtime, targets=targets)
    assert any(found.where.startswith(one.option) for found in caught.value.problems)


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_tight_limit_costs_something_and_more_of_it_gains(runtime, name):
    one = QUANTITIES[name]
    free, held = at(runtime, name, loosest(one)), at(runtime, name, tight(runtime, one))
    before, after = (ran.answer["certificate"]["objective"] for ran in (free, held))
    if name != "demand":  # which a plan is also credited with
        assert after >= before * (1 - CLOSE)
        assert limit_of(held, name)["gain_fraction"] is not None
    if after > before * (1 + 1e-6) and one.relief and name != "demand":
        looser = limit_of(held, name)["limit"] * one.relief
        relieved = at(runtime, name, looser).answer["certificate"]["objective"]
        assert limit_of(held, name)["gain_fraction"] == pytest.approx(
            1 - relieved / after, abs=1e-6
        )


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_out_of_reach_is_named_with_what_is_reachable(runtime, name):
    one = QUANTITIES[name]
    ran = at(runtime, name, tightest(one))
    assert ran.code == 1
    obstacle = obstacle_of(ran, name)
    assert obstacle["asked"] == pytest.approx(tightest(one))
    assert not one.is_kept(obstacle["reachable"], obstacle["asked"])
    assert obstacle["reason"]
    text = at(runtime, name, tightest(one), "--quiet").err
    assert one.label in text
    assert one.limit_text(obstacle["asked"]).split()[0] in text
    command = ran.answer["answer"]["command"]
    if one.option in command:
        value = command.split(one.option)[1].split()[0].strip("'")
        assert asked(runtime, one.option, value, "--quiet").code == 0


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_stands_in_the_report(runtime, name):
    one = QUANTITIES[name]
    ran = at(runtime, name, loosest(one), "--seed", "0")
    row = f"{one.label} {one.limit_text(loosest(one))}"
    assert any(row in " ".join(line.split()) for line in ran.out.splitlines()), ran.out


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_an_answer_beyond_its_limit_is_refused_by_who_verifies_it(runtime, name, tmp_path):
    """The limit of a true answer is moved to where the answer is beyond it."""
    one = QUANTITIES[name]
    answer = at(runtime, name, loosest(one)).answer
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    assert run("verify", str(path), "--quiet").code == 0
    used = told(one, answer["answer"]["deployment"])
    beyond = used * 2 if one.is_least else used / 2
    targets = answer["request"]["targets"]
    if one.target:
        targets[one.target] = round(beyond) if one.is_count else beyond
    else:
        targets["further"][name] = beyond
    answer["answer"]["limits"] = [
        {**one, "limit": beyond} if one["name"] == name else one
        for one in answer["answer"]["limits"]
    ]
    answer["digest"] = digest_of(answer)
    path.write_text(json.dumps(answer))
    ran = run("verify", str(path))
    assert ran.code not in (0, 2), ran.out
    assert name in ran.out
