"""One line about a running solver, rewritten in place on a terminal, absent elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from planner.report.lines import percent
from planner.report.words import objective_dimension, plural
from planner.units import show

if TYPE_CHECKING:
    from planner.results.fleets import Round, Step
    from planner.results.surveys import Case
    from planner.solvers.solution import Progress

_PATIENCE_S = 1.0
_EVERY_S = 0.1


class ProgressLine:
    """Called with each piece of news; silent unless the stream is a terminal.

    Args:
        stream: where to write, stderr.
        objective: what is optimised, which says the unit of incumbent and bound.
        patience_s: no news before this; as usual where it is negative.
    """

    def __init__(self, stream: TextIO, *, objective: str, patience_s: float = -1.0) -> None:
        self._stream = stream
        self._patience_s = _PATIENCE_S if patience_s < 0.0 else patience_s
        self._dimension = objective_dimension(objective)
        self._is_terminal = stream.isatty()
        self._began_s, self._written_s = time.monotonic(), -math.inf
        self._length = 0

    def __call__(self, progress: Progress) -> None:
        self.tell(lambda elapsed_s: progress_text(progress, self._dimension, elapsed_s=elapsed_s))

    def tell(self, news: Callable[[float], str]) -> None:
        """Write news that know the time passed [s], not too soon after the last."""
        now_s = time.monotonic()
        patient = now_s - self._began_s < self._patience_s or now_s - self._written_s < _EVERY_S
        if not self._is_terminal or patient:
            return
        self._written_s = now_s
        self._rewrite(news(now_s - self._began_s))

    def clear(self) -> None:
        """Leave the line empty for what comes next."""
        if self._length:
            self._rewrite("")
            self._stream.write("\r")
            self._stream.flush()

    def _rewrite(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)


class SurveyLine:
    """News of several frontiers, on one line.

    Args:
        stream: where to write, stderr.
    """

    def __init__(self, stream: TextIO) -> None:
        self._line = ProgressLine(stream, objective="")
        self._case = ""

    def on_case(self, case: Case) -> None:
        self._case = " ".join(filter(None, (case.model, case.topology, case.weights, case.kv)))
        self._line.tell(lambda elapsed_s: f"searching {self._case}, {show(elapsed_s, 's')}")

    def on_points(self, n_done: int, n_points: int) -> None:
        self._line.tell(
            lambda elapsed_s: (
                f"searching {self._case}: "
                f"{n_done} of {n_points} points verified, {show(elapsed_s, 's')}"
            )
        )

    def clear(self) -> None:
        """Leave the line empty for what comes next."""
        self._line.clear()


class FleetLine:
    """News of a fleet: each round, and each step of a staircase, on a line that stays.

    Args:
        stream: where to write, stderr; silent unless it is a terminal.
        rate_per_s: requests that come today [1/s].
    """

    def __init__(self, stream: TextIO, *, rate_per_s: float) -> None:
        self._stream, self._rate_per_s = stream, rate_per_s
        self._began_s = time.monotonic()
        self._n_rounds = 0

    def on_round(self, one: Round) -> None:
        self._n_rounds += 1
        self._tell(lambda: f"round {self._n_rounds}: {_round_words(one)}")

    def on_step(self, one: Step) -> None:
        low, high = (
            show(factor * self._rate_per_s, "request/s")
            for factor in (one.above_factor, one.upto_factor)
        )
        rent = f"{show(one.usd_per_hour, 'USD/h')}, {plural(one.n_devices, 'device')}"
        self._tell(lambda: f"{low} to {high}: {rent}")

    def _tell(self, words: Callable[[], str]) -> None:
        if self._stream.isatty():
            elapsed_s = time.monotonic() - self._began_s
            self._stream.write(f"{words()}, {show(elapsed_s, 's')}\n")
            self._stream.flush()


def _round_words(one: Round) -> str:
    from planner.report.fleets.rows import round_words  # as the report says it

    return round_words(one)


def progress_text(progress: Progress, dimension: str, *, elapsed_s: float) -> str:
    """`searching: best $41/Mtoken, bound $40/Mtoken, gap 2.4 %, 3.2 s`."""
    best, bound = progress.incumbent, progress.bound
    parts = []
    if math.isfinite(best):
        parts.append(f"best {show(best, dimension)}")
    if math.isfinite(bound):
        parts.append(f"bound {show(bound, dimension)}")
    if math.isfinite(best) and math.isfinite(bound) and best:
        parts.append(f"gap {percent(abs(best - bound) / abs(best))}")
    return f"searching: {', '.join([*(parts or ['no plan yet']), show(elapsed_s, 's')])}"
