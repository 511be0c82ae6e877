"""What proves a plan: checks by code that did not find it, and the certificate.

Three judges look at every plan. `violations` recomputes every row of the unscreened program.
The verifier recounts seconds and bytes of both phases in plain scalar arithmetic, and the
request's limits are compared with its count, not with ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from planner.errors import SolverError
from planner.programs.posed import PosedProgram
from planner.quantities import QUANTITIES, objective_of
from planner.results import AnyDeployment, LimitUse
from planner.runtimes.candidates import Among
from planner.solvers.certify import certified, n_rejected, screens_of
from planner.solvers.search import Found
from planner.specs.certificates import Certificate

TIE_TOLERANCE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance


def limits_gained(gains: Mapping[str, tuple[float, float | None]]) -> Iterator[LimitUse]:
    """What looser limits would gain: (relief, gain fraction) by name."""
    for name, (relief, gain) in gains.items():
        dimension = QUANTITIES[name].dimension
        yield LimitUse(
            name=name, used=0.0, limit=0.0, dimension=dimension, relief=relief, gain_fraction=gain
        )


def certificate(
    among: Among, found: Found, *, deployment: AnyDeployment, wall_s: float
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
    # what is listed again when time is short may be listed less far
    n_known = sum(one.n_candidates for one in among.parts) if found.reduced.is_cut else n_seen
    n_all = max(n_seen, n_known)
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
        verified=(),  # the account says which checks an answer passes
        wall_s=wall_s,
    )


def before_search(among: Among, posed: PosedProgram) -> dict[str, int]:
    """Candidates that never reached the program, by what rejected them."""
    outside = [one.outside for one in among.parts]
    names = dict.fromkeys(name for one in outside for name in one)
    found = {name: sum(one.get(name, 0) for one in outside) for name in names}
    return {**found, "memory": posed.n_unfit}
