"""A process of its own for SCIP: a program in on stdin, its word out on stdout.

It is run as a file, and imports OR-Tools alone: neither the planner nor numpy. SCIP swallows
Ctrl-C where it runs, so it runs where nobody presses it; the parent ends it. When the parent is
gone its end of the pipe closes, and so does this process.

    stdin    one line of JSON {"time_limit_s": …, "parameters": {…}, "n_bytes": …}, then so many
             bytes of MPS
    stdout   one line of JSON {"outcome": …, "values": [...] or null, "bound": …}
"""

import json
import os
import sys
import threading
from typing import Any

from ortools.linear_solver.python import model_builder_helper as helper

_ENDS = {
    helper.SolveStatus.OPTIMAL: "optimal",
    helper.SolveStatus.INFEASIBLE: "infeasible",
    helper.SolveStatus.FEASIBLE: "stopped",
    helper.SolveStatus.NOT_SOLVED: "stopped",
}


def main() -> int:
    """Read one program, solve it, write what SCIP says."""
    request = json.loads(sys.stdin.buffer.readline())
    text = sys.stdin.buffer.read(request["n_bytes"]).decode()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    model = helper.ModelBuilderHelper()
    if not model.import_from_mps_string(text):
        return _say({"failure": "scip does not read the program"})
    solver = helper.ModelSolverHelper("scip")
    solver.enable_output(False)
    if request["time_limit_s"] is not None:
        solver.set_time_limit_in_seconds(request["time_limit_s"])
    lines = [f"{name} = {value}" for name, value in request["parameters"].items()]
    solver.set_solver_specific_parameters("\n".join([*lines, ""]))
    solver.solve(model)
    status = solver.status()
    if status not in _ENDS:
        return _say({"failure": f"scip ended with {status}: {solver.status_string()}"})
    outcome = _ENDS[status]
    has_point = outcome != "infeasible" and solver.has_solution()
    bound: float | None = None
    if outcome != "infeasible":
        # where it found nothing it hands over no bound either, and 0 stands in its place
        bound = float(solver.best_objective_bound()) if has_point else -1e20
    values = [float(v) for v in solver.variable_values()] if has_point else None
    return _say({"outcome": outcome, "values": values, "bound": bound})


def _say(record: dict[str, Any]) -> int:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()
    return 0


def _end_with_the_parent() -> None:
    """The pipe of the parent ends when it does."""
    sys.stdin.buffer.read(1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
