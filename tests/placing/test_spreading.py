"""Where replicas lie: over as few nodes as their objective allows, in equal shares; and of how many
sorts they are. 60 placements: `python -m tests.placing.spreading`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planner import Serve, SolverOptions, Targets, Workload, load_architecture, place, verify
from planner.errors import NoPlanError
from planner.placing import searching
from planner.placing.fabrics import site
from planner.placing.fabrics.locating import _dealt
from planner.specs.files.pools import load_site
from planner.specs.files.state import State
from planner.verifier.placing.placements import judge_placement
from tests.placing.spreading import drawn, further_nodes, looked, shares

CHAT = Workload(n_input_tokens=1500, n_output_tokens=300)
TARGETS = Targets(ttft_s=1.0, tpot_s=0.035)


@pytest.mark.parametrize("seed", range(10))
def test_no_replica_is_over_more_nodes_than_it_needs(seed: int) -> None:
    one = looked(drawn(seed))
    assert one.is_right, one.line


@pytest.mark.parametrize("is_loose", [False, True])
def test_replicas_that_are_chosen_before_their_places_are_as_good(monkeypatch, is_loose) -> None:
    """As on hundreds of nodes; a program that says too little of them is not believed."""
    simple, accepted = searching._as_good_as_anywhere, []
    pose = site.pose_by_kinds

    def watched(*asked):
        accepted.append(simple(*asked) is not None)
        return simple(*asked)

    def loose(*asked):
        program = pose(*asked)
        return replace(program, objective=program.objective / 2) if is_loose else program

    monkeypatch.setattr(searching, "_as_good_as_anywhere", watched)
    monkeypatch.setattr(site, "pose_by_kinds", loose)
    monkeypatch.setattr(site, "MOST_NODES", 0)
    for seed, is_accepted in ((3, not is_loose), (14, False), (20, not is_loose)):
        accepted.clear()
        one = looked(drawn(seed))
        assert one.is_right, one.line
        assert accepted[0] == is_accepted  # others are of what stands beside it


@cache
def _deepseek():
    """SGLang on four empty servers, roles free."""
    return place(
        load_site("h200-nvl8-x4"),
        Serve(model=load_architecture("deepseek-r1"), demand_tokens_per_s=4000.0),
        engine="sglang",
        workload=Workload(n_input_tokens=4000, n_output_tokens=1000),
        targets=Targets(tpot_s=0.050, ttft_s=5.0),
        roles="free",
    )


def test_deepseek_lies_on_whole_nodes_in_equal_shares() -> None:
    placed = _deepseek()
    assert further_nodes(placed) == 0
    assert shares(placed) == [{one.n_devices} for one in (r.deployment for r in _each(placed))]
    assert max(one.deployment.n_devices for one in placed.recipes) == 8
    assert {one.role for one in placed.recipes} == {"prefill", "decode"}
    assert placed.certificate.status == "optimal"


def _each(placed):
    return [placed.recipes[one.recipe] for one in placed.replicas]


def test_shares_that_are_not_equal_are_found() -> None:
    """Ranks of a replica over two nodes, 4 and 4, dealt out as 5 and 3."""
    state = State(busy=("node0/gpu{5..7}", "node1/gpu{5..7}"))
    placed = place(
        load_site("h200-nvl8-x2"),
        Serve(model=load_architecture("deepseek-r1"), replicas=1),
        engine="sglang",
        workload=CHAT,
        state=state,
        objective="throughput",
    )
    (one,) = placed.replicas
    assert shares(placed) == [{len(one.ranks) // 2}]
    free = {f"node0/gpu{g}" for g in range(5)} - {rank.device for rank in one.ranks}
    if not free:  # five and five: one of each other's is not free
        pytest.skip("no spare device")
    moved = replace(one.ranks[-1], device=free.pop(), node="node0")
    forged = replace(placed, replicas=(replace(one, ranks=(*one.ranks[:-1], moved)),))
    _, wrong = judge_placement(forged)
    assert any("equal shares" in str(each) for each in wrong)


def test_three_and_five_free_devices_are_three_and_three() -> None:
    """An engine starts as many on each node: two of the five stay idle."""
    state = State(busy=("node0/gpu{3..7}", "node1/gpu{5..7}"))
    placed = place(
        load_site("h200-nvl8-x2"),
        Serve(model=load_architecture("deepseek-r1"), replicas=1),
        engine="sglang",
        workload=CHAT,
        state=state,
    )
    assert [one.pieces for one in placed.recipes] == [(3, 3)]
    assert shares(placed) == [{3}]


class _OfNode:
    def __init__(self, name: str) -> None:
        self.node = self
        self.name = name


def test_parts_of_own_nodes_are_dealt_out_so_that_enough_are_left() -> None:
    """a a b c for two replicas of two: a b, then a c; not b c, which leaves a a."""
    stock = [_OfNode(name) for name in "bcaa"]
    first = _dealt(stock, 2, own_nodes=True)
    second = _dealt(stock, 2, own_nodes=True)
    assert [{one.name for one in each} for each in (first, second)] in (
        [{"a", "b"}, {"a", "c"}],
        [{"a", "c"}, {"a", "b"}],
    )


@cache
def _chat(price: float = 0.01, sorts: int | None = None, **asked):
    return place(
        load_site("h100-nvl8-x2"),
        Serve(model=load_architecture("llama-3.1-70b")),
        engine="vllm",
        workload=CHAT,
        targets=TARGETS,
        objective="throughput",
        options=SolverOptions(sort_price=price, most_sorts=sorts),
        **asked,
    )


def test_fewer_sorts_and_dearer_ones_are_never_better() -> None:
    free, one, dear = (
        _chat(0.0, roles="free"),
        _chat(0.0, 1, roles="free"),
        _chat(0.5, roles="free"),
    )
    usual = _chat(roles="free")
    bounds = [it.certificate.bound for it in (free, usual, dear, one)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]
    assert dear.certificate.bound == pytest.approx(one.certificate.bound)
    assert not free.certificate.sorts
    steps = usual.certificate.sorts
    assert [it.n_sorts for it in steps] == [1, 2]
    assert steps[0].bound == pytest.approx(one.certificate.bound)
    assert len({(it.role, it.label) for it in one.recipes}) == 1


def test_restricted_roles_are_never_better() -> None:
    free = _chat(0.0, roles="free").certificate.bound
    for roles in ("together", "apart"):
        assert _chat(0.0, roles=roles).certificate.objective <= free * (1 + 1e-9)


@pytest.mark.parametrize(
    "altered",
    [
        lambda steps: steps[:1],
        lambda steps: steps[::-1],
        lambda steps: (replace(steps[0], objective=steps[0].objective * 1.4), steps[1]),
        lambda steps: (steps[0], replace(steps[1], objective=steps[1].objective * 1.001)),
        lambda steps: (replace(steps[0], n_sorts=0), steps[1]),
    ],
)
def test_altered_sorts_are_found(altered) -> None:
    placed = _chat(roles="free")
    proof = placed.certificate
    forged = replace(placed, certificate=replace(proof, sorts=altered(proof.sorts)))
    assert not judge_placement(placed)[1]
    assert judge_placement(forged)[1]


def test_an_altered_price_of_sorts_is_found() -> None:
    placed = _chat(roles="free")
    forged = replace(placed, certificate=replace(placed.certificate, sort_price=0.02))
    assert judge_placement(forged)[1]


def test_more_sorts_than_were_asked_for_are_found() -> None:
    placed = _chat(roles="free")
    options = replace(placed.request.options, most_sorts=1)
    forged = replace(placed, request=replace(placed.request, options=options))
    assert any("more sorts" in str(each) for each in judge_placement(forged)[1])


def test_an_answer_of_several_sorts_is_proved_again() -> None:
    found = verify(_chat(roles="free"), prove=True)
    assert not found.falsehoods
    assert found.proofs


def test_the_most_in_one_ask_is_what_a_demand_can_reach() -> None:
    """Beside bisecting the demand: just that is served, and no more."""
    most = _chat(0.0, roles="free").certificate.bound

    def served(demand: float):
        serve = Serve(model=load_architecture("llama-3.1-70b"), demand_tokens_per_s=demand)
        site, options = load_site("h100-nvl8-x2"), SolverOptions(sort_price=0.0)
        asked = {"engine": "vllm", "workload": CHAT, "targets": TARGETS, "roles": "free"}
        return place(site, serve, options=options, **asked)

    assert served(most * 0.9999).output_tokens_per_s >= most * 0.9999
    with pytest.raises(NoPlanError):
        served(most * 1.0001)
