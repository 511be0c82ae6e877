"""Who vouches for a bound: no solver is believed by its own word.

Every prover of a program says what it found and below which value it says there is nothing.
A word counts if nothing in hand refutes it; a bound is *vouched for* by two provers of different
lineage, or by the project's own arithmetic (enumeration of the arrays, multipliers recounted).
What one solver says by itself stands beside it, and is never called optimal.

Why so, and what was measured: docs/decisions/0016-two-provers.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

ROUNDING = 1e-7
"""Share of a value by which a solver's sums may be off: a bound beyond a value in hand by less
is that value; one beyond it by more is false."""

CLOSED = 1e-9
"""Share of a value that is no gap; and what a bound may be off absolutely: programs are scaled
so that values that matter are above 1e-3."""

Outcome = Literal["optimal", "infeasible", "stopped", "refused"]
Wanted = Literal["one", "two"]
PROOFS: tuple[Wanted, ...] = ("two", "one")

ENUMERATION, MULTIPLIERS = "enumeration", "multipliers"
_LINEAGES = ("highs", "cpsat", "scip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What one prover says of one program.

    Args:
        prover: who: `highs 1.13.1`, `cpsat 9.15`, `scip 9.15`, `enumeration of 12 choices`, …
        outcome: `optimal`, or `infeasible`, as it says itself; `stopped` before either, with a
            bound; `refused` where what it said is refuted or was no answer.
        value: of its answer, recomputed from the arrays; inf without one.
        bound: nothing is better, it says; inf where nothing is feasible, −inf where it says
            nothing.
        wall_s: that it took.
        note: why it was refused, or what stopped it.
        program: which program it is of, where an answer rests on several.
    """

    prover: str
    outcome: Outcome
    value: float
    bound: float
    wall_s: float
    note: str = ""
    program: str = ""

    @property
    def lineage(self) -> str:
        """The family of its code: two of one family are one word."""
        return self.prover.split(" ")[0]

    @property
    def is_own(self) -> bool:
        """Whether it is the project's arithmetic, and no solver's word."""
        return self.lineage not in _LINEAGES

    @property
    def is_accepted(self) -> bool:
        return self.outcome != "refused"


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
    judged = tuple(_judged(proof, value) for proof in proofs)
    words = [proof for proof in judged if proof.is_accepted and proof.bound > -math.inf]
    own = [proof for proof in words if proof.is_own]
    best_own = max(own, key=lambda proof: proof.bound, default=None)
    of_lineage: dict[str, Proof] = {}
    for proof in words:
        known = of_lineage.get(proof.lineage)
        if known is None or proof.bound > known.bound:
            of_lineage[proof.lineage] = proof
    ranked = sorted(of_lineage.values(), key=lambda proof: -proof.bound)
    bound = ranked[1].bound if len(ranked) > 1 else -math.inf
    if best_own is not None:
        bound = max(bound, best_own.bound)
    by = tuple(one.prover for one in ranked if one.bound >= bound) if bound > -math.inf else ()
    alone = ranked[0].bound if ranked else -math.inf
    return Vouched(proofs=judged, bound=min(bound, value), alone=min(alone, value), by=by)


def _judged(proof: Proof, value: float) -> Proof:
    """The proof, refused where its bound lies beyond a value in hand."""
    if not proof.is_accepted or not beyond(proof.bound, value):
        return proof
    said = "that nothing is feasible" if proof.bound == math.inf else f"a bound of {proof.bound!r}"
    note = f"it claims {said}, and {value!r} is in hand"
    return replace(proof, outcome="refused", note=note)


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
