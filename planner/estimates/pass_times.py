"""How long passes take, for whole arrays of passes at once."""

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.records.roles import Row, Station

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
    """D and R of stations, linear between the points of their tables and beyond their ends.

    Args:
        stations: whose tables have the same points, (K,). What is asked of them, and said, has
            them as its first axis; of length 1 it is asked of all.
    """

    def __init__(self, stations: Sequence[Station]) -> None:
        decode, reading = stations[0].decode, stations[0].reading
        self._n_stations = len(stations)
        self._decode = self._reading = None
        if decode is not None:
            self._decode = _Axis(decode.n_sequences), _Axis(decode.context_tokens)
            self._decode_s = np.array([it.decode.seconds for it in stations if it.decode])
        if reading is not None:
            points = (reading.n_sequences, reading.prompt_tokens, reading.span_tokens)
            self._reading = tuple(map(_Axis, points))
            self._reading_s = np.array([it.reading.seconds for it in stations if it.reading])

    def decode_s(self, n: FloatArray, context: FloatArray) -> FloatArray:
        """D of n sequences that have so many tokens cached on average, of any shapes [s]."""
        shape = np.broadcast_shapes(n.shape, context.shape, _first(self._n_stations, n.ndim))
        if self._decode is None:
            return np.zeros(shape)
        low, high, part = self._decode[0].cells(n)
        at, beyond, inside = self._decode[1].cells(context)
        table, k = self._decode_s, _numbers(self._n_stations, n.ndim)
        near = table[k, low, at] * (1.0 - inside) + table[k, low, beyond] * inside
        far = table[k, high, at] * (1.0 - inside) + table[k, high, beyond] * inside
        return np.where(n > 0, near + part * (far - near), 0.0)

    def read_s(self, n: FloatArray, tokens: FloatArray, span: FloatArray) -> FloatArray:
        """R of so many tokens of prompts beside n decodes, of any shapes that go together [s].

        Tokens and spans are the same for all stations: they lack the first axis.
        """
        of_read = np.broadcast_shapes(tokens.shape, span.shape)
        stations = _first(self._n_stations, n.ndim)
        if self._reading is None:
            return np.zeros(np.broadcast_shapes(n.shape, of_read, stations))
        low, high, part = self._reading[0].cells(n)
        planes = self._planes(self._reading[1].cells(tokens), self._reading[2].cells(span))
        k, inside = _numbers(self._n_stations, n.ndim), np.indices(of_read, sparse=True)
        seconds = planes[(k, low, *inside)]
        if np.any(part):
            seconds = seconds + part * (planes[(k, high, *inside)] - seconds)
        return np.asarray(np.where(tokens > 0, np.maximum(0.0, seconds), 0.0))

    def _planes(self, tokens: _Cells, spans: _Cells) -> FloatArray:
        """Between four points around tokens and span, beside each number of sequences (K, N, …)."""
        (low, high, down), (near, far, across) = tokens, spans
        table = self._reading_s
        start = table[:, :, low, near]
        first = start + down * (table[:, :, high, near] - start)
        start = table[:, :, low, far]
        last = start + down * (table[:, :, high, far] - start)
        return np.asarray(first + across * (last - first))


def _first(n_stations: int, n_axes: int) -> tuple[int, ...]:
    """A shape of so many axes, the first that of the stations."""
    return (n_stations, *[1] * (n_axes - 1))


def _numbers(n_stations: int, n_axes: int) -> IntArray:
    return np.arange(n_stations).reshape(_first(n_stations, n_axes))
