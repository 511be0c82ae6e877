"""Servers and tori in one pool: against every packing of small ones, and the judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

from planner.errors import NoPlanError, RequestError, SpecError
from planner.placing.floorplans import floorplan_of
from planner.placing.planning import place, task_of
from planner.placing.repairing import repair
from planner.placing.searching import offered
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementLimit,
    PlacementProgram,
    Uses,
    n_sorts,
    placement_objective,
    side_by_side as side_by_side_of,
    total_served,
    violations,
)
from planner.report.as_json import answer_json
from planner.report.saved import read_answer
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.prices import kinds_of, priced
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.pools import (
    MixedPoolSpec,
    PoolSpec,
    load_pool,
    load_site,
    pool_of,
    side_by_side,
)
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.files.state import State
from planner.verifier.findings import Invalid
from planner.verifier.placing.placements import judge_placement, stand_of
from planner.verifier.placing.repairs import judge_repair

BATCHES = (1, 8, 64)
TORI = ("tpu-v5e-2x2", "tpu-v5e-2x4", "tpu-v4-2x2x1", "tpu-v4-2x2x2")


def _model(n_layers: int, name: str):
    small = replace(load_model("llama-3-8b"), n_layers=n_layers, name=name, repository="")
    return replace(small, tied_embeddings=False)


def _small(name: str, hbm_gb: float, per_node: int = 0, usd_per_hour: float = 1.0):
    """Devices that hold little, so that replicas need several; one node of servers."""
    cluster = load_cluster(name)
    device = replace(
        cluster.device, hbm_bytes=hbm_gb * 1e9, reserve_bytes=0.0, usd_per_hour=usd_per_hour
    )
    fabric = replace(cluster.fabric, n_devices_per_node=per_node) if per_node else cluster.fabric
    return replace(cluster, device=device, fabric=fabric, usd_per_hour=usd_per_hour)


def _drawn(seed: int) -> tuple[MixedPoolSpec, State | None]:
    """A server and a torus or two, at drawn rents, some of their devices busy."""
    rng = np.random.default_rng(seed)
    server = _small("h100-nvl8-x1", float(rng.choice([2.5, 4.0])), 4, float(rng.uniform(2, 4)))
    names = rng.choice(TORI, size=1 + int(rng.random() < 0.3), replace=False).tolist()
    tori = [
        _small(name, float(rng.choice([2.5, 4.0])), 0, float(rng.uniform(1, 3))) for name in names
    ]
    pool = side_by_side(
        "small", "small", ["gpu", "tpu", "more"][: 1 + len(tori)], [pool_of(server), *tori]
    )
    assert isinstance(pool, MixedPoolSpec)
    every = [f"node0/gpu{i}" for i in range(4)]
    every += [
        f"{torus.name}/{','.join(map(str, at))}"
        for torus in pool.tori
        for at in product(*map(range, torus.fabric.shape))
    ]
    busy = [name for name in every if rng.random() < 0.15]
    return pool, State(busy=tuple(busy)) if busy else None


def _sets(config, torus, free: set[str]) -> Iterator[frozenset[str]]:
    """Every set of free devices that a replica may have: a box of a torus, or some of a node."""
    if torus is None:
        n = sum(config.pattern.pieces)
        yield from map(frozenset, combinations(sorted(it for it in free if "gpu" in it), n))
        return
    for way in {*permutations(config.pattern.dimensions)}:
        spans = [range(side - n + 1) for side, n in zip(torus.fabric.shape, way, strict=True)]
        for first in product(*spans):
            cells = product(*(range(at, at + n) for at, n in zip(first, way, strict=True)))
            box = frozenset(f"{torus.name}/{','.join(map(str, cell))}" for cell in cells)
            if box <= free:
                yield box


def _least_rent(request: PlacementRequest) -> float | None:
    """The least rent of all packings of disjoint sets of devices; None if none is enough."""
    task = task_of(request, None)
    tori = {torus.name: torus for torus in request.site.tori}
    free = {
        name
        for name, at in task.site.graph.nodes(data=True)
        if at["kind"] == "device" and at.get("state", "free") == "free"
    }
    number = {name: 1 << i for i, name in enumerate(sorted(free))}
    best: dict[tuple[int, frozenset[str]], tuple[float, float]] = {}
    for config in offered(task, whole=True).configurations:
        for some in _sets(config, tori.get(config.pattern.kind_name), free):
            rate, rent = config.output_tokens_per_s, config.usd_per_hour
            key = (config.model, some)
            best[key] = max(best.get(key, (0.0, rent)), (rate, rent))
    choices = [
        (sum(map(number.__getitem__, some)), model, rate, rent)
        for (model, some), (rate, rent) in best.items()
    ]
    demands = [one.demand_tokens_per_s for one in request.models]
    fronts: dict[int, list[tuple[float, float, float]]] = {0: [(0.0, 0.0, 0.0)]}
    for bit in number.values():  # each set is taken when its first device is met
        for mask, front in list(fronts.items()):
            for taken, model, rate, rent in choices:
                if taken & -taken == bit and not taken & mask:
                    served = [
                        (usd + rent, a + rate * (model == 0), b + rate * (model == 1))
                        for usd, a, b in front
                    ]
                    fronts[mask | taken] = _front(fronts.get(mask | taken, []) + served)
    enough = [
        usd
        for front in fronts.values()
        for usd, *rates in front
        if all(rate >= wanted * (1 - 1e-9) for rate, wanted in zip(rates, demands, strict=True))
    ]
    return min(enough, default=None)


def _front(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Those that no other is as good as in rent and in both rates."""
    kept: list[tuple[float, float, float]] = []
    for usd, a, b in sorted(points, key=lambda it: (it[0], -it[1], -it[2])):
        if not any(x >= a and y >= b for _, x, y in kept):
            kept.append((usd, a, b))
    return kept


@pytest.mark.parametrize("seed", range(12))
def test_the_rent_of_two_demands_is_the_least_of_all_packings(seed):
    pool, state = _drawn(seed)
    rng = np.random.default_rng(1000 + seed)
    models = _model(3, "thin"), _model(6, "thick")
    wishes = tuple(
        Serve(model=model, demand_tokens_per_s=float(rng.uniform(2e2, most)))
        for model, most in zip(models, (1.2e4, 5e3), strict=True)
    )
    request = PlacementRequest(
        site=pool,
        models=wishes,
        engines=("roofline",),
        batches=BATCHES,
        objective="rent",
        state=state,
    )
    least = _least_rent(request)
    keywords = {"engine": "roofline", "batches": BATCHES, "state": state}
    options = replace(request.options, sort_price=0.0)
    if least is None:
        with pytest.raises(NoPlanError):
            place(pool, wishes, options=options, **keywords)
        return
    placed = place(pool, wishes, options=options, **keywords)
    assert placed.certificate.status == "optimal"
    assert sum(one.usd_per_hour for one in placed.served) == pytest.approx(least, rel=1e-9)


def _placed(thin=24e3, thick=3e3, **keywords):
    pool = side_by_side(
        "both",
        "both",
        ["gpu", "tpu"],
        [pool_of(_small("h100-nvl8-x1", 4.0, 4, 3.0)), _small("tpu-v5e-2x4", 4.0, 0, 1.0)],
    )
    wishes = [
        Serve(model=_model(3, "thin"), demand_tokens_per_s=thin),
        Serve(model=_model(6, "thick"), demand_tokens_per_s=thick),
    ]
    return place(pool, wishes, engine="roofline", batches=BATCHES, **keywords)


@pytest.fixture(scope="module")
def both():
    found = _placed()
    assert {one.kind for one in found.recipes} == {"gpu", "tpu"}
    return found


def _moved(placement, number: int, devices):
    """The placement with the ranks of a replica on other devices."""
    replica = placement.replicas[number]
    ranks = tuple(
        replace(rank, device=name) for rank, name in zip(replica.ranks, devices, strict=True)
    )
    replicas = [*placement.replicas]
    replicas[number] = replace(replica, ranks=ranks)
    return replace(placement, replicas=tuple(replicas))


def _on(placement, kind: str) -> list[int]:
    return [
        i for i, one in enumerate(placement.replicas) if placement.recipes[one.recipe].kind == kind
    ]


def _facts(placement) -> str:
    _, wrong = judge_placement(placement)
    return "; ".join(map(str, wrong))


def test_an_answer_is_read_back_and_true(both):
    text = json.dumps(answer_json(both))
    again = read_answer(text, shown="answer").answer
    assert again == both
    assert not _facts(again)


def test_a_halved_rent_a_moved_rank_and_boxes_that_overlap_are_refused(both):
    first, second = both.served[0], both.served[1:]
    halved = replace(both, served=(replace(first, usd_per_hour=first.usd_per_hour / 2), *second))
    assert "usd_per_hour" in _facts(halved)
    # thin/2 on two chips beside each other, thick/0 on four
    pair = next(i for i in _on(both, "tpu") if len(both.replicas[i].ranks) == 2)
    square = next(i for i in _on(both, "tpu") if len(both.replicas[i].ranks) == 4)
    inside = [rank.device for rank in both.replicas[square].ranks][:2]
    assert "has another rank" in _facts(_moved(both, pair, inside))
    assert "make no box" in _facts(_moved(both, pair, ["tpu/0,0,0", "tpu/1,3,0"]))
    assert "coordinate" in _facts(_moved(both, pair, ["tpu/0,0,0", "tpu/0,1,0"]))


def test_a_replica_is_on_the_fabric_of_its_recipe(both):
    (of_servers, *_), (of_torus, *_) = _on(both, "gpu"), _on(both, "tpu")
    n = len(both.replicas[of_torus].ranks)
    servers = [f"node0/gpu{i}" for i in range(n)]
    assert "is none of tpu" in _facts(_moved(both, of_torus, servers))
    n = len(both.replicas[of_servers].ranks)
    assert "is none of gpu" in _facts(_moved(both, of_servers, [f"tpu/0,{i},0" for i in range(n)]))
    elsewhere = ["tpu/9,9,9"] * n
    assert "is no device of the cluster" in _facts(_moved(both, of_servers, elsewhere))


def test_layouts_leave_servers_to_the_engines_that_are_named_beside_them(both):
    engines = ("vllm", "roofline")
    forged = replace(both, request=replace(both.request, engines=engines))
    assert "times tori only, beside others" in _facts(forged)


def test_caches_are_not_handed_from_fabric_to_fabric(both):
    with pytest.raises(RequestError, match="no link leads from one fabric to another"):
        _placed(roles="free")
    thin = both.recipes[0]
    recipe = replace(thin, deployment=_Phase(thin.deployment))
    stand = stand_of(both.request)
    with pytest.raises(Invalid, match="hands caches over between fabrics"):
        stand.cluster_of(recipe, both.request.models[0])


class _Phase:
    """A deployment that reads prompts only."""

    role = "prefill"

    def __init__(self, deployment: object) -> None:
        self.deployment = deployment


def test_a_state_names_devices_of_either_fabric():
    taken = State(busy=("node0/gpu{0..2}",), failed=("tpu/0,0,0",))
    found = _placed(thin=6e3, state=taken)
    used = {rank.device for it in found.replicas for rank in it.ranks}
    assert not used & {"node0/gpu0", "node0/gpu1", "node0/gpu2", "tpu/0,0,0"}
    assert not _facts(found)
    plan = floorplan_of(found.request.site, taken)
    spots = {it.name: it.state for leaf in plan.leaves for box in leaf.boxes for it in box.spots}
    assert len(spots) == 12
    assert (spots["node0/gpu0"], spots["tpu/0,0,0"], spots["tpu/1,3,0"]) == (
        "busy",
        "failed",
        "free",
    )


def test_what_is_all_taken_leaves_the_other_fabric():
    found = _placed(thin=10e3, state=State(busy=("tpu",)))
    assert {one.kind for one in found.recipes} == {"gpu"}
    with pytest.raises(RequestError, match="has no free device"):
        _placed(state=State(busy=("tpu", "node0")))


def test_a_repair_moves_what_a_failure_took_and_nothing_else(both):
    lost = next(i for i in _on(both, "tpu") if len(both.replicas[i].ranks) == 1)
    failed = both.replicas[lost].ranks[0].device
    mended = repair(both, state=State(failed=(failed,)))
    _, wrong = judge_repair(mended)
    assert not wrong
    kept = {one.before for one in mended.changes if one.fate == "kept"}
    assert kept >= {it.name for i, it in enumerate(both.replicas) if i != lost}


@pytest.mark.parametrize("seed", range(3))
def test_programs_side_by_side_are_the_sum_of_their_parts(seed):
    """Each choice breaks what it breaks of either program, and comes to both objectives."""
    rng = np.random.default_rng(seed)
    one, other = (_program(rng, n) for n in (3, 4))
    both = side_by_side_of([one, other], ["a", "b"])
    for _ in range(50):
        copies = rng.integers(0, 3, 7).tolist()
        first, second = Counts(copies=tuple(copies[:3])), Counts(copies=tuple(copies[3:]))
        whole = Counts(copies=tuple(copies))
        assert placement_objective(both, whole) == pytest.approx(
            placement_objective(one, first) + placement_objective(other, second)
        )
        full = {
            name.replace("free(", f"free({before}"): n
            for before, program, counts in (("a/", one, first), ("b/", other, second))
            for name, n in violations(program, counts).items()
            if name.startswith("free")
        }
        broken = violations(both, whole)
        if "copies" not in broken:
            assert {name: n for name, n in broken.items() if name.startswith("free")} == full
        assert n_sorts(both, whole) == n_sorts(one, first) + n_sorts(other, second)
        served = total_served(one, first) + total_served(other, second)
        assert total_served(both, whole) == pytest.approx(served)


def _program(rng: np.random.Generator, n: int) -> PlacementProgram:
    """Columns of two models on two resources."""
    rate = rng.uniform(1, 2, n)
    return PlacementProgram(
        resources=("x", "y"),
        free=rng.integers(2, 5, 2),
        uses=Uses(
            resource=np.repeat([0, 1], n),
            column=np.tile(np.arange(n), 2),
            amount=rng.integers(1, 3, 2 * n),
        ),
        models=("m", "n"),
        column_model=rng.integers(0, 2, n),
        objective=rng.uniform(1, 2, n),
        rate=rate,
        demand=np.array([1.0, 1.0]),
        least=np.array([0, 0]),
        most=np.array([UNLIMITED, UNLIMITED]),
        limits=(PlacementLimit(name="rent", column=rate, at_most=5.0),),
        ties=tuple(rng.uniform(0, 1, n) for _ in range(n - 2)),
        sort=rng.integers(0, 2, n),
    )


FILE = """
[cluster]
name = "both"
title = "a slice and two servers, {n_devices} devices"

[[part]]
name = "tpu"
topology = "tpu-v5e-4x4"

[[part]]
name = "gpu"
topology = "h100-a100-x1"
"""


def test_a_file_of_parts_names_fabrics_and_what_their_devices_are_called(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text(FILE)
    pool = load_site(str(path))
    assert isinstance(pool, MixedPoolSpec)
    assert pool.title == "a slice and two servers, 32 devices"
    assert [one.name for one in pool.servers.groups] == ["gpu-h100", "gpu-a100"]
    assert [one.name for one in pool.tori] == ["tpu"]
    beside = load_site(f"{path}+l4-x1")
    assert [one.name for one in beside.servers.groups] == [
        "both-gpu-h100",
        "both-gpu-a100",
        "l4-x1",
    ]
    assert [one.name for one in beside.tori] == ["both-tpu"]
    assert isinstance(load_site("h100-nvl8-x1+a100-nvl8-x1"), PoolSpec)
    with pytest.raises(SpecError, match="load it with `load_site`"):
        load_pool(str(path))
    with pytest.raises(SpecError, match="makes it a fabric: `plan place --topology"):
        load_cluster(str(path))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (FILE.replace('"gpu"', '"tpu"'), r"part\[1\].name `tpu`  is the name of another part"),
        (FILE.replace('"gpu"', '"a/b"'), "holds a `/`"),
        (FILE.replace("h100-a100-x1", "h100"), r"part\[1\].topology `h100`  no such topology"),
        (FILE.replace("topology =", "device ="), r"part\[0\].device  unknown key"),
    ],
)
def test_faults_of_a_file_of_parts(tmp_path, text, fact):
    path = tmp_path / "both.toml"
    path.write_text(text)
    with pytest.raises(SpecError, match=fact):
        load_site(str(path))


def test_a_file_is_no_part_of_itself_however_it_is_named(tmp_path):
    """Neither at once nor behind another one: a sentence, and no end of the stack."""
    own, other = tmp_path / "own.toml", tmp_path / "other.toml"
    for part in (f"{own}", f"{other}", f"tpu-v5e-4x4+{other}"):
        for path, inside in ((own, part), (other, own)):
            text = f'[cluster]\nname = "x"\n[[part]]\nname = "a"\ntopology = "{inside}"\n'
            path.write_text(text)
        with pytest.raises(SpecError, match="is the file that this part is of"):
            load_site(str(own))


def test_a_torus_is_not_called_as_nodes_of_servers_are():
    server, torus = pool_of(load_cluster("h100-nvl8-x1")), load_cluster("tpu-v5e-2x2")
    with pytest.raises(SpecError, match="both `node0`  is what nodes are called"):
        side_by_side("both", "both", ["gpu", "node0"], [server, torus])
    with pytest.raises(SpecError, match="both `gpu`  is named twice"):
        side_by_side("both", "both", ["gpu", "gpu"], [server, torus])


def test_names_of_topologies_together():
    with pytest.raises(SpecError, match="is named twice"):
        load_site("tpu-v5e-4x4+tpu-v5e-4x4")
    with pytest.raises(SpecError, match="is several fabrics: `plan place --topology"):
        load_cluster("tpu-v5e-4x4+h100-nvl8-x2")
    pool = load_site("tpu-v5e-2x2+h100-nvl8-x1")
    assert kinds_of(pool) == ("h100-nvl8-x1", "h100-sxm", "tpu-v5e-2x2", "tpu-v5e")
    dear = priced(pool, {"tpu-v5e": 9.0, "h100-nvl8-x1": 1.0})
    assert [dear.tori[0].usd_per_hour, dear.servers.groups[0].cluster.usd_per_hour] == [9.0, 1.0]


def test_engines_time_servers_and_layouts_the_torus():
    pool = load_site("tpu-v5e-2x2+h100-nvl8-x1")
    wish = Serve(model=load_architecture("llama-3.1-8b"), demand_tokens_per_s=2300.0)
    placed = place(pool, wish, options=SolverOptions(sort_price=0.0))
    assert placed.request.engines[-1] == "roofline"
    for recipe in placed.recipes:
        assert (recipe.engine == "roofline") == (recipe.kind == "tpu-v5e-2x2")
    assert {recipe.kind for recipe in placed.recipes} == {"tpu-v5e-2x2", "h100-nvl8-x1"}
    assert not _facts(placed)
    with pytest.raises(RequestError, match="write `--engine vllm,roofline`"):
        place(pool, wish, engine="vllm")


def test_slices_chosen_by_their_chips_are_proved_once_they_have_places():
    """Boxes beside each other are less compact than each by itself, and no dearer."""
    pool = load_site("tpu-v5e-8x8+tpu-v4-4x4x4")
    demands = {"llama-3.1-8b": 9e3, "llama-3.1-70b": 2e3}
    wishes = [
        Serve(model=load_model(name), demand_tokens_per_s=rate) for name, rate in demands.items()
    ]
    placed = place(pool, wishes, options=SolverOptions(time_limit_s=60.0))
    assert placed.certificate.status == "optimal"
    assert len({it.kind for it in placed.recipes}) == 2
    assert not _facts(placed)
