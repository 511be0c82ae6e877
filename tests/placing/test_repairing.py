"""Repairs of tiny clusters, against all ways to put replicas on nodes or slices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import networkx as nx
import pytest

from planner.errors import NoPlanError, OutOfTimeError, RequestError, SpecError
from planner.placing.configurations import current_replicas, sharding_of
from planner.placing.fabrics.patterns import Offer
from planner.placing.fabrics.room import ANYWHERE
from planner.placing.planning import place, task_of
from planner.placing.repairing import repair
from planner.placing.searching import offered
from planner.report.as_json import answer_json, dumps
from planner.report.saved import load_placement
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.files.state import State
from planner.specs.records.devices import ClusterSpec, ModelSpec, Workload
from tests.placing.single_devices import compared
from tests.report.rendering import report_line, report_text

GB = 1e9
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
OPTIONS = SolverOptions()


def tiny_model() -> ModelSpec:
    """Three layers of Llama 3 8B: some 3.4 GB in bf16."""
    return replace(
        load_model("llama-3-8b"), n_layers=3, name="tiny", tied_embeddings=False, repository=""
    )


def small(cluster: ClusterSpec, *, hbm_gb: float) -> ClusterSpec:
    device = replace(cluster.device, hbm_bytes=hbm_gb * GB, reserve_bytes=0.0)
    return replace(cluster, device=device)


def nodes(n_nodes: int, per_node: int) -> ClusterSpec:
    """Servers whose devices hold little, so that replicas need two devices or more."""
    cluster = small(load_cluster("h100-nvl8-x1"), hbm_gb=2.5)
    fabric = replace(cluster.fabric, n_nodes=n_nodes, n_devices_per_node=per_node)
    return replace(cluster, fabric=fabric)


def wish(**wanted: object) -> Serve:
    return Serve(model=tiny_model(), weights_formats=["bf16"], **wanted)  # type: ignore[arg-type]


ASKING = {"workload": WORKLOAD, "batches": (1, 8, 64), "options": OPTIONS}


def _frontier(choices: Iterator[tuple[float, float]]) -> list[tuple[float, float]]:
    """The least moved for each objective, the most is the best; none dominated."""
    found: list[tuple[float, float]] = []
    for moved, value in sorted(choices, key=lambda one: (one[0], -one[1])):
        if not found or value > found[-1][1] * (1 + 1e-6) + 1e-9:
            found.append((moved, value))
    return found


def _on_nodes(
    offers: Sequence[Offer], free: Sequence[set[str]], standing: Sequence[object], leaf: list[int]
) -> Iterator[tuple[float, float]]:
    """Moved bytes and output of every way to put replicas on nodes, piece by piece."""
    stands = defaultdict(list)  # (sharding, place, node) -> devices that are gone, per piece

    def lost(offer: Offer, place: int, node: int) -> list[int]:
        size = offer.pattern.pieces[place]
        key = (offer.sharding, place, node, size)
        if key not in stands:
            for one in standing:
                names = one.devices[place * size : (place + 1) * size]
                left = [name for name in names if name in free[node]]
                if one.sharding == offer.sharding and left:
                    stands[key].append(len(names) - len(left))
            stands[key].sort()
        return stands[key]

    def moved(pieces: Counter[tuple[int, int, int]]) -> float:
        total = 0.0
        for (k, part, node), n in pieces.items():
            offer = offers[k]
            gone = lost(offer, part, node)[:n]
            n_ranks = sum(gone) + (n - len(gone)) * offer.pattern.pieces[part]
            total += n_ranks * offer.shard_bytes
        return total

    def walk(
        first: int, room: tuple[int, ...], pieces: Counter[tuple[int, int, int]], value: float
    ) -> Iterator[tuple[float, float]]:
        yield moved(pieces), value
        for k in range(first, len(offers)):
            one, pattern = offers[k].configuration, offers[k].pattern
            for where in product(range(len(room)), repeat=len(pattern.pieces)):
                left = list(room)
                for node, size in zip(where, pattern.pieces, strict=True):
                    left[node] -= size
                if min(left) < 0 or (pattern.span == "leaf" and len({leaf[n] for n in where}) > 1):
                    continue
                more = pieces + Counter((k, place, node) for place, node in enumerate(where))
                yield from walk(k, tuple(left), more, value + one.output_tokens_per_s)

    yield from walk(0, tuple(len(one) for one in free), Counter(), 0.0)


@pytest.mark.parametrize(
    ("size", "failed", "busy", "n_points"),
    [
        ((2, 4, 2.5), ("node0/gpu1",), ("node1/gpu0",), 2),
        ((3, 2, 1.4), ("node0/gpu1",), (), 2),
        ((3, 2, 1.1), ("node0/gpu1",), (), 2),
        ((3, 3, 1.4), ("node0/gpu1",), ("node1/gpu0",), 2),
        ((2, 4, 1.1), ("node0",), (), 1),
    ],
)
def test_the_frontier_on_nodes_is_that_of_all_ways_to_put_replicas(size, failed, busy, n_points):
    n_nodes, per_node, hbm_gb = size
    cluster, wanted = small(nodes(n_nodes, per_node), hbm_gb=hbm_gb), (wish(),)
    before = place(cluster, wanted, state=State(busy=busy), **ASKING)
    state = State(busy=busy, failed=failed)
    found = repair(before, cluster, wanted, state=state, loss=0.3, **ASKING)
    asked = task_of(found.request.wanted, None)
    standing = current_replicas(before)
    offers = offered(asked, whole=True).offers(standing, asked.aim())
    inventory = asked.site.ground.inventory
    free = [{name for name, _ in node.free} for node in inventory.nodes]
    leaf = [node.leaf for node in inventory.nodes]
    assert ANYWHERE not in leaf
    expected = _frontier(_on_nodes(offers, free, standing, leaf))
    points = [(point.moved_bytes, point.objective) for point in found.frontier]
    missing = [one for one in points if not _near(one, expected)]
    assert missing == []
    best = max(value for _, value in expected)
    assert found.best == pytest.approx(best, rel=1e-7)
    assert len(points) == n_points
    within = min(moved for moved, value in expected if value >= 0.7 * best * (1 - 1e-9))
    assert found.moved_bytes == pytest.approx(within, abs=1.0)
    if found.is_whole:
        assert len(points) == len(expected)


def _near(point: tuple[float, float], expected: Sequence[tuple[float, float]]) -> bool:
    return any(
        point[0] == pytest.approx(moved, abs=1.0) and point[1] == pytest.approx(value, rel=1e-6)
        for moved, value in expected
    )


def test_a_spare_device_of_the_node_takes_one_rank_and_the_others_stay():
    """2 nodes of 4, one replica of 2 wanted: its second device fails, a third one takes over."""
    cluster, wanted = nodes(2, 4), (wish(replicas=1),)
    before = place(cluster, wanted, objective="devices", **ASKING)
    gone = before.replicas[0].ranks[1].device
    found = repair(before, cluster, wanted, state=State(failed=(gone,)), **ASKING)
    (change,) = found.changes
    assert (change.fate, change.n_moved) == ("patched", 1)
    (move,) = found.moves
    assert move.rank == 1
    assert found.placement.replicas[0].ranks[0].device == before.replicas[0].ranks[0].device


def test_replicas_that_nothing_befell_do_not_move_where_the_loss_allows():
    cluster, wanted = nodes(3, 4), (wish(),)
    before = place(cluster, wanted, **ASKING)
    state = State(failed=("node1",))
    found = repair(before, cluster, wanted, state=state, loss=0.99, **ASKING)
    assert found.moved_bytes == 0.0
    assert {change.fate for change in found.changes} == {"kept"}
    stands = {tuple(rank.device for rank in one.ranks) for one in before.replicas}
    for one in found.placement.replicas:
        assert tuple(rank.device for rank in one.ranks) in stands


def test_where_nothing_failed_nothing_moves():
    cluster, wanted = nodes(2, 4), (wish(),)
    before = place(cluster, wanted, **ASKING)
    found = repair(before, cluster, wanted, state=State(), **ASKING)
    assert found.moved_bytes == 0.0
    assert found.best == pytest.approx(before.certificate.objective)
    assert len(found.frontier) == 1


def _torus() -> ClusterSpec:
    cluster = small(load_cluster("tpu-v4-1x2x4"), hbm_gb=2.5)
    return replace(cluster, name="tiny-torus")


def test_a_failed_chip_moves_what_it_must_on_a_torus():
    """8 chips, replicas of 2: the other three stay, the fourth is given up or laid elsewhere."""
    cluster, wanted = _torus(), (wish(),)
    before = place(cluster, wanted, **ASKING)
    found = repair(before, cluster, wanted, state=State(failed=("0,1,2",)), loss=0.9, **ASKING)
    assert found.moved_bytes == 0.0
    assert found.frontier[-1].loss_fraction == pytest.approx(0.0, abs=1e-9)
    moved = [point.moved_bytes for point in found.frontier]
    value = [point.objective for point in found.frontier]
    assert moved == sorted(moved)
    assert value == sorted(value)


@pytest.mark.parametrize("failed", [("0,0,0",), ("0,1,3",), ("0,0,1", "0,1,1")])
def test_moved_bytes_on_a_torus_are_the_least_of_all_sets_of_slices(failed):
    """Replicas of two chips on a 1×2×4 box: every choice of disjoint pairs, ranks either way."""
    cluster = _torus()
    two = Targets()
    wanted = (wish(replicas=2),)
    asking = {**ASKING, "most_devices": 2, "targets": two}
    before = place(cluster, wanted, objective="throughput", **asking)
    found = repair(before, cluster, wanted, state=State(failed=failed), **asking)
    cells = list(product(range(1), range(2), range(4)))
    free = [c for c in cells if ",".join(map(str, c)) not in failed]
    pairs = [
        (a, b)
        for a in free
        for b in free
        if sum(abs(i - j) for i, j in zip(a, b, strict=True)) == 1
    ]
    stands = [
        tuple(tuple(map(int, rank.device.split(","))) for rank in one.ranks)
        for one in before.replicas
    ]
    recipe = before.recipes[0]
    sharding = sharding_of("tiny", recipe.engine, recipe.deployment)
    assert sharding.axes == (1, 1, 2)

    def cost(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> int:
        """Ranks that move: those whose device had another rank, or none."""
        return 2 - sum(one[rank] == pair[rank] for one in stands for rank in (0, 1))

    least = min(cost(a) + cost(b) for a, b in product(pairs, repeat=2) if not {*a} & {*b})
    shard = before.recipes[0].deployment.memory.weights_bytes
    assert found.moved_bytes / shard == pytest.approx(least)


@pytest.mark.parametrize("seed", [3, 14])
def test_a_repair_moves_what_single_devices_have_to(seed):
    """Of 60 drawn, by `python -m tests.placing.single_devices`, these take few seconds."""
    found, (best, fewest) = compared(seed)
    assert found.best == pytest.approx(best, rel=1e-4)
    assert found.moved_bytes == pytest.approx(fewest, abs=100.0)


def test_what_loads_less_is_offered_though_as_much_is_served_by_others():
    """A replica of 4 holds the weights once, two of 2 twice: at one rent it moves half as much."""
    cluster = load_cluster("h200-nvl8-x1")
    asking = {
        "engine": "roofline",
        "workload": Workload(n_input_tokens=2000, n_output_tokens=200),
        "targets": Targets(tpot_s=0.06, ttft_s=1.0),
        "most_devices": 8,
        "objective": "rent",
    }
    model = load_model("llama-3.1-70b")
    wish = Serve(model=model, demand_tokens_per_s=1000.0)
    before = place(cluster, wish, **asking)
    failed = ("node0/gpu0", "node0/gpu1", "node0/gpu2")
    found = repair(before, state=State(failed=failed))
    alone = repair(before, models=replace(wish, replicas=1), state=State(failed=failed))
    assert found.best == alone.best
    assert found.moved_bytes == alone.moved_bytes == pytest.approx(141.1e9, rel=1e-3)


def test_shards_stay_in_whatever_replica_they_are_wanted():
    """Two replicas lost one rank each: what is left of both is one whole replica."""
    cluster, wanted = nodes(1, 4), (wish(replicas=2),)
    before = place(cluster, wanted, objective="throughput", **{**ASKING, "most_devices": 2})
    first, second = ([rank.device for rank in one.ranks] for one in before.replicas)
    state = State(failed=(first[0], second[1]))
    found = repair(before, cluster, (wish(replicas=1),), state=state, most_devices=2, **ASKING)
    assert found.moved_bytes == 0.0
    assert [rank.device for rank in found.placement.replicas[0].ranks] == [second[0], first[1]]


def test_a_placement_is_read_back_as_it_was_written(tmp_path):
    before = place(nodes(2, 4), wish(), **ASKING)
    path = tmp_path / "placement.json"
    path.write_text(dumps(answer_json(before)), encoding="utf-8")
    assert load_placement(str(path)) == before
    found = repair(before, state=State(failed=("node0/gpu1",)))
    path.write_text(dumps(answer_json(found)), encoding="utf-8")
    assert load_placement(str(path)) == found.placement


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("{", "is not JSON"),
        ('{"schema": "planner.placement/1"}', "does not hold what was asked: make it again"),
        ('{"schema": "planner.answer/1", "kind": "placement"}', "/answer.*is missing"),
    ],
)
def test_what_is_no_placement_is_refused_with_the_reason(tmp_path, text, fact):
    path = tmp_path / "placement.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=fact):
        load_placement(str(path))


def test_reports_say_what_moves_and_what_the_best_would_cost():
    cluster, wanted = nodes(2, 4), (wish(),)
    before = place(cluster, wanted, **ASKING)
    found = repair(before, cluster, wanted, state=State(failed=("node0/gpu1",)), **ASKING)
    text = report_text(found, 100)
    assert text.startswith(report_line(found))
    assert "bytes against the objective" in text
    assert all(len(line) <= 100 for line in text.splitlines() if "–" not in line)
    assert answer_json(found)["kind"] == "repair"


def test_a_loss_is_a_share():
    cluster = nodes(2, 4)
    before = place(cluster, wish(), **ASKING)
    with pytest.raises(RequestError, match=r"loss `1.5`  is not below 1"):
        repair(before, cluster, wish(), state=State(), loss=1.5, **ASKING)


def test_a_loss_that_is_used_is_proved_to_move_least():
    cluster = nodes(3, 4)
    before = place(cluster, wish(), **ASKING)
    state = State(failed=("node0/gpu0", "node1/gpu0"))
    best = repair(before, cluster, wish(), state=state, **ASKING)
    assert best.placement.certificate.status == "optimal"
    kept = repair(before, cluster, wish(), state=state, loss=0.99, **ASKING)
    assert kept.moved_bytes < best.moved_bytes
    assert kept.placement.certificate.status == "least-moved"
    assert "no plan within the loss asked for moves fewer bytes" in report_text(kept, 100)


def test_a_repair_of_what_cannot_stand_is_refused():
    cluster = nodes(2, 4)
    before = place(cluster, wish(), **ASKING)
    with pytest.raises(RequestError, match="no device of the cluster"):
        repair(before, nodes(1, 4), wish(), state=State(), **ASKING)
    with pytest.raises(RequestError, match=r"replica-devices `0`  is zero"):
        repair(before, cluster, wish(), state=State(), most_devices=0, **ASKING)
    with pytest.raises(NoPlanError, match="rent"):
        repair(before, cluster, wish(), state=State(), limits={"rent": 0.1}, **ASKING)
    asking = {**ASKING, "options": SolverOptions(time_limit_s=1e-6)}
    with pytest.raises(OutOfTimeError):
        repair(before, cluster, wish(), state=State(), **asking)


def test_a_placement_that_is_not_true_is_not_repaired():
    """Neither a figure that a repair reads nor one that it does not may have been altered."""
    before = place(nodes(2, 4), wish(), **ASKING)
    first = replace(before.replicas[0], name="another")
    untrue = replace(before, replicas=(first, *before.replicas[1:]), title="elsewhere")
    with pytest.raises(RequestError, match=r"is not true: replicas\.0\.name 'another'") as raised:
        repair(untrue, state=State())
    assert len(raised.value.problems) == 2


def test_a_file_with_two_ranks_on_a_device_is_no_placement(tmp_path):
    before = place(nodes(2, 4), wish(), **ASKING)
    text = dumps(answer_json(before))
    first, second = (rank.device for rank in before.replicas[0].ranks[:2])
    path = tmp_path / "stands.json"
    path.write_text(text.replace(f'"{second}"', f'"{first}"'))
    with pytest.raises(SpecError, match="several ranks"):
        load_placement(str(path))


def test_slices_are_aligned_on_a_torus_in_a_repair_too():
    """Two chips are left, side by side: a slice of both begins at an odd place."""
    cluster, wanted = _torus(), (wish(replicas=1),)
    asking = {**ASKING, "most_devices": 2, "targets": Targets()}
    before = place(cluster, wanted, objective="throughput", **asking)
    left = {"0,0,1", "0,0,2"}
    others = [f"0,{y},{z}" for y in range(2) for z in range(4)]
    state = State(failed=tuple(one for one in others if one not in left))
    found = repair(before, cluster, wanted, state=state, **asking)
    assert {rank.device for rank in found.placement.replicas[0].ranks} == left
    with pytest.raises(NoPlanError):
        repair(before, cluster, wanted, state=state, aligned=True, **asking)


@pytest.mark.parametrize("cluster", [nodes(2, 4), nx.Graph(name="own")])
def test_off_a_torus_there_is_nothing_to_align(cluster):
    with pytest.raises(RequestError, match="is no torus"):
        place(cluster, wish(), aligned=True, **ASKING)
    before = place(nodes(2, 4), wish(), **ASKING)
    with pytest.raises(RequestError, match="is no torus"):
        repair(before, cluster, wish(), state=State(), aligned=True, **ASKING)
