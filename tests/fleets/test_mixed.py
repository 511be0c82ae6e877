"""Fleets on servers and tori: engines on the ones, layouts on the others, in one program."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.errors import RequestError
from planner.placing.fleets.asking import fleet_request
from planner.placing.fleets.inventories import merged
from planner.placing.fleets.planning import fleet
from planner.report.as_json import answer_json
from planner.report.saved import read_answer
from planner.results.fleets import FleetPlan
from planner.specs.ask.prices import ALL, priced
from planner.specs.files.pools import MixedPoolSpec, load_site
from planner.specs.files.reading import load_architecture
from planner.specs.files.state import State
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.records import DeviceInventory, FleetTraffic, SuppliedKind
from planner.verifier.fleets.judging import recounted


def kind(name: str, topology: str, usd_per_hour: float, **more: object) -> SuppliedKind:
    hardware = priced(load_site(topology), {ALL: usd_per_hour})
    return SuppliedKind(name=name, hardware=hardware, n_devices=hardware.n_devices, **more)


GPU = kind("gpu", "h100-nvl8-x1", 3.0)
TPU = kind("tpu", "tpu-v5e-2x4", 0.5, state=State(busy=("0,0,0",)))


def planned(*kinds: SuppliedKind, **others: object) -> FleetPlan:
    def named(name: str, model: str, rate_per_s: float, **targets: str):
        lengths = {"input": 900, "output": 200}
        found = load_architecture(model)
        return traffic_class(name, found, rate_per_s=rate_per_s, targets=targets, **lengths)

    classes = (
        named("chat", "llama-3.1-8b", 8.0, ttft_p95="2 s", tpot_p95="80 ms"),
        named("long", "qwen3-32b", 3.0, ttft_p95="4 s", tpot_p95="60 ms"),
    )
    traffic = FleetTraffic(classes=classes, supply=DeviceInventory(kinds=kinds))
    return fleet(fleet_request(traffic, n_simulated=1000, **others))


@pytest.fixture(scope="module")
def both() -> FleetPlan:
    found = planned(GPU, TPU)
    assert {it.kind for it in found.recipes} == {"gpu", "tpu"}
    return found


def told(plan: FleetPlan) -> str:
    _, wrong = recounted(plan)
    return "; ".join(map(str, wrong))


def test_each_fabric_has_its_own_times_and_no_fleet_on_one_is_cheaper(both):
    for recipe in both.recipes:
        assert (recipe.engine == "roofline") == (recipe.kind == "tpu")
    assert both.certificate.status == "optimal"
    alone = planned(GPU)
    assert both.usd_per_hour < alone.usd_per_hour
    assert "tpu/0,0,0" not in {rank.device for it in both.replicas for rank in it.ranks}


def test_a_saved_fleet_is_true_and_a_forged_one_is_not(both):
    again = read_answer(json.dumps(answer_json(both)), shown="answer").answer
    assert again == both
    assert not told(again)
    number = next(i for i, it in enumerate(both.replicas) if both.recipes[it.recipe].kind == "tpu")
    other = next(i for i, it in enumerate(both.replicas) if both.recipes[it.recipe].kind == "gpu")
    for source, fact in (
        ((number, ["node0/gpu7"]), "is none of tpu"),
        ((other, ["tpu/1,3,0"]), "is none of gpu"),
    ):
        i, names = source
        ranks = both.replicas[i].ranks
        moved = (replace(ranks[0], device=names[0]), *ranks[1:])
        replicas = [*both.replicas]
        replicas[i] = replace(replicas[i], ranks=moved)
        assert fact in told(replace(both, replicas=tuple(replicas)))
    halved = tuple(replace(it, usd_per_hour=it.usd_per_hour / 2) for it in both.pools)
    assert "usd_per_hour" in told(replace(both, pools=halved))


def test_a_torus_alone_serves_by_layouts():
    traffic = FleetTraffic(
        classes=(
            traffic_class(
                "chat",
                load_architecture("llama-3.1-8b"),
                rate_per_s=4.0,
                input=900,
                output=200,
                targets={"ttft_p95": "2 s"},
            ),
        )
    )
    found = fleet(fleet_request(traffic, site=load_site("tpu-v5e-2x2"), n_simulated=500))
    assert {it.kind for it in found.recipes} == {"tpu-v5e"}
    assert not told(found)


def test_kinds_that_are_tori_are_named_beside_the_servers():
    state = State(busy=("0,1,0",))
    tpu = kind("tpu", "tpu-v5e-2x2", 1.0, state=state)
    gpu = kind("gpu", "h100-nvl8-x1", 1.0, state=State(busy=("node0/gpu0",)))
    found = merged(DeviceInventory(kinds=(gpu, tpu)), shown="traffic.toml")
    assert isinstance(found.site, MixedPoolSpec)
    assert found.site.title == "8 h100-sxm (gpu) + 4 tpu-v5e (tpu)"
    assert found.state.busy == ("node0/gpu0", "tpu/0,1,0")
    alone = merged(DeviceInventory(kinds=(tpu,)), shown="traffic.toml")
    assert alone.state.busy == ("tpu/0,1,0",)
    several = replace(tpu, hardware=load_site("tpu-v5e-2x2+h100-nvl8-x1"))
    with pytest.raises(RequestError, match="is several fabrics side by side: write each as a kind"):
        merged(DeviceInventory(kinds=(several,)), shown="traffic.toml")


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        (
            {"engines": ["vllm"]},
            "times no replica on a torus, as `gpu \\+ tpu` has: write `--engine vllm,roofline`",
        ),
        ({"roles": "apart"}, "no link leads from one fabric to another"),
        ({"limits": {"power": 1e4}}, "no TDP is known of tpu-v5e"),
    ],
)
def test_what_fabrics_side_by_side_are_not_asked(asked, fact):
    with pytest.raises(RequestError, match=fact):
        planned(GPU, TPU, **asked)
