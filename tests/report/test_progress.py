"""One line while a solver runs."""

from __future__ import annotations

import io
import math
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

from planner.report import progress as module
from planner.report.progress import FleetLine, ProgressLine, progress_text
from planner.results.fleets import Refuted, Round, Step
from planner.running import begin
from planner.specs.records.solving import Progress

NEWS = Progress(incumbent=41e-6, bound=40e-6, elapsed_s=0.1)


def test_news_are_best_bound_gap_and_time():
    assert progress_text(NEWS, "USD/token", elapsed_s=3.2) == (
        "searching: best $41/Mtoken, bound $40/Mtoken, gap 2.44 %, 3.2 s"
    )


def test_without_a_plan_there_is_a_bound_or_nothing_to_say():
    bound = Progress(incumbent=math.inf, bound=0.02, elapsed_s=0.0)
    nothing = Progress(incumbent=math.inf, bound=-math.inf, elapsed_s=0.0)
    assert progress_text(bound, "s", elapsed_s=2.0) == "searching: bound 20 ms, 2 s"
    assert progress_text(nothing, "s", elapsed_s=2.0) == "searching: no plan yet, 2 s"


@contextmanager
def watched(monkeypatch, patience_s):
    """A stream that shows what is done, from so many seconds on."""
    monkeypatch.setattr(module, "_PATIENCE_S", patience_s)
    monkeypatch.setattr(module, "_EVERY_S", 0.01)
    stream = io.StringIO()
    with module.shown(stream):
        yield stream


def wait_for(stream, words):
    until_s = time.monotonic() + 30.0
    while words not in stream.getvalue():
        assert time.monotonic() < until_s, stream.getvalue()
        time.sleep(0.005)


def test_what_ends_at_once_writes_nothing(monkeypatch):
    with watched(monkeypatch, 30.0) as stream:
        ProgressLine(objective="cost")(NEWS)
    assert stream.getvalue() == ""


def test_the_line_is_rewritten_in_place_and_cleared(monkeypatch):
    with watched(monkeypatch, 0.01) as stream:
        line = ProgressLine(objective="cost")
        line(NEWS)
        wait_for(stream, "best $41/Mtoken")
        line(Progress(incumbent=40e-6, bound=40e-6, elapsed_s=0.2))
        wait_for(stream, "best $40/Mtoken")
    *_, blank, last = stream.getvalue().split("\r")
    assert blank.strip() == last == ""
    assert "\n" not in stream.getvalue()


def test_nothing_is_written_where_no_one_looks():
    ProgressLine(objective="cost")(NEWS)
    FleetLine(rate_per_s=8.0).on_round(Round(usd_per_hour=20.0, n_devices=8, refuted=()))


def test_rounds_and_steps_of_a_fleet_stay_on_lines_of_their_own(monkeypatch):
    refuted = Refuted(
        pool="chat",
        target="TTFT p95",
        class_name="chat",
        at_most_s=1.0,
        simulated_s=1.4,
        before_per_s=5.0,
        after_per_s=4.0,
    )
    with watched(monkeypatch, 30.0) as stream:
        line = FleetLine(rate_per_s=8.0)
        line.on_round(Round(usd_per_hour=20.0, n_devices=8, refuted=(refuted,)))
        line.on_round(Round(usd_per_hour=25.0, n_devices=9, refuted=()))
        line.on_step(
            Step(
                above_factor=0.5,
                upto_factor=2.0,
                usd_per_hour=2.0,
                bound_usd_per_hour=2.0,
                n_devices=1,
                words="",
            )
        )
    first, second, third = (one.strip() for one in stream.getvalue().splitlines() if one.strip())
    assert first.startswith("round 1: $20/h, 8 devices: refuted, TTFT p95 of chat is 40 % beyond")
    assert second.startswith("round 2: $25/h, 9 devices: the simulation keeps every target, ")
    assert third.startswith("4 req/s to 16 req/s: $2/h, 1 device, ")


class Notebook:
    """What of IPython the line needs: events of cells, and displays that are updated in place."""

    def __init__(self):
        self.hooks, self.shown = {}, []

    def get_ipython(self):
        return SimpleNamespace(events=SimpleNamespace(register=self.hooks.__setitem__))

    def display(self, line, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append([line["text/plain"]])
        texts = self.shown[-1]
        return SimpleNamespace(update=lambda line, raw: texts.append(line["text/plain"]))


def test_below_a_cell_the_line_stands_from_when_something_begins(monkeypatch):
    notebook = Notebook()
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(module, "_EVERY_S", 0.01)
    display = SimpleNamespace(display=notebook.display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    module.below_cells()
    time.sleep(0.1)
    assert notebook.shown == []  # nothing of the planner is done
    begin("screening")
    until_s = time.monotonic() + 30.0
    while not (notebook.shown and len(notebook.shown[0]) > 1):
        assert time.monotonic() < until_s
        time.sleep(0.005)
    notebook.hooks["post_run_cell"](None)
    (texts,) = notebook.shown  # one display, updated
    assert texts[0].startswith("screening, ")
    assert texts[-1] == ""
    notebook.hooks["pre_run_cell"](None)
    time.sleep(0.1)
    notebook.hooks["post_run_cell"](None)
    assert len(notebook.shown) == 1  # what began in an earlier cell is not of this one
