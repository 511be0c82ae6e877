"""Placements × runtime × quantity: a limit holds, binds, is printed and verified, or is refused.

Rows of the table of quantities are covered as they come; only how each is read off a placement,
and what makes it bind, is said here.
"""

from __future__ import annotations

import json
import math
from functools import cache

import pytest

from planner.quantities.table import QUANTITIES, limited, placed
from planner.report.as_json import digest_of
from tests.conformance.asking import REFUSED_ON_PLACES, Ran, refuses, run, tightest

RUNTIMES = ("roofline", "vllm")
SMALL = (
    *("place", "--model", "llama-3.1-70b", "--topology", "h100-nvl8-x1", "--weights", "bf16"),
    *("--input", "512", "--output", "64", "--batch", "4,16,64"),
)
TDP_W = 700.0
MEETS = {
    "tpot": lambda answer: max(tokens_s(one) for one in answer["recipes"]),
    "ttft": lambda answer: max(first_s(one) for one in answer["recipes"]),
    "batch": lambda answer: min(batch(one["deployment"]) for one in answer["recipes"]),
    "devices": lambda answer: answer["n_used"],
    "rent": lambda answer: math.fsum(one["usd_per_hour"] for one in answer["served"]),
    "power": lambda answer: answer["n_used"] * TDP_W,
    "demand": lambda answer: answer["output_tokens_per_s"],
    "replicas": lambda answer: len(answer["replicas"]),
}
"""What a placement comes to, read off its answer."""

BINDS = {
    "tpot": ((), 0.8),
    "ttft": ((), 0.8),
    "batch": (("--replicas", "1", "--objective", "latency"), 4.0),
    "devices": ((), 0.5),
    "rent": ((), 0.5),
    "power": ((), 0.5),
    "demand": (("--replicas", "1", "--objective", "devices"), 1.5),
    "replicas": ((), 0.0),
}
"""Words beside which a limit so many times what is used without it costs something."""

CELLS = [(runtime, name) for runtime in RUNTIMES for name in MEETS]


def tokens_s(recipe: dict) -> float:
    it = recipe["deployment"]
    return it.get("planned_tpot_s", it["tpot_s"])


def first_s(recipe: dict) -> float:
    it = recipe["deployment"]
    return it.get("planned_ttft_s", it["ttft_s"])


def batch(deployment: dict) -> float:
    return deployment.get("decode", deployment)["batch"] * deployment.get("n_data", 1)


def is_kept(name: str, value: float, limit: float) -> bool:
    if name == "replicas":
        return value == limit
    return QUANTITIES[name].is_kept(value, limit, tolerance=1e-9)


@cache
def found(runtime: str, *words: str) -> Ran:
    return run(*SMALL, "--engine", runtime, *words)


def free(runtime: str, name: str) -> dict:
    return found(runtime, "--json", *BINDS[name][0]).answer


def limit_of(runtime: str, name: str) -> float:
    used = MEETS[name](free(runtime, name)["answer"])
    if name == "replicas":  # which are exactly so many
        return used - 1 if used > 2 else 3
    value = used * BINDS[name][1]
    return float(math.ceil(value)) if QUANTITIES[name].is_count else value


def held(runtime: str, name: str, *words: str) -> Ran:
    one = QUANTITIES[name]
    option = (one.option, one.written(limit_of(runtime, name)))
    beside = BINDS[name][0] if name != "demand" else BINDS[name][0][2:]
    return found(runtime, *words, *beside, *option)


def test_a_placement_keeps_every_quantity_or_refuses_it():
    assert {one.name for one in limited()} == {*MEETS, *REFUSED_ON_PLACES}
    assert {one.name for one in placed("each", "all", "model")} == {*MEETS}


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_holds_and_costs_something(runtime, name):
    limit, before = limit_of(runtime, name), free(runtime, name)
    assert not is_kept(name, MEETS[name](before["answer"]), limit)
    after = held(runtime, name, "--json").answer
    assert is_kept(name, MEETS[name](after["answer"]), limit)
    objective = [run["certificate"]["objective"] for run in (before, after)]
    assert objective[0] != pytest.approx(objective[1], rel=1e-6)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", [one.name for one in placed("all")])
def test_a_limit_of_all_replicas_is_printed_with_what_they_use(name, runtime):
    one = QUANTITIES[name]
    used = MEETS[name](held(runtime, name, "--json").answer["answer"])
    text = " ".join(held(runtime, name).out.split())
    limit = one.limit_text(limit_of(runtime, name))
    assert f"{one.label} {limit} {one.shown(used)} used" in text


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_limit_out_of_reach_is_named_with_what_is_reachable(runtime, name):
    one = QUANTITIES[name]
    ran = found(runtime, "--json", one.option, one.written(tightest(one)))
    assert ran.code == 1
    names = {it["name"].split()[0]: it for it in ran.answer["answer"]["obstacles"]}
    assert {"each": "targets"}.get(one.placed, name) in names
    if one.placed == "all":
        assert not one.is_kept(names[name]["reachable"], names[name]["asked"])
        reached = one.written(one.relaxed(names[name]["reachable"]))
        assert found(runtime, one.option, reached, "--quiet").code == 0


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", sorted(REFUSED_ON_PLACES))
def test_what_a_placement_does_not_keep_is_refused_by_its_option(name, runtime):
    one = QUANTITIES[name]
    assert refuses(found(runtime, one.option, one.written(tightest(one))), one.option)


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_a_placement_beyond_its_limit_is_refused_by_who_verifies_it(runtime, name, tmp_path):
    one = QUANTITIES[name]
    answer = json.loads(held(runtime, name, "--json").out)
    used = MEETS[name](answer["answer"])
    beyond = used * 2 if one.is_least else used / 2
    beyond = round(beyond) if one.is_count else beyond
    request = answer["request"]
    if one.placed == "all":
        request["limits"][name] = beyond
    elif one.placed == "each":
        request["targets"][one.target] = beyond
    else:
        field = {"demand": "demand_tokens_per_s", "replicas": "replicas"}[name]
        request["models"][0][field] = beyond
    answer["digest"] = digest_of(answer)
    path = tmp_path / "placement.json"
    path.write_text(json.dumps(answer))
    assert run("verify", str(path)).code not in (0, 2)


def test_confidence_slows_what_replicas_are_counted_on():
    words = ("--confidence", "90%")
    median = ("--confidence", "0%")
    sure, plain = found("vllm", "--json", *words), found("vllm", "--json", *median)
    first, second = (ran.answer["answer"]["recipes"][0]["deployment"] for ran in (sure, plain))
    assert first["planned_tpot_s"] > first["tpot_s"]["value"]
    assert second["planned_tpot_s"] == second["tpot_s"]["value"]
    sure, plain = (found("roofline", "--json", *said) for said in (words, median))
    rates = [ran.answer["answer"]["output_tokens_per_s"] for ran in (sure, plain)]
    assert rates[0] < rates[1] / 1.5
    for runtime in ("vllm", "roofline"):
        assert "what holds in 90 % of cases" in " ".join(found(runtime, *words).out.split())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_price_is_of_a_kind_of_device_or_of_all(runtime):
    usual = found(runtime, "--json").answer["answer"]
    for price in ("h100-sxm=$100/h", "$100/h", "$1/h,h100-sxm=$100/h"):
        answer = found(runtime, "--json", "--price", price).answer["answer"]
        assert MEETS["rent"](answer) == pytest.approx(100.0 * answer["n_used"])
        assert answer["output_tokens_per_s"] == usual["output_tokens_per_s"]
    refused = found(runtime, "--price", "h100=$1/h")
    assert refuses(refused, "--price")
    assert "did you mean `h100-sxm`" in " ".join(refused.err.split())


def test_the_power_of_all_replicas_is_counted_again(tmp_path):
    answer = json.loads(held("vllm", "power", "--json").out)
    answer["answer"]["further"]["power"] *= 1.01
    answer["digest"] = digest_of(answer)
    path = tmp_path / "placement.json"
    path.write_text(json.dumps(answer))
    ran = run("verify", str(path))
    assert ran.code not in (0, 2)
    assert "power" in ran.out
