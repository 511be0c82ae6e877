"""How long passes take, for whole arrays of passes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.stations import Row, Station

_Cells = tuple[IntArray, IntArray, FloatArray]


class _Axis:
    """Ascending points, and between which of them any value is."""

    __slots__ = ("_last", "_wide", "points")

    def __init__(self, points: Row | tuple[int, ...]) -> None:
        self.points = np.array(points, dtype=float)
        self._wide = np.diff(self.points)
        self._last = len(points) - 2

    def cells(self, x: FloatArray) -> _Cells:
        """Lower and upper point of the interval of each x, and how far into it x is."""
        if self._last < 0:
            at = np.zeros(x.shape, dtype=np.int64)
            return at, at, np.zeros(x.shape)
        at = np.searchsorted(self.points, x, side="right") - 1
        at = np.minimum(np.maximum(at, 0), self._last)
        return at, at + 1, (x - self.points[at]) / self._wide[at]


class PassTimes:
    """D and R of a station, linear between the points of its tables and beyond their ends."""

    def __init__(self, station: Station) -> None:
        self._lines: dict[float, FloatArray] = {}
        self._decode = self._reading = None
        if station.decode is not None:
            self._decode = tuple(
                map(_Axis, (station.decode.n_sequences, station.decode.context_tokens))
            )
            self._decode_s = np.array(station.decode.seconds)
        if station.reading is not None:
            reading = station.reading
            points = (reading.n_sequences, reading.prompt_tokens, reading.span_tokens)
            self._reading = tuple(map(_Axis, points))
            self._reading_s = np.array(reading.seconds)

    def decode_s(self, n: ArrayLike, context: float) -> FloatArray:
        """D of n sequences, of any shape, that have so many tokens cached on average [s]."""
        numbers = np.asarray(n, dtype=float)
        if self._decode is None:
            return np.zeros_like(numbers)
        line = self._lines.get(context)
        if line is None:
            at, beyond, inside = self._decode[1].cells(np.array(context))
            line = self._decode_s[:, at] * (1.0 - inside) + self._decode_s[:, beyond] * inside
            self._lines[context] = line
        low, high, part = self._decode[0].cells(numbers)
        near = line[low]
        return np.where(numbers > 0, near + part * (line[high] - near), 0.0)

    def read_s(self, n: ArrayLike, tokens: ArrayLike, span: ArrayLike) -> FloatArray:
        """R of so many tokens of prompts beside n decodes, of any shapes that go together [s]."""
        beside, read, spans = (np.asarray(x, dtype=float) for x in (n, tokens, span))
        if self._reading is None:
            return np.zeros(np.broadcast_shapes(beside.shape, read.shape, spans.shape))
        cells = [
            axis.cells(x) for axis, x in zip(self._reading, (beside, read, spans), strict=True)
        ]
        (low, high, part), token_at, span_at = cells
        found = self._plane(low, token_at, span_at)
        if np.any(part):
            found = found + part * (self._plane(high, token_at, span_at) - found)
        return np.asarray(np.where(read > 0, np.maximum(0.0, found), 0.0))

    def _plane(self, n: IntArray, tokens: _Cells, spans: _Cells) -> FloatArray:
        """Between the four points around tokens and span, beside the n-th number of sequences."""
        (low, high, down), (near, far, across) = tokens, spans
        table = self._reading_s
        start = table[n, low, near]
        first = start + down * (table[n, high, near] - start)
        start = table[n, low, far]
        last = start + down * (table[n, high, far] - start)
        return np.asarray(first + across * (last - first))
