"""Tokens of prompts that wait as a pass begins: a server that gathers all that came in a pass.

Of w tokens a pass reads at most a chunk B, and what comes meanwhile waits for the next:

    T(w) = D(n, c) + R(n, min(w, B), s),    w' = max(0, w − B) + tokens that come in T(w)

Arrivals are Poisson, or Poisson groups where they are more variable, so that what comes is
compound Poisson, found by its transform on a grid of tokens [Bailey1954]; where they are less
variable, as many come as of trials of which 1 − c² succeed, of one at least. Where prompts are read
alone, T(0) is that of the passes between two looks, and T(w) of a pass that reads. Where nothing
decodes, the station waits for the next arrival. T is linear between some w, the classes, so that
of w ≤ B only the classes' shares count, and the stationary law is found by iteration. n moves
slowly beside w: each n has its own law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import FloatArray
from planner.equations.queueing import group_of_dispersion
from planner.estimates.queues.laws import grouped_rows, on_grid
from planner.estimates.queues.served import Served

_POINTS = 160
"""Of the grid of tokens; as many again are beyond it, for what comes in a pass."""

_CLASSES = 10
_GROUPS = (0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.94, 0.98, 0.995, 1.0)
"""Classes of the iteration, evenly by tokens; and what is found, by share of the passes that read
no more than a chunk."""

_ROUNDS = 400
_SETTLED = 1e-4
_MOST_BUSY = 0.98
_STEADIEST = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backlog:
    """Stationary laws of the backlog beside each of several numbers of decodes.

    Args:
        n: sequences that decode (S,).
        idles: whether nothing is under way where nothing waits (S,).
        step: tokens between two points of the grid (S,).
        group_rate: of groups of requests (S,) [1/s].
        transform: of the tokens of a group (S, G/2 + 1).
        before: of the tokens of those of a request's own group that stand before it, of geometric
            groups (S, G/2 + 1).
        n_after: requests of its group behind one, on average.
        steady: by how much the variance of how many come is below Poisson's, as a share of it.
        class_s: time of a pass of each class (S, C); first of none that wait, last of more than
            a chunk, between them of groups of like backlogs [s].
        share: of passes of each class (S, C).
        over: law of what a pass leaves of the backlog, of those that leave any (S, G).
    """

    n: FloatArray
    idles: NDArray[np.bool_]
    step: FloatArray
    group_rate: FloatArray
    transform: NDArray[np.complex128]
    before: NDArray[np.complex128]
    n_after: float
    steady: float
    class_s: FloatArray
    share: FloatArray
    over: FloatArray

    @property
    def full_s(self) -> FloatArray:
        """A pass that reads a whole chunk (S,) [s]."""
        return self.class_s[:, -1]

    @property
    def mean_s(self) -> FloatArray:
        """A pass, of all that there are (S,) [s]."""
        return np.asarray((self.share * self.class_s).sum(axis=1) / self.share.sum(axis=1))

    def comes(self, seconds: FloatArray, row: NDArray[np.int64]) -> NDArray[np.complex128]:
        """Transforms of the tokens that come in a time, in a row's state (M, G/2 + 1)."""
        mean = (self.group_rate[row] * seconds)[:, None]
        return self._of_number(mean, self.transform[row])

    def comes_before(self, seconds: FloatArray, row: NDArray[np.int64]) -> NDArray[np.complex128]:
        """The same in a time at whose end a request comes: fewer where they keep their distance."""
        mean = np.maximum(0.0, self.group_rate[row] * seconds - self.steady / 2.0)[:, None]
        return self._of_number(mean, self.transform[row])

    def _of_number(self, mean: FloatArray, one: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Transform of a number of such groups: Poisson, or binomial where they are steadier."""
        if self.steady <= 0.0:
            return np.asarray(np.exp(mean * (one - 1.0)))
        trials = np.maximum(1.0, np.ceil(mean / self.steady))
        return np.asarray((1.0 + mean / trials * (one - 1.0)) ** trials)


def backlogs(served: Served, n: FloatArray) -> Backlog:
    """The laws beside n that decode (S,)."""
    full_s, chunk = served.full_s(n), served.chunk_tokens(n)
    most = _MOST_BUSY * chunk / (full_s * served.load.mean_input)
    rate = np.minimum(served.load.rate_per_s, most)
    step, per_chunk = _steps(served, n, rate, chunk)
    size = 2 * _POINTS
    one = np.stack(
        [np.fft.rfft(on_grid(served.load.n_input, served.load.weight, x, size)) for x in step]
    )
    group = float(group_of_dispersion(served.load.arrival_cv2))
    before = 1.0 / group / (1.0 - (1.0 - 1.0 / group) * one)
    within = np.minimum(per_chunk, _POINTS)
    tokens = _classes(step, within)
    idles = (n < 0.5) if served.decodes else np.ones(len(n), dtype=bool)
    class_s = np.column_stack([_class_s(served, n, tokens), full_s])
    class_s[:, 0] = np.where(idles, group / rate, class_s[:, 0])
    state = Backlog(
        n=n,
        idles=idles,
        step=step,
        group_rate=rate / group,
        transform=before * one,
        before=before,
        n_after=group - 1.0,
        steady=min(_STEADIEST, max(0.0, 1.0 - served.load.arrival_cv2)),
        class_s=class_s,
        share=np.zeros_like(class_s),
        over=np.zeros((len(n), size)),
    )
    return _settled(state, within)


def _steps(
    served: Served, n: FloatArray, rate: FloatArray, chunk: FloatArray
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Tokens between two points, and points of a chunk, a whole number of them (S,)."""
    load = served.load
    longest = float(np.max(load.n_input))
    varies = load.mean(load.n_input**2) / load.mean_input * max(1.0, load.arrival_cv2)
    comes, reads_s = np.zeros(len(n)), served.reads_s(n)
    ridden_s, plain_s = served.ridden_s(n), served.plain_s(n) * served.n_looks
    for _ in range(8):  # in a pass that follows one with the longest prompt
        tokens = np.minimum(chunk, longest + comes)
        took = ridden_s + reads_s.at(np.arange(len(n)), tokens)
        comes = rate * load.mean_input * np.maximum(took, plain_s)
    reach = 1.1 * longest + comes + 4.0 * np.sqrt(comes * varies)
    busy = rate * served.full_s(n) * load.mean_input / chunk
    queue = 8.0 * busy * varies / (2.0 * (1.0 - busy))
    reach = np.where(reach > 0.5 * chunk, reach + queue, reach)
    step = np.minimum(reach, 200.0 * chunk) / _POINTS
    per_chunk = np.maximum(1, np.round(chunk / step)).astype(np.int64)
    return np.where(per_chunk < _POINTS, chunk / per_chunk, step), per_chunk


def _classes(step: FloatArray, within: NDArray[np.int64]) -> FloatArray:
    """Tokens of each class up to a chunk (S, C − 1): none, then evenly."""
    part = np.linspace(0.0, 1.0, _CLASSES)
    some = step[:, None] * (1.0 + (within[:, None] - 1.0) * part)
    return np.column_stack([np.zeros(len(step)), some])


def _class_s(served: Served, n: FloatArray, tokens: FloatArray) -> FloatArray:
    beside = n[:, None]
    span = np.minimum(tokens / 2.0, served.load.mean_span)
    took = served.ridden_s(beside) + served.added_s(beside, tokens, span)
    took[:, 0] = served.plain_s(n) * served.n_looks
    return took


def _settled(state: Backlog, within: NDArray[np.int64]) -> Backlog:
    """The stationary law, from an empty backlog on."""
    n_rows, n_classes = state.class_s.shape
    rows = np.repeat(np.arange(n_rows), n_classes)
    came = state.comes(state.class_s.ravel(), rows).reshape(n_rows, n_classes, -1)
    came[:, 0] = np.where(state.idles[:, None], state.transform, came[:, 0])
    arrive = np.maximum(0.0, np.fft.irfft(came, axis=-1))
    parts, beyond, taken = _parts(within, n_classes, arrive.shape[-1])
    law = arrive[:, 0]
    share, over = np.zeros((n_rows, n_classes)), np.zeros_like(law)
    for _ in range(_ROUNDS):
        share[:, :-1] = (parts @ law[:, :, None])[:, :, 0]
        over = np.take_along_axis(law * beyond, taken, axis=1)
        after = (share[:, None, :-1] @ arrive[:, :-1])[:, 0]
        if over.sum() > 1e-9:
            after += np.fft.irfft(np.fft.rfft(over) * came[:, -1])
        after = np.maximum(after, 0.0)
        after /= after.sum(axis=1, keepdims=True)
        moved = float(np.abs(after - law).sum(axis=1).max())
        law = after
        if moved < _SETTLED:
            break
    left = over.sum(axis=1, keepdims=True)
    over = over / np.maximum(left, 1e-300)
    some = law * (np.arange(law.shape[1]) <= within[:, None])
    some[:, 0] = 0.0
    read = some.sum(axis=1, keepdims=True)
    point, weight = grouped_rows(
        np.broadcast_to(np.arange(law.shape[1]), law.shape),
        some / np.maximum(read, 1e-300),
        _GROUPS,
    )
    took = _at_points(state.class_s, within, point)
    share = np.column_stack([law[:, 0], weight * read, left])
    class_s = np.column_stack([state.class_s[:, 0], took, state.class_s[:, -1]])
    return replace(state, share=share, class_s=class_s, over=over)


def _at_points(class_s: FloatArray, within: NDArray[np.int64], point: FloatArray) -> FloatArray:
    """Times of passes that read as much as points of the grid (S, P) have [s]."""
    rows = []
    for took, last, x in zip(class_s, within, point, strict=True):
        nodes = 1.0 + (last - 1.0) * np.linspace(0.0, 1.0, _CLASSES)
        rows.append(np.interp(x, nodes, took[1:-1]))
    return np.stack(rows)


def _parts(
    within: NDArray[np.int64], n_classes: int, size: int
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """What of each point belongs to which class; which points are beyond a chunk; these, moved.

    Returns:
        (S, C − 1, G), (S, G), and of each point the one that a chunk more is at (S, G).
    """
    point = np.arange(size)[None, :]
    last = within[:, None]
    at = np.clip((point - 1.0) / np.maximum(1.0, last - 1.0), 0.0, 1.0) * (n_classes - 3)
    distance = np.abs(at[:, None, :] - np.arange(n_classes - 2)[None, :, None])
    some = np.maximum(0.0, 1.0 - distance) * ((point > 0) & (point <= last))[:, None, :]
    none = np.broadcast_to(point == 0, (len(within), size))[:, None, :]
    moved = point + last
    beyond = point > last
    # what would come from behind the end is nothing: the first point is never beyond a chunk
    which = np.asarray(np.where(moved < size, moved, 0), dtype=np.int64)
    return np.concatenate([none, some], axis=1), np.asarray(beyond, dtype=float), which
