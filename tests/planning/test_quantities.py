"""Limits on power, rent and replicas: they hold, they bind, and nothing within them is better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import NoPlanError, RequestError, Targets, plan
from planner.quantities.table import QUANTITIES
from tests.requests import MODEL, WORKLOAD, torus

POOL = torus(2, 2, 4)
POWERED = replace(POOL, device=replace(POOL.device, tdp_w=250.0))
CHOICES = {"workload": WORKLOAD, "batches": (1, 4, 16, 64), "prefill_batches": (1, 4)}


def solve(pool=POWERED, **targets):
    objective = targets.pop("objective", "cost")
    return plan(MODEL, pool, targets=Targets(**targets), objective=objective, **CHOICES)


def use(found, name):
    return next(one for one in found.limits if one.name == name)


def test_power_is_that_of_all_devices_of_all_replicas():
    found = solve(n_replicas=3, further={"power": 2e4})
    assert found.deployment.further == {"power": 250.0 * found.deployment.n_devices}
    assert use(found, "power").used == 250.0 * found.deployment.n_devices
    assert found.deployment.n_devices % 3 == 0


@pytest.mark.parametrize(("name", "each"), [("power", 250.0), ("rent", POOL.usd_per_hour)])
@pytest.mark.parametrize("objective", ["cost", "latency", "ttft", "throughput"])
def test_a_limit_on_what_devices_take_is_one_on_their_number(name, each, objective):
    """Half of the pool's power, or rent, is half of its devices."""
    devices = solve(n_devices=8, objective=objective)
    found = solve(further={name: 8.5 * each}, objective=objective)
    assert found.deployment.n_devices <= 8
    assert found.certificate.objective == pytest.approx(devices.certificate.objective, rel=1e-9)


def test_a_limit_that_binds_tells_what_a_little_more_of_it_gains():
    tight = solve(further={"power": 1900.0}, objective="latency")
    looser = solve(further={"power": 1900.0 * 1.1}, objective="latency")
    gained = 1 - looser.certificate.objective / tight.certificate.objective
    assert gained > 0
    assert use(tight, "power").gain_fraction == pytest.approx(gained, rel=1e-9)


def test_a_device_of_unknown_power_is_refused_by_name():
    with pytest.raises(RequestError) as caught:
        solve(POOL, further={"power": 1e4})
    (problem,) = caught.value.problems
    assert problem.where == "--max-power"
    assert problem.fact == f"no TDP is known of {POOL.device.name}"


def test_a_power_out_of_reach_is_named_with_the_least_that_has_a_plan():
    with pytest.raises(NoPlanError) as caught:
        solve(further={"power": 100.0})
    (obstacle,) = caught.value.conflict.obstacles
    assert (obstacle.name, obstacle.asked) == ("power", 100.0)
    assert obstacle.reachable == solve(objective="devices").deployment.n_devices * 250.0
    assert f"--max-power {obstacle.reachable / 1e3:g}kW" in caught.value.conflict.command


def test_so_many_replicas_share_devices_and_multiply_what_is_served():
    one, three = solve(n_devices=5), solve(n_replicas=3)
    assert three.deployment.n_replicas == 3
    assert three.deployment.output_tokens_per_s == pytest.approx(
        3 * three.deployment.n_output_tokens / three.deployment.request_s
    )
    assert three.deployment.usd_per_hour == three.deployment.n_devices * POOL.usd_per_hour
    assert one.deployment.n_replicas == 1


def test_replicas_beyond_the_room_are_named_with_the_most_that_have_it():
    with pytest.raises(NoPlanError) as caught:
        solve(n_replicas=17)
    (obstacle,) = caught.value.conflict.obstacles
    assert (obstacle.name, obstacle.asked, obstacle.reachable) == ("replicas", 17, 16)
    assert solve(n_replicas=16).deployment.n_replicas == 16


def test_what_a_demand_leaves_of_replicas_and_power_is_told():
    """A demand for which power does not suffice: the most is by as many devices as there may be."""
    with pytest.raises(NoPlanError) as caught:
        solve(demand_tokens_per_s=1e9, further={"power": 1000.0})
    obstacle = caught.value.conflict.obstacles[0]
    served = solve(n_devices=4, objective="device-throughput").deployment
    assert obstacle.name == "demand"
    assert obstacle.reachable <= 4 * served.device_tokens_per_s * (1 + 1e-9)
    assert obstacle.reachable >= solve(n_devices=4, objective="throughput").certificate.objective


@pytest.mark.parametrize("one", QUANTITIES.values(), ids=QUANTITIES)
def test_a_limit_is_written_as_it_is_read_and_rounded_to_the_side_that_has_a_plan(one):
    if not one.option:
        return
    from planner.commands.options.parsing import parse
    from planner.commands.options.reading import read_request

    def limit(text):
        return read_request(parse([one.option, text]))["targets"].limit(one.name)

    value = 7.0 if one.is_count else 0.123456 / one.scale
    assert limit(one.written(value)) == pytest.approx(value, rel=1e-9)
    rounded = limit(one.written(one.relaxed(value)))
    assert one.is_kept(value, rounded)
    assert rounded == pytest.approx(value, rel=1e-2)
