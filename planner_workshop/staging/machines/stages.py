"""How many stages of each pattern, and the way through the regions, by OR-Tools CP-SAT.

Inside one region any order of stages will do. Between regions the last stage of one must be able
to send to the first of the next, so these two are chosen as well, and a circuit over the regions
says in which order they are visited. A region may be visited more than once.
"""

from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from planner.errors import SolverError
from planner.solvers.answers import run_interruptibly
from planner_workshop.staging.machines.patterns import Patterns, crossings
from planner_workshop.staging.machines.program import Classes

MOST_DETERMINISTIC = 2.0
"""CP-SAT's own measure of work, about seconds; what it has not found by then is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clashes:
    """What was found not to carry the rate, whichever machines stand there.

    Args:
        pairs: patterns that cannot follow each other from region to region.
        first, last: patterns that cannot be the first, or the last of all.
    """

    pairs: set[tuple[int, int]] = field(default_factory=set)
    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)


def stage_row(
    pool: Classes,
    some: Patterns,
    *,
    n_visits: int = 1,
    seed: int = 0,
    refused: Clashes | None = None,
) -> tuple[int, ...] | None:
    """Patterns along the layers, by index, that hold every layer once, in an order that links
    allow; None if none was found, which proves nothing.

    Raises:
        SolverError: CP-SAT failed.
    """
    if not len(some):
        return None
    model = cp_model.CpModel()
    is_plain = pool.n_regions == 1 and bool(some.entry.all() and some.leaving.all())
    visits = [
        r for r in range(pool.n_regions) for _ in range(n_visits if pool.n_regions > 1 else 1)
    ]
    posed = [_Visit(model, pool, some, region) for region in visits]
    layers = sum(v.n[p] * int(some.n_layers[p]) for v in posed for p in v.patterns)
    model.add(layers == pool.n_layers)
    for c, n in enumerate(pool.n_machines.tolist()):
        used = [(v.n[p], int(some.counts[p, c])) for v in posed for p in v.patterns]
        model.add(sum(y * k for y, k in used if k) <= n)
    if not is_plain:
        _route(model, pool, some, posed, refused or Clashes())
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = MOST_DETERMINISTIC
    status = run_cpsat(solver, model)
    if status == cp_model.MODEL_INVALID:
        raise SolverError("cpsat does not take the program of stage patterns")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    order = posed if is_plain else _order(solver, posed)
    return tuple(p for visit in order for p in visit.stages(solver))


class _Visit:
    """One stay in a region: how many stages of each pattern, the first and the last of them."""

    def __init__(self, model: cp_model.CpModel, pool: Classes, some: Patterns, region: int) -> None:
        self.region = region
        self.patterns = np.flatnonzero(some.region == region).tolist()
        self.n = {p: model.new_int_var(0, _most(pool, some, p), "") for p in self.patterns}
        self.first: dict[int, cp_model.IntVar] = {}
        self.last: dict[int, cp_model.IntVar] = {}
        self.arcs: dict[int, cp_model.IntVar] = {}

    def add_ends(self, model: cp_model.CpModel) -> None:
        """Choose the first and the last stage; none of either where the visit is not used."""
        self.first = {p: model.new_bool_var("") for p in self.patterns}
        self.last = {p: model.new_bool_var("") for p in self.patterns}
        self.is_used = model.new_bool_var("")
        is_single = model.new_bool_var("")  # the first stage is the last one too
        model.add(sum(self.first.values()) == self.is_used)
        model.add(sum(self.last.values()) == self.is_used)
        model.add(sum(self.n.values()) >= self.is_used)
        model.add(sum(self.n.values()) == 1).only_enforce_if(is_single)
        for p in self.patterns:
            model.add(self.n[p] == 0).only_enforce_if(self.is_used.negated())
            model.add(self.first[p] + self.last[p] <= self.n[p] + is_single)
            model.add(self.first[p] <= self.n[p])
            model.add(self.last[p] <= self.n[p])

    def stages(self, solver: cp_model.CpSolver) -> list[int]:
        """Its patterns, the first first and the last last."""
        listed = [p for p in self.patterns for _ in range(solver.value(self.n[p]))]
        if not self.first:
            return listed
        first = next(p for p in self.patterns if solver.value(self.first[p]))
        last = next(p for p in self.patterns if solver.value(self.last[p]))
        if len(listed) == 1:
            return listed
        listed.remove(first)
        listed.remove(last)
        return [first, *listed, last]


def _most(pool: Classes, some: Patterns, pattern: int) -> int:
    """Stages of a pattern that there are machines and layers for."""
    counts = some.counts[pattern]
    used = counts > 0
    machines = int((pool.n_machines[used] // counts[used]).min())
    return min(machines, pool.n_layers // int(some.n_layers[pattern]))


def _route(
    model: cp_model.CpModel, pool: Classes, some: Patterns, posed: list[_Visit], refused: Clashes
) -> None:
    """A circuit from the coordinator through the visits, those that are not used left out."""
    arcs = []
    reaches = crossings(pool, some)
    for p, q in refused.pairs:
        reaches[int(some.region[p]), int(some.region[q])][p, q] = False
    for visit in posed:
        visit.add_ends(model)
    for i, visit in enumerate(posed):
        into, out = model.new_bool_var(""), model.new_bool_var("")
        arcs += [(0, i + 1, into), (i + 1, 0, out), (i + 1, i + 1, visit.is_used.negated())]
        visit.arcs[-1] = into
        for p in visit.patterns:
            if not some.entry[p] or p in refused.first:
                model.add_implication(into, visit.first[p].negated())
            if not some.leaving[p] or p in refused.last:
                model.add_implication(out, visit.last[p].negated())
        for j, other in enumerate(posed):
            if other.region == visit.region:
                continue
            arc = model.new_bool_var("")
            visit.arcs[j] = arc
            arcs.append((i + 1, j + 1, arc))
            _cross(model, arc, visit, other, reaches[visit.region, other.region])
    model.add_circuit(arcs)


def _cross(
    model: cp_model.CpModel, arc: cp_model.IntVar, visit: _Visit, other: _Visit, reaches: np.ndarray
) -> None:
    """If the arc is taken, the last stage here reaches the first there."""
    groups: dict[bytes, list[int]] = {}
    there = np.array(other.patterns, dtype=np.int64)
    for p in visit.patterns:  # patterns of equal reach share their clause
        groups.setdefault(reaches[p, there].tobytes(), []).append(p)
    for alike in groups.values():
        allowed = [other.first[q] for q in other.patterns if reaches[alike[0], q]]
        last = sum(visit.last[p] for p in alike)
        model.add(last <= sum(allowed)).only_enforce_if(arc)


def _order(solver: cp_model.CpSolver, posed: list[_Visit]) -> list[_Visit]:
    at = next(i for i, visit in enumerate(posed) if solver.value(visit.arcs[-1]))
    order = [at]
    while True:
        arcs = posed[order[-1]].arcs
        then = [j for j, arc in arcs.items() if j >= 0 and solver.value(arc)]
        if not then:
            return [posed[i] for i in order]
        order.append(then[0])


def run_cpsat(solver: cp_model.CpSolver, model: cp_model.CpModel) -> cp_model.CpSolverStatus:
    """Solve a model with the parameters that the solver has.

    CP-SAT by itself takes SIGINT for a limit, answers with what it has, and leaves the signal to
    end the process without a word afterwards.

    Raises:
        KeyboardInterrupt: interrupted.
    """
    solver.parameters.catch_sigint_signal = False
    ended: list[cp_model.CpSolverStatus] = []
    if run_interruptibly(lambda: ended.append(solver.solve(model)), solver.stop_search):
        raise KeyboardInterrupt
    return ended[0]
