"""Ways and free devices as a placement program: counts of replicas, and where their parts lie.

    columns   first the pieces that each unit gives, then the stages that each leaf holds of
              replicas whose stages lie in a leaf each, then the replicas that take them

What the rows say is in `planner.placing.room`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.clusters import POOL, STAGE
from planner.placing.columns import Way
from planner.placing.room import ANYWHERE, Piece, Room, Rows, Unit, piece_of, units_of
from planner.programs.placement import UNLIMITED, PlacementLimit, PlacementProgram, Uses
from planner.topology.inventory import Inventory

KTOKEN = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of one model: a demand [token/s], and a number of replicas."""

    name: str
    demand_tokens_per_s: float | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Posed:
    """A program, and what its columns are.

    Args:
        given: of each of the first columns, the unit and the piece that it gives.
        staged: of each of the next, the way and the leaf that holds one of its stages.
        taken: of each other column, the way, and the leaf it is bound to or `ANYWHERE`.
        sources: pieces that only one unit gives, which need no column; the unit's number.
    """

    program: PlacementProgram
    units: tuple[Unit, ...]
    given: tuple[tuple[int, Piece], ...]
    staged: tuple[tuple[Way, int], ...]
    taken: tuple[tuple[Way, int], ...]
    sources: dict[Piece, int]


def pose_placement(
    ways: Sequence[Way],
    inventory: Inventory,
    wanted: Sequence[Wanted],
    *,
    objective: str,
    limits: Mapping[str, float],
) -> Posed:
    """State the placement of replicas on what is free.

    Args:
        ways: columns to choose from, already without those that others stand for.
        wanted: of each model, in the order in which ways number them.
        objective: `throughput`, `share`, `rent`, `devices` or `latency`.
        limits: on `rent` [USD/h] and `devices`, where asked for.
    """
    rows = Rows(units=units_of(inventory), inventory=inventory)
    room = Room(inventory)
    bound = [(way, leaf) for way in ways for leaf in room.leaves(way)]
    pieces = list(dict.fromkeys(piece_of(way, leaf) for way, leaf in bound))
    givers = {piece: rows.givers(piece) for piece in pieces}
    bound = [(way, leaf) for way, leaf in bound if givers[piece_of(way, leaf)]]
    pieces = [piece for piece in pieces if givers[piece]]
    sources = {piece: givers[piece][0] for piece in pieces if len(givers[piece]) == 1}
    given = [(u, piece) for piece in pieces if piece not in sources for u in givers[piece]]
    rows.add_units(given, sources)
    staged = [(way, leaf) for way, leaf in bound if way.span == STAGE]
    taken = [(way, leaf) for way, leaf in bound if way.span != STAGE]
    taken += [(way, ANYWHERE) for way in dict.fromkeys(way for way, _ in staged)]
    most = _fill(rows, givers, (given, staged, taken), sources)
    program = _program(rows, (given, staged, taken), wanted, (objective, limits))
    # without it a bound would be the sum of rows, which solvers do not see: HiGHS 1.13 has
    # returned a wrong optimum of variables with bounds of 2^40
    program = replace(program, column_most=np.array(most, dtype=np.int64))
    return Posed(
        program=program,
        units=rows.units,
        given=tuple(given),
        staged=tuple(staged),
        taken=tuple(taken),
        sources=sources,
    )


def _fill(
    rows: Rows,
    givers: dict[Piece, list[int]],
    columns: _Columns,
    sources: dict[Piece, int],
) -> list[int]:
    """What each column takes of the rows; and how many copies of it there may be."""
    given, staged, taken = columns
    most = [rows.most(u, piece) for u, piece in given]
    for j, (u, piece) in enumerate(given):
        rows.take(j, u, piece, 1)
        rows.use(rows.pool(piece), j, -1)
    stages: Counter[Way] = Counter()
    for way, leaf in (*staged, *taken):
        j = len(most)
        if way.span == STAGE and leaf == ANYWHERE:  # it takes stages, they take the pieces
            rows.use(rows.stages(way), j, way.n_stages)
            most.append(stages[way] // way.n_stages)
            continue
        piece = piece_of(way, leaf)
        n_pieces = way.n_across if way.span == STAGE else way.n_pieces
        most.append(sum(rows.most(u, piece) for u in givers[piece]) // n_pieces)
        if way.span == STAGE:
            rows.use(rows.stages(way), j, -1)
            stages[way] += most[-1]
        if piece in sources:
            rows.take(j, sources[piece], piece, n_pieces)
        else:
            rows.use(rows.pool(piece), j, n_pieces)
    return most


_Columns = tuple[list[tuple[int, Piece]], list[tuple[Way, int]], list[tuple[Way, int]]]
"""Pieces given, stages held, replicas taken: in the order of the program's columns."""


def _program(
    rows: Rows,
    columns: _Columns,
    wanted: Sequence[Wanted],
    aim: tuple[str, Mapping[str, float]],
) -> PlacementProgram:
    """The arrays; pieces and stages are of a model of their own, of which nothing is asked."""
    (given, staged, taken), (objective, limits) = columns, aim
    n_given, n_models = len(given) + len(staged), len(wanted)
    nothing = np.zeros(n_given)

    def of_ways(values: Sequence[float]) -> FloatArray:
        return np.concatenate([nothing, np.array(values, dtype=float)])

    ways = [way for way, _ in taken]
    rate = of_ways([way.output_tokens_per_s * KTOKEN for way in ways])
    devices = of_ways([way.n_devices for way in ways])
    rent = of_ways([way.usd_per_hour for way in ways])
    quantity = {
        "throughput": -rate,
        "share": np.zeros(n_given + len(ways)),
        "rent": rent,
        "devices": devices,
        "latency": of_ways([way.tpot_s * 1e3 for way in ways]),
    }
    limited = {"rent": (rent, "USD/h"), "devices": (devices, "devices")}
    spans = of_ways([float(way.span in (STAGE, POOL)) for way in ways])
    first = [float(u) for u, _ in given] + [float(leaf) for _, leaf in staged]
    order = np.concatenate([first, np.arange(float(len(ways)))])
    entries = sorted((r, j, amount) for (r, j), amount in rows.entries.items() if amount)
    table = np.array(entries, dtype=np.int64).reshape(-1, 3)
    unlimited = [UNLIMITED if one.most is None else one.most for one in wanted]
    return PlacementProgram(
        resources=tuple(rows.names),
        free=np.array(rows.free, dtype=np.int64),
        uses=Uses(resource=table[:, 0], column=table[:, 1], amount=table[:, 2]),
        models=(*(one.name for one in wanted), "pieces"),
        column_model=np.array(
            [*[n_models] * n_given, *(way.model for way in ways)], dtype=np.int64
        ),
        objective=quantity[objective],
        rate=rate,
        demand=np.array([*((one.demand_tokens_per_s or 0.0) * KTOKEN for one in wanted), 0.0]),
        least=np.array([*(one.least for one in wanted), 0]),
        most=np.array([*unlimited, UNLIMITED]),
        limits=tuple(
            PlacementLimit(name=name, column=limited[name][0], at_most=value, unit=limited[name][1])
            for name, value in limits.items()
        ),
        is_for_share=objective == "share",
        ties=(spans, devices, order),
    )
