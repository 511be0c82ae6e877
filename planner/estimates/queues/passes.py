"""How long passes take, for whole arrays of passes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.stations import Station


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
        found = np.zeros(read.shape)
        ends = [
            _cells(points, x)
            for points, x in (
                (self._reading.n_sequences, beside),
                (self._reading.prompt_tokens, read),
                (self._reading.span_tokens, spans),
            )
        ]
        for corner in range(8):
            upper = [corner >> axis & 1 for axis in range(3)]
            at = tuple(end[up] for end, up in zip(ends, upper, strict=True))
            share = [end[2] if up else 1.0 - end[2] for end, up in zip(ends, upper, strict=True)]
            found += self._reading_s[at] * share[0] * share[1] * share[2]
        return np.asarray(np.where(read > 0, np.maximum(0.0, found), 0.0))


def _cells(points: tuple[float, ...], x: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Lower and upper point of the interval of each x, and how far into it x is."""
    grid = np.array(points, dtype=float)
    if len(grid) == 1:
        at = np.zeros(x.shape, dtype=np.int64)
        return at, at, np.zeros(x.shape)
    at = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    return at, at + 1, (x - grid[at]) / (grid[at + 1] - grid[at])
