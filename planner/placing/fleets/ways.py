"""Deployments of a shape that may serve a stream, as stations, and what no scheduler exceeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.queues.rates import fluid_rate
from planner.estimates.serving.deployments import has_experts
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.placing.engines import EngineSource
from planner.placing.fleets.streams import Stream
from planner.specs.region import MEDIAN
from planner.specs.roles import PREFILL, TOGETHER
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import ITL, TPOT

STAGES = tuple(1 << k for k in range(10))
"""Stages of a pipeline to choose from."""

Key = tuple[int, ...]
"""Degrees, and where caches are handed over a format of them: of these one will do."""

N_BEYOND = 1
"""Batches that are looked at beyond the last that keeps a target of TPOT when it is full."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ways:
    """The deployments of one shape and role that may serve a stream.

    Args:
        rows: of the choices of their source, (W,).
        stations: of each.
        bounds: requests a second that no scheduler exceeds on a replica of each.
    """

    rows: IntArray
    stations: Sequence[Station]
    bounds: Sequence[float]


@dataclass(slots=True, kw_only=True)
class Stationed:
    """Deployments of an engine on a domain in one role, and those stations that were asked for.

    Args:
        predicted: stations with passes as they are predicted, by choice.
        planned: the same with passes as they are planned.
    """

    source: EngineSource
    n_longest_tokens: int
    predicted: dict[int, Station] = field(default_factory=dict)
    planned: dict[int, Station] = field(default_factory=dict)
    _at_median: Stationed | None = None
    _measured: dict[str, dict[Key, Ways]] = field(default_factory=dict)

    def measured_ways(self, stream: Stream) -> dict[Key, Ways]:
        """Of each shape the deployments inside of the measured region that may serve a stream."""
        if stream.name not in self._measured:
            self._measured[stream.name] = dict(ways_by_shape(self, stream, measured=True))
        return self._measured[stream.name]

    def at_median(self) -> Stationed:
        """The same, planned as predicted."""
        if self._at_median is None:
            source = self.source.believing(MEDIAN)
            self._at_median = replace(self, source=source, planned=self.predicted)
        return self._at_median

    def stations(self, rows: IntArray) -> list[Station]:
        """Stations of choices, as planned."""
        self._predict(rows)
        choices = self.source.choices
        slower, later = (
            1.0 + choices.beyond * errors for errors in (choices.tpot_error, choices.ttft_error)
        )
        for row in rows.tolist():
            if row not in self.planned:
                made, both = self.predicted[row], (float(slower[row]), float(later[row]))
                self.planned[row] = made.slowed(decode=both[0], reading=both[1])
        return [self.planned[row] for row in rows.tolist()]

    def _predict(self, rows: IntArray) -> None:
        """Make stations of choices, those of each pair of formats at once."""
        source, table = self.source, self.source.choices.table
        clock = source.machines.clock
        new = np.array([row for row in rows.tolist() if row not in self.predicted], dtype=np.int64)
        for index in np.unique(table.format_index[new]).tolist():
            mine = new[table.format_index[new] == index]
            serving = Serving(
                model=source.model, formats=table.formats[index], engine=clock.engine, clock=clock
            )
            made = stations(
                serving,
                table.take(mine),
                RequestShape(
                    n_input_tokens=float(source.request.workload.n_input_tokens),
                    n_longest_tokens=float(self.n_longest_tokens),
                ),
                names=[""] * len(mine),
                hbm_bytes=clock.device.hbm_bytes,
                role=source.choices.role,
            )
            self.predicted |= zip(mine.tolist(), made, strict=True)


def ways_by_shape(
    here: Stationed, stream: Stream, *, measured: bool = False
) -> Iterator[tuple[Key, Ways]]:
    """Deployments of each shape, whose longest request has room; caches of a format if apart."""
    choices = here.source.choices
    table, role = choices.table, choices.role
    rows = np.flatnonzero(_worth_a_look(here.source, stream, measured=measured))
    of_row = here.stations(rows)
    kept = [i for i, one in enumerate(of_row) if _holds(one, stream, role)]
    alike = [table.n_tensor, table.n_data, table.n_stages]
    if role != TOGETHER:
        caches = np.array([one.cache for one in table.formats])
        alike.append(np.unique(caches, return_inverse=True)[1][table.format_index])
    keys = np.stack(alike, axis=1)[rows]
    for key in np.unique(keys[kept], axis=0):
        mine = [i for i in kept if (keys[i] == key).all()]
        yield tuple(key.tolist()), ways_of(rows[mine], [of_row[i] for i in mine], stream)


def ways_of(rows: IntArray, stations: Sequence[Station], stream: Stream) -> Ways:
    """Choices with what no scheduler exceeds on each."""
    bounds = [fluid_rate(one, stream.load) * one.n_ranks for one in stations]
    return Ways(rows=rows, stations=stations, bounds=bounds)


def _worth_a_look(source: EngineSource, stream: Stream, *, measured: bool) -> BoolArray:
    """Choices that others of their shape do not stand for.

    Copies of a dense model behind one router are replicas. Of choices that differ in nothing but
    the most sequences there may be, the one with most serves no less where no TPOT is asked for;
    where one is, also the last that keeps it when it is full, and the next.
    """
    choices, table = source.choices, source.choices.table
    kept = np.isin(table.n_stages, STAGES)
    if not len(table):
        return kept
    if not has_experts(source.model):
        kept &= table.n_data == 1
    if measured:
        kept &= choices.outside_error == 0.0
    limits = [one.target.at_most_s for one in stream.targets if one.target.quantity in (TPOT, ITL)]
    degrees = [table.n_tensor, table.n_data, table.n_stages, table.n_expert_parallel]
    alike = np.stack([*degrees, table.format_index, table.chunk_tokens], axis=1)
    order = np.lexsort([table.batch, *alike.T[::-1]])
    order = order[kept[order]]
    fits = choices.tpot_s <= max(limits, default=np.inf)
    found = np.zeros(len(table), dtype=np.bool_)
    starts = np.flatnonzero(np.any(np.diff(alike[order], axis=0), axis=1)) + 1
    for rows in np.split(order, starts) if len(order) else ():  # by ascending batch
        n_fitting = int(np.sum(fits[rows]))
        found[rows[-1]] = True
        if limits and choices.role != PREFILL:
            found[rows[max(0, n_fitting - 1) : n_fitting + N_BEYOND]] = True
    return found


def _holds(station: Station, stream: Stream, role: str) -> bool:
    """Whether the longest request has room."""
    n_tokens = stream.n_longest_input if role == PREFILL else stream.n_longest_tokens
    return station.held_bytes(n_tokens) <= station.room_bytes
