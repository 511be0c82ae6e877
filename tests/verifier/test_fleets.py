"""Fleets judged: what is false of one is told at its place, and why."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from planner.errors import SolverError
from planner.planning.verification import verify
from planner.report.as_json import Json, answer_json
from planner.specs.ask.targets import SolverOptions
from planner.verifier.findings import accounted, differences
from planner.verifier.fleets.counting import true_class
from planner.verifier.fleets.judging import judge_staircase, recounted
from planner.verifier.fleets.trials import missed_elsewhere
from tests.report.fleets import APART, FLEET, STAIRCASE
from tests.verifier.alterations import at

ENVELOPE = answer_json(FLEET)


def told(envelope: Json) -> dict[str, str]:
    """What is false, by JSON pointer, with the reason or what it is."""
    return {one.pointer: one.fact or one.found for one in verify(envelope).falsehoods}


def with_value(place: str, value: object, envelope: Json = ENVELOPE) -> Json:
    changed = copy.deepcopy(envelope)
    *above, last = place.split("/")
    inner = at(changed, tuple(above))
    key = int(last) if isinstance(inner, list) else last
    assert inner[key] != value
    inner[key] = value
    return changed


@pytest.mark.parametrize("plan", [FLEET, APART], ids=["together", "apart"])
def test_what_the_planner_says_is_true(plan):
    assert verify(plan).falsehoods == ()


@pytest.mark.parametrize(
    ("place", "value", "pointer", "fact"),
    [
        ("pools/0/replicas", [0, 1], "/answer/replicas/1", "is in 2 pools"),
        ("pools/0/name", "mine", "/answer/pools/0/name", "is of several pools"),
        ("pools/0/recipe", 7, "/answer/pools/0/recipe", "is none of the 2 recipes"),
        ("pools/0/then", "mine", "/answer/pools/0/then", "gets no caches of it"),
        ("classes/0/name", "other", "/answer/classes", "are not the classes that were asked for"),
        ("classes/0/model", "other", "/answer/classes/0/model", "is no model that may serve it"),
    ],
)
def test_what_is_of_nothing_is_told_where_it_is(place, value, pointer, fact):
    assert fact in told(with_value(f"answer/{place}", value))[pointer]


@pytest.mark.parametrize(
    ("place", "value", "pointer", "fact"),
    [
        ("pools/0/replica_rate_per_s", 9.0, "/answer/pools/0/rate_per_s", "is more than the 9.0"),
        ("pools/0/rate_per_s", 100.0, "/answer/pools/0/rate_per_s", "120.0"),
        (
            "pools/0/upto_tokens",
            300.0,
            "/answer/classes/0/name",
            "for 0 of its prompts of 300 to inf",
        ),
        ("pools/0/classes", ["mine"], "/answer/classes/0/name", "for 0 of its prompts of 0 to inf"),
        ("pools/0/share", 0.5, "/answer/classes/0/name", "for 0.5 of its prompts of 0 to inf"),
        ("pools/0/parts", [0.5], "/answer/classes/0/name", "for 0.5 of its prompts of 0 to inf"),
        ("pools/0/parts", [0.0], "/answer/pools/0/parts", "are no parts of its classes"),
        ("pools/0/parts", [1.0, 0.5], "/answer/pools/0/parts", "are no parts of its classes"),
        (
            "classes/0/served_fraction",
            0.5,
            "/answer/pools/0/rate_per_s",
            "is not its share of what",
        ),
    ],
)
def test_requests_that_go_nowhere_or_to_too_few_are_told(place, value, pointer, fact):
    assert fact in told(with_value(f"answer/{place}", value))[pointer]


def test_answers_saved_before_pools_had_parts_are_read():
    envelope = copy.deepcopy(ENVELOPE)
    for pool in at(envelope, ("answer", "pools")):
        del pool["parts"]
    assert told(envelope) == {}


def test_caches_go_to_who_decodes_them_and_all_of_them():
    bare = told(with_value("answer/handovers", [], answer_json(APART)))
    assert bare["/answer/pools/0/then"] == "gets no caches of it"
    less = told(with_value("answer/handovers/0/requests_per_s", 1.0, answer_json(APART)))
    assert "is not what it hands over, 1.0" in " ".join(less.values())
    assert "is not what it gets caches of, 1.0" in " ".join(less.values())


def test_devices_rents_stations_and_bounds_are_told_at_once():
    envelope = copy.deepcopy(ENVELOPE)
    for place, value in (
        ("replicas/0/ranks/0/device", "node0/gpu0"),
        ("replicas/1/ranks/0/device", "node0/gpu0"),
        ("pools/0/usd_per_hour", 1.0),
        ("pools/0/station/room_bytes", 1e12),
        ("pools/1/station/decode/context_tokens/5", 400.0),
        ("pools/0/station/reading/seconds/1/2/3", 0.5),
        ("classes/1/goodput/asked", 0.5),
        ("fluid_usd_per_hour", 6.0),
    ):
        envelope = with_value(f"answer/{place}", value, envelope)
    found = told(envelope)
    assert found["/answer/replicas/0/ranks/0/device"] == "is not free"
    assert found["/answer/replicas/1/ranks/0/device"] == "has another rank"
    assert found["/answer/pools/0/usd_per_hour"] == "2.95"
    assert "/answer/pools/0/station/room_bytes" in found
    assert "do not ascend to 408.0" in found["/answer/pools/1/station/decode/context_tokens"]
    assert "/answer/pools/0/station/reading/seconds/1/2/3" in found
    assert found["/answer/classes/1/goodput/asked"].startswith("is not the 0.9")
    assert found["/answer/fluid_usd_per_hour"] == "is beyond the rent 5.9"


def test_figures_of_the_simulation_are_those_of_its_seed():
    places = [
        "answer/classes/0/percentiles/0/simulated_s",
        "answer/classes/0/percentiles/0/half_width_s",
        "answer/classes/0/curve_s/1/10",
        "answer/classes/1/goodput/simulated",
        "answer/pools/1/utilisation",
        "answer/simulated/duration_s",
    ]
    envelope = ENVELOPE
    for place in places:
        envelope = with_value(place, 0.0123456, envelope)
    assert set(told(envelope)) >= {f"/{place}" for place in places}


def test_a_target_that_another_seed_misses_is_no_target_met():
    """Of a percentile that is said to be half of what it is, against a target between the two."""
    chat, mine = FLEET.classes
    one = chat.percentiles[0]
    assert list(missed_elsewhere(FLEET)) == []
    luck = replace(one, at_most_s=one.simulated_s * 0.7, simulated_s=one.simulated_s * 0.5)
    plan = replace(FLEET, classes=(replace(chat, percentiles=(luck,)), mine))
    (finding,) = missed_elsewhere(plan)
    assert finding.path == ("classes", "0", "percentiles", "0", "simulated_s")
    assert "with another seed, above" in finding.fact


def test_limits_and_counts_are_kept_by_what_is_used():
    asked = replace(FLEET.request, counts={"h100-sxm": 1}, limits={"rent": 5.0, "power": 100.0})
    facts = [one.fact for one in recounted(replace(FLEET, request=asked))[1]]
    assert "has 2 of h100-sxm in use, and may have 1" in facts
    assert any(one.startswith("have rent 5.9, which exceeds 5.0") for one in facts)
    assert any(one.startswith("have power ") for one in facts)


def test_a_fleet_without_the_kernels_of_its_engine_cannot_be_counted():
    bare = replace(FLEET, request=replace(FLEET.request, tables=()))
    facts = [one.fact for one in recounted(bare)[1]]
    assert "has no kernels of h100-sxm" in facts


def test_a_gap_that_was_not_allowed_is_no_optimum():
    proof = replace(FLEET.certificate, bound=5.0, gap=0.9 / 5.9)
    plan = replace(FLEET, certificate=proof)
    asked = replace(FLEET.request, options=replace(SolverOptions(), gap=1e-4))
    wrong = {one.path for one in recounted(replace(plan, request=asked))[1]}
    assert ("certificate", "status") in wrong


@pytest.mark.parametrize(
    ("changes", "name", "fact"),
    [
        ({"above_factor": 0.6}, "above_factor", "is not where the step before it ends, 0.5"),
        ({"upto_factor": 0.4}, "upto_factor", "is below 0.5"),
        ({"usd_per_hour": 1.0}, "usd_per_hour", "is below 2.95"),
        ({"bound_usd_per_hour": 7.0}, "usd_per_hour", "is below 7.0"),
    ],
)
def test_a_staircase_that_falls_or_has_gaps_is_refused(changes, name, fact):
    first, second, *others = STAIRCASE.steps
    steps = (first, replace(second, **changes), *others)
    found = judge_staircase(replace(STAIRCASE, steps=steps))[1]
    assert (("steps", "1", name), fact) in [(one.path, one.fact) for one in found]
    assert judge_staircase(STAIRCASE)[1] == []


def test_a_class_pays_for_its_requests_of_what_a_pool_gets(monkeypatch):
    """3 of 4 requests of a pool at $8/h, and a pool at $2/h alone: $6 and $2."""
    sent = ({"chat": 3.0, "batch": 1.0}, {"chat": 5.0})
    monkeypatch.setattr("planner.verifier.fleets.counting.sent_per_s", lambda says: sent)
    pools = [replace(FLEET.pools[0], usd_per_hour=rent) for rent in (8.0, 2.0)]
    chat = next(it for it in FLEET.classes if it.name == "chat")
    assert true_class(FLEET, chat, pools).usd_per_hour == pytest.approx(8.0)


def test_an_account_fills_what_is_left_to_it_and_refuses_what_it_counts_otherwise():
    first, *others = FLEET.classes
    cheap = replace(FLEET, classes=(replace(first, usd_per_hour=1e-3), *others))
    left_out = ("classes.usd_per_hour",)
    assert accounted(cheap, (FLEET, list(differences(cheap, FLEET))), left_out) == FLEET
    quick = (replace(first.percentiles[0], simulated_s=1e-3), *first.percentiles[1:])
    hasty = replace(FLEET, classes=(replace(first, percentiles=quick), *others))
    pool, *rest = FLEET.pools
    free = replace(FLEET, pools=(replace(pool, usd_per_hour=1e-3), *rest))
    for draft in (hasty, free):
        with pytest.raises(SolverError, match="disagrees"):
            accounted(draft, (FLEET, list(differences(draft, FLEET))), left_out)
