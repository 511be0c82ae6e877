"""Latency of a token under speculative decoding: Eq. 46, in two conventions.

A draft model proposes γ tokens, the target scores them in one pass, and each is accepted
with probability p, independently. The published program scores the γ drafts and counts
1 + p + … + p^(γ−1) tokens for them; the usual count scores one position more and yields
1 + p + … + p^γ.

Source: [Erdil2025] §4.1; the usual form [Leviathan2023] Eq. 1 and theorem 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.economics import DecodePass
from research.economics.model.casework import FULL, Casework, latency_s

DRAFT_LENGTHS = (2, 3, 4, 5)


def expected_tokens(n_tries: int, acceptance: ArrayLike) -> FloatArray:
    """1 + p + … + p^(n−1) = (1 − pⁿ)/(1 − p), also at p = 1 [tokens].

    Source: [Erdil2025] §4.1: the mean of a truncated geometric distribution.
    """
    powers = [np.power(acceptance, power) for power in range(n_tries)]
    return np.asarray(sum(powers), dtype=float)


def speculative_token_s(
    scoring_s: ArrayLike, draft_s: ArrayLike, n_drafted: int, *, acceptance: ArrayLike
) -> FloatArray:
    """(t_M + γ t_D) / (1 + p + … + p^(γ−1)): γ drafts, γ scored [s].

    Args, broadcast together:
        scoring_s: t_M, pass of the target over γ tokens [s].
        draft_s: t_D, pass of the draft over one token [s].
        n_drafted: γ ≥ 1.
        acceptance: p in [0, 1] [1].

    Source: [Erdil2025] Eq. 46 as the published program has it.
    """
    round_s = np.add(scoring_s, np.multiply(n_drafted, draft_s))
    return np.divide(round_s, expected_tokens(n_drafted, acceptance))


def speculative_token_with_bonus_s(
    scoring_s: ArrayLike, draft_s: ArrayLike, n_drafted: int, *, acceptance: ArrayLike
) -> FloatArray:
    """(t_M + γ t_D) / (1 + p + … + p^γ): γ drafts, γ + 1 scored [s].

    As `speculative_token_s`, with t_M the pass over γ + 1 tokens.

    Source: [Leviathan2023] theorem 3.8.
    """
    round_s = np.add(scoring_s, np.multiply(n_drafted, draft_s))
    return np.divide(round_s, expected_tokens(n_drafted + 1, acceptance))


def speculative_latency_s(
    target: DecodePass,
    draft: DecodePass,
    points: tuple[ArrayLike, ArrayLike],
    *,
    acceptance: float,
    draft_lengths: Iterable[int] = DRAFT_LENGTHS,
    casework: Casework = FULL,
) -> FloatArray:
    """Least time of a token over the draft's lengths and plain decoding [s].

    Target and draft run on the same N devices for the same B requests, each with its own
    best layout; the draft's weights and caches meet the memory on their own.

    Args:
        points: N and B, broadcast together [1].

    Source: [Erdil2025] Eq. 46 as the published program has it.
    """
    n, b = points
    draft_s = latency_s(replace(draft, n_scored_tokens=1.0), n, b, casework=casework)
    best = latency_s(replace(target, n_scored_tokens=1.0), n, b, casework=casework)
    for length in draft_lengths:
        scoring = latency_s(replace(target, n_scored_tokens=length), n, b, casework=casework)
        token = speculative_token_s(scoring, draft_s, length, acceptance=acceptance)
        best = np.minimum(best, token)
    return best
