"""The paper's search: every point of a grid of devices and requests, then its frontier.

Source: [Erdil2025] §2.2.2 and §4; grid, latency caps and ties of the published program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.economics.transformer import n_params
from planner.specs.records.economics import DecodePass
from research.economics.model.casework import FULL, Casework, latency_s
from research.economics.model.cost import mfu_fraction, preference, usd_per_token
from research.economics.model.speculation import speculative_latency_s

N_GRID_POINTS = 400
N_LATENCY_CAPS = 1000
LOG2_LARGEST = 18.0
SLOWEST_RATIO = 100.0
PREFERENCE_EXPONENT = 3.0
"""Reproduces the paper's Tables 3 and 6; its text says only that it was picked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Some points of a grid with their latency and price, all of one shape."""

    n_devices: FloatArray
    n_requests: FloatArray
    latency_s: FloatArray
    usd_per_token: FloatArray

    @property
    def tokens_per_s(self) -> FloatArray:
        """Speed that one request sees."""
        return np.asarray(1.0 / self.latency_s)

    def at(self, index: int | IntArray) -> Points:
        """Some of the points, by their place in the flattened arrays."""
        return Points(
            n_devices=np.asarray(self.n_devices.ravel()[index]),
            n_requests=np.asarray(self.n_requests.ravel()[index]),
            latency_s=np.asarray(self.latency_s.ravel()[index]),
            usd_per_token=np.asarray(self.usd_per_token.ravel()[index]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptimum:
    """What the search finds: the frontier, its fastest and its preferred point."""

    frontier: Points
    fastest: Points
    preferred: Points
    preferred_mfu_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft model and the chance that the target accepts one of its tokens."""

    decode: DecodePass
    acceptance: float


def paper_grid(
    decode: DecodePass, *, n_points: int = N_GRID_POINTS
) -> tuple[FloatArray, FloatArray]:
    """Devices as a column and requests as a row, both uniform in their logarithm [1].

    Devices from those whose memory the weights fill to 2¹⁸, requests from one to 2¹⁸
    times the sparsity.

    Source: [Erdil2025], published program.
    """
    model = decode.model
    fewest = n_params(model) * model.weight_bytes / decode.device.hbm_bytes
    n_devices = np.exp2(np.linspace(np.log2(fewest), LOG2_LARGEST, n_points))
    most = LOG2_LARGEST + np.log2(model.sparsity)
    n_requests = np.exp2(np.linspace(0.0, most, n_points))
    return n_devices[:, np.newaxis], n_requests[np.newaxis, :]


def priced(
    decode: DecodePass, n_devices: FloatArray, n_requests: FloatArray, latency: FloatArray
) -> Points:
    """Points of the latencies, which the other arrays broadcast to."""
    n, b = (np.broadcast_to(count, latency.shape) for count in (n_devices, n_requests))
    price = usd_per_token(latency, n, b, decode.device)
    return Points(n_devices=n, n_requests=b, latency_s=latency, usd_per_token=price)


def frontier(
    points: Points,
    *,
    n_caps: int = N_LATENCY_CAPS,
    most_tokens_per_s: float = np.inf,
) -> Points:
    """The cheapest point under each of a thousand caps on the latency, fastest first.

    Caps are uniform in their logarithm from the least latency to a hundred times it. Of
    equally cheap points the fastest is taken; each point is kept once.

    Args:
        most_tokens_per_s: cap on what an instance produces, for a limited demand.

    Raises:
        ValueError: no point has a finite latency within the demand.

    Source: [Erdil2025] §2.2.2 and the published program.
    """
    latency, price = points.latency_s.ravel(), points.usd_per_token.ravel()
    demand = points.n_requests.ravel() / latency
    order = np.flatnonzero(np.isfinite(latency) & (demand <= most_tokens_per_s))
    if order.size == 0:
        raise ValueError("no point of the grid can serve the model")
    order = order[np.lexsort((price[order], latency[order]))]
    cheaper = price[order] < np.minimum.accumulate(np.r_[np.inf, price[order][:-1]])
    order = order[cheaper]
    caps = latency[order[0]] * np.geomspace(1.0, SLOWEST_RATIO, n_caps)
    chosen = np.searchsorted(latency[order], caps, side="right") - 1
    return points.at(order[np.unique(chosen)])


def optimum(
    decode: DecodePass,
    points: Points,
    *,
    n_caps: int = N_LATENCY_CAPS,
    exponent: float = PREFERENCE_EXPONENT,
) -> GridOptimum:
    """Frontier of some points, its fastest and its preferred one.

    Source: [Erdil2025] Tables 2 and 3, Eq. 45.
    """
    edge = frontier(points, n_caps=n_caps)
    liking = preference(edge.tokens_per_s, edge.usd_per_token, exponent=exponent)
    best = edge.at(int(liking.argmax()))
    mfu = mfu_fraction(decode, best.latency_s, best.n_devices, best.n_requests)
    return GridOptimum(
        frontier=edge,
        fastest=edge.at(0),
        preferred=best,
        preferred_mfu_fraction=float(mfu),
    )


def grid_optimum(
    decode: DecodePass,
    *,
    draft: Draft | None = None,
    n_points: int = N_GRID_POINTS,
    casework: Casework = FULL,
) -> GridOptimum:
    """The whole search of the paper, exhaustive over its grid.

    Without a draft a grid of 400 × 400 evaluates 18 million layouts, with one six times
    as many.

    Raises:
        KeyError: the device has no FLOP rate for the width of the model's weights.
        ValueError: no point of the grid can serve the model.

    Source: [Erdil2025] §4, Tables 2-4 and 6.
    """
    n, b = paper_grid(decode, n_points=n_points)
    if draft is None:
        latency = latency_s(decode, n, b, casework=casework)
    else:
        latency = speculative_latency_s(
            decode, draft.decode, (n, b), acceptance=draft.acceptance, casework=casework
        )
    return optimum(decode, priced(decode, n, b, latency))
