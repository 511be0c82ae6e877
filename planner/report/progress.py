"""One line about what works: rewritten on a terminal or below a notebook's cell, absent elsewhere.

A thread writes it, so that no part of the work is silent, whoever has news of it or not.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TextIO

from planner.quantities.units import show
from planner.report.words import objective_dimension, percent, plural
from planner.running import current

if TYPE_CHECKING:
    from planner.results.fleets import Round, Step
    from planner.results.surveys import Case
    from planner.specs.records.solving import Progress

_PATIENCE_S = 0.5
_EVERY_S = 0.2

News = Callable[[float], str]
"""What to write, by the seconds since the command began."""


class _Line:
    """The line of a terminal, and the thread that writes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._began_s = stream, time.monotonic()
        self._length = 0
        self._news: tuple[int, News] = (-1, _working)
        self._lock, self._ends = threading.Lock(), threading.Event()
        run = copy_context().run  # by which a notebook knows the cell
        self._thread = threading.Thread(target=run, args=(self._write,), daemon=True)
        self._thread.start()

    def tell(self, news: News) -> None:
        """News that hold until there are others, or another phase begins."""
        self._news = current()[0], news

    def stay(self, text: str) -> None:
        """A line that stays, above the one that is rewritten."""
        with self._lock:
            self._rewrite("")
            self._stream.write(f"\r{text}\n")
            self._stream.flush()

    def end(self) -> None:
        """Leave the line empty for what comes next."""
        self._ends.set()
        self._thread.join()
        if self._length:
            self._rewrite("")
            self._rewrite("")

    def _write(self) -> None:
        wait_s = _PATIENCE_S
        while not self._ends.wait(wait_s):
            elapsed_s, wait_s = time.monotonic() - self._began_s, _EVERY_S
            phase, news = self._news
            with self._lock:
                self._rewrite((news if phase == current()[0] else _working)(elapsed_s))

    def _rewrite(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)


class _CellLine(_Line):
    """The line below a cell of a notebook, from when the planner begins something in it."""

    def __init__(self) -> None:
        self._phase, self._handle = current()[0], None
        super().__init__(sys.stdout)

    def _rewrite(self, text: str) -> None:
        from IPython.display import display

        if current()[0] == self._phase:
            return
        self._length, line = len(text), {"text/plain": text}
        if self._handle is None:
            self._handle = display(line, raw=True, display_id=True)
        else:
            self._handle.update(line, raw=True)


_shown: _Line | None = None


def below_cells() -> None:
    """Write below each cell of the notebook that runs, if one does, what it does meanwhile."""
    from IPython import get_ipython

    shell, lines = get_ipython(), ExitStack()

    def begin(*_: Any) -> None:  # noqa: ANN401
        lines.close()
        lines.enter_context(shown(None))

    if shell is not None:
        begin()
        shell.events.register("pre_run_cell", begin)
        shell.events.register("post_run_cell", lambda *_: lines.close())


@contextmanager
def shown(stream: TextIO | None) -> Iterator[None]:
    """Write what is done meanwhile to a terminal; without one below a notebook's cell."""
    global _shown
    _shown = line = _CellLine() if stream is None else _Line(stream)
    try:
        yield
    finally:
        _shown = None
        line.end()


def is_shown() -> bool:
    """Whether there is a line."""
    return _shown is not None


def tell(news: News) -> None:
    """What the line says from now on, where there is one."""
    if _shown is not None:
        _shown.tell(news)


def _working(elapsed_s: float) -> str:
    return f"{current()[1]}, {show(round(elapsed_s, 1), 's')}"


class ProgressLine:
    """Called with each piece of a solver's news.

    Args:
        objective: what is optimised, which says the unit of incumbent and bound.
    """

    def __init__(self, *, objective: str) -> None:
        self._dimension = objective_dimension(objective)

    def __call__(self, progress: Progress) -> None:
        tell(lambda elapsed_s: progress_text(progress, self._dimension, elapsed_s=elapsed_s))


class SurveyLine:
    """News of several plans or frontiers."""

    def __init__(self) -> None:
        self._case = ""

    def on_case(self, case: Case) -> None:
        self._case = case.words
        tell(lambda elapsed_s: f"searching {self._case}, {show(elapsed_s, 's')}")

    def on_points(self, n_done: int, n_points: int) -> None:
        tell(
            lambda elapsed_s: (
                f"searching {self._case}: "
                f"{n_done} of {n_points} points verified, {show(elapsed_s, 's')}"
            )
        )


class FleetLine:
    """News of a fleet: each round, and each step of a staircase, on a line that stays.

    Args:
        rate_per_s: requests that come today [1/s].
    """

    def __init__(self, *, rate_per_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._began_s = time.monotonic()
        self._n_rounds = 0

    def on_round(self, trial: Round) -> None:
        self._n_rounds += 1
        self._tell(lambda: f"round {self._n_rounds}: {_round_words(trial)}")

    def on_step(self, step: Step) -> None:
        low, high = (
            show(factor * self._rate_per_s, "request/s")
            for factor in (step.above_factor, step.upto_factor)
        )
        rent = f"{show(step.usd_per_hour, 'USD/h')}, {plural(step.n_devices, 'device')}"
        self._tell(lambda: f"{low} to {high}: {rent}")

    def _tell(self, words: Callable[[], str]) -> None:
        if _shown is not None:
            _shown.stay(f"{words()}, {show(time.monotonic() - self._began_s, 's')}")


def _round_words(trial: Round) -> str:
    from planner.report.answers.fleet_rows import round_words  # as the report says it

    return round_words(trial)


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
