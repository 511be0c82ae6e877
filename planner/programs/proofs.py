"""Who vouches for a bound: no solver is believed by its own word.

Every prover of a program says what it found and below which value it says there is nothing.
A word counts if nothing in hand refutes it; a bound is *vouched for* by two provers of different
lineage, or by the project's own arithmetic (enumeration of the arrays, multipliers recounted).
What one solver says by itself stands beside it, and is never called optimal.

Why so, and what was measured: docs/decisions/0016-two-provers.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.specs.records.certificates import Outcome, Proof

ROUNDING = 1e-7
"""Share of a value by which a solver's sums may be off: a bound beyond a value in hand by less
is that value; one beyond it by more is false."""

CLOSED = 1e-9
"""Share of a value that is no gap; and what a bound may be off absolutely: programs are scaled
so that values that matter are above 1e-3."""

ENUMERATION, MULTIPLIERS = "enumeration", "multipliers"
"""Provers that are the project's own arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """What several provers' words come to.

    Args:
        proofs: of each prover, those that the others refute as `refused`.
        bound: vouched for; −inf where nothing is.
        alone: the best that one prover by itself says; never less than `bound`.
        by: provers that vouch for `bound`.
    """

    proofs: tuple[Proof, ...]
    bound: float
    alone: float
    by: tuple[str, ...]


def vouched(proofs: Sequence[Proof], value: float) -> Vouched:
    """Weigh the words of several provers against the best value in hand.

    Of two bounds the weaker is kept, so that both vouch for it; of several, the second best.

    Args:
        proofs: in the order in which they were asked.
        value: objective of the best answer in hand, whoever found it; inf without one.
    """
    judged = tuple(_checked(proof, value) for proof in proofs)
    words = [proof for proof in judged if proof.is_accepted and proof.bound > -math.inf]
    own = [proof for proof in words if proof.is_own]
    best_own = max(own, key=lambda proof: proof.bound, default=None)
    of_lineage: dict[str, Proof] = {}
    for proof in words:  # each way to count is a word of its own
        family = proof.prover if proof.is_own else proof.lineage
        known = of_lineage.get(family)
        if known is None or proof.bound > known.bound:
            of_lineage[family] = proof
    ranked = sorted(of_lineage.values(), key=lambda proof: -proof.bound)
    bound = ranked[1].bound if len(ranked) > 1 else -math.inf
    if best_own is not None:
        bound = max(bound, best_own.bound)
    by = tuple(one.prover for one in ranked if bound > -math.inf and _is_near(one.bound, bound))
    alone = ranked[0].bound if ranked else -math.inf
    return Vouched(proofs=judged, bound=min(bound, value), alone=min(alone, value), by=by)


def _is_near(word: float, bound: float) -> bool:
    """Whether a word says as much as a bound does, but for rounding."""
    return word >= bound or (math.isfinite(word) and bound - word <= CLOSED * abs(bound))


def _checked(proof: Proof, value: float) -> Proof:
    """The proof, refused where its bound lies beyond a value in hand."""
    if not proof.is_accepted or not beyond(proof.bound, value):
        return proof
    claim = "that nothing is feasible" if proof.bound == math.inf else "a bound"
    return replace(proof, outcome="refused", note=f"it claims {claim} beyond an answer in hand")


def beyond(bound: float, value: float) -> bool:
    """Whether a bound lies beyond a value by more than rounding."""
    if math.isinf(value):
        return False
    return bound > value + max(ROUNDING * abs(value), CLOSED)


def is_closed(value: float, bound: float, gap: float) -> bool:
    """Whether a bound is as near to a value as was asked, or as rounding lets it be."""
    if math.isinf(value) or math.isinf(bound):
        return value == bound
    return value - bound <= max(gap * abs(value), CLOSED * 10 * abs(value), CLOSED)


def refusal(prover: str, why: str, wall_s: float) -> Proof:
    """The word of a prover that failed, or whose answer is none."""
    return Proof(
        prover=prover, outcome="refused", value=math.inf, bound=-math.inf, wall_s=wall_s, note=why
    )


def claim(prover: str, bound: float = -math.inf, *, wall_s: float = 0.0, note: str = "") -> Proof:
    """The word of a prover that has no answer: a bound; infinite, that nothing is feasible."""
    outcome: Outcome = "infeasible" if bound == math.inf else "stopped"
    return Proof(
        prover=prover, outcome=outcome, value=math.inf, bound=bound, wall_s=wall_s, note=note
    )


def enumeration(n_looked_at: int, least: float, wall_s: float = 0.0) -> Proof:
    """That of all there are the least has this value; infinite, that nothing is feasible."""
    return Proof(
        prover=f"{ENUMERATION} of {n_looked_at:,}",
        outcome="infeasible" if least == math.inf else "optimal",
        value=least,
        bound=least,
        wall_s=wall_s,
    )
