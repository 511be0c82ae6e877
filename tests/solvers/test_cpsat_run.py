"""Ctrl-C while CP-SAT searches is the caller's, and stays Python's afterwards."""

from __future__ import annotations

import signal
import threading
import time
from _thread import interrupt_main

import pytest
from ortools.sat.python import cp_model

from planner_workshop.staging.machines.stages import run_cpsat

pytestmark = pytest.mark.usefixtures("hears_ctrl_c")


def hard_model() -> cp_model.CpModel:
    """Pigeons and holes, one too few: seconds of search without symmetry."""
    model, n = cp_model.CpModel(), 13
    sits = [[model.new_bool_var("") for _ in range(n - 1)] for _ in range(n)]
    for row in sits:
        model.add_bool_or(row)
    for hole in zip(*sits, strict=True):
        for i in range(n):
            for j in range(i):
                model.add_bool_or(hole[i].negated(), hole[j].negated())
    return model


def quick_solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_presolve = False
    solver.parameters.linearization_level = 0
    solver.parameters.max_time_in_seconds = 20.0
    return solver


def test_an_interrupt_ends_the_search_and_is_raised():
    timer = threading.Timer(0.5, interrupt_main)
    timer.start()
    began_s = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run_cpsat(quick_solver(), hard_model())
    assert time.perf_counter() - began_s < 10.0


def test_the_signal_is_pythons_after_a_search():
    before = signal.getsignal(signal.SIGINT)
    model = cp_model.CpModel()
    model.maximize(model.new_int_var(0, 7, "x"))
    assert run_cpsat(quick_solver(), model) == cp_model.OPTIMAL
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
