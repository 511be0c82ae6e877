"""What proves a plan: checks by code that did not find it, and the certificate.

Three judges look at every plan. `violations` recomputes every row of the unscreened program.
The verifier recounts seconds and bytes of both phases in plain scalar arithmetic, and the
request's limits are compared with its count, not with ours. The bound is the solver's,
lowered to the bounds of whatever the screens rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.certificates import Certificate, Proof, Screen
from planner.errors import SolverError
from planner.programs.posed import PosedProgram
from planner.programs.screens import Screening
from planner.quantities import MEMORY, QUANTITIES, objective_of
from planner.results import AnyDeployment, LimitUse
from planner.runtimes.candidates import Among
from planner.search import Found
from planner.solvers.proving import Proved
from planner.specs.request import Targets

Screens = tuple[Screen, ...]

TIE_TOLERANCE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance

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


def limit_uses(
    targets: Targets, best: AnyDeployment, gains: Mapping[str, tuple[float, float | None]]
) -> tuple[LimitUse, ...]:
    """What the plan uses of each limit; `gains` holds (relief, gain fraction) by name."""
    limits = {**targets.limits(), MEMORY: best.capacity_bytes}
    return tuple(
        LimitUse(
            name=name,
            used=QUANTITIES[name].told(best),
            limit=limit,
            dimension=QUANTITIES[name].dimension,
            relief=gains[name][0],
            gain_fraction=gains[name][1],
        )
        for name, limit in limits.items()
    )


def certificate(
    among: Among,
    found: Found,
    *,
    deployment: AnyDeployment,
    verified: tuple[str, ...],
    wall_s: float,
) -> Certificate:
    """The proof in numbers, in SI units.

    Args:
        among: the candidates, of every runtime and model that was chosen among.
        deployment: the one whose objective was optimised.

    Raises:
        SolverError: what was optimised is not what the deployment comes to.
    """
    solution, screened, name = found.solution, found.screened, among.request.objective
    quantity = objective_of(name)
    objective = quantity.in_si(solution.objective)
    reached = quantity.told(deployment)
    if not math.isclose(objective, reached, rel_tol=TIE_TOLERANCE):
        raise SolverError(f"{name} {objective!r} is {reached!r} in the deployment")
    before = before_search(among, found.posed)
    n_unfit = found.posed.n_unfit
    n_seen = found.reduced.n_columns + n_unfit
    n_all = sum(one.n_candidates for one in among.parts) if found.reduced.is_cut else n_seen
    rejected = {**before, **n_rejected(screened)}
    rejected["time"] = n_all - n_seen
    return certified(
        solution,
        objective_name=name,
        to_si=quantity.in_si,
        dimension=quantity.dimension,
        n_candidates=n_all + sum(before.values()) - n_unfit,
        n_contexts=found.reduced.n_contexts,
        screens=screens_of(rejected),
        n_solved=screened.program.n_columns,
        outside=screened.bound,
        verified=verified,
        wall_s=wall_s,
    )


def before_search(among: Among, posed: PosedProgram) -> dict[str, int]:
    """Candidates that never reached the program, by what rejected them."""
    outside = [one.outside for one in among.parts]
    names = dict.fromkeys(name for one in outside for name in one)
    found = {name: sum(one.get(name, 0) for one in outside) for name in names}
    return {**found, "memory": posed.n_unfit}


def n_rejected(screened: Screening) -> dict[str, int]:
    """Columns that each screen rejected."""
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
    screens: Screens,
    n_solved: int,
    verified: tuple[str, ...],
    wall_s: float,
    outside: float = math.inf,
    n_programs: int = 1,
) -> Certificate:
    """What provers vouch for, as a certificate: the one builder, for every kind of answer.

    Args:
        to_si: an objective of the program in SI.
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
