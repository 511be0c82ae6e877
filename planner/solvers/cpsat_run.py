"""CP-SAT as it is run here: Ctrl-C stays Python's.

CP-SAT by itself takes SIGINT for a limit, answers with what it has, and leaves the signal to end
the process without a word afterwards.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from planner.solvers.answers import run_interruptibly


def run_cpsat(solver: cp_model.CpSolver, model: cp_model.CpModel) -> cp_model.CpSolverStatus:
    """Solve a model with the parameters that the solver has.

    Raises:
        KeyboardInterrupt: interrupted.
    """
    solver.parameters.catch_sigint_signal = False
    ended: list[cp_model.CpSolverStatus] = []
    if run_interruptibly(lambda: ended.append(solver.solve(model)), solver.stop_search):
        raise KeyboardInterrupt
    return ended[0]
