"""A demand: replicas that serve it, and no credit for tokens that nobody asks for."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from planner import (
    NoPlanError,
    RequestError,
    Serve,
    SolverError,
    SolverOptions,
    Targets,
    frontier,
    load_architecture,
    load_cluster,
    load_model,
    place,
    plan,
    verify,
)
from planner.estimates.phases import passes
from planner.programs import deployment as program
from planner.specs.records.devices import FORMAT_BYTES
from planner.verifier.layouts.places import places
from tests import requests
from tests.planning.test_planning import (
    BATCHES,
    PREFILL_BATCHES,
    fits_together,
    phase_choices,
    referee_meshes,
    solve,
)
from tests.requests import MODEL, WORKLOAD, nodes, torus

FAST = {"batches": (1, 8, 64), "prefill_batches": (1, 4)}


def solved(demand, cluster=None, *, targets=None, **choices):
    asked = replace(targets or Targets(), demand_tokens_per_s=demand)
    return solve(cluster or torus(1, 2, 4), asked, **{**FAST, **choices})


def most_served(cluster):
    """The largest demand that a pool can meet, by its own explanation [token/s]."""
    targets = Targets(demand_tokens_per_s=1e9)
    with pytest.raises(NoPlanError) as caught:
        plan(MODEL, cluster, workload=WORKLOAD, targets=targets, **FAST)
    (obstacle,) = caught.value.conflict.obstacles
    return obstacle.reachable


def enumerated(cluster, targets):
    """(cost, devices) of the cheapest fleet: every mesh, layout, batch and number of replicas.

    By the referee alone, one by one: n replicas serve n tokens in the device time of one.
    """
    work, best = passes(WORKLOAD), (math.inf, 0)
    usable = cluster.device.hbm_bytes - cluster.device.reserve_bytes
    demand, n_output = targets.demand_tokens_per_s, WORKLOAD.n_output_tokens
    for mesh, n_devices in referee_meshes(cluster):
        room = len(places(cluster.fabric, mesh))
        if targets.n_devices is not None:
            room = min(room, targets.n_devices // n_devices)
        if not room:
            continue
        parts = (1,) if mesh.n_stages == 1 else (1, 2, 4, 8, 16, 32, 64)
        for stored, weights_format in product(range(8), FORMAT_BYTES.keys() & {"bf16", "int8"}):
            common = {"stored": stored, "weights_format": weights_format, "parts": parts}
            decodes = [
                ((n_output - 1) * seconds / batch, (weights, kv, written))
                for seconds, batch, weights, kv, written, working in phase_choices(
                    cluster, mesh, work=work["decode"], batches=BATCHES, **common
                )
                if weights + kv + working <= usable
                and (targets.tpot_s is None or seconds <= targets.tpot_s)
            ]
            prefills = [
                (seconds / batch, (kv, working))
                for seconds, batch, _, kv, _, working in phase_choices(
                    cluster, mesh, work=work["prefill"], batches=PREFILL_BATCHES, **common
                )
                if targets.ttft_s is None or seconds <= targets.ttft_s
            ]
            for (a, held), (b, more) in product(set(decodes), set(prefills)):
                if not fits_together(held, more, usable):
                    continue
                n_replicas = next(
                    (n for n in range(1, room + 1) if n * n_output / (a + b) >= demand), None
                )
                if n_replicas:
                    rent = n_replicas * n_devices * cluster.usd_per_hour / 3600
                    best = min(best, (rent / demand, n_replicas * n_devices))
    return best


@pytest.mark.parametrize(
    ("cluster", "targets"),
    [
        pytest.param(torus(1, 2, 2), Targets(demand_tokens_per_s=100), id="far less than one"),
        pytest.param(torus(1, 2, 2), Targets(demand_tokens_per_s=4000), id="several"),
        pytest.param(
            torus(1, 2, 2),
            Targets(demand_tokens_per_s=3000, tpot_s=0.004, ttft_s=0.4),
            id="within both targets",
        ),
        pytest.param(
            requests.with_memory(torus(2, 2, 2), 3.4e9),
            Targets(demand_tokens_per_s=1000),
            id="tight memory",
        ),
        pytest.param(nodes(2, per_node=2), Targets(demand_tokens_per_s=3500), id="servers"),
        pytest.param(
            nodes(3, per_node=2), Targets(demand_tokens_per_s=3500, n_devices=4), id="few devices"
        ),
    ],
)
def test_the_fleet_is_the_cheapest_of_all_enumerated_by_the_referee(cluster, targets):
    found = plan(
        MODEL,
        cluster,
        workload=WORKLOAD,
        targets=targets,
        batches=BATCHES,
        prefill_batches=PREFILL_BATCHES,
    )
    cost, n_devices = enumerated(cluster, targets)
    assert found.certificate.status == "optimal"
    assert found.deployment.usd_per_token == pytest.approx(cost, rel=1e-9)
    assert found.deployment.n_devices == n_devices


def test_a_demand_that_no_pool_meets_has_no_fleet_in_the_enumeration_either():
    cluster = torus(1, 2, 2)
    filled = {"batches": BATCHES, "prefill_batches": PREFILL_BATCHES}
    targets = Targets(demand_tokens_per_s=1e6)
    with pytest.raises(NoPlanError) as caught:
        plan(MODEL, cluster, workload=WORKLOAD, targets=targets, **filled)
    reachable = caught.value.conflict.obstacles[0].reachable
    for share, there_is in ((1 - 1e-6, True), (1 + 1e-6, False)):
        cost, _ = enumerated(cluster, Targets(demand_tokens_per_s=reachable * share))
        assert math.isfinite(cost) is there_is


@pytest.mark.parametrize("objective", ["cost", "rent", "latency", "ttft", "devices"])
@pytest.mark.parametrize("solver", ["cpsat", "exhaustive"])
def test_all_solvers_find_the_same_fleet(objective, solver):
    choices = {"batches": (8, 64), "prefill_batches": (1, 4), "objective": objective}
    one = solved(1500, torus(1, 2, 2), **choices)
    two = solved(1500, torus(1, 2, 2), options=SolverOptions(solver=solver), **choices)
    assert one.certificate.objective == pytest.approx(two.certificate.objective, rel=1e-9)
    assert one.deployment.usd_per_token == pytest.approx(two.deployment.usd_per_token, rel=1e-9)
    assert one.deployment.n_replicas == two.deployment.n_replicas


def test_without_a_demand_there_is_one_replica_and_it_is_never_idle():
    best = solve(torus(1, 2, 4), **FAST).deployment
    assert (best.n_replicas, best.demand_tokens_per_s) == (1, None)
    assert best.utilization_fraction == 1
    assert best.served_tokens_per_s == best.output_tokens_per_s


def test_a_plan_is_credited_with_the_demand_and_no_more():
    """$1/h a device: the cost of a token is devices / 3600 / demand."""
    best = solved(100).deployment
    assert best.output_tokens_per_s > 100
    assert best.served_tokens_per_s == 100
    assert best.usd_per_token == pytest.approx(best.n_devices / 3600 / 100, rel=1e-12)
    assert best.utilization_fraction == pytest.approx(100 / best.output_tokens_per_s)
    parts = best.prefill_usd_per_token / best.usd_per_token
    assert parts == pytest.approx(best.prefill.step.total_s / best.prefill.batch / best.request_s)


def test_of_fleets_that_cost_the_same_the_one_with_most_time_left_is_taken():
    """One device serves so small a demand with any batch: the quickest batches are chosen."""
    best = solved(50).deployment
    assert best.n_devices == 1
    quickest = solve(torus(1, 1, 1), objective="throughput", **FAST).deployment
    assert best.output_tokens_per_s == pytest.approx(quickest.output_tokens_per_s, rel=1e-9)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.floats(50, 8000), st.floats(1.0, 3.0))
def test_more_demand_never_takes_less_rent(demand, factor):
    """Whoever serves more serves the less too. Cost per token may fall: idle time is shared."""
    less, more = solved(demand), solved(demand * factor)
    if more is not None:
        assert less is not None
        assert less.deployment.usd_per_hour <= more.deployment.usd_per_hour * (1 + 1e-9)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.floats(50, 8000))
def test_no_demand_is_served_cheaper_than_tokens_without_end(demand):
    """A fleet's time is paid for whether busy or not; a plan without a demand is always busy."""
    found = solved(demand)
    if found is not None:
        free = solve(torus(1, 2, 4), **FAST).deployment
        assert found.deployment.usd_per_token >= free.usd_per_token * (1 - 1e-9)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.floats(500, 6000))
def test_a_larger_pool_never_makes_a_demand_dearer(demand):
    small, large = solved(demand, torus(1, 2, 2)), solved(demand, torus(2, 2, 2))
    if small is not None:
        assert large.deployment.usd_per_hour <= small.deployment.usd_per_hour * (1 + 1e-9)


def test_the_limit_on_devices_counts_all_replicas():
    free = solved(4000).deployment
    assert free.n_devices > 2
    tight = solved(4000, targets=Targets(n_devices=free.n_devices))
    assert tight.deployment.n_devices <= free.n_devices
    used = next(use for use in tight.limits if use.name == "devices")
    assert used.used == tight.deployment.n_devices
    assert solved(most_served(torus(1, 2, 4)) * 0.99, targets=Targets(n_devices=2)) is None


def test_a_cost_limit_is_on_what_the_demand_pays():
    """100 tokens a second on one device at $1/h are $2.78 per million, however quick it is."""
    assert solved(100, targets=Targets(usd_per_token=2.78e-6)) is not None
    assert solved(100, targets=Targets(usd_per_token=2.77e-6)) is None


class TestNoPlan:
    def conflict(self, targets, cluster=None):
        with pytest.raises(NoPlanError) as caught:
            plan(MODEL, cluster or torus(1, 2, 2), workload=WORKLOAD, targets=targets, **FAST)
        return caught.value.conflict

    def test_a_demand_beyond_the_pool_is_blamed_alone_with_the_most_that_it_serves(self):
        conflict = self.conflict(Targets(demand_tokens_per_s=1e6))
        (obstacle,) = conflict.obstacles
        assert obstacle.name == "demand"
        assert solved(obstacle.reachable * (1 - 1e-9), torus(1, 2, 2))
        assert solved(obstacle.reachable * 1.001, torus(1, 2, 2)) is None

    def test_the_reason_says_how_many_devices_the_demand_takes(self):
        """As many as there are, times the demand over the most, rounded up to replicas."""
        most = most_served(torus(1, 2, 2))
        for busy, needed in ((1.0, 40), (0.5, 80)):
            targets = Targets(demand_tokens_per_s=10 * most, max_utilisation=busy)
            conflict = self.conflict(targets)
            reason = conflict.obstacles[0].reason
            assert "by 4 replicas" in reason
            assert f"need {needed} of them, {needed} devices" in reason
            assert conflict.closest.n_devices == 4

    def test_the_command_asks_for_what_the_pool_serves(self):
        conflict = self.conflict(Targets(demand_tokens_per_s=1e6))
        assert f"--demand {conflict.closest.demand_tokens_per_s:g}tok/s" in conflict.command
        assert conflict.closest.demand_tokens_per_s <= conflict.obstacles[0].reachable

    def test_a_demand_and_a_limit_that_hold_alone_but_not_together_are_both_named(self):
        most = most_served(torus(1, 2, 2))
        conflict = self.conflict(Targets(demand_tokens_per_s=0.9 * most, n_devices=1))
        assert {one.name for one in conflict.obstacles} == {"demand", "devices"}
        names = [[change.name for change in one.changes] for one in conflict.relaxations]
        assert sorted(names) == [["demand"], ["devices"], ["devices", "demand"]]
        for one in conflict.relaxations:
            needed = {"devices": 1, "demand": 0.9 * most}
            needed |= {change.name: change.limit for change in one.changes}
            targets = Targets(n_devices=round(needed["devices"]))
            assert solved(needed["demand"], torus(1, 2, 2), targets=targets)


def test_the_command_names_a_pool_with_as_many_devices_as_the_demand_takes():
    """Servers come in any number, by the pattern of their file: two of them are too few."""
    model, pool = load_model("llama-3.1-8b"), load_cluster("dgx-a100-x2")
    asked = {"workload": WORKLOAD, "batches": (64, 256), "prefill_batches": (1, 4)}
    targets = Targets(demand_tokens_per_s=1e5)
    with pytest.raises(NoPlanError) as caught:
        plan(model, pool, "roofline", targets=targets, **asked)
    words = caught.value.conflict.command.split()
    larger = load_cluster(words[words.index("--topology") + 1])
    assert larger.n_devices > pool.n_devices
    found = plan(model, larger, "roofline", targets=targets, **asked)
    assert found.deployment.output_tokens_per_s >= 1e5


def test_replicas_that_have_no_place_are_refused(monkeypatch):
    """The program is told of more places than there are; the judge puts each in its place."""
    count = program.n_places
    monkeypatch.setattr(program, "n_places", lambda *args: 4 * count(*args))
    with pytest.raises(SolverError, match=r"n_replicas \d+ have \d+ places"):
        solved(1.5 * most_served_truly(), torus(1, 2, 2))


def most_served_truly():
    """1×1×1, the quickest of four devices alone, four times."""
    one = solve(torus(1, 1, 1), objective="throughput", **FAST).deployment
    return 4 * one.output_tokens_per_s


def test_throughput_is_no_objective_where_it_is_asked_for():
    targets = Targets(demand_tokens_per_s=100.0)
    with pytest.raises(RequestError) as caught:
        plan(MODEL, torus(1, 1, 1), targets=targets, objective="throughput")
    assert [problem.where for problem in caught.value.problems] == ["--demand"]


def test_every_point_of_a_frontier_serves_the_demand():
    demand = 3000.0
    targets = Targets(demand_tokens_per_s=demand)
    found = frontier(MODEL, torus(1, 2, 2), workload=WORKLOAD, targets=targets, **FAST)
    assert found.proof.status == "optimal"
    for point in found.points:
        assert point.deployment.output_tokens_per_s >= demand * (1 - 1e-9)
        alone = Targets(demand_tokens_per_s=demand, tpot_s=point.x * (1 + 1e-9))
        best = solved(demand, torus(1, 2, 2), targets=alone, prefill=found.request.prefill)
        assert best.deployment.usd_per_token == pytest.approx(point.y, rel=1e-9)


def test_a_demand_where_nothing_fits_is_explained_by_the_memory():
    """A device of 1 MB holds nothing: what lacks is memory, whatever is demanded."""
    small = torus(1, 1, 2)
    small = replace(small, device=replace(small.device, hbm_bytes=1e6, reserve_bytes=0.0))
    targets = Targets(demand_tokens_per_s=1e9)
    with pytest.raises(NoPlanError) as caught:
        plan(MODEL, small, workload=WORKLOAD, targets=targets, **FAST)
    conflict = caught.value.conflict
    assert [one.name for one in conflict.obstacles] == ["hbm"]
    assert conflict.closest is not None
    assert conflict.closest.memory.used_bytes == conflict.obstacles[0].reachable > 1e6


@pytest.mark.parametrize("engine", ["roofline", "vllm"])
def test_replicas_are_busy_no_more_than_is_allowed(engine):
    """What one replica serves at most, asked of it at 85 %: two are needed, and it is recounted."""
    asked = {"engine": engine, "objective": "rent", "batches": (1, 8, 64)}
    model, cluster = load_architecture("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    model = model if engine == "vllm" else load_model("llama-3.1-8b")
    alone = plan(model, cluster, **asked, targets=Targets(n_devices=1)).deployment
    rate = alone.output_tokens_per_s
    for share, of_one in ((1.0, 0.99), (0.85, 0.84)):
        for part, n_replicas in ((of_one, 1), (of_one + 0.02, 2)):
            targets = Targets(demand_tokens_per_s=part * rate, max_utilisation=share)
            found = plan(model, cluster, **asked, targets=targets)
            best = found.deployment
            assert best.usd_per_hour == pytest.approx(n_replicas * alone.usd_per_hour)
            assert best.output_tokens_per_s * share >= part * rate * (1 - 1e-9)
            assert best.usd_per_token == pytest.approx(best.usd_per_hour / 3600 / (part * rate))
    assert verify(found).is_true
    less = replace(found.request.targets, max_utilisation=0.4)
    assert not verify(replace(found, request=replace(found.request, targets=less))).is_true


def test_a_placement_serves_no_more_than_may_be_sold():
    """What four devices serve at most, at 85 % of the time."""
    model, cluster = load_model("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    asked = {"engine": "roofline", "batches": (1, 8, 64)}
    most = place(cluster, Serve(model=model), objective="throughput", **asked).output_tokens_per_s
    for part, n_devices in ((0.4, 4), (0.45, 5)):
        wish, targets = (
            Serve(model=model, demand_tokens_per_s=part * most),
            Targets(max_utilisation=0.85),
        )
        found = place(cluster, wish, objective="devices", targets=targets, **asked)
        assert sum(one.n_devices for one in found.served) == n_devices
        assert found.output_tokens_per_s * 0.85 >= part * most * (1 - 1e-9)
        assert verify(found).is_true
