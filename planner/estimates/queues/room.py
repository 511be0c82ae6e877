"""Whether there is room for one more request beside those that decode."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import FloatArray
from planner.estimates.queues.laws import on_grid
from planner.estimates.queues.loads import Load
from planner.specs.stations import Station

_POINTS = 512
_ROOMS = 4
"""The grid of bytes is so many points, and as long as so many rooms."""

_SEEN_LONGER = 0.5
"""Who needs much room stands first in line for longer, and all behind it wait. How much longer is a
power of its bytes, between 0, no longer, and 1, as much as it is larger: chosen by simulation."""

_WRITTEN = np.array([1.0, 3.0, 5.0, 7.0]) / 8.0
"""Shares of its answer that a decoding sequence has written, as one finds it."""


class Room:
    """Room for caches of a station, and what requests of a load take of it, at any rate."""

    def __init__(self, station: Station, load: Load) -> None:
        self._station, self._load = station, load

    def fits(self, n_reading: float) -> FloatArray:
        """Probability that one more fits beside n that decode, n = 0 … most_running − 1 (N,).

        Those that decode are seen more often the longer their answers are, and have written any
        share of these. Their caches and what is reserved of the rest are independent, so that the
        law of the sum of n is the n-fold convolution, by its transform.

        Args:
            n_reading: requests on average that have room and are being read.
        """
        most, room = self._station.most_running, self._station.room_bytes
        found = np.ones(most)
        if not np.isfinite(room) or self._load.mean_rounds <= 0.0:
            return found
        sums = self._sums
        new = self._load.mean(_needed(self._station, self._load))
        free = max(0.3, 1.0 - n_reading * new / room)
        found[:] = 0.0
        found[: len(sums)] = np.clip((sums @ _below(free)).real, 0.0, 1.0)
        found[0] = 1.0
        return np.asarray(np.minimum.accumulate(found))

    @cached_property
    def _sums(self) -> NDArray[np.complex128]:
        """Transforms of what one request takes beside 0, 1, … (N, G / 2 + 1)."""
        station, load, room = self._station, self._load, self._station.room_bytes
        sizes, weight = _held(station, load)
        new = _needed(station, load)
        step = room * _ROOMS / _POINTS
        one = np.fft.rfft(on_grid(np.minimum(sizes, room), weight, step, _POINTS))
        seen = load.weight * new**_SEEN_LONGER
        first = np.fft.rfft(on_grid(np.minimum(new, room), seen / np.sum(seen), step, _POINTS))
        n = int(min(station.most_running, 2.0 * room / float(weight @ sizes) + 2))
        return np.asarray(
            np.cumprod(np.vstack([first, np.broadcast_to(one, (n - 1, len(one)))]), axis=0)
        )


def _held(station: Station, load: Load) -> tuple[FloatArray, FloatArray]:
    """Bytes of a sequence that decodes, and how often it is seen (V,)."""
    written = _WRITTEN[:, None] * load.n_output
    owed = station.reserved_fraction * (load.n_output - written)
    tokens = (load.n_input + written + owed).ravel()
    seen = np.tile(load.n_rounds * load.weight / load.mean_rounds, len(_WRITTEN)) / len(_WRITTEN)
    return station.sequence_bytes + station.token_bytes * tokens, seen


def _needed(station: Station, load: Load) -> FloatArray:
    """Bytes that a request of each cell has to find (K,)."""
    tokens = load.n_input + station.reserved_fraction * load.n_output
    return np.asarray(station.sequence_bytes + station.token_bytes * tokens)


def _below(share: float) -> NDArray[np.complex128]:
    """What, times a transform, adds up the part of a law that is within a share of the room."""
    seen = np.zeros(_POINTS)
    seen[: int(share * _POINTS / _ROOMS) + 1] = 1.0
    transform = np.fft.rfft(seen).conj() * 2.0 / _POINTS
    transform[[0, -1]] /= 2.0
    return transform
