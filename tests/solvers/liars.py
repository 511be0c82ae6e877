"""Solvers that lie, put in the place of honest ones: no answer that they had a part in may be
called optimal that is not."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module

import numpy as np

from planner.solvers.mixed import checked

LIES = ("worst answer", "false bound", "false infeasible", "half an answer")

_SEAMS = {
    "highs": ("planner.solvers.mixed.highs",),
    "scip": ("planner.solvers.mixed.scip",),
    "cpsat": ("planner.solvers.mixed.cpsat",),
}


def lies(monkeypatch, solver, lie):
    """Let a solver of rows lie from now on; every program is handed to it as rows."""
    for name in _SEAMS[solver]:
        module = import_module(name)
        honest = module.solve
        monkeypatch.setattr(module, "solve", _liar(honest, lie))


def _liar(honest, lie):
    def solve(program, effort, **choices):
        if lie == "worst answer":
            turned = replace(program, cost=-program.cost, offset=-program.offset)
            word = honest(turned, effort, **choices)
            return _said(word, value=-word.proof.value, bound=-word.proof.value)
        word = honest(program, effort, **choices)
        if lie == "false infeasible":
            proof = replace(word.proof, outcome="infeasible", value=math.inf, bound=math.inf)
            return replace(word, answer=None, proof=proof)
        if lie == "false bound":
            beyond = word.proof.value + 0.5 * abs(word.proof.value) + 1.0
            return _said(word, value=word.proof.value, bound=beyond)
        return _half(program, word)

    return solve


def _said(word, *, value, bound):
    if word.answer is None:
        return word
    proof = replace(word.proof, outcome="optimal", value=value, bound=bound)
    return replace(word, answer=word.answer, proof=proof)


def _half(program, word):
    """The first half of an answer, called optimal."""
    if word.answer is None:
        return word
    from planner.solvers.mixed import RawAnswer

    values = np.where(np.arange(len(word.answer)) < len(word.answer) / 2, word.answer, 0.0)
    raw = RawAnswer(outcome="optimal", values=values, bound=float(program.cost @ values))
    return checked(program, raw, prover=word.proof.prover, wall_s=word.proof.wall_s)
