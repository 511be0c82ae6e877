"""Replicas on slices of tori: layouts by shape, holes, failed links, and the judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.commands.options.parsing import parse
from planner.commands.placements import read_place
from planner.errors import NoPlanError, RequestError, SpecError
from planner.placing.asking import placement_request
from planner.placing.floorplans import floorplan_of
from planner.placing.planning import place, task_of
from planner.placing.program import ModelDemand, Objective
from planner.placing.searching import searched
from planner.placing.tori.slices import (
    TorusOffers,
    pose_on_torus,
    slice_configurations,
    torus_state,
    without_tiled,
)
from planner.planning.plans import plan
from planner.programs import blocks as programs
from planner.programs.blocks import InMemory
from planner.programs.deployment import Posing
from planner.running.deadlines import within
from planner.solvers.placement import solve_placement
from planner.solvers.search import optimum
from planner.solvers.solution import Status
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.ask.targets import ANY_LAYOUTS, Degrees, SolverOptions, Targets, layouts_of
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.files.state import LinkState, SlowDevices, State
from planner.topology.graph import build_graph
from planner.topology.openings import openings
from planner.topology.pools import with_state

BATCHES = (1, 8, 64)
OPTIONS = SolverOptions()
POOL = "tpu-v4-4x4x8"
MODEL = "llama-3-70b"


def _pool(hbm_gb: float = 12.0, *, name: str = POOL):
    cluster = load_cluster(name)
    device = replace(cluster.device, hbm_bytes=hbm_gb * 1e9, reserve_bytes=0.0)
    return replace(cluster, device=device)


def _serve(**wanted):
    return Serve(model=load_model(MODEL), weights_formats=["int8"], **wanted)


def _posed(state: State):
    cluster = _pool()
    asked = PlacementRequest(site=cluster, models=(_serve(),), batches=BATCHES)
    request = layout_request(asked, asked.models[0], cluster)
    graph = with_state(build_graph(cluster), state)
    found = openings(cluster.fabric, torus_state(cluster.fabric, graph))
    found = found.take(np.flatnonzero(found.n_devices >= 8))
    offered = slice_configurations(request, 0, found)
    aim = Objective(wanted=(ModelDemand(name=MODEL, least=2, most=2),), objective="throughput")
    return graph, pose_on_torus(found, [offered], aim)


def test_each_mesh_has_the_layout_that_the_layout_program_finds_best_for_it():
    _, posed = _posed(State(failed=("0,0,0",)))
    assert len(posed.configurations) > 8
    for one in posed.configurations:
        it = one.source
        row = it.table.contexts.mesh[it.posed.number[one.choice.context]]
        contexts = np.flatnonzero(it.table.contexts.mesh == row)
        posing = Posing(it.table, it.request, programs.Objective(objective="throughput"))
        best = optimum(InMemory(posing.of(0, contexts)), OPTIONS)
        assert one.output_tokens_per_s == pytest.approx(1e3 / best.objective, rel=1e-9)


def test_rings_serve_more_than_lines():
    _, posed = _posed(State())
    rate = {one.pattern.label: one.output_tokens_per_s for one in posed.configurations}
    assert rate["4×4×4"] > rate["4×4×4 closed along 4, 4"]


def test_slices_that_smaller_ones_fill_are_left_out_without_loss():
    _, posed = _posed(State(busy=("*,*,4", "*,*,5", "*,*,6", "*,*,7"), failed=("1,1,1",)))
    several = replace(posed.program, least=np.array([0]))
    offered = TorusOffers(
        configurations=posed.configurations, which=posed.which, opening=posed.opening
    )
    kept = without_tiled(offered, several=True)
    aim = Objective(wanted=(ModelDemand(name=MODEL),), objective="throughput")
    fewer = pose_on_torus(posed.openings, [kept], aim)
    assert fewer.program.n_columns < posed.program.n_columns
    everything = solve_placement(replace(several, most=np.array([1 << 40])), solver="narrowing")
    left = solve_placement(replace(fewer.program, most=np.array([1 << 40])), solver="narrowing")
    assert left.objective == pytest.approx(everything.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_every_replica_is_walked_among_holes_and_failed_links(seed):
    rng = np.random.default_rng(seed)
    pool = _pool(24.0, name="tpu-v4-4x4x4")
    graph = build_graph(pool)
    names = sorted(graph)
    down = [sorted(graph.edges)[i] for i in rng.integers(0, len(graph.edges), 4)]
    state = State(
        busy=tuple(rng.choice(names, 10, replace=False).tolist()),
        slow=(SlowDevices(devices=(str(rng.choice(names)),), speed_fraction=0.5),),
        links=tuple(
            LinkState(part="between", names=ends, bandwidth_fraction=float(i % 2) / 2)
            for i, ends in enumerate(down)
        ),
    )
    found = place(pool, _serve(), state=state, batches=BATCHES, options=OPTIONS)
    assert found.certificate.status == "optimal"
    assert found.certificate.gap <= 0.005  # for compact slices
    devices = [rank.device for one in found.replicas for rank in one.ranks]
    assert len(devices) == len(set(devices)) > 0
    assert not set(devices) & set(state.busy)
    for one in found.replicas:
        assert all(c.bytes_per_s >= c.counted_bytes_per_s * (1 - 1e-9) for c in one.channels)


def test_a_ring_whose_link_failed_is_a_line_that_begins_behind_it():
    _, posed = _posed(
        State(links=(LinkState(part="between", names=("0,0,2", "0,0,3"), bandwidth_fraction=0.0),))
    )
    whole = [
        j
        for j in range(posed.program.n_columns)
        if posed.configurations[posed.which[j]].pattern.dimensions == (4, 4, 8)
    ]
    (column,) = whole
    copies = np.zeros(posed.program.n_columns, int)
    copies[column] = 1
    counts = solve_placement(replace(posed.program, least=np.array([0]))).answer
    (one,) = posed.located(replace(counts, copies=tuple(copies.tolist())))
    assert one.configuration.pattern.label == "4×4×8 closed along 4, 4"
    assert one.devices[:8] == tuple(f"0,0,{(3 + i) % 8}" for i in range(8))


def test_one_replica_of_least_latency_is_the_best_opening():
    found = place(
        _pool(),
        _serve(replicas=1),
        state=State(busy=("0,0,0", "3,3,7")),
        objective="latency",
        batches=BATCHES,
        options=OPTIONS,
    )
    cluster = _pool()
    wish = _serve(replicas=1)
    asked = PlacementRequest(site=cluster, models=(wish,), batches=BATCHES, objective="latency")
    request = layout_request(asked, asked.models[0], cluster)
    graph = with_state(build_graph(cluster), State(busy=("0,0,0", "3,3,7")))
    places = openings(cluster.fabric, torus_state(cluster.fabric, graph))
    offered = slice_configurations(request, 0, places)
    least = min(offered.configurations[w].tpot_s for w in offered.which)
    assert found.certificate.objective == pytest.approx(least)
    assert found.certificate.gap == pytest.approx(0, abs=1e-12)


def test_replicas_have_the_layouts_that_are_asked_for():
    """The best of these: as fast as `plan` on the same slice, and never faster than the freest."""
    pool = _pool(24.0, name="tpu-v4-4x4x4")
    least = {}
    for text in ("", "decode=WS1D", "decode=WS2D/batch"):
        targets = Targets(layouts=layouts_of(text) if text else ANY_LAYOUTS)
        wish = _serve(replicas=1)
        placed = place(
            *(pool, wish), targets=targets, objective="latency", batches=(8,), options=OPTIONS
        )
        (recipe,) = placed.recipes
        alone = plan(
            *(wish.model, pool),
            objective="latency",
            weights_formats=["int8"],
            batches=(8,),
            targets=replace(targets, degrees=Degrees(tensor=recipe.deployment.n_devices)),
        )
        assert recipe.deployment.decode.layout == alone.deployment.decode.layout
        least[text] = recipe.deployment.tpot_s
        assert least[text] == pytest.approx(alone.deployment.tpot_s, rel=1e-9)
        named = text.removeprefix("decode=").partition("/")[0]
        assert recipe.deployment.decode.layout.replace(" ", "").startswith(named)
    assert least[""] == min(least.values())


def test_a_layout_that_there_is_not_is_refused_by_its_name():
    """It is no want of room: whoever asks learns which there are."""
    for text, fact in (("decode=ZZ", "is called so"), ("prefill=WGX/heads/3", "into 3 parts")):
        with pytest.raises(RequestError, match=fact) as refused:
            place(_pool(), _serve(replicas=1), targets=Targets(layouts=layouts_of(text)))
        assert [one.where for one in refused.value.problems] == ["--layout"]


def test_nothing_free_and_nothing_possible_are_told_apart():
    with pytest.raises(RequestError, match="no free device"):
        place(_pool(), _serve(), state=State(busy=("*",)))
    with pytest.raises(SpecError, match="9,9,9"):
        place(_pool(), _serve(), state=State(busy=("9,9,9",)))
    with pytest.raises(NoPlanError) as none:
        place(_pool(0.5), _serve(replicas=1), batches=BATCHES)
    assert none.value.conflict.obstacles[0].name == f"targets {MODEL}"
    with pytest.raises(NoPlanError) as many:
        place(_pool(), _serve(demand_tokens_per_s=1e9), batches=BATCHES)
    (obstacle,) = many.value.conflict.obstacles
    assert obstacle.name == f"demand {MODEL}"
    assert 0 < obstacle.reachable < 1e9


@pytest.mark.parametrize(("limits", "name"), [(None, f"targets {MODEL}"), ({"rent": 0.1}, "rent")])
def test_a_torus_that_no_replica_fits_is_no_placement_of_none(limits, name):
    """The wish that is told is the one that forbids, though nothing is asked for by number."""
    pool = _pool() if limits else _pool(0.5)
    with pytest.raises(NoPlanError) as none:
        place(pool, _serve(), limits=limits, batches=BATCHES)
    (obstacle,) = none.value.conflict.obstacles
    assert obstacle.name == name
    assert limits is None or obstacle.reachable > obstacle.asked


def test_the_floorplan_of_a_torus_has_every_device_in_its_state():
    plan = floorplan_of(_pool(), State(busy=("0,0,0",), failed=("1,2,3",)))
    assert (plan.pool, plan.n_devices) == ((4, 4, 8), 128)
    assert plan.spots[0].state == "busy"
    assert plan.spots[(1 * 4 + 2) * 8 + 3].state == "failed"


def _boxes(n_devices):
    shapes = np.array(np.meshgrid(*[range(1, n_devices + 1)] * 3)).reshape(3, -1).T
    return [tuple(one) for one in shapes.tolist() if np.prod(one) == n_devices]


def _surface(box):
    a, b, c = box
    return 2 * (a * b + b * c + c * a)


@pytest.mark.parametrize("busy", [(), ("0,0,0", "1,3,0"), ("0,1,1",), ("0,0,2", "1,1,0", "0,3,3")])
def test_of_slices_that_serve_as_much_the_most_compact_are_taken(busy):
    """Beside every packing of 2×4×4 devices, where all slices of as many devices are alike."""
    cluster = replace(_pool(), name="tiny")
    cluster = replace(cluster, fabric=replace(cluster.fabric, shape=(2, 4, 4)))
    asked = PlacementRequest(site=cluster, models=(_serve(),), batches=BATCHES)
    request = layout_request(asked, asked.models[0], cluster)
    graph = with_state(build_graph(cluster), State(busy=busy))
    found = openings(cluster.fabric, torus_state(cluster.fabric, graph))
    found = found.take(np.flatnonzero(np.isin(found.n_devices, (4, 8))))
    offered = slice_configurations(request, 0, found)
    alike = [
        replace(one, output_tokens_per_s=float(one.n_devices)) for one in offered.configurations
    ]
    offered = replace(offered, configurations=tuple(alike))
    aim = Objective(wanted=(ModelDemand(name=MODEL),), objective="throughput")
    posed = pose_on_torus(found, [offered], aim)
    shapes = [posed.configurations[i].pattern.dimensions for i in posed.which.tolist()]
    extra = [_surface(one) - min(map(_surface, _boxes(int(np.prod(one))))) for one in shapes]
    cells = [
        sum(1 << int(r) for r in posed.program.uses.resource[posed.program.uses.column == j])
        for j in range(posed.program.n_columns)
    ]
    best = {}

    def packed(taken, first, n_devices, spread):
        if best.get(n_devices, spread + 1) > spread:
            best[n_devices] = spread
        for j in range(first, len(cells)):
            if not taken & cells[j] and spread + extra[j] <= 8:
                packed(
                    taken | cells[j], j + 1, n_devices + int(np.prod(shapes[j])), spread + extra[j]
                )

    chosen = solve_placement(posed.program, solver="narrowing").answer
    mine = [(int(np.prod(shapes[j])), extra[j]) for j, _ in chosen.chosen]
    packed(0, 0, 0, 0)
    most = max(best)
    assert sum(n for n, _ in mine) == most
    assert sum(spread for _, spread in mine) == best[most]


def test_that_a_torus_holds_nothing_of_what_is_asked_is_proved_by_two():
    """What multipliers of packings do not find out, solvers of rows confirm."""
    words = "place --model palm-540b --topology tpu-v4-8x8x8 --latency-target 30ms"
    said = parse([*words.split(), "--demand", "100ktok/s", "--max-rent", "$300/h"])
    pool, wanted, asked = read_place(said)
    options = replace(asked.pop("options"), time_limit_s=60.0)
    request = placement_request(pool, wanted, objective=None, options=options, **asked)
    with within(60.0):
        found = searched(task_of(request, None)).solution
    assert found.status is Status.INFEASIBLE
    assert len(found.vouched.by) == 2
