"""A process of its own for SCIP: programs in on stdin, its word of each out on stdout.

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
from queue import SimpleQueue
from typing import Any

from ortools.linear_solver.python import model_builder_helper as helper

_ENDS = {
    helper.SolveStatus.OPTIMAL: "optimal",
    helper.SolveStatus.INFEASIBLE: "infeasible",
    helper.SolveStatus.FEASIBLE: "stopped",
    helper.SolveStatus.NOT_SOLVED: "stopped",
}


def main() -> None:
    """Solve programs as they come, write what SCIP says of each."""
    requests: SimpleQueue[tuple[dict[str, Any], str]] = SimpleQueue()

    def read() -> None:
        while line := sys.stdin.buffer.readline():
            request = json.loads(line)
            requests.put((request, sys.stdin.buffer.read(request["n_bytes"]).decode()))
        os._exit(1)  # the parent's end of the pipe is gone

    threading.Thread(target=read, daemon=True).start()
    while True:
        sys.stdout.write(json.dumps(_word(*requests.get())) + "\n")
        sys.stdout.flush()


def _word(request: dict[str, Any], text: str) -> dict[str, Any]:
    """What SCIP says of one program."""
    model = helper.ModelBuilderHelper()
    if not model.import_from_mps_string(text):
        return {"failure": "scip does not read the program"}
    solver = helper.ModelSolverHelper("scip")
    solver.enable_output(False)
    if request["time_limit_s"] is not None:
        solver.set_time_limit_in_seconds(request["time_limit_s"])
    lines = [f"{name} = {value}" for name, value in request["parameters"].items()]
    solver.set_solver_specific_parameters("\n".join([*lines, ""]))
    solver.solve(model)
    status = solver.status()
    if status not in _ENDS:
        return {"failure": f"scip ended with {status}: {solver.status_string()}"}
    outcome = _ENDS[status]
    has_point = outcome != "infeasible" and solver.has_solution()
    bound: float | None = None
    if outcome != "infeasible":
        # where it found nothing it hands over no bound either, and 0 stands in its place
        bound = float(solver.best_objective_bound()) if has_point else -1e20
    values = [float(v) for v in solver.variable_values()] if has_point else None
    return {"outcome": outcome, "values": values, "bound": bound}


if __name__ == "__main__":
    main()
