"""Configurations and free devices as a placement program: counts of replicas, and their parts.

    columns   first the pieces that each unit gives, then the stages that each leaf holds of
              replicas whose stages lie in a leaf each, then the replicas that take them

What the rows say is in `planner.placing.fabrics.room`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.fabrics.locating import NodesProgram
from planner.placing.fabrics.patterns import POOL, STAGE, NodeConfiguration, NodePattern
from planner.placing.fabrics.room import (
    ANYWHERE,
    Piece,
    Room,
    Rows,
    pieces_of,
    uneven_kinds,
    units_of,
)
from planner.placing.handing import Uplink, network_of
from planner.placing.program import Columns, Objective, placement_program
from planner.programs.placement import PlacementProgram
from planner.specs.ask.defaults import NEAR_SHARE
from planner.specs.records.roles import TOGETHER
from planner.topology.inventory import Inventory


def pose_on_nodes(
    configurations: Sequence[NodeConfiguration],
    inventory: Inventory,
    aim: Objective,
    *,
    uplinks: Mapping[int, Uplink] | None = None,
) -> NodesProgram:
    """State the placement of replicas on what is free.

    Args:
        configurations: to choose from, already without those that others stand for.
        uplinks: of the leaves whose links caches may fill: where there are such, replicas that
            hand over, or take over, lie in one leaf each.
    """
    uneven = uneven_kinds(inventory, (one.pattern for one in configurations))
    rows = Rows(units=units_of(inventory, uneven), inventory=inventory, uneven=uneven)
    every = _bound(configurations, Room(inventory), hands_over=bool(uplinks))
    pieces = dict.fromkeys(piece for one, leaf in every for piece in pieces_of(one.pattern, leaf))
    givers = {piece: units for piece in pieces if (units := rows.givers(piece))}
    # what needs a piece that no unit gives has no column
    bound = [it for it in every if pieces_of(it[0].pattern, it[1]).keys() <= givers.keys()]
    sources = {piece: units[0] for piece, units in givers.items() if len(units) == 1}
    listed = given, staged, taken = _columns(givers, bound)
    rows.add_units(given, sources)
    most = _fill(rows, givers, listed, sources)
    program, columns = _program(rows, listed, aim)
    # without it a bound would be the sum of rows, which solvers do not see: HiGHS 1.13 has
    # returned a wrong optimum of variables with bounds of 2^40
    program = replace(program, column_most=np.array(most, dtype=np.int64))
    return NodesProgram(
        program=program,
        columns=columns,
        units=rows.units,
        given=tuple(given),
        staged=tuple(staged),
        taken=tuple(taken),
        sources=sources,
        network=network_of(columns, aim, leaves=[leaf for _, leaf in taken], uplinks=uplinks),
    )


def _bound(configurations: Sequence[NodeConfiguration], room: Room, *, hands_over: bool) -> _Bound:
    """Configurations with each leaf that they, or their stages, may be bound to, or anywhere.

    Args:
        hands_over: whether links of leaves limit caches: who hands over then lies in one leaf.
    """
    return [
        (config, leaf)
        for config in configurations
        for leaf in room.leaves(config.pattern, is_bound=hands_over and config.role != TOGETHER)
    ]


def _columns(givers: dict[Piece, list[int]], bound: _Bound) -> _Listed:
    """Pieces that several units give, stages bound to leaves, and replicas that take them."""
    given = [(u, piece) for piece, units in givers.items() if len(units) > 1 for u in units]
    staged = [(one, leaf) for one, leaf in bound if one.pattern.span == STAGE]
    taken = [(one, leaf) for one, leaf in bound if one.pattern.span != STAGE]
    # a replica takes its stages from whichever leaves hold them
    taken += dict.fromkeys((one, ANYWHERE) for one, _ in staged)
    return given, staged, taken


def pose_by_kinds(
    configurations: Sequence[NodeConfiguration], inventory: Inventory, aim: Objective
) -> PlacementProgram:
    """The program of replicas that lie nowhere: of each kind no more devices than are free."""
    rows = Rows(units=(), inventory=inventory)
    row = {
        kind: rows.add(kind.name, sum(len(at.free) for at in inventory.nodes if at.kind == kind))
        for kind in inventory.kinds
    }
    for j, one in enumerate(configurations):
        rows.entries[row[one.pattern.kind], j] += one.n_devices
    return _program(rows, ([], [], [(one, ANYWHERE) for one in configurations]), aim)[0]


def _fill(
    rows: Rows, givers: dict[Piece, list[int]], columns: _Listed, sources: dict[Piece, int]
) -> list[int]:
    """What each column takes of the rows; and how many copies of it there may be."""
    given, staged, taken = columns
    most = [rows.most(u, piece) for u, piece in given]
    apart: dict[Piece, list[int]] = defaultdict(list)
    for j, (u, piece) in enumerate(given):
        rows.take(j, u, piece, 1)
        rows.entries[rows.pool(piece), j] -= 1
        if piece.n_apart:
            apart[piece].append(j)
            rows.entries[rows.apart(j), j] += 1
    stages: Counter[NodeConfiguration] = Counter()
    for config, leaf in (*staged, *taken):
        j, is_staged = len(most), config.pattern.span == STAGE
        if is_staged and leaf == ANYWHERE:  # it takes stages, they take the pieces
            rows.entries[rows.stages(config), j] += config.pattern.n_stages
            most.append(stages[config] // config.pattern.n_stages)
            continue
        pieces = pieces_of(config.pattern, leaf)
        if is_staged:  # all pieces of a stage are alike
            pieces = dict.fromkeys(pieces, config.pattern.n_across)
        most.append(min(sum(rows.most(u, p) for u in givers[p]) // n for p, n in pieces.items()))
        if is_staged:
            rows.entries[rows.stages(config), j] -= 1
            stages[config] += most[-1]
        for piece, n in pieces.items():
            if piece in sources:
                rows.take(j, sources[piece], piece, n)
            else:
                rows.entries[rows.pool(piece), j] += n
            for g in apart.get(piece, ()):
                rows.entries[rows.apart(g), j] -= 1
    return most


_Bound = list[tuple[NodeConfiguration, int]]
"""Configurations, and the leaf that each, or a stage of it, is bound to."""

_Listed = tuple[list[tuple[int, Piece]], _Bound, _Bound]
"""Pieces given, stages held, replicas taken: in the order of the program's columns."""


def _program(rows: Rows, listed: _Listed, aim: Objective) -> tuple[PlacementProgram, Columns]:
    """The arrays; pieces and stages are parts of replicas."""
    given, staged, taken = listed
    columns = Columns(
        configurations=[one for one, _ in taken],
        which=np.arange(len(taken)),
        n_parts=len(given) + len(staged),
    )
    nothing = np.zeros(columns.n_parts)
    devices = [float(one.n_devices) for one, _ in taken]
    first = [float(u) for u, _ in given] + [float(leaf) for _, leaf in staged]
    ties = (
        *(np.concatenate([nothing, each]) for each in preferred([one.pattern for one, _ in taken])),
        np.concatenate([nothing, devices]),
        np.concatenate([first, np.arange(float(len(taken)))]),
    )
    program = placement_program(rows.rooms(), columns, aim, ties=ties)
    return replace(program, ties_within=NEAR_SHARE), columns


def preferred(patterns: Sequence[NodePattern]) -> FloatArray:
    """What replicas had rather not have, what matters most first, (3, N): further nodes; further
    leaves; groups of ranks that share heads in several nodes."""
    each = [
        (len(cut.pieces) - 1, cut.span in (STAGE, POOL), cut.n_inside > max(cut.pieces))
        for cut in patterns
    ]
    return np.array(each, dtype=float).reshape(-1, 3).T
