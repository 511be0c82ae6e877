"""What happens between a solver's raw answer and its word: run, verify; and ties settled."""

import threading
from collections.abc import Callable

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.programs.layout import Assignment, LayoutProgram, ceiling, objective
from planner.running.endings import check_room
from planner.solvers.solution import Clock, Effort

TIE_BREAK_VISITS = 2_000  # partial assignments looked at before a tie is left as it stands

ROOM_BYTES = 64 * 2**20
"""Address space that has to be free as a solver begins: eight threads of the usual size."""


class Listener:
    """Hands a running solver's news to the caller; what the caller raises stops the solver.

    It is called from the solver's thread, between C++ frames that no exception may cross.
    """

    def __init__(self, effort: Effort, clock: Clock, stop: Callable[[], None]) -> None:
        self._effort, self._clock, self._stop = effort, clock, stop
        self._failures: list[Exception] = []

    def hear(self, incumbent: float, bound: float, n_nodes: int = 0) -> None:
        try:
            self._effort.tell(incumbent, bound, self._clock, n_nodes)
        except Exception as failure:
            self._failures.append(failure)
            self._stop()

    def close(self) -> None:
        """Raise what the caller raised."""
        if self._failures:
            raise self._failures[0]


def run_interruptibly(run: Callable[[], None], stop: Callable[[], None]) -> bool:
    """Run a solver in a thread, so that Ctrl-C ends the search and not the process.

    The first Ctrl-C calls `stop` and waits for the solver to hand over what it has; a second
    one is the caller's. An exception in `run` is raised here.

    Returns:
        whether the run was interrupted.

    Raises:
        MemoryError: there is no room for the threads that a solver starts.
    """
    check_room(ROOM_BYTES)  # CP-SAT waits for ever for a thread that the system refuses
    begun, done = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        begun.set()
        try:
            run()
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    interrupted = False
    try:
        thread.start()  # it waits for the thread, and a Ctrl-C may fall into that wait
        _wait(done)
    except KeyboardInterrupt:
        if not begun.wait(1.0):
            raise
        interrupted = True
        stop()
        _wait(done)
    if failures:
        raise failures[0]
    return interrupted


def _wait(done: threading.Event) -> None:
    """Wait, but look up often enough to see a Ctrl-C that went to another thread."""
    while not done.wait(0.1):
        pass


def settle(program: LayoutProgram, assignment: Assignment) -> Assignment:
    """The smallest assignment that is as good: first its context, then its columns in order.

    "As good" is within 1e-9 of the objective. The search skips every partial assignment
    that cannot reach it, and gives up after `TIE_BREAK_VISITS`, keeping the one it was given.
    """
    good = ceiling(objective(program, assignment))
    budget = TIE_BREAK_VISITS
    for k in range(assignment.context + 1):
        here = np.flatnonzero(program.column_context == k)
        slots = [here[program.column_slot[here] == s] for s in range(program.n_slots)]
        if not all(len(columns) for columns in slots):
            continue
        least = [float(program.column_objective[columns].min()) for columns in slots]
        if program.context_objective[k] + sum(least) > good:
            continue
        smallest, budget = _smallest(program, (k, slots, least), good, budget)
        if smallest is not None:
            return smallest
        if budget <= 0:
            break
    return assignment


def _smallest(
    program: LayoutProgram,
    context: tuple[int, list[IntArray], list[float]],
    good: float,
    budget: int,
) -> tuple[Assignment | None, int]:
    """Depth first through one context's slots, smallest columns first."""
    k, slots, least = context
    stack: list[tuple[int, ...]] = [()]
    while stack and budget > 0:
        chosen = stack.pop()
        budget -= 1
        depth = len(chosen)
        spent = program.context_objective[k] + program.column_objective[list(chosen)].sum()
        bound = spent + program.column_objective[slots[depth]] + sum(least[depth + 1 :])
        reach = slots[depth][bound <= good]
        if depth + 1 < program.n_slots:
            stack += [(*chosen, int(j)) for j in reach[::-1]]
            continue
        fits = reach[_fitting(program, k, chosen, reach)]
        if len(fits):
            return Assignment(context=k, columns=(*chosen, int(fits[0]))), budget
    return None, budget


def _fitting(program: LayoutProgram, k: int, chosen: tuple[int, ...], last: IntArray) -> BoolArray:
    """Which of the last slot's columns complete a choice within every row."""
    rows = [(program.context_bytes[k], program.column_bytes, float(program.capacity_bytes[k]))]
    rows += [(limit.context[k], limit.column, limit.at_most) for limit in program.limits]
    fits = np.ones(len(last), dtype=np.bool_)
    for context, column, at_most in rows:
        fits &= context + column[list(chosen)].sum() + column[last] <= ceiling(at_most)
    return fits
