"""`frontier` against enumeration by the referee, the classic ε-constraint method, and samples."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import planner.solvers.tracing
from planner import (
    NoPlanError,
    OutOfTimeError,
    RequestError,
    SolverError,
    SolverOptions,
    Targets,
    frontier,
    frontiers,
    load_model,
    load_topology,
    plan,
)
from planner.estimates.candidates import machine_of, table_of, usable_bytes
from planner.estimates.phases import passes
from planner.results.surveys import X_AXES, Y_AXES
from planner.solvers.solution import Status
from tests import requests
from tests.planning.test_planning import phase_choices, referee_meshes
from tests.programs.test_tradeoff import non_dominated
from tests.requests import MODEL, WORKLOAD, nodes, torus

BATCHES = (1, 3, 8, 21, 64)
PREFILL_BATCHES = (1, 4, 16)
POOLS = {
    "open torus": torus(1, 2, 2),
    "tight memory": requests.with_memory(torus(2, 2, 2), 3.4e9),
    "servers": nodes(2, per_node=1),
}


def trace(cluster, **choices):
    filled = {"workload": WORKLOAD, "batches": BATCHES, "prefill_batches": PREFILL_BATCHES}
    return frontier(MODEL, cluster, **(filled | {"prefill": "cost"} | choices))


@cache
def enumerated(name):
    """(TPOT, TTFT, USD per token, rent, tokens/s) of every deployment that fits, (5, N).

    By the referee, one layout after the other, even those that the planner drops as
    equivalent; only the mesh table is shared.
    """
    cluster, work, found = POOLS[name], passes(WORKLOAD), []
    usable = cluster.device.hbm_bytes - cluster.device.reserve_bytes
    for mesh, n_devices in referee_meshes(cluster):
        parts = (1,) if mesh.n_stages == 1 else (1, 2, 4, 8, 16, 32, 64)
        for stored, weights_format in product(range(8), ("bf16", "int8")):
            common = {"stored": stored, "weights_format": weights_format, "parts": parts}
            decode, prefill = (
                np.array(
                    list(phase_choices(cluster, mesh, work=work[phase], batches=sizes, **common))
                ).T
                for phase, sizes in (("decode", BATCHES), ("prefill", PREFILL_BATCHES))
            )
            decode_s, n_decode, weights, cache, written, _ = decode = decode[
                :, decode[2] + decode[3] + decode[5] <= usable
            ]
            prefill_s, n_prefill, _, kv, _, working = prefill
            held_kv = np.maximum(cache[:, None], kv + written[:, None])
            held = weights[:, None] + held_kv + working
            request_s = (31 * decode_s / n_decode)[:, None] + prefill_s / n_prefill
            rent = n_devices * cluster.usd_per_hour
            rate = 32 / request_s
            figures = np.broadcast_arrays(
                decode_s[:, None],
                prefill_s,
                request_s * rent / 3600 / 32,
                rent,
                rate,
                rate / n_devices,
            )
            found.append(np.array([figure[held <= usable] for figure in figures]))
    return np.concatenate(found, axis=1)


COLUMN = {"latency": 0, "ttft": 1, "cost": 2, "rent": 3, "throughput": 4, "device-throughput": 5}


def non_dominated_of(delays, prices):
    """As `non_dominated`, for millions: first without those that an earlier one undercuts."""
    order = np.lexsort((prices, delays))
    least = np.minimum.accumulate(prices[order])
    stay = order[np.append(True, prices[order][1:] < least[:-1])]
    return non_dominated(zip(delays[stay], prices[stay], strict=True))


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        *product(("open torus", "tight memory"), X_AXES, Y_AXES),
        ("servers", "latency", "cost"),
    ],
)
def test_the_frontier_is_what_no_enumerated_deployment_dominates(name, x, y):
    found = trace(POOLS[name], x=x, y=y)
    figures = enumerated(name)
    sign = -1.0 if y.endswith("throughput") else 1.0
    prices = 1 / figures[COLUMN[y]] if sign < 0 else figures[COLUMN[y]]
    expected = non_dominated_of(figures[COLUMN[x]], prices)
    got = [(point.x, 1 / point.y if sign < 0 else point.y) for point in reversed(found.points)]
    assert len(got) == len(expected) > 0
    for one, other in zip(got, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_the_classic_method_finds_the_same_points_with_a_proof_for_each():
    """The cheapest plan, then the cheapest strictly faster one, until there is none."""
    cluster, at_most, steps = torus(2, 2, 4), None, []
    while True:
        try:
            step = plan(
                MODEL,
                cluster,
                workload=WORKLOAD,
                targets=Targets(tpot_s=at_most),
                batches=BATCHES,
                prefill_batches=PREFILL_BATCHES,
                prefill="cost",
            ).deployment
        except NoPlanError:
            break
        steps.append((step.tpot_s, step.usd_per_token))
        at_most = step.tpot_s * (1 - 2e-9)
    found = [(point.x, point.y) for point in trace(cluster).points]
    assert len(found) == len(steps) >= 10
    for one, other in zip(found, steps, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("solver", ["cpsat", "exhaustive"])
def test_all_solvers_prove_the_same_frontier(solver):
    one = trace(torus(2, 2, 4))
    two = trace(torus(2, 2, 4), options=SolverOptions(solver=solver))
    assert two.proof.solver.startswith(solver if solver == "cpsat" else "enumeration")
    assert [point.deployment for point in one.points] == [point.deployment for point in two.points]


@pytest.fixture(scope="module")
def whole():
    """The frontier of a torus of 16."""
    return trace(torus(2, 2, 4))


class TestPoints:
    def test_are_ever_faster_and_dearer(self, whole):
        for slow, fast in pairwise(whole.points):
            assert fast.x < slow.x
            assert fast.y > slow.y

    def test_are_optimal_with_a_bound_and_verified(self, whole):
        assert whole.proof.status == "optimal"
        assert len(whole.proof.verified) == 3
        for point in whole.points:
            assert point.bound <= point.y * (1 + 1e-12)
            assert point.gap <= 1e-9

    def test_are_their_deployments(self, whole):
        for point in whole.points:
            assert (point.x, point.y) == (point.deployment.tpot_s, point.deployment.usd_per_token)

    def test_account_for_every_candidate(self, whole):
        proof = whole.proof
        n_rejected = sum(screen.n_candidates for screen in proof.screens)
        assert n_rejected + proof.n_solved == proof.n_candidates


def test_the_preferred_point_has_the_most_speed_for_its_price():
    """Where speed is worth nothing it is the cheapest; the more it is worth, the faster."""
    preferred = []
    for alpha in (0.0, 1.0, 3.0, 20.0):
        found = trace(torus(2, 2, 4), alpha=alpha)
        worths = [(1 / point.x) ** alpha / point.y for point in found.points]
        assert found.preferred == worths.index(max(worths))
        preferred.append(found.preferred)
    assert preferred[0] == 0
    assert preferred == sorted(preferred)
    assert preferred[-1] > 0


class TestTargets:
    """On an axis they mark, elsewhere they hold."""

    def test_on_the_axes_cut_nothing(self, whole):
        targets = Targets(tpot_s=0.005, usd_per_token=3e-6)
        cut = trace(torus(2, 2, 4), targets=targets)
        assert [point.deployment for point in cut.points] == [
            point.deployment for point in whole.points
        ]
        marked = [point.meets_targets for point in cut.points]
        assert marked == [point.x <= 0.005 and point.y <= 3e-6 for point in cut.points]
        assert all(point.meets_targets for point in whole.points)

    def test_the_cheapest_point_within_one_is_the_plan_for_it(self):
        targets = Targets(tpot_s=0.004)
        found = trace(torus(2, 2, 4), targets=targets, prefill=None)
        best = plan(
            MODEL,
            torus(2, 2, 4),
            workload=WORKLOAD,
            targets=targets,
            batches=BATCHES,
            prefill_batches=PREFILL_BATCHES,
        ).deployment
        assert found.points[found.at_target].y == pytest.approx(best.usd_per_token, rel=1e-9)

    def test_on_other_quantities_hold_for_every_point(self):
        targets = Targets(ttft_s=0.1, n_devices=4, min_batch=3)
        for point in trace(torus(2, 2, 4), targets=targets).points:
            assert point.deployment.ttft_s <= 0.1
            assert point.deployment.mesh.n_devices <= 4
            assert point.deployment.decode.batch >= 3

    def test_that_no_point_meets_leave_none_at_the_target(self):
        assert trace(torus(1, 2, 2), targets=Targets(tpot_s=1e-6)).at_target is None


def test_prefill_follows_the_policy_of_a_plan():
    assert trace(torus(1, 2, 2), prefill=None).request.prefill == "cost"
    targets = Targets(tpot_s=0.01)
    assert trace(torus(1, 2, 2), prefill=None, targets=targets).request.prefill == "latency"


class TestFailures:
    def test_without_any_plan_the_conflict_says_why(self):
        with pytest.raises(NoPlanError) as caught:
            trace(requests.with_memory(torus(1, 1, 2), 2e9))
        assert [one.name for one in caught.value.conflict.obstacles] == ["hbm"]

    def test_every_problem_is_reported_together(self):
        with pytest.raises(RequestError) as caught:
            trace(torus(1, 1, 1), x="cost", y="speed", alpha=math.nan, weights_formats=["fp4"])
        places = {problem.where for problem in caught.value.problems}
        assert places == {"--x", "--y", "--alpha", "--weights"}

    @pytest.fixture
    def answer(self, monkeypatch):
        """Let the solver end in its own way."""

        def give(**changes):
            solve = planner.solvers.tracing.solve

            def fake(program, **effort):
                found = solve(program, **effort)
                bound = changes.get("bound", found.bound)
                weighed = replace(found.vouched, bound=bound, alone=bound)
                return replace(found, answer=None, status=changes["status"], vouched=weighed)

            monkeypatch.setattr(planner.solvers.tracing, "solve", fake)

        return give

    def test_out_of_time_what_is_in_hand_goes_out_with_its_bound(self, whole, answer):
        """The bound says that a point may be three dollars a Mtoken too high."""
        cheapest = whole.points[0].y * 1e6
        answer(status=Status.UNKNOWN, bound=cheapest - 3.0)
        found = trace(torus(2, 2, 4))
        assert found.proof.status == "feasible"
        assert len(found.points) == len(whole.points)
        for point in found.points:
            assert point.bound == pytest.approx(max(point.y - 3e-6, 0.0), abs=1e-12)

    def test_out_of_time_with_nothing_in_hand_is_an_error(self, answer, monkeypatch):
        answer(status=Status.UNKNOWN, bound=-math.inf)
        narrow = planner.solvers.tracing.narrow

        def empty_handed(*program):
            narrowed = narrow(*program)
            hand = narrowed.in_hand
            nothing = replace(
                hand, delay=hand.delay[:0], price=hand.price[:0], columns=hand.columns[:0]
            )
            return replace(narrowed, in_hand=nothing)

        monkeypatch.setattr(planner.solvers.tracing, "narrow", empty_handed)
        monkeypatch.setattr(
            planner.solvers.tracing, "screen", without_incumbent(planner.solvers.tracing.screen)
        )
        with pytest.raises(OutOfTimeError):
            trace(torus(1, 2, 2))

    def test_a_solver_that_contradicts_what_is_in_hand_is_not_believed(self, answer):
        answer(status=Status.INFEASIBLE, bound=math.inf)
        with pytest.raises(SolverError, match="in hand"):
            trace(torus(1, 2, 2))


def without_incumbent(screen):
    return lambda program: replace(screen(program), incumbent=None)


def sample(request, n_samples, *, seed=0):
    """(TPOT, USD per token) of random deployments that fit, from the table of candidates.

    Half are drawn evenly; half decode with one of the arms that can be cheapest, in order to
    come close. Both phases of a deployment have the same context.
    """
    rng = np.random.default_rng(seed)
    table = table_of(request, machine_of(request.cluster, request.model))
    room, contexts = usable_bytes(table.machine), table.contexts
    rent_per_s = contexts.n_devices * request.cluster.usd_per_hour / 3600
    block = table.block(np.arange(len(table.arms)))
    (decode,), prefill, n_steps = block.decodes, block.prefill, request.workload.n_decode_steps
    order = np.argsort(table.context, kind="stable")
    first = np.searchsorted(table.context[order], np.arange(len(contexts) + 1))
    ideal = (decode.pass_s / decode.batches).min(axis=1) * rent_per_s[table.context]
    near = np.argsort(ideal)[: max(20, len(ideal) // 10)]
    found, n_found = [], 0
    while n_found < n_samples:
        n = n_samples
        arm = np.where(
            np.arange(n) % 2 == 0,
            rng.integers(len(table.context), size=n),
            near[rng.integers(len(near), size=n)],
        )
        context = table.context[arm]
        span = first[context + 1] - first[context]
        other = order[first[context] + (rng.random(n) * span).astype(np.int64)]
        b, p = (rng.integers(len(phase.batches), size=n) for phase in (decode, prefill))
        weights, kv = contexts.weight_bytes[context], decode.kv_bytes[arm, b]
        fits = weights + kv + decode.working_bytes[arm, b] <= room
        arrived = prefill.kv_bytes[other, p] + decode.written_bytes[arm, b]
        beside = np.maximum(kv, arrived) + prefill.working_bytes[other, p]
        fits &= weights + beside <= room
        request_s = n_steps * decode.pass_s[arm, b] / decode.batches[b]
        request_s += prefill.pass_s[other, p] / prefill.batches[p]
        cost = request_s * rent_per_s[context] / request.workload.n_output_tokens
        found.append(np.stack([decode.pass_s[arm, b], cost])[:, fits])
        n_found += int(np.count_nonzero(fits))
    return np.concatenate(found, axis=1)[:, :n_samples]


def n_dominating(deployments, x, y):
    """How many of the deployments are no worse in both than some point, and better in one."""
    count = 0
    for one_x, one_y in zip(x, y, strict=True):
        no_worse = (deployments[0] <= one_x) & (deployments[1] <= one_y)
        better = deployments[0] < one_x * (1 - 1e-9)
        better |= deployments[1] < one_y * (1 - 1e-9)
        count += int(np.count_nonzero(no_worse & better))
    return count


@pytest.mark.parametrize(
    ("model", "topology"),
    [("palm-540b", "tpu-v4-4x4x4"), ("llama-3.1-70b", "h100-nvl8-x4")],
)
def test_none_of_100000_random_deployments_dominates_a_point(model, topology):
    found = frontier(load_model(model), load_topology(topology), "roofline")
    x, y = (np.array([getattr(point, axis) for point in found.points]) for axis in "xy")
    assert len(x) > 100
    deployments = sample(found.request, 100_000)
    assert deployments.shape == (2, 100_000)
    assert n_dominating(deployments, x, y) == 0
    assert n_dominating(deployments, x * 1.05, y * 1.05) > 0  # the sample does come close


FORMATS = {"weights_formats": ["bf16", "fp8", "int4"], "kv_formats": ["bf16", "fp8"]}


@pytest.fixture(scope="module")
def of_formats():
    """The frontier of a small model on a server, formats of weights and cache free."""
    model, pool = load_model("llama-3.1-8b"), load_topology("h100-nvl8-x1")
    return frontier(model, pool, "roofline", **FORMATS)


def test_none_of_20000_random_deployments_in_any_format_dominates_a_point(of_formats):
    x, y = (np.array([getattr(point, axis) for point in of_formats.points]) for axis in "xy")
    deployments = sample(of_formats.request, 20_000)
    assert n_dominating(deployments, x, y) == 0
    assert n_dominating(deployments, x * 1.05, y * 1.05) > 0  # the sample does come close


def test_formats_as_decisions_give_the_best_of_the_frontiers_of_each(of_formats):
    """One program with six pairs of formats, and six programs with one."""
    pairs = list(product(FORMATS["weights_formats"], FORMATS["kv_formats"]))
    model, pool = load_model("llama-3.1-8b"), load_topology("h100-nvl8-x1")
    curves = frontiers([model], [pool], ["roofline"], by="formats", **FORMATS)
    assert [(curve.case.weights, curve.case.kv) for curve in curves] == pairs
    apart = [(point.x, point.y) for curve in curves for point in curve.frontier.points]
    expected = non_dominated(apart)
    together = [(point.x, point.y) for point in reversed(of_formats.points)]
    assert len(together) == len(expected)
    for one, other in zip(together, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-9)
    used = {(p.deployment.weights_format, p.deployment.kv_format) for p in of_formats.points}
    assert {weights for weights, _ in used} >= {"fp8", "int4"}


def test_a_large_frontier_takes_seconds_and_one_proof():
    """200 points and more from some 758,000 candidates; the solver's share is a tenth at most."""
    for _ in range(4):
        found = frontier(load_model("palm-540b"), load_topology("tpu-v4-4x8x8"))
        assert found.proof.status == "optimal"
        assert len(found.points) > 200
        assert found.proof.n_solved < 1000
        if found.proof.solve_s < 0.1 * found.proof.wall_s:
            return  # others on the machine may have slowed the solver and not the rest
    raise AssertionError(f"{found.proof.solve_s} of {found.proof.wall_s} s in solvers")
