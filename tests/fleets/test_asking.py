"""Requests for fleets: what is filled in, and everything that is wrong with one, at once."""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import cache

import pytest

from planner.errors import RequestError
from planner.placing.fleets.asking import fleet_request
from planner.placing.fleets.classes import OPTIONS
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_connector
from planner.specs.files.state import State
from planner.specs.traffic.arrivals import Arrivals, Trace
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.distributions import FixedTokens, LognormalTokens
from planner.specs.traffic.lengths import IndependentLengths
from planner.specs.traffic.percentiles import GoodputTarget, PercentileTarget
from planner.specs.traffic.records import DeviceInventory, FleetTraffic, SuppliedKind

LARGE, SMALL = "llama-3.1-70b", "llama-3.1-8b"


@cache
def model(name=LARGE):
    return load_architecture(name)


@cache
def site(name="h100-nvl8-x1"):
    return load_site(name)


def chat(name="chat", models=LARGE, **said):
    targets = {"ttft_p95": 1.0, "tpot_p95": "40 ms"}
    asked = {"rate_per_s": 8.0, "input": 1500, "output": 300, "targets": targets, **said}
    return traffic_class(name, model(models), **asked)


def request(*classes, shown=OPTIONS, supply=None, **asked):
    traffic = FleetTraffic(classes=classes or (chat(),), supply=supply, shown=shown)
    return fleet_request(traffic, **({} if supply else {"site": site()}) | asked)


def refused(*classes, **asked):
    with pytest.raises(RequestError) as caught:
        request(*classes, **asked)
    return [str(one) for one in caught.value.problems]


def places(found):
    return [one.split("  ")[0] for one in found]


def test_engines_are_those_that_were_measured():
    found = request()
    assert found.engines == ("vllm", "sglang", "trtllm")
    assert (found.roles.name, found.counts, found.places) == ("together", {}, {})
    assert request(engines="vllm").engines == ("vllm",)


def test_wrong_arguments_are_said_at_once():
    found = refused(
        engines=("erdil2025", "vllm", "no-such"),
        router="nearest",
        n_simulated=3,
        roles="both",
        limits={"rent": -1.0, "colour": 2.0},
        prices={"a100": 2.0},
        options=SolverOptions(solver="gurobi"),
    )
    assert places(found) == [
        "--roles `both`",
        "--router `nearest`",
        "limits: rent `-1.0`",
        "limits `colour`",
        "--simulated `3`",
        "--solver `gurobi`",
        "--engine `erdil2025`",
        "--engine `no-such`",
        "--price `a100`",
    ]


def test_wrong_classes_are_said_at_once_by_the_keys_of_their_file():
    one = chat()
    found = refused(
        replace(one, rate_per_s=0.0, cuts=(5000,), priority=-1),
        replace(one, name="none", models=(), arrivals=Arrivals(pattern="waves")),
        replace(
            one,
            name="short",
            lengths=IndependentLengths(
                input=FixedTokens(n_tokens=200_000), output=FixedTokens(n_tokens=1)
            ),
            goodput=GoodputTarget(share=1.5, tpot_s=0.1),
        ),
        replace(one, targets=(PercentileTarget(quantity="ttft", share=1.0, at_most_s=0.0),)),
        shown="traffic.toml",
    )
    assert places(found) == [
        "traffic: classes[0].priority `-1`",
        "traffic: classes[1].arrivals.pattern `waves`",
        "traffic: classes[2].goodput.share `1.5`",
        "traffic: classes[3].targets[0].share `1.0`",
        "traffic: classes[3].targets[0].at_most_s `0.0`",
        "traffic.toml: class.name `chat`",
        "traffic.toml: class[0].rate `0`",
        "traffic.toml: class[0].cuts `5000`",
        "traffic.toml: class[1].model",
        f"traffic.toml: class[2].model `{LARGE}`",
        "traffic.toml: class[2].targets.tpot_p95",
        "traffic.toml: class[2].targets.goodput `tpot`",
    ]


def test_by_options_the_same_is_said_of_options():
    found = refused(chat(input="uniform:10:200000", output=1, targets={"itl_p99": "50 ms"}))
    assert places(found) == [f"--model `{LARGE}`", "--itl-p99"]


def test_lengths_that_are_none_are_refused():
    wrong = (
        IndependentLengths(input=1500, output=FixedTokens(n_tokens=3)),
        IndependentLengths(
            input=LognormalTokens(unbounded_mean_tokens=99.0, sigma=0.0),
            output=FixedTokens(n_tokens=9),
        ),
        IndependentLengths(input=FixedTokens(n_tokens=0), output=FixedTokens(n_tokens=9)),
    )
    assert [places(refused(replace(chat(), lengths=one)))[-1] for one in wrong] == [
        "traffic: classes[0].lengths.input `1500`",
        "--input",
        "--input",
    ]


def test_models_that_differ_have_names_that_do():
    other = replace(model(), d_model=1)
    found = refused(chat(), replace(chat("other"), models=(other,)))
    assert places(found)[0] == f"--model `{LARGE}`"


def test_weights_that_no_replica_holds_are_told_with_what_there_is():
    (problem,) = refused(chat(models="llama-3.1-405b"))
    assert problem.startswith("--model `llama-3.1-405b`  takes 101 GB of weights on each of 8 h100")
    for short in (
        {"most_devices": 1},
        {"counts": {"h100-sxm": 1}},
        {"state": State(busy=("node0/gpu{1..7}",))},
    ):
        (problem,) = refused(**short)
        assert "takes 141 GB of weights on one h100-sxm, which has" in problem
    request(most_devices=1, weights_formats=("int4",))


def test_a_request_that_no_replica_holds_is_told():
    (problem,) = refused(chat(input=100_000, output=100), most_devices=2)
    assert "100,000 tokens in and 100 out" in problem
    request(chat(input=100_000, output=100), most_devices=4)


def test_any_of_several_models_may_serve_a_class():
    both = replace(chat(), models=(model("llama-3.1-405b"), model(SMALL)))
    assert len(request(both).classes[0].models) == 2


def test_kinds_without_a_rent_or_of_no_such_name_are_told():
    pool = site()
    (group,) = pool.groups
    free = replace(group, cluster=replace(group.cluster, usd_per_hour=0.0))
    assert places(refused(site=replace(pool, groups=(free,)))) == ["--price `0.0`"]
    assert places(refused(counts={"h100": 2, "h100-sxm": 9})) == ["--count `h100`", "--count `9`"]


def test_devices_without_kernels_and_models_without_weights_are_told():
    (problem,) = refused(site=load_site("tpu-v4-4x4x4"), engines=["vllm"])
    assert "times no replica on a torus" in problem
    assert "write `--engine roofline`" in problem
    unpublished = replace(model(), repository="")
    (problem,) = refused(replace(chat(), models=(unpublished,)))
    assert "names no repository" in problem
    request(replace(chat(), models=(unpublished,)), engines="vllm")


def test_kinds_of_the_traffic_say_what_serves():
    supply = DeviceInventory(kinds=(SuppliedKind(name="mine", hardware=site(), n_devices=4),))
    found = request(supply=supply)
    assert (found.counts, found.places) == ({"mine": 4}, {"mine": "one"})
    said = {"site": site(), "state": State(), "counts": {"mine": 2}}
    assert places(refused(supply=supply, **said)) == ["--topology", "--state", "--count"]
    assert places(refused(site=None)) == ["--topology"]


def test_traffic_that_names_a_connector_leaves_roles_to_the_program():
    nixl, wire = load_connector("nixl"), load_connector("wire")
    supply = DeviceInventory(
        kinds=(SuppliedKind(name="mine", hardware=site(), n_devices=8),), connector=wire
    )
    found = request(supply=supply).roles
    assert (found.name, found.connector) == ("free", wire)
    assert request(supply=supply, roles="apart").roles.connector is wire
    assert request(supply=supply, roles="together").roles.connector is None
    assert places(refused(supply=supply, connector=nixl)) == ["--connector `nixl`"]


def test_a_trace_of_a_million_requests_is_not_looked_through_twice():
    n = 10**6
    trace = Trace(
        name="long",
        arrival_s=array("d", range(n)),
        n_input=array("q", [100]) * n,
        n_output=array("q", [100]) * n,
    )
    one = replace(chat(), arrivals=Arrivals(pattern="trace", trace=trace))
    assert request(one).classes[0].arrivals.trace is trace
