"""Fleets of layouts, and of replicas that a table lists: their own accounts as queues."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import RequestError
from planner.placing.fleets.asking import fleet_request
from planner.placing.fleets.planning import fleet
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.results.fleets import FleetPlan
from planner.runtimes.simulation import simulate
from planner.specs.files.deployment_tables import load_table
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_model
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.records import FleetTraffic
from planner.verifier.fleets.judging import recounted
from planner.verifier.layouts.stations import table_station
from planner.verifier.simulation.fleets import load_at, saturated_per_s

ROWS = """\
name,model,kind,devices,role,engine,rate_req_s,ttft_ms,tpot_ms,batch,weights,kv,input,output
tp4,llama-3.1-70b,h100-sxm,4,together,vllm,1.05,150,23,8,bf16,bf16,1500,300
tp4,llama-3.1-70b,h100-sxm,4,together,vllm,3.2,310,31,32,bf16,bf16,1500,300
tp8,llama-3.1-70b,h100-sxm,8,together,vllm,6.1,250,34,64,bf16,bf16,1500,300
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    file.write_text(ROWS, encoding="utf-8")
    return f"table:{file}"


def asked(engines: str, model: str = "llama-3.1-70b", n_input: int = 1500, **others: object):
    given = {"input": n_input, "output": 300}
    targets = {"ttft_p95": "2 s", "tpot_p95": "40 ms"}
    one = traffic_class("chat", load_model(model), rate_per_s=4.0, targets=targets, **given)
    traffic = FleetTraffic(classes=(one,))
    site = load_site("h100-nvl8-x1")
    return fleet_request(traffic, site=site, engines=engines, n_simulated=3000, **others)


@pytest.fixture(scope="module")
def listed(table: str) -> FleetPlan:
    return fleet(asked(table))


@pytest.fixture(scope="module")
def laid_out() -> FleetPlan:
    return fleet(asked("roofline", "llama-3.1-8b", most_devices=1, batches=(64,)))


def test_a_table_gives_replicas_that_serve_what_its_rows_say(listed: FleetPlan) -> None:
    (recipe,) = listed.recipes
    assert recipe.deployment.label == "tp4"
    assert listed.pools[0].replica_rate_per_s <= 3.2
    assert all(one.is_met for each in listed.classes for one in each.percentiles)


@pytest.mark.parametrize("line", [1, 2])
def test_rows_are_a_curve_that_ends_at_the_rate_and_the_times_of_the_last(
    table: str, line: int
) -> None:
    rows = load_table(table).rows
    last = rows[line]
    station = table_station(rows, last)
    full = saturated_per_s(station, 1500, 300, simulation=simulate)
    assert full == pytest.approx(last.requests_per_s, rel=0.01)
    alone = load_at(station, 0.01, n_input_tokens=1500, n_output_tokens=300, simulation=simulate)
    first = next(one for one in rows if one.name == last.name)
    assert alone.ttft_s == pytest.approx(first.ttft_s - first.tpot_s / 2, rel=0.02)
    assert alone.tpot_s is not None
    assert alone.tpot_s <= first.tpot_s


@pytest.mark.parametrize("fleet_of", ["listed", "laid_out"])
def test_the_verifier_counts_stations_anew(fleet_of: str, request: pytest.FixtureRequest) -> None:
    plan: FleetPlan = request.getfixturevalue(fleet_of)
    assert recounted(plan)[1] == []
    assert read_answer(dumps(answer_json(plan)), shown="answer").answer == plan
    (pool, *others) = plan.pools
    slow = replace(pool, station=pool.station.slowed(decode=1.1, reading=1.0))
    wrong = recounted(replace(plan, pools=(slow, *others)))[1]
    assert wrong
    assert all(one.path[:3] == ("pools", "0", "station") for one in wrong)


def test_layouts_in_a_fleet_read_prompts_before_they_decode(laid_out: FleetPlan) -> None:
    station = laid_out.pools[0].station
    assert not station.mixes_prefill
    assert laid_out.fluid_usd_per_hour is not None
    assert laid_out.usd_per_hour >= laid_out.fluid_usd_per_hour


def test_what_no_account_knows_is_refused(table: str) -> None:
    for engines, others, fact in (
        ("erdil2025", {}, "knows decode only"),
        (table, {"n_input": 900}, "has no row of requests that read 900"),
        (table, {"roles": "apart"}, "is of engines in a fleet"),
        ("roofline", {"chunks": (2048,)}, "means nothing without a serving engine"),
    ):
        with pytest.raises(RequestError, match=fact):
            asked(engines, **others)
