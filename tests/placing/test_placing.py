"""Placements: arithmetic ones, and random ones against an enumeration of devices."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest

from planner.errors import NoPlanError, RequestError, SpecError
from planner.placing.fabrics.site import Fabric
from planner.placing.planning import place
from planner.placing.runtimes import Roofline
from planner.placing.searching import Search, Task, searched
from planner.solvers.placement import solve_placement
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import GroupSpec, PoolSpec, load_pool, pool_of
from planner.specs.files.reading import load_model
from planner.specs.files.state import LinkState, SlowDevices, State
from tests.placing.enumeration import (
    BATCHES,
    WORKLOAD,
    Enumeration,
    layout_output,
    random_pool,
    tiny_cluster,
    tiny_model,
)

SEEDS = range(12)
FREE = Targets()


def _searched(pool: PoolSpec, graph: nx.Graph, replicas: int | None) -> Search:
    site = Fabric(pool, graph)
    wanted = (Serve(model=tiny_model(), replicas=replicas, weights_formats=["bf16"]),)
    options = SolverOptions(sort_price=0.0)
    request = PlacementRequest(
        site=pool, models=wanted, workload=WORKLOAD, batches=BATCHES, options=options
    )
    runtimes = tuple(
        (Roofline(request=layout_request(request, one, site.cluster)),) for one in request.models
    )
    return searched(Task(request=request, site=site, runtimes=runtimes))


def compare(seed: int, replicas: int | None) -> tuple[float, float, float]:
    """The most output by HiGHS, by CP-SAT and by looking at every set of devices."""
    pool, graph = random_pool(seed)
    search = _searched(pool, graph, replicas)
    other = solve_placement(replace(search.posed.program, ties=()), solver="cpsat")
    found = [0.0 if one.answer is None else -one.bound * 1e3 for one in (search.solution, other)]
    looked = Enumeration(pool, graph)
    best = looked.most_output(
        lambda group, reach: layout_output(group, reach, FREE), replicas=replicas
    )
    return found[0], found[1], max(0.0, best)


@pytest.mark.parametrize("replicas", [None, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_joint_optimum_is_that_of_every_set_of_devices(seed: int, replicas: int | None) -> None:
    """The whole of 300 seeds: `python -m tests.benchmarks.placement_exact`."""
    highs, cpsat, enumerated = compare(seed, replicas)
    assert highs == pytest.approx(enumerated, rel=1e-8, abs=1e-6)
    assert cpsat == pytest.approx(enumerated, rel=1e-8, abs=1e-6)


def _pool(n_nodes: int, per_node: int, *, per_leaf: int = 8, hbm_gb: float = 4.0) -> PoolSpec:
    group = GroupSpec(
        name="h",
        cluster=tiny_cluster("h100-nvl8-x1", n_nodes, per_node, hbm_gb=hbm_gb),
        n_nodes_per_leaf=per_leaf,
        oversubscription=2.0,
    )
    return PoolSpec(name="tiny", title="tiny", groups=(group,))


def _place(pool, **keywords):
    asked = {"workload": WORKLOAD, "batches": BATCHES, **keywords}
    return place(pool, Serve(model=tiny_model(), weights_formats=["bf16"]), **asked)


def test_three_and_five_free_devices_do_not_make_a_group_of_eight() -> None:
    """With 0.6 GB each it takes 8 devices: of one node, or one by one over the network."""
    whole = _place(_pool(1, 8, hbm_gb=0.6))
    state = State(busy=("node0/gpu{3..7}", "node1/gpu{5..7}"))
    parted = _place(_pool(2, 8, hbm_gb=0.6), state=state)
    assert (whole.n_used, parted.n_used) == (8, 8)
    assert [len(part) for part in _groups(whole)] == [8]
    assert {len(part) for part in _groups(parted)} == {1}
    assert parted.output_tokens_per_s < whole.output_tokens_per_s


@pytest.mark.parametrize("hbm_gb", [0.7, 0.9])
def test_four_and_four_free_devices_do_not_make_a_group_of_six(hbm_gb: float) -> None:
    """Six devices are no power of two: whole nodes are counted apart."""
    whole = _place(_pool(1, 6, hbm_gb=hbm_gb))
    state = State(busy=("node0/gpu{4..5}", "node1/gpu{4..5}"))
    parted = _place(_pool(2, 6, hbm_gb=hbm_gb), state=state)
    assert [len(part) for part in _groups(whole)] == [6]
    assert [len(part) for part in _groups(parted)] == [4, 4]


def _groups(placement):
    found = {}
    for one in placement.replicas:
        for rank in one.ranks:
            found.setdefault((one.name, rank.stage, rank.axes[1]), []).append(rank.device)
    return list(found.values())


def test_every_rank_has_a_free_device_of_its_own_and_nodes_are_named_as_the_user_does() -> None:
    placement = _place(_pool(2, 4), state=State(busy=("node0/gpu1",), failed=("node1/gpu3",)))
    devices = [rank.device for one in placement.replicas for rank in one.ranks]
    assert len(set(devices)) == len(devices) == placement.n_used <= 6
    assert not {"node0/gpu1", "node1/gpu3"} & set(devices)
    assert {rank.node for one in placement.replicas for rank in one.ranks} <= {"node0", "node1"}


def test_a_device_whose_adapter_is_down_serves_inside_its_node_only() -> None:
    """Two nodes of one free device each: together they fit the model, unless one is cut off."""
    state = State(busy=("node0/gpu1", "node1/gpu1"))
    down = LinkState(part="nic", names=("node0/gpu0",), bandwidth_fraction=0.0)
    assert _place(_pool(2, 2, hbm_gb=2.5), state=state).n_used == 2
    wish = Serve(model=tiny_model(), replicas=1, weights_formats=["bf16"])
    cut_off = replace(state, links=(down,))
    with pytest.raises(NoPlanError) as caught:
        place(_pool(2, 2, hbm_gb=2.5), wish, state=cut_off, workload=WORKLOAD)
    assert [one.name for one in caught.value.conflict.obstacles] == ["targets tiny"]
    with pytest.raises(NoPlanError):
        _place(_pool(2, 2, hbm_gb=2.5), state=cut_off)


def test_a_group_runs_at_its_slowest_member() -> None:
    slow = State(slow=(SlowDevices(devices=("node0/gpu0",), speed_fraction=0.5),))
    fast, mixed = _place(_pool(1, 2, hbm_gb=2.5)), _place(_pool(1, 2, hbm_gb=2.5), state=slow)
    assert mixed.recipes[0].speed_fraction == 0.5
    assert mixed.output_tokens_per_s < fast.output_tokens_per_s


def test_the_bottleneck_of_groups_over_leaves_is_the_share_of_the_spine() -> None:
    """One free device a node, one node a leaf, 2:1: 50 GB/s of adapters, 25 of the spine."""
    state = State(busy=("node0/gpu1", "node1/gpu1"))
    placement = _place(_pool(2, 2, per_leaf=1, hbm_gb=2.5), state=state)
    channel = placement.replicas[0].channels[0]
    assert channel.bytes_per_s == channel.counted_bytes_per_s == 25e9
    assert "spine" in channel.link or channel.link[1].startswith("leaf")
    assert placement.replicas[0].leaves == ("leaf0", "leaf1")


def test_more_free_devices_never_serve_less() -> None:
    outputs = [
        _place(
            _pool(2, 4), state=State(busy=tuple(f"node0/gpu{i}" for i in range(n)))
        ).output_tokens_per_s
        for n in (4, 3, 2, 1, 0)
    ]
    assert outputs == sorted(outputs)


def test_a_demand_takes_the_least_rent_and_says_what_could_be_served() -> None:
    whole = _place(_pool(2, 4))
    demand = whole.output_tokens_per_s / 2
    wish = Serve(model=tiny_model(), demand_tokens_per_s=demand, weights_formats=["bf16"])
    half = place(_pool(2, 4), wish, workload=WORKLOAD, batches=BATCHES)
    assert half.served[0].share >= 1
    assert half.n_used <= whole.n_used
    too_much = replace(wish, demand_tokens_per_s=3 * whole.output_tokens_per_s)
    with pytest.raises(NoPlanError) as caught:
        place(_pool(2, 4), too_much, workload=WORKLOAD, batches=BATCHES)
    (obstacle,) = caught.value.conflict.obstacles
    assert obstacle.name == "demand tiny"
    assert obstacle.reachable == pytest.approx(whole.output_tokens_per_s)


def test_costs_that_are_brought_replace_those_of_the_graph() -> None:
    """Adapters that are ten times as wide make groups over nodes faster."""
    state = State(busy=("node0/gpu1", "node1/gpu1"))
    usual = _place(_pool(2, 2, hbm_gb=2.5), state=state)
    wide = _place(_pool(2, 2, hbm_gb=2.5), state=state, group_costs={"leaf0": (500e9, 1e-6)})
    called = _place(_pool(2, 2, hbm_gb=2.5), state=state, group_costs=lambda _: (500e9, 1e-6))
    assert wide.output_tokens_per_s > usual.output_tokens_per_s
    assert called.output_tokens_per_s == pytest.approx(wide.output_tokens_per_s, rel=0.05)
    with pytest.raises(RequestError, match="neither a node nor a leaf"):
        _place(_pool(2, 2, hbm_gb=2.5), group_costs={"leaf9": (1e9, 0.0)})


def test_costs_of_no_group_at_all_leave_those_of_the_graph():
    pool = _pool(2, 2, hbm_gb=2.5)
    plain, empty = _place(pool), _place(pool, group_costs={})
    assert [one.channels for one in empty.replicas] == [one.channels for one in plain.replicas]
    assert any(one.channels for one in plain.replicas)


@pytest.mark.parametrize(
    ("costs", "said"),
    [(int, "raises TypeError: int"), (lambda _: (0.0, 0.0), "is not a positive bandwidth")],
    ids=["no function of devices", "no bandwidth"],
)
def test_a_function_of_costs_that_has_none_is_refused_by_its_name(costs, said) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        _place(_pool(2, 2, hbm_gb=2.5), group_costs=costs)
    assert {problem.where for problem in caught.value.problems} == {"group_costs"}


def _graph() -> nx.Graph:
    graph = nx.Graph(name="mine")
    graph.add_node("tor", kind="switch")
    for box in ("alpha", "beta"):
        graph.add_node(f"{box}/nvswitch", kind="switch")
        for i in range(4):
            name = f"{box}/{i}"
            graph.add_node(name, kind="device", device="h100-sxm", hbm_bytes=20e9)
            inner = {"bytes_per_s": 300e9, "latency_s": 1e-6, "tier": "scale-up"}
            outer = {"bytes_per_s": 40e9, "latency_s": 2e-6, "tier": "scale-out"}
            graph.add_edge(name, f"{box}/nvswitch", **inner)
            graph.add_edge(name, "tor", **outer)
    return graph


def test_a_graph_of_ones_own_is_planned_on_as_it_is() -> None:
    graph = _graph()
    graph.nodes["alpha/2"]["state"] = "busy"
    placement = _place(graph)
    devices = [rank.device for one in placement.replicas for rank in one.ranks]
    assert placement.n_free == 7
    assert set(devices) <= set(graph) - {"alpha/2"}
    assert {rank.node for one in placement.replicas for rank in one.ranks} <= {"alpha", "beta"}


def _without_device(graph: nx.Graph) -> None:
    del graph.nodes["alpha/0"]["device"]


def _unknown_device(graph: nx.Graph) -> None:
    graph.nodes["alpha/0"]["device"] = "h100-smx"


def _negative(graph: nx.Graph) -> None:
    graph.edges["alpha/0", "tor"]["bytes_per_s"] = -1.0


def _apart(graph: nx.Graph) -> None:
    graph.remove_node("tor")


def _all_busy(graph: nx.Graph) -> None:
    for name in graph:
        graph.nodes[name]["state"] = "busy"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without_device, "alpha/0  has no `device`"),
        (_unknown_device, "did you mean `h100-sxm`"),
        (_negative, "link tor to alpha/0: bytes_per_s `-1.0`  is negative"),
        (_apart, "falls apart into 2 parts"),
        (_all_busy, "has no free device"),
    ],
)
def test_a_bad_graph_is_told_so(spoil, words: str) -> None:
    graph = _graph()
    spoil(graph)
    with pytest.raises(RequestError) as caught:
        _place(graph)
    assert words in str(caught.value)


def test_a_device_of_a_graph_whose_file_has_faults_is_told_with_them(tmp_path, monkeypatch) -> None:
    """It is not said that there is none, nor what other was meant."""
    (tmp_path / "topologies/devices").mkdir(parents=True)
    (tmp_path / "topologies/devices/mine.toml").write_text('[device]\nname = "mine"\n')
    monkeypatch.chdir(tmp_path)
    graph = _graph()
    graph.nodes["alpha/0"]["device"] = "mine"
    with pytest.raises(RequestError) as caught:
        _place(graph)
    assert {one.where for one in caught.value.problems} == {"topologies/devices/mine.toml"}


def test_a_state_names_every_fault_at_once() -> None:
    state = State(busy=("nod0", "node1", "node1"), failed=("node1/gpu0",), shown="state.toml")
    with pytest.raises(SpecError) as caught:
        _place(_pool(2, 4), state=state)
    text = str(caught.value)
    assert "did you mean `node0`" in text
    assert "is listed twice" in text
    assert "is busy too" in text


def test_requests_that_cannot_be_are_told_so() -> None:
    pool = pool_of(tiny_cluster("h100-nvl8-x1", 1, 2))
    wish = Serve(model=tiny_model())
    with pytest.raises(RequestError, match="is wanted twice"):
        place(pool, [wish, wish])
    with pytest.raises(RequestError, match="no demand to serve a share of"):
        place(pool, wish, objective="share")
    with pytest.raises(RequestError, match="unknown objective: there are `throughput`"):
        place(pool, wish, objective="speed")
    with pytest.raises(RequestError, match="unknown limit: there are `devices`, `rent`, `power`"):
        place(pool, wish, limits={"money": 3})
    with pytest.raises(RequestError, match=r"replica-devices `0`  is zero"):
        place(pool, wish, most_devices=0)
    with pytest.raises(RequestError, match="is a str, not a topology"):
        place("h100-nvl8-x2", wish)  # type: ignore[arg-type]
    with pytest.raises(NoPlanError) as none:
        place(pool, wish, limits={"rent": 0.1})
    (obstacle,) = none.value.conflict.obstacles  # type: ignore[attr-defined]
    assert obstacle.name == "rent"
    assert obstacle.reachable > 0.1


def test_the_joint_choice_is_never_worse_than_the_layout_first() -> None:
    state = State(busy=("node0/gpu1", "node1/gpu{0..1}"))
    joint, staged = (
        _place(_pool(2, 4), state=state, layout_first=first) for first in (False, True)
    )
    assert staged.output_tokens_per_s <= joint.output_tokens_per_s


def test_no_message_leads_through_a_failed_device() -> None:
    """Two devices on different rails, all else of their nodes failed: they meet at the spine."""
    pool = load_pool("h100-fat-tree-x2")
    state = State(failed=("node0/gpu{1..7}", "node1/gpu0", "node1/gpu{2..7}"))
    wish = Serve(model=load_model("llama-3.1-70b"), weights_formats=["bf16"])
    targets = Targets(tpot_s=0.2, ttft_s=5.0)
    found = place(pool, wish, engine="roofline", targets=targets, state=state)
    (replica,) = found.replicas
    assert {rank.device for rank in replica.ranks} == {"node0/gpu0", "node1/gpu1"}
    for channel in replica.channels:
        assert channel.bytes_per_s == channel.counted_bytes_per_s == 25e9
        assert "spine" in channel.link
