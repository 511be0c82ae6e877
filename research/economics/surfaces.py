"""Latency over the paper's grid, each surface computed once a process.

With a draft model the exhaustive search takes six passes over the grid. Here scoring a
draft is left out wherever a floor on its time shows that the point stays off the
frontier; `test_searches.py` holds that against the exhaustive search on a small grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.equations.economics.transformer import pass_flop
from planner.equations.economics.work import launch_s
from planner.specs.records.economics import Collectives, DecodePass, TreeCollectives
from research.economics import facts
from research.economics.model.casework import FULL, Casework, latency_s
from research.economics.model.search import (
    N_GRID_POINTS,
    N_LATENCY_CAPS,
    GridOptimum,
    Points,
    optimum,
    paper_grid,
    priced,
)
from research.economics.model.speculation import (
    speculative_token_s,
)

ACCEPTANCE = 0.8
SAMPLE_EVERY = 8
BEST_FIRST = (4, 5, 3, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve of the paper: what is served on what, and how the grid is searched."""

    model: str
    device: str = "H100"
    n_context_tokens: float = 0.0
    draft: str = ""
    casework: Casework = FULL
    collectives: Collectives = field(default_factory=TreeCollectives)
    n_points: int = N_GRID_POINTS

    def decode(self, model: str) -> DecodePass:
        """A pass of a model on the series' GPU and context."""
        decode = facts.decode(model, self.device, n_context_tokens=self.n_context_tokens)
        if decode.device.collectives == self.collectives:
            return decode
        return replace(decode, device=replace(decode.device, collectives=self.collectives))

    @property
    def target(self) -> DecodePass:
        """The pass of the model that is served."""
        return self.decode(self.model)


@cache
def surface(series: Series) -> Points:
    """Latency and price of every grid point; with a draft, of all that may matter."""
    n, b = paper_grid(series.target, n_points=series.n_points)
    if series.draft:
        return priced(series.target, n, b, _speculative_latency(series, n, b))
    return priced(series.target, n, b, latency_s(series.target, n, b, casework=series.casework))


@cache
def search(series: Series, n_caps: int = N_LATENCY_CAPS) -> GridOptimum:
    """Frontier, fastest and preferred point of a series."""
    return optimum(series.target, surface(series), n_caps=n_caps)


def _speculative_latency(series: Series, n: FloatArray, b: FloatArray) -> FloatArray:
    """Exact where a point may be on the frontier, elsewhere no less than what is reached."""
    target, draft = series.target, series.decode(series.draft)
    plain = surface(replace(series, draft="")).latency_s
    drafted = latency_s(draft, n, b, casework=series.casework)
    n, b = np.broadcast_arrays(n, b)
    latency = plain.copy()
    for part in (np.s_[::SAMPLE_EVERY, ::SAMPLE_EVERY], np.s_[:, :]):
        for length in BEST_FIRST:
            scoring = _scoring_floor_s(target, plain, n, b * length)
            floor = speculative_token_s(scoring, drafted, length, acceptance=ACCEPTANCE)
            known, hoped = (priced(target, n, b, time) for time in (latency, floor))
            chosen = np.zeros(n.shape, dtype=bool)
            chosen[part] = ((floor < latency) & ~_is_dominated(hoped, known))[part]
            scoring = latency_s(
                replace(target, n_scored_tokens=length),
                n[chosen],
                b[chosen],
                casework=series.casework,
            )
            token = speculative_token_s(scoring, drafted[chosen], length, acceptance=ACCEPTANCE)
            latency[chosen] = np.minimum(latency[chosen], token)
    return latency


def _scoring_floor_s(
    target: DecodePass, plain: FloatArray, n: FloatArray, n_tokens: FloatArray
) -> FloatArray:
    """Scoring several tokens takes no less than one, nor than its arithmetic at full rate."""
    compute = pass_flop(target, n_tokens) / (n * target.device.flop_per_s_of(target.model))
    return np.maximum(plain, launch_s(target) + compute)


def _is_dominated(floor: Points, known: Points) -> BoolArray:
    """Whether a known point is as fast as the floor and cheaper than the floor's price."""
    order = np.argsort(known.latency_s, axis=None)
    latency = known.latency_s.ravel()[order]
    cheapest = np.minimum.accumulate(known.usd_per_token.ravel()[order])
    at = np.searchsorted(latency, floor.latency_s, side="right")
    return np.r_[np.inf, cheapest][at] < floor.usd_per_token
