"""All 98 small mixed programs: what HiGHS alone calls optimal, by its settings, and what two do.

`python -m tests.benchmarks.solver_cases` prints how many each errs on; ends with 1 if anything is
called optimal that is not.
"""

from __future__ import annotations

import sys
import time

from planner.programs.mixed import MixedProgram
from planner.solvers.highs_run import NO_PROBING, tolerances
from planner.solvers.mixed import highs, scip, solve_mixed
from planner.solvers.solution import Effort, Status
from tests.solvers.cases import cases

SAME = 1e-6
SETTINGS = {
    "presolve off": {"presolve": "off"},
    "presolve on": {"presolve_rule_off": 0},
    "presolve on, no probing (as it is called)": {"presolve_rule_off": NO_PROBING},
    "the same, tolerances 1e-6": {"presolve_rule_off": NO_PROBING, **tolerances(1e-6)},
    "the same, no symmetry": {"mip_detect_symmetry": False},
}


def is_wrong(value: float, optimum: float) -> bool:
    return abs(value - optimum) > SAME * abs(optimum)


def main() -> int:
    """The number of programs on which something is called optimal that is not."""
    listed = [(case, case.program()) for case in cases()]
    for name, options in SETTINGS.items():
        report(f"HiGHS, {name}", listed, lambda p, o=options: highs.solve(p, Effort(), options=o))
    report("SCIP", listed, lambda program: scip.solve(program, Effort()))
    n_wrong, statuses, began_s = 0, [], time.perf_counter()
    for case, program in listed:
        found = solve_mixed(program, Effort())
        statuses.append(found.status)
        n_wrong += found.status is Status.OPTIMAL and is_wrong(found.objective, case.optimum)
        n_wrong += found.vouched.bound > case.optimum + SAME * abs(case.optimum)
    wall_s = time.perf_counter() - began_s
    print(
        f"two provers: {statuses.count(Status.OPTIMAL)} called optimal, "
        f"{statuses.count(Status.UNCONFIRMED)} bound by one alone, {n_wrong} wrong, {wall_s:.0f} s"
    )
    return n_wrong


def report(name: str, listed: list[tuple[object, MixedProgram]], ask: object) -> None:
    n_wrong, began_s = 0, time.perf_counter()
    for case, program in listed:
        proof = ask(program).proof
        n_wrong += proof.outcome == "optimal" and is_wrong(proof.bound, case.optimum)
    print(f"{name}: wrong on {n_wrong} of {len(listed)}, {time.perf_counter() - began_s:.0f} s")


if __name__ == "__main__":
    sys.exit(bool(main()))
