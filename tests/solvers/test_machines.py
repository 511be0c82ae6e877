"""Layers on mixed machines: bounds that hold for every placement, rates that replay."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice, product
from types import SimpleNamespace

import numpy as np
import pytest

from planner.programs.proofs import ENUMERATION
from planner.solvers.mixed import solver_of
from planner.solvers.solution import Effort, Status
from planner_workshop.staging import machines
from planner_workshop.staging.machines import EVEN_PRICES, enumeration, place
from planner_workshop.staging.machines.covers import CoverSearch
from planner_workshop.staging.machines.flow import flow_program
from planner_workshop.staging.machines.incumbents import Incumbent, Tries
from planner_workshop.staging.machines.patterns import patterns
from planner_workshop.staging.machines.program import MachineSpan, classes, regions
from planner_workshop.staging.machines.rows import best_row, seated
from planner_workshop.staging.machines.spans import fixed, spans
from planner_workshop.staging.machines.sweep import Sweep, sweep
from planner_workshop.staging.machines.tree import Tree
from planner_workshop.staging.machines.worth import priced_bound, sweep_program
from tests.benchmarks.layers import best_of_all, compared, drawn
from tests.benchmarks.plain_flow import placement_of, plain_flow
from tests.programs.pools import pool
from tests.solvers.liars import LIES, lies

SMALL = [seed for seed in range(60) if len(drawn(seed)[0].names) <= 4]


def provers_of(found: Incumbent) -> list[str]:
    return [proof.prover for proof in found.proved.vouched.proofs]


@pytest.mark.parametrize("seed", SMALL[:20])
def test_random_pools_of_all_kinds_of_links_are_placed_best(seed):
    """Beside every placement: nothing is better, no bound is below it, and it is proven.

    `python -m tests.benchmarks.layers` does so with 300 pools of up to 7 machines.
    """
    found = compared(seed, least_s=0.0, solvers=())
    assert found.faults == []
    assert found.solution.proved.status in (Status.OPTIMAL, Status.INFEASIBLE)


@pytest.mark.parametrize("seed", SMALL[:8])
def test_the_plain_program_is_no_better(seed):
    """HiGHS solves the program that anybody would pose, until it calls it optimal."""
    some, _ = drawn(seed)
    program, held = plain_flow(some)
    word = solver_of("highs")(program, Effort(time_limit_s=60.0))
    known = Incumbent(pool=some, tries=Tries())
    known.offer(None if word.answer is None else placement_of(word.answer, held))
    assert known.rate <= place(some, Tries()).rate * (1.0 + 1e-4 + 1e-9)


def test_a_machine_may_share_the_layers_of_two_others():
    """Three layers, machines A (2; 253.9, 122.2, 79.5 token/s) and B (2; 244.9, 119.2), links that
    never bind: A1 on layer 1, A2 on all, B1 on 2, B2 on 3: 79.5 + 244.9 = 324.4.
    """
    rates = [[253.9, 122.2, 79.5], [244.9, 119.2]]
    found = place(pool(3, rates, [0, 0, 1, 1], links=1e6, coordinator=1e6), Tries())
    assert found.rate == pytest.approx(324.4)
    assert found.bound >= 324.4
    assert found.proved.status is Status.OPTIMAL


def test_the_bound_is_reached_at_once_where_machines_fit_exactly():
    """Four machines of 5 token/s with two layers each, 4 layers: two stages of two: 10."""
    found = place(pool(4, [[8.0, 5.0]], [0, 0, 0, 0]), Tries())
    assert (found.rate, found.bound) == (10.0, pytest.approx(10.0))
    assert EVEN_PRICES in found.proved.vouched.by


def test_a_machine_beside_two_that_share_its_layers():
    """Three machines, 8 token/s with one layer, 3 with two; two layers. Rows of stages reach 9:
    all three hold both. Better: two hold one layer each, 8, and the third both, 3: 11.
    """
    found = place(pool(2, [[8.0, 3.0]], [0, 0, 0]), Tries())
    assert found.rate == 11.0
    assert found.bound == pytest.approx(11.0)
    assert ENUMERATION in found.proved.vouched.by


def test_prices_of_layers_bound_what_links_to_the_coordinator_let_through():
    """Two layers of one machine each; machines 0 to 2 can begin, at 10 token/s, 3 and 4 can end,
    at 4 each. With one price for each layer: (3 × 8 + 4 + 4) / 2 = 16, as a machine can send no
    more than 8; all of the price on the second layer: 4 + 4 = 8.
    """
    some = pool(2, [[10.0], [4.0]], [0, 0, 0, 1, 1])
    some.from_coordinator[3:] = 0.0
    some.to_coordinator[:3] = 0.0
    found = priced_bound(spans(some), 100.0)
    assert 8.0 <= found.bound <= 8.1
    assert not found.is_even


def test_covers_bound_closer_than_prices():
    """Three machines of 5 with one layer each and two layers: above 5 a layer takes two of them,
    so that covers reach 1.5 layers; by prices each adds 5: 7.5.
    """
    some = pool(2, [[5.0]], [0, 0, 0])
    assert priced_bound(spans(some), 100.0).bound == pytest.approx(7.5)
    search = CoverSearch(n_machines=np.array([3]), rates=np.array([[5.0]]), n_layers=2)
    assert search.refutes(5.01)
    assert not search.refutes(4.99)


def test_a_sweep_knows_the_best_link_between_two_regions():
    """Two places with a machine of 10 token/s each, one layer each, two layers: the link between
    them carries 4, so that no placement has more, and prices of layers know nothing of it.
    """
    some = pool(2, [[10.0]], [0, 0], links=4.0)
    region = regions(some, 10.0)
    alike = classes(some, region, hopes=True)
    rates = np.full((len(alike.members), 1), 10.0)
    for rate, refuted in ((5.0, True), (4.0, False)):
        program = sweep_program(alike, rates, rate)
        assert Sweep(program, most=10_000, deadline_s=np.inf).refutes() is refuted


@pytest.mark.parametrize("seed", SMALL[:12])
def test_every_bound_holds_by_itself(seed):
    """Prices, covers, sweep, and the flow program by HiGHS and by SCIP, each without the others."""
    some, _ = drawn(seed)
    best, held = best_of_all(some), spans(some)
    least = best * (1.0 - 1e-7)
    known = Incumbent(pool=some, tries=Tries())
    machines._price(known, held)
    bound = known.bound
    assert bound >= least
    machines._cover(known, held)
    machines.sweep(known, held)
    assert all(-proof.bound >= least for proof in known.proofs)
    if bound > 0:
        program = flow_program(held, bound, 0.0)
        for name in ("highs", "scip"):
            word = solver_of(name)(program.mixed, Effort(time_limit_s=60.0))
            assert -word.proof.bound * bound >= least
            placed = known.offer(program.placement(word.answer))
            assert placed == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", SMALL[:12])
def test_the_row_of_a_layer_is_of_all_that_hold_it_and_of_nobody_else(seed):
    some, _ = drawn(seed)
    known = Incumbent(pool=some, tries=Tries())
    machines._price(known, spans(some))
    if known.bound <= 0:
        return
    program = flow_program(spans(some), known.bound, 0.0)
    every = [one for held in program.spans for one in held]
    mixed = program.mixed
    for layer in range(some.n_layers):
        inside = mixed.row == mixed.rows.index(f"layer({layer})")
        shares = dict(zip(mixed.column[inside].tolist(), mixed.value[inside], strict=True))
        holding = [one for one in every if layer in range(one.first, one.end)]
        assert shares == {one.column: one.share for one in holding}


@pytest.mark.parametrize("seed", SMALL[:12])
def test_a_tree_above_the_best_proves_it_and_below_finds_it(seed):
    some, _ = drawn(seed)
    best = best_of_all(some)
    tree = Tree(spans=spans(some), above=best * 0.9 + 1e-7)
    assert tree.search(10**9)
    assert tree.rate == pytest.approx(best, rel=1e-6)
    none = Tree(spans=spans(some), above=best * (1.0 + 1e-6) + 1e-7)
    assert none.search(10**9)
    assert none.best is None
    assert best <= none.bound <= best * (1.0 + 2e-6) + 1e-6


def test_a_machine_that_holds_what_is_none_of_its_spans_is_free():
    """It had none left, and the search near such a placement ended in a defect."""
    some = spans(drawn(0)[0])
    near = fixed(some, [MachineSpan(machine=0, first=0, n_layers=99)], ())
    assert len(near.first[0]) == len(some.first[0]) > 1
    assert {len(first) for first in near.first[1:]} == {1}


def test_neighbourhoods_grow_where_nothing_is_found_and_shrink_where_something_is(monkeypatch):
    """Of eight machines: sixteen in vain before one machine more is free, up to all but one."""
    asked = []
    known = SimpleNamespace(
        rate=1.0,
        placement=(),
        prices=None,
        deadline_s=np.inf,
        is_closed=False,
        is_late=False,
        tries=Tries(),
    )

    def offered(_):
        if len(asked) == 40:
            known.rate = 2.0

    known.offer = offered
    tree = SimpleNamespace(search=lambda _: None, n_tried=0, width=1, best=None)
    related = lambda some, placement, size, rng: asked.append(size)  # noqa: E731
    monkeypatch.setattr(enumeration, "_related", related)
    monkeypatch.setattr(enumeration, "fixed", lambda *_: None)
    monkeypatch.setattr(enumeration, "Tree", lambda **_: tree)
    enumeration.improve(known, SimpleNamespace(first=range(8)), cells=100 * 1000)
    assert asked[:40] == [2] * 16 + [3] * 16 + [4] * 8
    assert asked[40:] == [size for size in range(2, 8) for _ in range(16)]


@pytest.mark.parametrize(
    ("coordinator", "links", "share"), [(1e12, 1e12, 1.0), (4.0, 1e12, 0.4), (1e12, 2.5, 0.25)]
)
def test_a_row_carries_what_its_narrowest_part_does(coordinator, links, share):
    """A machine of 10 token/s in each of two regions, one of two layers each, tried at 10."""
    some = pool(2, [[10.0], [10.0]], [0, 1], links=links, coordinator=coordinator)
    alike = classes(some, np.array([0, 1]))
    rows = patterns(alike, 10.0)
    first, second = (int(np.flatnonzero(rows.region == region)[0]) for region in (0, 1))
    found = seated(some, alike, rows, (first, second))
    assert found.share == pytest.approx(share)
    assert {held.machine for held in found.placement} == {0, 1}


@pytest.mark.parametrize(("own", "share"), [(10.0, 1.0), (7.0, 0.7)])
def test_a_seat_carries_no_more_than_its_machine_serves(own, share):
    """Machines of 20 and of `own` token/s in a row that is tried at 10; links let all pass."""
    some = pool(2, [[20.0], [own]], [0, 1])
    alike = classes(some, np.array([0, 1]))
    rows = replace(patterns(alike, own), rate=10.0)
    first, second = (int(np.flatnonzero(rows.region == region)[0]) for region in (0, 1))
    assert seated(some, alike, rows, (first, second)).share == pytest.approx(share)


def test_more_machines_and_faster_links_never_hurt():
    rates = [[50.0, 24.0, 15.0], [30.0, 16.0]]
    slow = place(pool(5, rates, [0, 0, 1, 1], links=12.0), Tries()).rate
    fast = place(pool(5, rates, [0, 0, 1, 1]), Tries()).rate
    more = place(pool(5, rates, [0, 0, 1, 1, 1]), Tries()).rate
    assert 0 < slow <= fast <= more


def test_that_no_link_joins_the_machines_is_proven():
    """Each holds one of two layers, and nothing can be sent."""
    found = place(pool(2, [[5.0]], [0, 0], links=0.0), Tries())
    assert found.placement is None
    assert found.rate == 0.0
    assert found.proved.status is Status.INFEASIBLE


def test_bounds_that_fall_without_end_stop_where_no_rate_is_left():
    """Two machines of one layer each, three layers: F ≤ 2 F / 3, again and again."""
    some = pool(3, [[5.0]], [0, 0])
    assert place(some, Tries()).proved.status is Status.INFEASIBLE
    known, held = Incumbent(pool=some, tries=Tries()), spans(some)
    known.prove(EVEN_PRICES, 5.0, 0.0)
    machines._cover(known, held)
    assert known.bound <= 1e-6
    other = Incumbent(pool=some, tries=Tries())
    other.prove(EVEN_PRICES, 5.0, 0.0)
    sweep(other, held)
    assert other.bound <= 1e-6


def test_twice_the_rates_twice_the_answer():
    rates = [[50.0, 24.0, 15.0], [30.0, 16.0]]
    once = place(pool(5, rates, [0, 0, 1, 1, 1]), Tries())
    doubled = [[2 * rate for rate in one] for one in rates]
    twice = place(pool(5, doubled, [0, 0, 1, 1, 1]), Tries())
    assert twice.rate == pytest.approx(2 * once.rate, rel=1e-6)


def two_places():
    """Two places, two machines of 10 token/s in each that hold one layer; four layers. Only
    machine 1 sends out of the first place, only to machine 2; only 0 and 3 see the coordinator.
    """
    links = np.zeros((4, 4))
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = 100.0
    links[1, 2] = 8.0
    some = pool(4, [[10.0]], [0, 0, 0, 0], links=links)
    some.from_coordinator[1:] = 0.0
    some.to_coordinator[:3] = 0.0
    return some


def test_rows_of_stages_seat_machines_where_their_links_are():
    some = two_places()
    known = Incumbent(pool=some, tries=Tries(gap=1e-2))
    known.prove(EVEN_PRICES, 10.0, 0.0)
    alike = classes(some, regions(some, 10.0), hopes=True)
    best_row(known, alike, deadline_s=np.inf, hopes=True)
    assert known.rate == pytest.approx(8.0, rel=1e-2)
    assert [held.machine for held in known.placement] == [0, 1, 2, 3]


def test_what_carries_too_little_is_refused_for_another_row():
    """Three layers, two machines of one place, a faster one of another, links of 6 between: what
    one machine of the first place sends over its link is not enough for what both could do.
    """
    links = np.full((3, 3), 100.0)
    links[0, 2] = links[2, 0] = links[1, 2] = links[2, 1] = 6.0
    some = pool(3, [[9.0, 4.0], [30.0, 12.0]], [0, 0, 1], links=links)
    found = place(some, Tries(gap=1e-3))
    assert found.rate == pytest.approx(best_of_all(some), rel=1e-3)


# Solvers that lie

FEW = list(
    islice((s for s in count() if len(drawn(s)[0].names) == 3 and drawn(s)[0].n_layers <= 4), 6)
)


def by_solvers_alone(monkeypatch):
    """Leave the proofs to solvers: no enumeration, no covers, no sweep; and few rows."""
    monkeypatch.setattr("planner_workshop.staging.machines.rows.MOST_ROWS", 2)
    for step in ("enumerate_all", "sweep", "improve", "_cover"):
        monkeypatch.setattr(machines, step, lambda *_, **__: None)


CASES = [*product(["highs"], LIES, FEW), *product(["scip"], LIES, FEW[:2])]


@pytest.mark.parametrize(("solver", "lie", "seed"), CASES)
def test_a_solver_that_lies_leads_to_nothing_called_optimal_that_is_not(
    monkeypatch, solver, lie, seed
):
    """HiGHS lies wherever it is asked, of seats and of the flow program; SCIP of the latter."""
    some, _ = drawn(seed)
    best = best_of_all(some)
    by_solvers_alone(monkeypatch)
    lies(monkeypatch, solver, lie)
    found = place(some, Tries(gap=1e-3))
    assert found.bound >= best * (1.0 - 1e-7) or found.proved.status is Status.UNCONFIRMED
    assert -found.proved.vouched.bound >= best * (1.0 - 1e-7)
    assert found.rate <= best * (1.0 + 1e-7)
    if found.proved.status is Status.OPTIMAL:
        assert found.rate == pytest.approx(best, rel=2e-3)
    if found.proved.status is Status.INFEASIBLE:
        assert best == 0.0
