"""How long passes take, for whole arrays of passes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.stations import Station

_Cells = tuple[IntArray, IntArray, FloatArray]


class PassTimes:
    """D and R of a station, linear between the points of its tables and beyond their ends."""

    def __init__(self, station: Station) -> None:
        self._decode = station.decode
        self._reading = station.reading
        if station.decode is not None:
            self._decode_s = np.array(station.decode.seconds)
        if station.reading is not None:
            self._reading_s = np.array(station.reading.seconds)

    def decode_s(self, n: ArrayLike, context: float) -> FloatArray:
        """D of n sequences, of any shape, that have so many tokens cached on average [s]."""
        numbers = np.asarray(n, dtype=float)
        if self._decode is None:
            return np.zeros_like(numbers)
        at, beyond, inside = _cells(self._decode.context_tokens, np.array(context))
        line = self._decode_s[:, at] * (1.0 - inside) + self._decode_s[:, beyond] * inside
        low, high, part = _cells(self._decode.n_sequences, numbers)
        found = line[low] * (1.0 - part) + line[high] * part
        return np.where(numbers > 0, found, 0.0)

    def read_s(self, n: ArrayLike, tokens: ArrayLike, span: ArrayLike) -> FloatArray:
        """R of so many tokens of prompts beside n decodes, of any shapes that go together [s]."""
        beside, read, spans = np.broadcast_arrays(
            *(np.asarray(x, dtype=float) for x in (n, tokens, span))
        )
        if self._reading is None:
            return np.zeros(read.shape)
        n_at, token_at, span_at = (
            _cells(points, x)
            for points, x in (
                (self._reading.n_sequences, beside),
                (self._reading.prompt_tokens, read),
                (self._reading.span_tokens, spans),
            )
        )
        found = self._plane(n_at[0], token_at, span_at)
        if n_at[1] is not n_at[0]:
            found += n_at[2] * (self._plane(n_at[1], token_at, span_at) - found)
        return np.asarray(np.where(read > 0, np.maximum(0.0, found), 0.0))

    def _plane(self, n: IntArray, tokens: _Cells, spans: _Cells) -> FloatArray:
        """Between the four points around tokens and span, beside the n-th number of sequences."""
        (low, high, down), (near, far, across) = tokens, spans
        table = self._reading_s
        first = table[n, low, near] + down * (table[n, high, near] - table[n, low, near])
        last = table[n, low, far] + down * (table[n, high, far] - table[n, low, far])
        return np.asarray(first + across * (last - first))


def _cells(points: tuple[float, ...], x: FloatArray) -> _Cells:
    """Lower and upper point of the interval of each x, and how far into it x is."""
    grid = np.array(points, dtype=float)
    if len(grid) == 1:
        at = np.zeros(x.shape, dtype=np.int64)
        return at, at, np.zeros(x.shape)
    at = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    return at, at + 1, (x - grid[at]) / (grid[at + 1] - grid[at])
