"""Pools of machines: the bound, the judge, the replay, patterns and covers."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from planner_workshop.staging.machines.covers import (
    cheapest_covers,
    cover_program,
    covered_layers_bound,
)
from planner_workshop.staging.machines.incumbents import replayed_rate
from planner_workshop.staging.machines.patterns import crossing_flow, crossings, patterns
from planner_workshop.staging.machines.program import (
    MachineSpan,
    classes,
    regions,
    violations,
)
from tests.programs.pools import pool

TWO_TYPES = [[10.0, 4.0], [8.0, 5.0, 3.0]]
FOUR = pool(4, TWO_TYPES, [0, 0, 1, 1])


def row(*held):
    return tuple(MachineSpan(machine=m, first=first, n_layers=n) for m, first, n in held)


@pytest.mark.parametrize(
    ("placement", "broken"),
    [
        (row((0, 0, 2), (2, 2, 2)), {}),
        (row((0, 0, 2), (0, 2, 2)), {"once": 1.0}),
        (row((0, 0, 2), (9, 2, 2)), {"once": 1.0}),
        (
            row(
                (0, 3, 2),
            ),
            {"layers": 1.0},
        ),
        (
            row(
                (0, 0, 0),
            ),
            {"layers": 1.0},
        ),
        (row((0, 0, 3), (2, 3, 1)), {"memory": 1.0}),
        (row((0, 0, 2), (2, 3, 1)), {"cover": 1.0}),
        ((), {"cover": 4.0}),
    ],
)
def test_a_broken_row_of_a_placement_is_named_with_its_amount(placement, broken):
    assert violations(FOUR, placement) == broken


def test_machines_with_the_same_layers_add_up_and_the_slowest_stage_counts():
    """Both first machines hold 2 layers at 4 each; after them both others at 5 each: 8."""
    assert replayed_rate(FOUR, row((0, 0, 2), (1, 0, 2), (2, 2, 2), (3, 2, 2))) == 8.0


def test_a_link_limits_what_passes_it():
    """As above, with every link at 1.5: four of them between the stages, 6 in all."""
    slow = pool(4, TWO_TYPES, [0, 0, 1, 1], links=1.5)
    assert replayed_rate(slow, row((0, 0, 2), (1, 0, 2), (2, 2, 2), (3, 2, 2))) == 6.0
    ends = pool(4, TWO_TYPES, [0, 0, 1, 1], coordinator=2.5)
    assert replayed_rate(ends, row((0, 0, 2), (1, 0, 2), (2, 2, 2), (3, 2, 2))) == 5.0


def test_only_who_holds_the_next_layer_can_go_on():
    """The first holds layers 0 and 1, the second 1 to 3: only if it may be entered within."""
    placement = row((0, 0, 2), (2, 1, 3))
    assert replayed_rate(FOUR, placement) == 0.0
    within = pool(4, TWO_TYPES, [0, 0, 1, 1], enters_within=True)
    assert replayed_rate(within, placement) == 3.0


def test_machines_with_slow_links_are_in_different_regions():
    links = np.full((4, 4), 100.0)
    links[:2, 2:] = links[2:, :2] = 2.0
    apart = pool(4, TWO_TYPES, [0, 1, 0, 1], links=links)
    assert regions(apart, 50.0).tolist() == [0, 0, 1, 1]
    assert regions(apart, 1.0).tolist() == [0, 0, 0, 0]
    alike = classes(apart, regions(apart, 50.0))
    assert alike.members == ((0,), (1,), (2,), (3,))
    assert alike.crossing.tolist() == [[np.inf, 2.0], [2.0, np.inf]]


def test_patterns_are_the_minimal_stages():
    """At 8 token/s: one of 10; 4 + 4 or 4 + 5 of two layers; one of 8; 5 + 5 of two layers."""
    alike = classes(FOUR, np.zeros(4, dtype=int))
    found = patterns(alike, 8.0)
    listed = {(int(k), *map(int, c)) for k, c in zip(found.n_layers, found.counts, strict=True)}
    assert listed == {(1, 1, 0), (1, 0, 1), (2, 2, 0), (2, 1, 1), (2, 0, 2)}


def test_random_patterns_equal_all_minimal_multisets():
    rng = np.random.default_rng(7)
    for _ in range(30):
        rates = rng.uniform(1, 10, (3, 1)).round(1)
        some = pool(4, rates, np.repeat([0, 1, 2], 3))
        rate = float(rng.uniform(2, 25))
        found = patterns(classes(some, np.zeros(9, dtype=int)), rate)
        wanted = set()
        for counts in product(range(4), repeat=3):
            total = np.dot(counts, rates[:, 0])
            less = [total - rates[i, 0] for i in range(3) if counts[i]]
            if total >= rate and all(one < rate for one in less):
                wanted.add(counts)
        assert {tuple(map(int, c)) for c in found.counts} == wanted


def test_what_crosses_equal_links_is_the_maximum_flow():
    rng = np.random.default_rng(11)
    for _ in range(60):
        left, right = (rng.integers(1, 20, rng.integers(1, 5)) for _ in range(2))
        link = int(rng.integers(1, 12))
        graph = nx.DiGraph()
        for i, rate in enumerate(left):
            graph.add_edge("s", ("l", i), capacity=int(rate))
            for j in range(len(right)):
                graph.add_edge(("l", i), ("r", j), capacity=link)
        for j, rate in enumerate(right):
            graph.add_edge(("r", j), "t", capacity=int(rate))
        flow = nx.maximum_flow_value(graph, "s", "t")
        ended, begun = (
            (side.astype(float), np.full(len(side), region))
            for region, side in enumerate((left, right))
        )
        links = np.array([[np.inf, link], [link, np.inf]])
        assert crossing_flow(ended, begun, links) == flow


def test_a_pattern_crosses_only_where_links_carry_the_rate():
    """One of 10 to one of 8 over a link of 2: not 8. Two of 4 to two of 5 over 4 links: 8."""
    links = np.full((4, 4), 100.0)
    links[:2, 2:] = links[2:, :2] = 2.0
    alike = classes(pool(4, TWO_TYPES, [0, 0, 1, 1], links=links), np.array([0, 0, 1, 1]))
    some = patterns(alike, 8.0)
    reaches = crossings(alike, some)[0, 1]
    pairs = {(int(some.n_layers[p]), int(some.n_layers[q])) for p, q in np.argwhere(reaches)}
    assert pairs == {(2, 2)}


def test_the_cheapest_cover_is_no_dearer_than_any_by_enumeration():
    """Rates round up, so that no cover is overlooked: at most one part in 20,000 a machine."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        rates = rng.uniform(1, 10, (2, 2))
        program = cover_program(np.array([3, 3]), rates, 12.0)
        prices = rng.uniform(0.1, 1.0, len(program))
        cheapest, covers = cheapest_covers(program, prices)
        counts = np.array(list(product(range(13), repeat=4)))
        enough = counts[counts @ program.item_rate >= 12.0]
        exact = float((enough @ prices).min())
        assert cheapest <= exact * (1 + 1e-12)
        assert min(cover @ prices for cover in covers) == pytest.approx(cheapest)


def test_any_prices_bound_the_layers_that_can_be_covered():
    """Three machines of 6, one layer each; 12 token/s: each cover takes two: 1.5 layers."""
    program = cover_program(np.array([3]), np.array([[6.0]]), 12.0)
    cheapest, _ = cheapest_covers(program, np.array([0.25]))
    assert cheapest == 0.5
    assert covered_layers_bound(program, np.array([0.25]), cheapest) == 1.5


def test_a_link_that_carries_all_that_a_machine_ever_serves_never_binds():
    """Links of 10 join machines of at most 10 and 8 token/s, whatever the rate of the whole."""
    some = pool(4, TWO_TYPES, [0, 0, 1, 1], links=10.0)
    assert regions(some, 1e6).tolist() == [0, 0, 0, 0]
