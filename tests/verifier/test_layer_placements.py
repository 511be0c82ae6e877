"""Placements of layers counted apart from who placed them: on paper, and against networkx."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings, strategies as st

from planner.results.staging import MachineLine
from planner.specs.ask.stages import LayersRequest
from planner_workshop.staging.layers_verifier import Network, judge_layers
from planner_workshop.staging.machines.incumbents import replayed_rate
from planner_workshop.staging.machines.program import MachineSpan
from planner_workshop.staging.placing import place_layers, pool_of
from tests.verifier.answers import machines

EDGES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 9)).filter(
        lambda edge: edge[0] != edge[1]
    ),
    max_size=24,
    unique_by=lambda edge: edge[:2],
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(edges=EDGES)
def test_a_maximum_flow_is_that_of_networkx(edges):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(7))
    graph.add_weighted_edges_from(edges, weight="capacity")
    assert Network(edges).most(0, 6) == nx.maximum_flow_value(graph, 0, 6)


def test_a_flow_that_has_to_take_back_what_it_sent():
    """The first way goes a-b across; both units pass only if the second sends that one back."""
    edges = [("s", "a", 1), ("s", "b", 1), ("a", "b", 1), ("a", "t", 1), ("b", "t", 1)]
    assert Network(edges).most("s", "t") == 2
    assert Network(edges).most("s", "nowhere") == 0


PLACED = place_layers(machines(3, 3))


def _told(changed):
    return [str(one) for one in judge_layers(changed)[1]]


def _line(index, first, n_layers):
    """A line of a machine with the right rate: of the first type from 0, of the second from 3."""
    kind, number = divmod(index, 3)
    rates = ((40.0, 30.0, 20.0, 15.0), (25.0, 12.0))[kind]
    return MachineLine(
        machine=f"type {kind} {number + 1}",
        type=f"type {kind}",
        first_layer=first,
        n_layers=n_layers,
        tokens_per_s=rates[min(n_layers, len(rates)) - 1],
    )


def _changed(*lines, **changes):
    used = {line.machine for line in lines}
    names = [f"type {kind} {i + 1}" for kind in range(2) for i in range(3)]
    return replace(PLACED, machines=lines, idle=tuple(n for n in names if n not in used), **changes)


def _rate(placement):
    """What a recount says of a placement."""
    return judge_layers(placement)[0].tokens_per_s


def test_rates_on_paper():
    """Machines of the first type carry 20 with three layers and 30 with two; 18 between regions."""
    assert _rate(_changed(_line(0, 0, 3), _line(1, 3, 3))) == 20.0
    assert _rate(_changed(_line(0, 0, 2), _line(1, 2, 2), _line(2, 4, 2))) == 30.0
    crossing = _changed(_line(0, 0, 3), _line(1, 3, 2), _line(3, 5, 1))
    assert _rate(crossing) == 18.0
    # a second machine with the last layer: two links of 18, and the first one's 20
    assert _rate(_changed(*crossing.machines, _line(4, 5, 1))) == 20.0
    # half-way into another's layers, where that is allowed
    inside = _changed(_line(0, 0, 4), _line(1, 2, 4))
    assert _told(inside) == [
        "machines 2 carry nothing from the coordinator through all layers and back"
    ]
    within = replace(PLACED.request.layers, enters_within=True)
    asked = replace(PLACED.request, layers=within)
    assert _rate(replace(inside, request=asked)) == 15.0


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (_changed(_line(0, 0, 3), _line(0, 3, 3)), "holds layers twice"),
        (_changed(_line(0, 0, 3), _line(1, 4, 2)), "leave layer 3 to nobody"),
        (_changed(_line(0, 0, 4), _line(1, 3, 4)), "does not begin 4 of 6 layers"),
        (_changed(_line(0, -1, 4), _line(1, 3, 3)), "does not begin 4 of 6 layers"),
        (_changed(_line(0, 0, 3), _line(3, 3, 3)), "are not 1 to 2 layers"),
        (_changed(_line(0, 0, 3), _line(1, 3, 0)), "are not 1 to 4 layers"),
        (
            _changed(_line(0, 0, 3), replace(_line(1, 3, 3), machine="type 0 4")),
            "is no machine",
        ),
        (replace(PLACED, idle=("type 0 1", *PLACED.idle)), "entries"),
        (replace(PLACED, request=replace(PLACED.request, gap=-1.0)), "is no gap"),
        (
            replace(PLACED, request=LayersRequest(layers=machines(3, 0))),
            "is below one",
        ),
        (
            replace(
                PLACED,
                request=LayersRequest(layers=machines(3, 3, matrix_tokens_per_s=((0.0,),))),
            ),
            "is not one rate of each of 6 machines",
        ),
        (
            replace(PLACED, certificate=replace(PLACED.certificate, bound=PLACED.tokens_per_s - 1)),
            "is beyond the objective",
        ),
    ],
)
def test_what_no_placement_can_be_is_told(changed, told):
    wrong = _told(changed)
    assert any(told in one for one in wrong), wrong


RATES = st.sampled_from([0.0, 3.0, 7.25, 12.0, 30.0, 1e12])


@st.composite
def _placements(draw):
    """Machines, links of every kind, and a placement that may or may not carry anything."""
    n_first, n_second = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n = n_first + n_second
    ends = st.lists(RATES, min_size=n, max_size=n).map(tuple)
    matrix = st.lists(ends, min_size=n, max_size=n).map(tuple)
    changes = {
        "enters_within": draw(st.booleans()),
        "between_tokens_per_s": draw(RATES),
        "across_tokens_per_s": draw(RATES),
        "coordinator_tokens_per_s": draw(RATES),
        "from_coordinator_tokens_per_s": draw(st.just(()) | ends),
        "to_coordinator_tokens_per_s": draw(st.just(()) | ends),
        "matrix_tokens_per_s": draw(st.just(()) | matrix),
    }
    layers, held = machines(n_first, n_second, **changes), []
    for m in range(n):
        n_layers = draw(st.integers(1, 4 if m < n_first else 2))
        held.append(
            MachineSpan(machine=m, first=draw(st.integers(0, 6 - n_layers)), n_layers=n_layers)
        )
    return layers, tuple(held)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(drawn=_placements())
def test_the_rate_is_that_of_who_places(drawn):
    layers, held = drawn
    pool = pool_of(layers)
    lines = tuple(
        MachineLine(
            machine=pool.names[one.machine],
            type=pool.types[int(pool.type_of[one.machine])],
            first_layer=one.first,
            n_layers=one.n_layers,
            tokens_per_s=pool.rate(one.machine, one.n_layers),
        )
        for one in held
    )
    rate = replayed_rate(pool, held)
    placement = replace(
        PLACED, request=LayersRequest(layers=layers), machines=lines, idle=(), tokens_per_s=rate
    )
    truth, wrong = judge_layers(placement)
    if {layer for one in held for layer in range(one.first, one.first + one.n_layers)} < {
        *range(6)
    }:
        assert any("to nobody" in str(one) for one in wrong)
    elif rate == 0:
        assert any("carry nothing" in str(one) for one in wrong)
    else:
        assert truth.tokens_per_s == rate
        assert truth.machines == lines
