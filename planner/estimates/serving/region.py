"""Which deployments have settings that were compared with measurements, as arrays.

Of each property a small table says, by its value and by requests in flight, how near measurements
come: `UNKNOWN`, the value was never measured; `FAR`, not with such lengths; `OFF`, not with about
as many in flight; `INSIDE`. Deployments look theirs up. See `specs.region`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable, runs
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.roles import POOLS
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import STATIC, ServedFormats
from planner.specs.region import (
    CLIENT,
    FACTOR,
    IN_FLIGHT,
    LEAST_ROWS,
    LEAST_RUNS,
    LENGTHS,
    PAIRS,
    PROPERTIES,
    Setting,
    is_near,
    measured,
    region_errors,
)

UNKNOWN, FAR, OFF, INSIDE = range(4)

Levels = Mapping[str, NDArray[np.int8]]
"""How near measurements come, by property or pair (N,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Region:
    """What was measured of an engine, a device and a kind of model.

    Args:
        lacking: `device`, or `engine`, of which too little was measured: others stand for it.
        lengths: of the requests, in and out.
        breaks: requests in flight from which on other settings are near, ascending, (B,).
        values: of each property and pair, by its value, the row of its table.
        levels: of each a table of as many rows and one of unknown values, (V + 1, B + 1).
    """

    engine: str
    device: str
    kind: ModelKind
    lacking: str
    lengths: tuple[float, float]
    breaks: IntArray
    values: Mapping[str, Mapping[str, int]]
    levels: Levels

    def columns(self, in_flight: IntArray) -> IntArray:
        """Of the tables of levels, by requests in flight (N,)."""
        return np.searchsorted(self.breaks, in_flight, side="right")

    def deviation(self, levels: Levels) -> FloatArray:
        """How much further off times are outside, 0 inside: relative standard deviations (N,)."""
        errors = region_errors()
        squares = np.full((), errors[self.lacking] ** 2 if self.lacking else 0.0)
        least = np.full((), INSIDE)
        for name, found in levels.items():
            squares = squares + errors[name] ** 2 * _is_unknown(name, levels)
            least = np.minimum(least, np.where(found == UNKNOWN, INSIDE, found))
        squares = squares + errors[LENGTHS] ** 2 * (least == FAR)
        return np.asarray(np.sqrt(squares + errors[IN_FLIGHT] ** 2 * (least == OFF)))


def outside_error(
    engine: str,
    device: str,
    kind: ModelKind,
    traffic: Traffic,
    some: Settings,
    *,
    last: FloatArray | None = None,
) -> FloatArray:
    """How much further off times of deployments are for what was not measured (N,).

    Args:
        last: batch up to which the least is wanted of all from their own on (N,).
    """
    where = region(engine, device, kind, *_named(traffic))
    table, column = some.table, where.columns(some.in_flight)
    ends = column if last is None else where.columns((last * table.n_data).astype(np.int64))
    degrees = (table.n_tensor, table.n_data, table.n_expert_parallel, table.n_stages)
    heads, row = runs(*degrees, table.n_expert_devices, table.overlaps, column, ends)
    some, column, ends = replace(some, table=table.take(heads)), column[heads], ends[heads]
    errors = where.deviation(levels_of(where, some, column))
    while np.any(column < ends):
        column = np.minimum(column + 1, ends)
        errors = np.minimum(errors, where.deviation(levels_of(where, some, column)))
    if traffic.client is not None and not traffic.client.is_described:
        errors = np.hypot(errors, region_errors()[CLIENT])
    return np.broadcast_to(errors, len(heads))[row]


def _named(traffic: Traffic) -> tuple[float, float]:
    """Lengths of prompts and answers, as a client names those that it sends."""
    n_input, n_output, client = traffic.n_input_tokens, traffic.n_output_tokens, traffic.client
    if client is None:
        return n_input, n_output
    return round(n_input / client.mean_length), round(n_output / client.mean_length)


@cache
def region(engine: str, device: str, kind: ModelKind, n_input: float, n_output: float) -> Region:
    """Of measurements on the device, or where these are too few on all devices, or of all engines.

    Args:
        n_input, n_output: lengths of the requests.
    """
    lacking, rows = measured(engine, device, kind)
    loads = np.array([one.in_flight for one in rows], dtype=float)[:, None]
    breaks = np.unique([np.ceil(loads / FACTOR), np.floor(loads * FACTOR) + 1.0]).astype(np.int64)
    first = np.append(1, breaks)  # the least of each interval stands for it
    near = (first * FACTOR >= loads) & (first <= loads * FACTOR)
    long = np.array([_is_near(one, n_input, n_output) for one in rows])[:, None] & (first > 0)
    names = [*PROPERTIES, *(" × ".join(pair) for pair in PAIRS)]
    tables = {name: _table(rows, name, (first > 0) | near, long, long & near) for name in names}
    return Region(
        engine=engine,
        device=device,
        kind=kind,
        lacking=lacking,
        lengths=(n_input, n_output),
        breaks=breaks,
        values={name: values for name, (values, _) in tables.items()},
        levels={name: found for name, (_, found) in tables.items()},
    )


def _table(
    rows: tuple[Setting, ...], name: str, *masks: BoolArray
) -> tuple[dict[str, int], NDArray[np.int8]]:
    """Values of a property, and how near measurements come to each: masks that narrow (S, B)."""
    words = [one.value(name) for one in rows]
    values = {word: i for i, word in enumerate(dict.fromkeys(words))}
    has = np.array(words) == np.array(list(values))[:, None]
    table = np.zeros((len(values) + 1, masks[0].shape[1]), dtype=np.int8)
    for mask in masks:
        table[:-1] += _are_enough(rows, has, mask)
    return values, table


def _is_near(setting: Setting, n_input: float, n_output: float) -> bool:
    return is_near(setting.n_input, n_input) and is_near(setting.n_output, n_output)


def _are_enough(rows: tuple[Setting, ...], has: BoolArray, mask: BoolArray) -> BoolArray:
    """Whether rows that have each value, of each column of a mask, are enough (V, B)."""
    counted = mask.astype(float)  # products of floats are BLAS's
    n_rows = (has * np.array([one.n_rows for one in rows], dtype=float)) @ counted
    n_runs = ((_of_runs(rows)[:, None] * has) @ counted > 0.0).sum(axis=0)
    return np.asarray((n_rows >= LEAST_ROWS) & (n_runs >= LEAST_RUNS))


@cache
def _of_runs(rows: tuple[Setting, ...]) -> FloatArray:
    """Of each run that anything was measured in, whether it has each of some rows (R, S)."""
    numbers = sorted(frozenset().union(*(one.run_numbers for one in rows)))
    return np.array([[n in one.run_numbers for one in rows] for n in numbers], dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """What deployments are, of one choice of formats and drafts.

    Args:
        run_formats: as kernels run them.
        n_per_node: devices of a node.
    """

    table: DeploymentTable
    run_formats: ServedFormats
    role: str
    n_drafted: int
    n_per_node: int

    def properties(self, kind: ModelKind) -> dict[str, IntArray | str]:
        """Numbers of each deployment (N,), and words of all."""
        table, formats = self.table, self.run_formats
        held = formats.weights if kind == "dense" else formats.experts
        return {
            "tp": table.n_tensor,
            "dp": table.n_data,
            "ep": table.n_expert_parallel,
            "pp": table.n_stages,
            "nodes": -(-table.n_devices // self.n_per_node),
            "role": POOLS if table.has_pools else self.role,
            "weights": held.removesuffix(STATIC),
            "cache": self.run_formats.cache,
            "drafts": str(self.n_drafted),
            "micro_batches": 1 + table.overlaps.astype(np.int64),
        }

    @property
    def in_flight(self) -> IntArray:
        """Requests, of each deployment (N,)."""
        return np.asarray(self.table.batch * self.table.n_data).astype(np.int64)


def levels_of(where: Region, some: Settings, column: IntArray) -> Levels:
    """How near measurements come to deployments, with requests in flight of some columns (N,)."""
    index = {
        name: _rows_of(where.values[name], values)
        for name, values in some.properties(where.kind).items()
    }
    for first, other in PAIRS:
        known = where.values[f"{first} × {other}"]
        words = [
            [f"{a} × {b}" for b in (*where.values[other], "")] for a in (*where.values[first], "")
        ]
        rows = np.array([[known.get(word, len(known)) for word in line] for line in words])
        index[f"{first} × {other}"] = rows[index[first], index[other]]
    return {name: found[index[name], column] for name, found in where.levels.items()}


def _rows_of(values: Mapping[str, int], levels: IntArray | str) -> IntArray:
    """Rows of a table; the last one where a number or a word is none of its values."""
    if isinstance(levels, str):
        return np.asarray(values.get(levels, len(values)))
    looked_up = np.full(int(levels.max(initial=0)) + 1, len(values))
    for word, row in values.items():
        if int(word) < len(looked_up):
            looked_up[int(word)] = row
    return np.asarray(looked_up[levels])


def _is_unknown(name: str, levels: Levels) -> BoolArray:
    """Of a pair only where each of the two is known by itself."""
    unknown = levels[name] == UNKNOWN
    for part in name.split(" × ") if " × " in name else ():
        unknown = unknown & (levels[part] != UNKNOWN)
    return np.asarray(unknown)
