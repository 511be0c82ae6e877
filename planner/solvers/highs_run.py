"""HiGHS as it is run here: the one place that starts it.

HiGHS keeps a scheduler for each thread that calls it, and a second run of that thread with
another number of threads fails without a word. So every run has a thread of its own: any numbers
of threads may follow each other, and run beside each other.

Presolve stays on: with presolve off HiGHS calls wrong answers optimal on a third of the programs
of `tests/solvers/cases`, with it on 2 % of them (docs/decisions/0016-two-provers.md). Its probing
alone is off, which stalls on one-of-many binaries and is right no more often with it. Gaps are
zero unless asked for, so that what it calls optimal is meant so.
"""

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

import highspy  # type: ignore[import-untyped]
from highspy.highs import HighsCallbackEvent  # type: ignore[import-untyped]

from planner.errors import SolverError
from planner.solvers.answers import Listener, run_interruptibly
from planner.solvers.solution import Clock, Effort

TOLERANCE = 1e-9
"""Absolute, in the program's units, which are scaled to values of 1e-3 and more."""

NO_PROBING = 32768
"""Of `presolve_rule_off`: the bit of probing."""

FEASIBLE_POINT = 2  # kSolutionStatusFeasible


@cache
def version() -> str:
    return str(highspy.Highs().version())


def options_of(effort: Effort) -> dict[str, Any]:
    """HiGHS's options for an effort."""
    options: dict[str, Any] = {
        "output_flag": False,
        "presolve": "on",
        "presolve_rule_off": NO_PROBING,
        "threads": effort.threads,
        "random_seed": effort.seed,
        "mip_rel_gap": effort.gap,
        "mip_abs_gap": 0.0,
        **tolerances(TOLERANCE),
    }
    limit_s = effort.seconds()
    if limit_s is not None:
        options["time_limit"] = limit_s
    return options


def tolerances(tolerance: float) -> dict[str, float]:
    """The options that say what counts as feasible, absolutely."""
    kinds = ("mip", "primal", "dual")
    return {f"{kind}_feasibility_tolerance": tolerance for kind in kinds}


def set_options(highs: highspy.Highs, options: Mapping[str, Any]) -> None:
    """Tell HiGHS how to work, and make sure that it listened.

    Raises:
        SolverError: it does not take an option.
    """
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"highs does not take {value!r} for its option `{name}`")


def run_highs(
    highs: highspy.Highs, *, effort: Effort | None = None, is_linear: bool = False
) -> bool:
    """Run to the end, the time limit or Ctrl-C, in a thread of its own.

    Args:
        effort: whom to tell of incumbents and bounds.
        is_linear: whether no column is whole: other callbacks hear of Ctrl-C then.

    Returns:
        whether it was Ctrl-C.

    Raises:
        SolverError: HiGHS failed.
    """
    stop = threading.Event()
    listener = Listener(effort or Effort(), Clock(), stop.set)

    def check(event: HighsCallbackEvent) -> None:
        if stop.is_set():
            event.interrupt()

    def report(event: HighsCallbackEvent) -> None:
        news = event.data_out
        incumbent, bound = float(news.mip_primal_bound), float(news.mip_dual_bound)
        listener.hear(incumbent, bound, max(0, int(news.mip_node_count)))

    events = [highs.cbSimplexInterrupt, highs.cbIpmInterrupt]
    events = events if is_linear else [highs.cbMipInterrupt]
    for event in events:
        event += check
    if effort is not None and effort.on_progress is not None:
        highs.cbMipImprovingSolution += report
        highs.cbMipLogging += report
        highs.cbMipInterrupt += report  # at each node: bounds between two lines of its log too

    def work() -> None:
        if highs.run() == highspy.HighsStatus.kError:
            status = highs.modelStatusToString(highs.getModelStatus())
            raise SolverError(f"highs failed: {status}")

    try:
        return run_interruptibly(work, stop.set)
    finally:
        for event in events:
            event -= check
        listener.close()
