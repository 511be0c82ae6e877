"""Speculative decoding: a draft model proposes tokens, the target model scores them at once.

Two conventions count the same thing differently. In `usual` the draft proposes g tokens,
the target scores g + 1 positions and yields one token more than it accepts. In `capped`
the target scores g positions and the token after the last accepted one is dropped.
Acceptance of a token is taken as independent of the others, with probability p.
"""

from __future__ import annotations

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


def n_scored(n_drafted: int, *, convention: str = "usual") -> int:
    """Positions that the target scores in one pass [1].

    Raises:
        ValueError: an unknown convention.

    Source: [Leviathan2023] Alg. 1; `capped` is Eq. 46 of [Erdil2025] as its code has it.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"no convention `{convention}`: there are {', '.join(CONVENTIONS)}")
    return n_drafted + 1 if convention == "usual" else n_drafted
