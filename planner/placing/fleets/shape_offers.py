"""Deployments of a shape that may serve a stream, as stations, and what no scheduler exceeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.fluid_rates import fluid_rates
from planner.estimates.serving.deployments import has_experts
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.placing.engines import EngineOffers, configurations_of
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.request_classes import RequestClass
from planner.specs.records.roles import PREFILL, TOGETHER, Station
from planner.specs.region import MEDIAN
from planner.specs.traffic.percentiles import ITL, TPOT

STAGES = tuple(1 << k for k in range(10))
"""Stages of a pipeline to choose from."""

Key = tuple[int, ...]
"""Degrees, and where caches are handed over a format of them: of these one will do."""

N_BEYOND = 1
"""Batches that are looked at beyond the last that keeps a target of TPOT when it is full."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapeOffers:
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
        streams: of the model, whose ways are looked for together.
        predicted: stations with passes as they are predicted, by choice.
        planned: the same with passes as they are planned.
    """

    source: EngineOffers
    domain: Domain
    streams: tuple[RequestClass, ...]
    predicted: dict[int, Station] = field(default_factory=dict)
    planned: dict[int, Station] = field(default_factory=dict)
    _at_median: Stationed | None = None
    _made: dict[int, NodeConfiguration] = field(default_factory=dict)
    _ways: dict[tuple[RequestClass, bool], dict[Key, ShapeOffers]] = field(default_factory=dict)

    def ways(self, stream: RequestClass, *, measured: bool = False) -> dict[Key, ShapeOffers]:
        """Of each shape the deployments that may serve a stream; caches of a format if apart.

        Args:
            measured: those inside of the measured region only.
        """
        if (stream, measured) not in self._ways:
            some = self.streams if stream in self.streams else (stream,)
            by_shape = _ways_of_streams(self, some, measured=measured)
            self._ways |= {(one, measured): ways for one, ways in zip(some, by_shape, strict=True)}
        return self._ways[stream, measured]

    def configuration(self, row: int) -> NodeConfiguration:
        """A choice on the domain, by the averages of its engine."""
        if row not in self._made:
            (built,) = configurations_of(self.source, 0, self.domain, np.array([row]))
            self._made[row] = built
        return self._made[row]

    def at_median(self) -> Stationed:
        """The same, planned as predicted."""
        if self._at_median is None:
            source = self.source.believing(MEDIAN)
            self._at_median = replace(
                self, source=source, planned=self.predicted, _made={}, _ways={}
            )
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
                    n_longest_tokens=float(max(it.n_longest_tokens for it in self.streams)),
                ),
                names=[""] * len(mine),
                hbm_bytes=clock.device.hbm_bytes,
                role=source.choices.role,
            )
            self.predicted |= zip(mine.tolist(), made, strict=True)


def ways_of(rows: IntArray, stations: Sequence[Station], stream: RequestClass) -> ShapeOffers:
    """Choices with what no scheduler exceeds on each."""
    n_ranks = np.array([one.n_ranks for one in stations])
    bounds = fluid_rates(stations, [stream.load])[:, 0] * n_ranks
    return ShapeOffers(rows=rows, stations=stations, bounds=bounds.tolist())


def _ways_of_streams(
    here: Stationed, streams: Sequence[RequestClass], *, measured: bool
) -> Iterator[dict[Key, ShapeOffers]]:
    """Of each stream its ways by shape; all of them are timed and bounded at once."""
    choices = here.source.choices
    table, role = choices.table, choices.role
    worth = _worth_a_look(here.source, streams, measured=measured)
    rows = np.flatnonzero(worth.any(axis=0))
    stations = here.stations(rows)
    kept = worth[:, rows] & _holds(stations, streams, role)
    alike = [table.n_tensor, table.n_data, table.n_stages]
    if role != TOGETHER:
        caches = np.array([one.cache for one in table.formats])
        alike.append(np.unique(caches, return_inverse=True)[1][table.format_index])
    keys = np.stack(alike, axis=1)[rows]
    rates = fluid_rates(stations, [it.load for it in streams])
    bounds = (rates * np.array([it.n_ranks for it in stations]).reshape(-1, 1)).T
    shapes = [np.flatnonzero((keys == key).all(axis=1)) for key in np.unique(keys, axis=0)]
    for of_stream, most in zip(kept, bounds, strict=True):
        yield {
            tuple(keys[mine[0]].tolist()): ShapeOffers(
                rows=rows[mine],
                stations=[stations[i] for i in mine.tolist()],
                bounds=most[mine].tolist(),
            )
            for shape in shapes
            if len(mine := shape[of_stream[shape]])
        }


def _worth_a_look(
    source: EngineOffers, streams: Sequence[RequestClass], *, measured: bool
) -> BoolArray:
    """Choices that others of their shape do not stand for, of each stream (G, N).

    Copies of a dense model behind one router are replicas. Of choices that differ in nothing but
    the most sequences there may be, the one with most serves no less where no TPOT is asked for;
    where one is, also the last that keeps it when it is full, and the next.
    """
    choices, table = source.choices, source.choices.table
    kept = np.isin(table.n_stages, STAGES)
    mask = np.zeros((len(streams), len(table)), dtype=np.bool_)
    if not has_experts(source.model):
        kept &= table.n_data == 1
    if measured:
        kept &= choices.outside_error == 0.0
    degrees = [table.n_tensor, table.n_data, table.n_stages, table.n_expert_parallel]
    alike = np.stack([*degrees, table.format_index, table.chunk_tokens], axis=1)
    order = np.lexsort([table.batch, *alike.T[::-1]])
    order = order[kept[order]]
    if not len(order):
        return mask
    # of each group, by ascending batch
    starts = np.flatnonzero(np.any(np.diff(alike[order], axis=0), axis=1)) + 1
    starts, last = np.append(0, starts), np.append(starts, len(order)) - 1
    mask[:, order[last]] = True
    if choices.role == PREFILL:
        return mask
    for of_stream, stream in zip(mask, streams, strict=True):
        limits = [it.target.at_most_s for it in stream.targets if it.target.quantity in (TPOT, ITL)]
        fits = choices.tpot_s[order] <= max(limits, default=np.inf)
        last_fitting = starts + np.add.reduceat(fits, starts, dtype=np.int64) - 1
        for beyond in range(N_BEYOND + 1) if limits else ():
            of_stream[order[np.clip(last_fitting + beyond, starts, last)]] = True
    return mask


def _holds(stations: Sequence[Station], streams: Sequence[RequestClass], role: str) -> BoolArray:
    """Whether the longest request of each stream has room (G, N)."""
    name = "n_longest_input" if role == PREFILL else "n_longest_tokens"
    n_tokens = np.array([[getattr(one, name)] for one in streams])
    each = ((one.sequence_bytes, one.token_bytes, one.room_bytes) for one in stations)
    fixed, of_token, room = np.array([*each]).reshape(-1, 3).T
    return np.asarray(fixed + of_token * n_tokens <= room)
