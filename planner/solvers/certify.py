"""What provers vouch for, as a certificate: the one builder, for every kind of answer.

The bound is the solver's, lowered to the bounds of whatever the screens rejected.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.programs.screens import Screening
from planner.quantities.table import objective_of
from planner.solvers.proving import Proved
from planner.specs.records.certificates import Certificate, Proof, Screen

Screens = tuple[Screen, ...]

REASONS = {
    "weights": "their weights alone exceed a device's memory",
    "memory": "they exceed a device's memory by themselves",
    "hbm": "no choice of the other phase leaves them room",
    "prefilled": "what is prefilled and what is decoded have no room together",
    "empty": "their slice has nothing left for the other phase",
    "bound": "their lower bound is above a plan that exists",
    "dominated": "another choice of the same slice is no worse in anything",
    "time": "time ended before they were looked at",
    "slower": "others of the same devices, stages and batch are faster, or they do not fit",
}


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI; of throughput, tokens a second instead of time a token."""
    return objective_of(objective).in_si(value)


def n_rejected(screened: Screening) -> dict[str, int]:
    return {name: n_columns for name, (n_columns, _) in screened.rejected.items()}


def screens_of(rejected: Mapping[str, int], reasons: Mapping[str, str] = REASONS) -> Screens:
    """Screens that rejected anything, with the reason why nothing is lost."""
    return tuple(
        Screen(
            name=name,
            n_candidates=count,
            reason=reasons.get(name, f"they break `{name}` by themselves"),
        )
        for name, count in rejected.items()
        if count > 0
    )


def certified(
    solution: Proved[Any],
    *,
    objective_name: str,
    to_si: Callable[[float], float],
    dimension: str,
    n_candidates: int,
    n_contexts: int,
    n_solved: int,
    wall_s: float,
    screens: Screens = (),
    verified: tuple[str, ...] = (),
    outside: float = math.inf,
    n_programs: int = 1,
) -> Certificate:
    """What provers vouch for, as a certificate: the one builder, for every kind of answer.

    Args:
        to_si: an objective of the program in SI.
        verified: checks that it passed; where an account says which, none yet.
        outside: no choice that was kept from the provers is better, in the program's unit.
    """
    objective = to_si(solution.objective)
    bound = to_si(min(solution.bound, solution.objective, outside))
    weighed = solution.vouched
    is_vouched = solution.bound <= weighed.bound
    sure = min(weighed.bound, solution.objective, outside)
    return Certificate(
        status=solution.status.value,
        objective_name=objective_name,
        objective=objective,
        bound=bound,
        gap=abs(objective - bound) / abs(objective) if objective else 0.0,
        dimension=dimension,
        proofs=proofs_in_si(weighed.proofs, to_si),
        vouched_by=weighed.by if is_vouched else (),
        vouched_bound=to_si(sure) if sure > -math.inf else None,
        n_candidates=n_candidates,
        n_contexts=n_contexts,
        screens=screens,
        n_solved=n_solved,
        verified=verified,
        wall_s=wall_s,
        solve_s=math.fsum(proof.wall_s for proof in weighed.proofs),
        n_programs=n_programs,
        n_branches=solution.n_nodes,
    )


def proofs_in_si(proofs: Sequence[Proof], to_si: Callable[[float], float]) -> tuple[Proof, ...]:
    """Proofs with values and bounds in SI, without those of which nothing is claimed.

    What is not finite stays: of a bound, that nothing is feasible, or nothing said.
    """

    def said(value: float) -> float:
        return to_si(value) if math.isfinite(value) else value

    return tuple(
        replace(proof, value=said(proof.value), bound=said(proof.bound))
        for proof in proofs
        if proof.bound > -math.inf or not proof.is_accepted or not proof.is_own
    )


def irreducible(names: Sequence[str], has_none: Callable[[Sequence[str]], bool]) -> list[str]:
    """Of limits that nothing keeps together, those none of which can be left out.

    Args:
        names: what is left out first stands first.
        has_none: whether nothing keeps some of them.

    Source: the deletion filter of [Chinneck2008] §6.1, over groups of rows.
    """
    kept = [*names]
    for name in names:
        rest = [other for other in kept if other != name]
        if has_none(rest):
            kept = rest
    return kept
