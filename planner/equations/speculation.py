"""Speculative decoding: a draft model proposes tokens, the target model scores them at once.

Two conventions count the same thing differently. In `usual` the draft proposes g tokens,
the target scores g + 1 positions and yields one token more than it accepts. In `capped`
the target scores g positions and the token after the last accepted one is dropped.
Acceptance of a token is taken as independent of the others, with probability p.
"""

import math
import operator
from collections.abc import Sequence
from itertools import accumulate

CONVENTIONS = ("usual", "capped")


def expected_tokens(n_drafted: int, acceptance: float, *, convention: str = "usual") -> float:
    """Tokens that one round of draft and verification yields on average [1].

    usual: (1 − p^(g+1)) / (1 − p); capped: (1 − p^g) / (1 − p).

    Args:
        n_drafted: g, tokens that the draft proposes.
        acceptance: p, probability that the target accepts a proposed token, in [0, 1).
        convention: one of `CONVENTIONS`.

    Raises:
        ValueError: an unknown convention, or an acceptance outside [0, 1).

    Source: [Leviathan2023] Eq. 1; `capped` is Eq. 46 of [Erdil2025] as its code has it.
    """
    if not 0 <= acceptance < 1:
        raise ValueError(f"acceptance is a probability below 1, not {acceptance:g}")
    exponent = n_scored(n_drafted, convention=convention)
    return (1.0 - acceptance**exponent) / (1.0 - acceptance)


def tokens_by_position(n_drafted: int, acceptance: Sequence[float]) -> float:
    """The same of `usual`, where positions differ: 1 + p₁ + p₁p₂ + … + p₁⋯p_g [1].

    Args:
        n_drafted: g, tokens that the draft proposes.
        acceptance: p₁, p₂, …, of tokens whose predecessors were accepted, each in [0, 1); the
            last one holds for all positions beyond.

    Raises:
        ValueError: there is no acceptance, or one outside [0, 1).

    Source: [Leviathan2023] §3.1, without the assumption that positions are alike.

    >>> round(tokens_by_position(2, (0.5,)), 6) == round(expected_tokens(2, 0.5), 6)
    True
    """
    if not acceptance or not all(0 <= rate < 1 for rate in acceptance):
        raise ValueError(f"acceptance is of probabilities below 1, not {tuple(acceptance)}")
    rates = [acceptance[min(place, len(acceptance) - 1)] for place in range(n_drafted)]
    return 1.0 + math.fsum(accumulate(rates, operator.mul))


def n_scored(n_drafted: int, *, convention: str = "usual") -> int:
    """Positions that the target scores in one pass [1].

    Raises:
        ValueError: an unknown convention.

    Source: [Leviathan2023] Alg. 1; `capped` is Eq. 46 of [Erdil2025] as its code has it.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"no convention `{convention}`: there are {', '.join(CONVENTIONS)}")
    return n_drafted + 1 if convention == "usual" else n_drafted
