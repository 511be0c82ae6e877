"""Where a table of experts sent its tokens: rows of one device, and experts that they hit.

Tables name the distribution that routing was drawn from, not the draw. Balanced routing deals
experts in turn, so it is rebuilt exactly, and of it the first device is timed; of a power law the
busiest of all devices is timed, and the mean of several draws is taken.

Source: the collector of [AIConfigurator2026], as documented;
docs/decisions/0012-experts-and-blocks.md.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from planner.equations.arrays import FloatArray, IntArray

N_DRAWS = 16
"""Draws of one row: their mean is then known to a tenth of their scatter, a quarter of it."""

_MOST_ROUNDS = 200  # of handing out what rounding left over
_FEW_ROWS = (0.01, 2.0)  # range of the law where not every expert can have a token
_MOST_SHARE = 0.8  # of all tokens, that one expert may be asked for by the law


def routed(
    *, tokens: IntArray, n_experts: IntArray, n_active: IntArray, ways: IntArray, law: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """Rows that stay on the timed device, and its experts that any of them hits, (N,) each.

    Args:
        tokens: routed together.
        ways: devices that the experts are dealt to.
        law: `balanced`, or `power_law_` and the exponent.
    """
    found = [
        _counted(*(int(one) for one in row[:4]), str(row[4]))
        for row in zip(tokens, n_experts, n_active, ways, law, strict=True)
    ]
    rows, hit = np.array(found, dtype=float).reshape(-1, 2).T
    return rows, hit


@cache
def _counted(
    tokens: int, n_experts: int, n_active: int, ways: int, law: str
) -> tuple[float, float]:
    held = n_experts // ways
    if law == "balanced":
        counts = balanced(tokens, n_experts, n_active)[None, :held]
    else:
        drawn = power_law(tokens, n_experts, n_active, float(law.rpartition("_")[2]))
        groups = drawn.reshape(N_DRAWS, ways, held)
        busiest = groups.sum(axis=2).argmax(axis=1)
        counts = groups[np.arange(N_DRAWS), busiest]
    return float(counts.sum(axis=1).mean()), float((counts > 0).sum(axis=1).mean())


def balanced(tokens: int, n_experts: int, n_active: int) -> IntArray:
    """Tokens of each expert (n_experts,), dealt in turn, a token's experts evenly apart.

    >>> balanced(4, 8, 2).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1]
    """
    stride = -(-n_experts // n_active)
    apart = np.arange(n_active) * stride
    first = np.arange(tokens % n_experts if tokens >= stride else tokens)
    if tokens < stride:
        first = (first * stride / tokens).astype(np.int64)
    each = np.array([sorted({*((one + apart) % n_experts)}) for one in first.tolist()], object)
    counts = np.bincount(
        np.array([expert for token in each for expert in token], np.int64), minlength=n_experts
    )
    n_periods = tokens // n_experts if tokens >= stride else 0
    return np.asarray(counts + n_periods * len({*(apart % n_experts)}))


@cache
def power_law(tokens: int, n_experts: int, n_active: int, exponent: float) -> IntArray:
    """Tokens of each expert in several draws (N_DRAWS, n_experts): all of them add up."""
    seed = (tokens, n_experts, n_active, round(1000 * exponent))
    random = np.random.default_rng(seed)
    low, high = (1.0, _MOST_SHARE * tokens) if tokens * n_active > n_experts else _FEW_ROWS
    high = max(high, low + 1e-6)
    power = 1.0 - exponent
    spread = random.random((N_DRAWS, n_experts)) * (high**power - low**power) + low**power
    asked = spread ** (1.0 / power)
    shares = asked / asked.sum(axis=1, keepdims=True)
    counts = np.rint(shares * tokens * n_active).astype(np.int64)
    return np.stack([_completed(one, tokens, n_active, random) for one in counts])


def _completed(
    counts: IntArray, tokens: int, n_active: int, random: np.random.Generator
) -> IntArray:
    """No expert more than all tokens, all rows dealt; the least loaded give way first."""
    counts = np.minimum(counts, tokens)
    missing = tokens * n_active - int(counts.sum())
    order = np.argsort(counts + random.random(len(counts)) * 1e-3)
    for _ in range(_MOST_ROUNDS):
        if not missing:
            break
        step = 1 if missing > 0 else -1
        free = counts[order] < tokens if missing > 0 else counts[order] > 0
        changed = order[free][: abs(missing)]
        counts[changed] += step
        missing -= step * len(changed)
    return counts
