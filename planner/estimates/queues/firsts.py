"""TTFT: what a request finds under way, the passes before its last, and that one.

An arrival is in a pass with a probability that is as large as the pass is long, anywhere in it. It
waits for the end, with the tokens before it that the pass leaves and those that came earlier in
it. With a tokens before it and x of its own its first token comes with pass k = ⌈(a + x) / B⌉ from
there: k − 1 full ones and one that reads what is left, with what came after it as far as it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.queues.backlog import Backlog
from planner.estimates.queues.laws import Law, Lines, grouped_rows
from planner.estimates.queues.loads import Load
from planner.estimates.queues.served import Served

_FEW = 4
_PLAIN_PARTS, _PARTS = (10, 5), (4, 2)
"""Times within a pass at which requests come, of one that reads nothing, and of others: where
prompts have few lengths, and where they have more than that."""

_SELDOM = 0.003
_NEGLIGIBLE = 1e-5
_EDGES = (
    (0.0, 0.2, 0.4, 0.55, 0.7, 0.82, 0.9, 0.95, 0.98, 0.993, 1.0),
    (0.0, 0.3, 0.6, 0.8, 0.9, 0.96, 0.99, 1.0),
)
_LATER_EDGES = (0.0, 0.8, 1.0)
_LAST_EDGES = np.array([0.0, 0.4, 0.7, 0.85, 0.95, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Firsts:
    """Of each state: TTFT, and the passes with which first tokens come.

    Args:
        ttft: of each state (S).
        last_s: pass of the first token, in groups (S, Q) [s].
        left_tokens: that wait before those that come in it, of each group (S, Q).
        weight: of each group (S, Q).
        longer: how much longer passes are on average than in the account of the population (S,).
    """

    ttft: list[Law]
    last_s: FloatArray
    left_tokens: FloatArray
    weight: FloatArray
    longer: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """What requests find as they come, in M cases: the state, and the pass under way."""

    row: IntArray
    kind: IntArray
    gone_s: FloatArray
    rest_s: FloatArray
    weight: FloatArray


def firsts(served: Served, state: Backlog, free: FloatArray) -> Firsts:
    """TTFT of requests that have a place, in each of the states of the station.

    Args:
        free: places that no sequence has which decodes (S,): others wait in line for these.
    """
    several = int(len(served.own.inputs.values) > _FEW)
    found = _found(state, _PLAIN_PARTS[several], _PARTS[several])
    before, likely = _before(state, found, _EDGES[several])  # (M, A)
    inputs, station = served.own.inputs, served.station
    weight = (found.weight[:, None] * likely)[:, :, None] * inputs.weights
    case, tokens, cell = np.nonzero(weight > _NEGLIGIBLE * 1e-3)  # (E,) each, as all below
    weight, row, own_input = (
        weight[case, tokens, cell],
        found.row[case],
        inputs.values[cell],
    )
    chunk, may_read = (x[row] for x in (served.chunk_tokens(state.n), _may_read(served, free)))
    ahead = np.minimum(before[case, tokens], may_read) + own_input
    n_full = np.maximum(0.0, np.ceil(ahead / chunk - 1e-9) - 1.0)
    own = ahead - n_full * chunk
    gathered = found.rest_s[case] + n_full * state.full_s[row]
    # what is composed behind a full chunk reads of what that left, which is counted above
    is_full = found.kind == state.class_s.shape[1] - 1
    waited = gathered + np.where(is_full, 0.0, _composed_s(served, state)[found.row])[case]
    comes = np.maximum(0.0, served.load.rate_per_s * gathered - state.steady / 2.0)
    later, share = _later(served.load, comes, state.n_after)
    read = np.minimum(chunk, own + later)
    span = np.minimum(read / 2.0, served.load.mean_span)
    span[0] = np.where(n_full > 0, own_input - own / 2.0, np.minimum(own / 2.0, own_input))
    added = _added_s(served, state, row, (read, np.maximum(span, 0.0)))
    ridden_s = served.ridden_s(state.n)[row]
    last = ridden_s + added * station.n_lanes
    fixed = station.request_s + station.request_token_s * own_input
    left = np.maximum(0.0, np.minimum(own + later, may_read) - chunk)
    times = (waited + last + fixed, ridden_s + added, left)
    return _by_state(row, len(state.n), times, weight * share)


def _may_read(served: Served, free: FloatArray) -> FloatArray:
    """Tokens of the prompts that find a place in each state (S,)."""
    return np.asarray(np.maximum(1.0, free) * served.load.mean_input)


def _later(load: Load, comes: FloatArray, n_after: float) -> tuple[FloatArray, FloatArray]:
    """Tokens that come behind a request before its last pass, and how likely: (3, M, A, K).

    None; or one prompt, of the shorter or of the longest ones, and the mean of the others.

    Args:
        comes: requests on average, at random (M, A, K).
        n_after: of the request's own group.
    """
    nobody = np.exp(-comes) / (1.0 + n_after)
    others = (comes + n_after) / np.maximum(1.0 - nobody, 1e-12) - 1.0
    first = Law(load.n_input, load.weight).grouped(_LATER_EDGES)
    tokens = [np.zeros_like(comes)] + [x + others * load.mean_input for x in first.values]
    shares = [nobody] + [(1.0 - nobody) * x for x in first.weights]
    return np.stack(tokens), np.stack(shares)


def _found(state: Backlog, n_plain: int, n_others: int) -> _Found:
    """Each state, class of the pass under way and time in it, with its probability.

    Args:
        n_plain, n_others: times in a pass that reads nothing, and in others.
    """
    found = state.share * state.class_s
    if state.steady > 0.0:  # who keeps a distance seldom finds the pass of who came before it
        soon = np.maximum(0.0, 1.0 - state.group_rate[:, None] * state.class_s[:, 1:])
        found[:, 1:] *= 1.0 - state.steady * soon
    found = found / found.sum(axis=1, keepdims=True)
    row, kind = np.nonzero(found > _NEGLIGIBLE)
    idle = (kind == 0) & state.idles[row]
    took, weight = np.where(idle, 0.0, state.class_s[row, kind]), found[row, kind]
    n_parts = np.where(kind == 0, n_plain, n_others)
    n_parts = np.where(idle | (weight < _SELDOM), 1, n_parts)
    case = np.repeat(np.arange(len(row)), n_parts)
    part = np.arange(len(case)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    gone = (part + 0.5) / n_parts[case]
    return _Found(
        row=row[case],
        kind=kind[case],
        gone_s=gone * took[case],
        rest_s=(1.0 - gone) * took[case],
        weight=(weight / n_parts)[case],
    )


def _before(
    state: Backlog, found: _Found, edges: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Tokens that are read before a request's own: groups of them, and their weights (M, A)."""
    transform = state.comes_before(found.gone_s, found.row)
    transform *= state.before[found.row]
    leaves = found.kind == state.class_s.shape[1] - 1
    if leaves.any():
        over = np.fft.rfft(state.over, axis=-1)
        transform[leaves] *= over[found.row[leaves]]
    law = np.maximum(0.0, np.fft.irfft(transform, axis=-1))
    reach = int(np.flatnonzero(law.max(axis=0) > _NEGLIGIBLE * 1e-3)[-1]) + 1
    law = law[:, :reach] / law[:, :reach].sum(axis=1, keepdims=True)
    tokens = np.arange(reach) * state.step[found.row][:, None]
    return grouped_rows(tokens, law, edges)


def _composed_s(served: Served, state: Backlog) -> FloatArray:
    """The pass that was composed before a request came, where that is so (S,) [s]."""
    if not served.station.composes_ahead:
        return np.zeros(len(state.n))
    usual = np.where(state.idles, 0.0, state.class_s[:, 0] / served.n_looks)
    busy = state.share[:, 1:]
    return np.asarray(usual * state.share[:, 0] + (busy * state.class_s[:, 1:]).sum(axis=1))


def _added_s(
    served: Served, state: Backlog, row: IntArray, reads: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """What passes add that read tokens of a span, by a line in the span (L, E) [s]."""
    tokens, span = reads
    points = served.prompt_points
    low, high = served.load.mean_span / 2.0, served.load.mean_span * 2.0
    near, far = served.added_s(state.n[:, None], points, np.array([low, high])[:, None, None])
    found, rise = Lines(points, np.stack([near, (far - near) / (high - low)])).at(row, tokens)
    return np.asarray(np.maximum(0.0, found + rise * (span - low)))


def _by_state(
    row: IntArray, n_rows: int, found: tuple[FloatArray, FloatArray, FloatArray], weight: FloatArray
) -> Firsts:
    """Times, last passes and what they leave, each (L, E), by state."""
    laws, groups = [], []
    edges = np.searchsorted(row, np.arange(n_rows + 1))
    for low, high in pairwise(edges):
        ttft, last, left, likely = (x[:, low:high].ravel() for x in (*found, weight))
        laws.append(Law(ttft, likely))
        groups.append(_last_groups(last, left, likely))
    last_s, left_tokens, shares = (np.stack(x) for x in zip(*groups, strict=True))
    return Firsts(
        ttft=laws, last_s=last_s, left_tokens=left_tokens, weight=shares, longer=np.ones(n_rows)
    )


def _last_groups(
    last: FloatArray, left: FloatArray, likely: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    order = np.argsort(_ranked(last, left), kind="stable")
    last, left, likely = last[order], left[order], likely[order] / np.sum(likely)
    group = np.searchsorted(_LAST_EDGES[1:-1], np.cumsum(likely) - likely / 2.0)
    size = len(_LAST_EDGES) - 1
    weight = np.bincount(group, likely, size)
    held = np.maximum(weight, 1e-300)
    means: list[NDArray[np.float64]] = [
        np.bincount(group, likely * x, size) / held for x in (last, left)
    ]
    return means[0], means[1], np.asarray(weight, dtype=float)


def _ranked(first: FloatArray, second: FloatArray) -> NDArray[np.uint16]:
    """Whole numbers in the order of the first, and of the second where these are alike."""
    scaled = [(x - x.min()) / max(float(np.ptp(x)), 1e-300) for x in (first, second)]
    return np.asarray(scaled[0] * 65_000.0 + scaled[1] * 500.0, dtype=np.uint16)
