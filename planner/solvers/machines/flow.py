"""The flow program, by two solvers: what they find is replayed, their bounds are weighed."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from planner.programs.flow_program import FlowProgram, flow_program, size
from planner.programs.machines import RELATIVE_TOLERANCE
from planner.programs.spans import Spans
from planner.solvers.machines.known import Known
from planner.solvers.mixed import solve_mixed
from planner.solvers.solution import Effort
from planner.specs.certificates import Proof

MOST_COLUMNS = 8_000
"""Of a program that is posed."""

USUAL_S = 10.0
"""For all solvers together, where no time limit is given."""


def prove_flow(known: Known, some: Spans) -> None:
    """Ask solvers for a better placement, and note what they prove.

    Raises:
        SolverError: every solver failed.
    """
    if not known.bound > 0.0 or size(some, known.bound) > MOST_COLUMNS:
        return
    least = max(known.rate * (1.0 + known.tries.gap / 2), RELATIVE_TOLERANCE * known.bound)
    program = flow_program(some, known.bound, least)
    left_s = known.deadline_s - time.perf_counter()
    effort = Effort(
        time_limit_s=max(0.0, left_s if math.isfinite(left_s) else USUAL_S),
        gap=known.tries.gap / 2,
        seed=known.tries.seed,
    )
    found = solve_mixed(program.mixed, effort, wanted=known.tries.proof)
    known.n_solves += len(found.vouched.proofs)
    if found.answer is not None:
        known.offer(program.placement(found.answer))
    known.proofs += [_of_all(proof, program, known, least) for proof in found.vouched.proofs]


def _of_all(proof: Proof, program: FlowProgram, known: Known, least: float) -> Proof:
    """What a solver says of the program, said of all placements.

    The program has those of `least` and more: that it has none bounds all by `least`.
    """
    if not proof.is_accepted:
        return proof
    bound = min(-proof.bound * program.bound * (1.0 + RELATIVE_TOLERANCE), program.bound)
    is_none = proof.outcome == "infeasible"
    return replace(
        proof,
        outcome="optimal" if is_none else proof.outcome,
        value=known.value if is_none else proof.value * program.bound,
        bound=-max(bound, least),
    )
