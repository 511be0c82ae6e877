"""`plan` end to end on machines small enough to enumerate every deployment."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from planner import NoPlanError, RequestError, SolverOptions, Targets, Workload, plan
from planner.estimates.candidates import machine_of
from planner.estimates.phases import passes
from planner.specs.records.devices import FORMAT_BYTES
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import Layout, ScalarMesh
from planner.verifier.scalar.times import step_time
from tests import requests
from tests.requests import MODEL, WORKLOAD, nodes, torus

BATCHES = (1, 3, 8, 21, 64)
PREFILL_BATCHES = (1, 4, 16)


def solve(cluster, targets=None, **choices):
    """The plan, or `None` where there is none."""
    filled = {"batches": BATCHES, "prefill_batches": PREFILL_BATCHES} | choices
    try:
        return plan(MODEL, cluster, workload=WORKLOAD, targets=targets or Targets(), **filled)
    except NoPlanError:
        return None


def referee_meshes(cluster):
    """Each mesh of the pool as the referee takes it, with its number of devices."""
    meshes = machine_of(cluster, MODEL).meshes
    for row in range(len(meshes)):
        yield (
            ScalarMesh(
                axes=tuple(map(int, meshes.axis_size[row])),
                wraps=tuple(map(bool, meshes.axis_wraps[row])),
                is_switch=bool(meshes.axis_is_switch[row].any()),
                axis_bytes_per_s=tuple(map(float, meshes.axis_bytes_per_s[row])),
                axis_hop_s=tuple(map(float, meshes.axis_hop_s[row])),
                n_stages=int(meshes.n_stages[row]),
                stage_bytes_per_s=float(meshes.stage_bytes_per_s[row]),
                stage_hop_s=float(meshes.stage_hop_s[row]),
            ),
            int(meshes.n_devices[row]),
        )


def phase_choices(cluster, mesh, *, stored, weights_format, work, batches, parts):
    """(seconds, batch, weights, KV, written, working bytes) of every layout, by the referee."""
    for gathered, attention, batch, n_microbatches in product(
        range(8), ("heads", "batch"), batches, parts
    ):
        layout = Layout(
            model=MODEL,
            mesh=mesh,
            stored=stored,
            gathered=gathered,
            attention=attention,
            n_microbatches=n_microbatches,
            weights_format=weights_format,
        )
        enters = {"batch": batch, "n_new_tokens": work.n_new_tokens}
        time = step_time(
            layout,
            cluster.device,
            cluster.fabric,
            n_context_tokens=work.n_context_tokens,
            **enters,
        )
        held = held_bytes(
            layout,
            n_cached_tokens=work.n_cached_tokens,
            n_found_tokens=work.n_found_tokens,
            **enters,
        )
        working = held.activation_bytes + held.gather_bytes
        sizes = held.weights_bytes, held.kv_bytes, held.written_bytes, working
        yield time.total_s, batch, *sizes


def fits_together(decode, prefill, usable):
    """Whether both phases fit: the decode batch, or what is prefilled and what decode writes."""
    (weights, cache, written), (kv, working) = decode, prefill
    return weights + max(cache, kv + written) + working <= usable


def enumerated_cost(cluster, targets):
    """Cheapest cost per token over every mesh, storage, format, layout and batch, one by one.

    Shares no code with the planner but the mesh table and the referee: even layouts that
    the planner drops as equivalent are looked at.
    """
    work, best = passes(WORKLOAD), float("inf")
    usable = cluster.device.hbm_bytes - cluster.device.reserve_bytes
    for mesh, n_devices in referee_meshes(cluster):
        parts = (1,) if mesh.n_stages == 1 else (1, 2, 4, 8, 16, 32, 64)
        for stored, weights_format in product(range(8), FORMAT_BYTES.keys() & {"bf16", "int8"}):
            common = {"stored": stored, "weights_format": weights_format, "parts": parts}
            decodes = [
                (31 * seconds / batch, (weights, kv, written))
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
            rate = n_devices * cluster.usd_per_hour / 3600 / 32
            fitting = (
                (a + b) * rate
                for (a, held), (b, more) in product(decodes, prefills)
                if fits_together(held, more, usable)
            )
            best = min(best, min(fitting, default=float("inf")))
    return best


@pytest.mark.parametrize(
    ("cluster", "targets"),
    [
        pytest.param(torus(1, 2, 2), Targets(), id="open torus, no target"),
        pytest.param(torus(1, 2, 2), Targets(tpot_s=0.004, ttft_s=0.4), id="both targets"),
        pytest.param(requests.with_memory(torus(2, 2, 2), 3.4e9), Targets(), id="tight memory"),
        pytest.param(nodes(2, per_node=2), Targets(tpot_s=0.006), id="servers"),
    ],
)
def test_the_plan_is_the_cheapest_of_all_deployments_enumerated_by_the_referee(cluster, targets):
    found = plan(
        MODEL,
        cluster,
        workload=WORKLOAD,
        targets=targets,
        batches=BATCHES,
        prefill_batches=PREFILL_BATCHES,
    )
    assert found.deployment.usd_per_token == pytest.approx(
        enumerated_cost(cluster, targets), rel=1e-9
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(0.0012, 0.02), st.floats(1.0, 3.0))
def test_loosening_the_latency_target_never_raises_the_cost(tpot_s, factor):
    tight = solve(torus(2, 2, 4), Targets(tpot_s=tpot_s), prefill="latency", prefill_batches=None)
    loose = solve(
        torus(2, 2, 4), Targets(tpot_s=tpot_s * factor), prefill="latency", prefill_batches=None
    )
    if tight is not None:
        assert loose is not None
        assert loose.deployment.usd_per_token <= tight.deployment.usd_per_token * (1 + 1e-9)


@pytest.mark.parametrize("objective", ["cost", "latency", "ttft", "throughput", "rent"])
def test_more_devices_in_the_pool_never_hurt(objective):
    small = solve(torus(1, 2, 4), objective=objective).certificate
    large = solve(torus(2, 2, 4), objective=objective).certificate
    if objective == "throughput":
        assert large.objective >= small.objective * (1 - 1e-9)
    else:
        assert large.objective <= small.objective * (1 + 1e-9)


def test_scaling_the_price_scales_the_cost_and_changes_nothing_else():
    """Ten times the rent: ten times the dollars, the same deployment."""
    cheap, dear = torus(2, 2, 2), requests.torus(2, 2, 2)
    dear = requests.replace(dear, usd_per_hour=10.0)
    one, ten = solve(cheap).deployment, solve(dear).deployment
    assert ten.usd_per_token == pytest.approx(10 * one.usd_per_token, rel=1e-12)
    assert (ten.mesh, ten.prefill, ten.decode) == (one.mesh, one.prefill, one.decode)


def test_the_same_request_gives_the_same_plan_twice():
    one, two = (solve(torus(2, 2, 4), Targets(tpot_s=0.01)) for _ in range(2))
    assert one.deployment == two.deployment
    assert one.alternatives == two.alternatives


@pytest.mark.parametrize("objective", ["cost", "latency", "ttft", "throughput", "rent", "devices"])
@pytest.mark.parametrize("solver", ["cpsat", "exhaustive"])
def test_all_solvers_give_the_same_plan(objective, solver):
    one = solve(torus(2, 2, 2), objective=objective)
    two = solve(torus(2, 2, 2), objective=objective, options=SolverOptions(solver=solver))
    assert one.certificate.objective == pytest.approx(two.certificate.objective, rel=1e-9)
    assert one.deployment == two.deployment


def test_ties_of_the_objective_go_to_the_cheapest_plan():
    """Least devices leaves layouts and batches free: the cheapest of them is taken."""
    fewest = solve(torus(2, 2, 4), objective="devices")
    n_devices = fewest.deployment.mesh.n_devices
    cheapest = solve(torus(2, 2, 4), Targets(n_devices=n_devices))
    assert fewest.deployment.usd_per_token == pytest.approx(
        cheapest.deployment.usd_per_token, rel=1e-9
    )


def test_alternatives_come_in_order_and_none_beats_the_plan():
    found = solve(torus(2, 2, 4))
    losses = [alternative.loss_fraction for alternative in found.alternatives]
    assert len(losses) == 3
    assert losses == sorted(losses)
    assert losses[0] >= 0


def test_every_target_holds_in_the_plan():
    targets = Targets(tpot_s=0.006, ttft_s=0.5, n_devices=8, min_batch=8)
    found = solve(torus(2, 2, 4), targets).deployment
    assert found.tpot_s <= 0.006
    assert found.ttft_s <= 0.5
    assert found.mesh.n_devices <= 8
    assert found.decode.batch >= 8


def test_the_loosened_limit_gains_what_the_looser_request_gives():
    """The gain of a limit is the objective of the request with that limit 10 % looser."""
    tight = solve(torus(2, 2, 4), Targets(tpot_s=0.003), prefill="cost")
    loose = solve(torus(2, 2, 4), Targets(tpot_s=0.0033), prefill="cost")
    use = next(use for use in tight.limits if use.name == "tpot")
    gain = 1 - loose.deployment.usd_per_token / tight.deployment.usd_per_token
    assert use.gain_fraction == pytest.approx(gain, abs=1e-9)


class TestNoPlan:
    """Conflicts name an irreducible set of limits and what is reachable."""

    def conflict(self, targets, cluster=None, **choices):
        with pytest.raises(NoPlanError) as caught:
            plan(
                MODEL,
                cluster or torus(2, 2, 2),
                workload=WORKLOAD,
                targets=targets,
                **({"batches": BATCHES, "prefill_batches": PREFILL_BATCHES} | choices),
            )
        return caught.value.conflict

    def test_an_impossible_latency_is_blamed_alone_with_the_least_that_is_reachable(self):
        conflict = self.conflict(Targets(tpot_s=1e-4))
        fastest = solve(torus(2, 2, 2), objective="latency", prefill="cost").deployment
        (obstacle,) = conflict.obstacles
        assert obstacle.name == "tpot"
        assert obstacle.reachable == pytest.approx(fastest.tpot_s, rel=1e-9)

    def test_what_is_called_reachable_is_reached_when_asked_for(self):
        (obstacle,) = self.conflict(Targets(tpot_s=1e-4)).obstacles
        assert solve(torus(2, 2, 2), Targets(tpot_s=obstacle.reachable * (1 + 1e-9)))
        assert solve(torus(2, 2, 2), Targets(tpot_s=obstacle.reachable * 0.999)) is None

    def test_limits_that_hold_one_by_one_but_not_together_are_both_named(self):
        """A small batch is fast, a large one is slow: neither limit is impossible alone."""
        floor = solve(torus(2, 2, 2), objective="latency").deployment.tpot_s
        conflict = self.conflict(Targets(tpot_s=floor * 1.01, min_batch=64))
        assert {obstacle.name for obstacle in conflict.obstacles} == {"tpot", "batch"}

    def test_a_model_too_large_for_the_pool_is_blamed_on_memory(self):
        conflict = self.conflict(Targets(), requests.with_memory(torus(1, 1, 2), 2e9))
        (obstacle,) = conflict.obstacles
        assert obstacle.name == "hbm"
        assert obstacle.reachable > 2e9

    def test_the_command_offers_a_format_that_fits(self):
        """bf16 weights of 8 GB on two devices of 3.4 GB: int8 fits."""
        conflict = self.conflict(
            Targets(), requests.with_memory(torus(1, 1, 2), 3.9e9), weights_formats=["bf16"]
        )
        assert "--weights int8" in conflict.command


def test_every_problem_of_a_request_is_reported_together():
    with pytest.raises(RequestError) as caught:
        plan(
            MODEL,
            torus(1, 1, 1),
            workload=Workload(n_input_tokens=0, n_output_tokens=5),
            targets=Targets(tpot_s=float("nan"), min_batch=-3),
            weights_formats=["fp4"],
            objective="money",
        )
    places = {problem.where for problem in caught.value.problems}
    assert places == {"--input", "--latency-target", "--min-batch", "--weights", "--objective"}
