"""A solver report: a plan and a frontier, three programs, of which one was never stated."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from planner.results.listings import SolverReport
from planner.specs.records.certificates import Proof
from planner.specs.records.solving import ProgramSize, Progress, SolvedProgram, SolverRun
from tests.report.examples import CERTIFICATE
from tests.report.surveys import CURVE

STATED = ProgramSize(n_binary=14, n_integer=2, n_continuous=1, n_rows=17, n_nonzeros=1_040)
HIGHS = Proof(prover="highs 1.13.1", outcome="optimal", value=4.5, bound=4.5, wall_s=0.3)
CPSAT = replace(HIGHS, prover="cpsat (ortools 9.15)", wall_s=0.2)
MULTIPLIERS = Proof(prover="multipliers", outcome="stopped", value=inf, bound=4.25, wall_s=0.01)
COUNTED = Proof(prover="enumeration of 1,024", outcome="optimal", value=4.5, bound=4.5, wall_s=0.02)
EVENTS = tuple(
    Progress(elapsed_s=i / 100, incumbent=5.0 - i / 60, bound=4.0 + i / 60, n_nodes=3 * i)
    for i in range(31)
)
RUN = SolverRun(
    statement="placement",
    size=STATED,
    presolved=replace(STATED, n_binary=9, n_continuous=0, n_rows=11, n_nonzeros=700),
    proof=HIGHS,
    n_nodes=90,
    n_iterations=1_234,
    n_parts=0,
    events=(Progress(elapsed_s=0.0, incumbent=inf, bound=-inf, n_nodes=0), *EVENTS),
    multipliers={},
)
SEARCHED = replace(
    RUN,
    presolved=replace(STATED, n_integer=30, n_rows=None, n_nonzeros=None),
    proof=CPSAT,
    events=EVENTS[-1:],
)
PRICED = replace(
    RUN,
    presolved=None,
    proof=MULTIPLIERS,
    n_nodes=0,
    events=(Progress(elapsed_s=0.01, incumbent=inf, bound=4.25, n_nodes=0),),
    multipliers={"free[0]": -0.5, "demand[0]": -2.25},
)
NARROWED = replace(RUN, statement="", size=None, presolved=None, n_parts=12)
PROGRAM = SolvedProgram(
    purpose="best plan",
    name="placement",
    size=STATED,
    rows={"free": 10, "demand": 2, "total": 5},
    objective=4.5,
    bound=4.5,
    vouched_by=("highs 1.13.1", "cpsat (ortools 9.15)"),
    proofs=(HIGHS, CPSAT, MULTIPLIERS, COUNTED),
    runs=(RUN, SEARCHED, PRICED, NARROWED),
)
BY_ARITHMETIC = replace(
    PROGRAM, purpose="ties", name="", size=None, rows={}, vouched_by=(), proofs=(COUNTED,), runs=()
)
INFEASIBLE = replace(PROGRAM, objective=inf, bound=inf, runs=())

assert CURVE.frontier is not None
SOLVER_REPORT = SolverReport(
    command="plan --batch=8 --solver-report=solved.html",
    certificates=(CERTIFICATE,),
    frontiers=(CURVE.frontier.proof,),
    programs=(PROGRAM, BY_ARITHMETIC, INFEASIBLE),
)
