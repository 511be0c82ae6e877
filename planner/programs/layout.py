"""Which layout, on which slice, in which batch: one context and a column for each of its slots.

A *context* k is one way to use the pool (slice and mesh, number format, how weights rest).
A *slot* s is one choice that has to be made in it: 0 is prefill, 1 is decode.
A *column* j is one way to make that choice; it belongs to one context and one slot.

    minimise   Σ_k context_objective_k z_k + Σ_j column_objective_j x_j
    such that  Σ_k z_k = 1                                                    one_context
               Σ_{j in (k, s)} x_j = z_k                           ∀ k, s     one_layout
               Σ_{j in k} column_bytes_j x_j
                           ≤ (capacity_bytes_k - context_bytes_k) z_k   ∀ k   hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most      ∀ limit    its own name
               x, z ∈ {0, 1}

Units: the tolerances of solvers are absolute, so the poser scales. Times are milliseconds,
memory is GiB (every `_bytes` array of this module), money is dollars or whatever keeps the
values between about 1e-3 and 1e4. A capacity or an `at_most` may be infinite: no such row.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray, joined_arrays
from planner.programs.mixed import MixedBuilder, MixedProgram

RELATIVE_TOLERANCE = 1e-9  # of a row's right side: rounding, never a real excess
ROWS = ("one_context", "one_layout", "hbm")  # the rows every program has; limits add theirs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limit:
    """One named upper bound on the plan.

    Args:
        name: one word, the row's name everywhere ("ttft", "tpot", "cost", "devices", …).
        context: coefficient of each context [K], in the limit's own unit.
        column: coefficient of each column [J], same unit.
        at_most: right side, same unit; infinite means that there is no such limit.
        is_signed: whether columns may add less than nothing, even where none of these does.
    """

    name: str
    context: FloatArray
    column: FloatArray
    at_most: float
    is_signed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutProgram:
    """The program's data: K contexts, S slots, J columns.

    Args:
        slots: name of each slot [S].
        context_objective: what choosing the context costs by itself [K].
        column_context, column_slot: where each column belongs [J].
        column_objective: what choosing the column costs [J].
        context_bytes: weights that rest in the context, per device [K], GiB.
        column_bytes: what the column keeps beside them, per device [J], GiB.
        capacity_bytes: usable memory of a device [K], GiB; may be infinite.
        limits: the named limits.

    Raises:
        ValueError: arrays of different lengths, or limits that share a name.
    """

    slots: tuple[str, ...]
    context_objective: FloatArray
    column_context: IntArray
    column_slot: IntArray
    column_objective: FloatArray
    context_bytes: FloatArray
    column_bytes: FloatArray
    capacity_bytes: FloatArray
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        per_context = {self.context_objective.shape, self.context_bytes.shape}
        per_context |= {self.capacity_bytes.shape, *(limit.context.shape for limit in self.limits)}
        per_column = {self.column_context.shape, self.column_slot.shape}
        per_column |= {self.column_objective.shape, self.column_bytes.shape}
        per_column |= {limit.column.shape for limit in self.limits}
        for shapes, kind in ((per_context, "contexts"), (per_column, "columns")):
            if len(shapes) != 1 or len(next(iter(shapes))) != 1:
                raise ValueError(f"the arrays over {kind} differ in shape: {sorted(shapes)}")
        names = [*ROWS, *(limit.name for limit in self.limits)]
        if len(set(names)) != len(names):
            raise ValueError(f"two rows share a name: {names}")

    @property
    def n_contexts(self) -> int:
        return len(self.context_objective)

    @property
    def n_slots(self) -> int:
        return len(self.slots)

    @property
    def n_columns(self) -> int:
        return len(self.column_objective)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Assignment:
    """A choice: one context, and one column for each slot in the slots' order."""

    context: int
    columns: tuple[int, ...]


def objective(program: LayoutProgram, assignment: Assignment) -> float:
    """What the assignment costs, in the program's unit."""
    chosen = program.column_objective[list(assignment.columns)]
    return float(program.context_objective[assignment.context] + chosen.sum())


def amount(limit: Limit, assignment: Assignment) -> float:
    """Left side of a limit under the assignment, in the limit's unit."""
    return float(limit.context[assignment.context] + limit.column[list(assignment.columns)].sum())


def violations(program: LayoutProgram, assignment: Assignment) -> dict[str, float]:
    """Every constraint the assignment breaks, by name, and by how much; {} means verified.

    It reads the arrays and nothing else: no solver, no model of one. `one_context` and
    `one_layout` count what does not belong; `hbm` is in GiB, a limit in its own unit.
    An excess within 1e-9 of the right side is rounding.
    """
    k, chosen = assignment.context, list(assignment.columns)
    if not 0 <= k < program.n_contexts:
        return {"one_context": 1.0}
    strangers = abs(len(chosen) - program.n_slots)
    for slot, j in enumerate(chosen):
        here = 0 <= j < program.n_columns and program.column_context[j] == k
        strangers += not (here and program.column_slot[j] == slot)
    if strangers:
        return {"one_layout": float(strangers)}
    held = float(program.context_bytes[k] + program.column_bytes[chosen].sum())
    rows = [("hbm", held, float(program.capacity_bytes[k]))]
    rows += [(limit.name, amount(limit, assignment), limit.at_most) for limit in program.limits]
    return {name: left - right for name, left, right in rows if exceeds(left, right)}


def exceeds(left: float, at_most: float) -> bool:
    """Whether a row's left side is beyond its right side by more than rounding."""
    return left > ceiling(at_most)


def ceiling(at_most: float) -> float:
    """The largest left side that still counts as within `at_most`."""
    return at_most + RELATIVE_TOLERANCE * abs(at_most)


def keeping(program: LayoutProgram) -> BoolArray:
    """Columns that keep every limit by themselves, of a program of one slot [J]."""
    kept = np.ones(program.n_columns, dtype=np.bool_)
    for limit in program.limits:
        kept &= limit.context[program.column_context] + limit.column <= ceiling(limit.at_most)
    return kept


def choosable(program: LayoutProgram) -> BoolArray:
    """Contexts that have a column in every slot and room for their weights [K]."""
    counts = np.zeros((program.n_contexts, program.n_slots), dtype=np.int64)
    np.add.at(counts, (program.column_context, program.column_slot), 1)
    capacity = program.capacity_bytes
    with np.errstate(invalid="ignore"):  # an infinite capacity holds everything
        fits = program.context_bytes <= capacity + RELATIVE_TOLERANCE * np.abs(capacity)
    return np.asarray((counts > 0).all(axis=1) & fits)


def lower_bounds(program: LayoutProgram) -> FloatArray:
    """No assignment in a context is better than this [K]; inf where none can be chosen."""
    least = np.full((program.n_contexts, program.n_slots), np.inf)
    place = (program.column_context, program.column_slot)
    np.minimum.at(least, place, program.column_objective)
    bounds = program.context_objective + least.sum(axis=1)
    return np.where(choosable(program), bounds, np.inf)


def restrict(program: LayoutProgram, *, contexts: IntArray, columns: IntArray) -> LayoutProgram:
    """The program over some of its contexts and columns, renumbered in the given order.

    Args:
        contexts: the contexts that stay, old indices [K'].
        columns: the columns that stay, old indices [J']; each one's context must stay.
    """
    new_context = np.full(program.n_contexts, -1, dtype=np.int64)
    new_context[contexts] = np.arange(len(contexts))
    return LayoutProgram(
        slots=program.slots,
        context_objective=program.context_objective[contexts],
        column_context=new_context[program.column_context[columns]],
        column_slot=program.column_slot[columns],
        column_objective=program.column_objective[columns],
        context_bytes=program.context_bytes[contexts],
        column_bytes=program.column_bytes[columns],
        capacity_bytes=program.capacity_bytes[contexts],
        limits=tuple(
            replace(limit, context=limit.context[contexts], column=limit.column[columns])
            for limit in program.limits
        ),
    )


def concatenated(parts: Sequence[LayoutProgram]) -> LayoutProgram:
    """Programs with the same slots and limits as one, one after the other.

    Raises:
        ValueError: slots or limits differ.
    """
    first = parts[0]
    names = {(part.slots, tuple(limit.name for limit in part.limits)) for part in parts}
    if len(names) > 1:
        raise ValueError(f"programs of different rows cannot be joined: {sorted(names)}")
    if len(parts) == 1:
        return first

    before = np.cumsum([0, *(part.n_contexts for part in parts)]).tolist()
    context = [part.column_context + n for part, n in zip(parts, before[:-1], strict=True)]
    return joined_arrays(
        parts,
        column_context=np.concatenate(context),
        limits=tuple(map(joined_arrays, zip(*(part.limits for part in parts), strict=True))),
    )


def layout_rows(program: LayoutProgram) -> MixedProgram:
    """The layout program over z of its contexts, then x of its columns.

    minimise   Σ_k objective_k z_k + Σ_j objective_j x_j
    such that  Σ_k z_k = 1                                            one_context
               Σ_{j in (k, s)} x_j = z_k                       ∀ k,s  one_layout
               Σ_{j in k} bytes_j x_j - (capacity_k - bytes_k) z_k ≤ 0  ∀ k  hbm
               Σ_k context_k z_k + Σ_j column_j x_j ≤ at_most  ∀ limit  the limit's name
               x, z ∈ {0, 1}

    An infinite capacity or limit is no row.
    """
    rows, n_contexts = MixedBuilder(rounding=RELATIVE_TOLERANCE), program.n_contexts
    for letter, costs in (("z", program.context_objective), ("x", program.column_objective)):
        for i, cost in enumerate(costs.tolist()):
            rows.column(f"{letter}[{i}]", 1.0, cost=cost, is_whole=True)
    rows.row("one_context", dict.fromkeys(range(n_contexts), 1.0), 1.0, 1.0)
    of_place: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    held: dict[int, dict[int, float]] = defaultdict(dict)
    columns = (program.column_context, program.column_slot, program.column_bytes)
    each = zip(*(values.tolist() for values in columns), strict=True)
    for j, (k, s, n_bytes) in enumerate(each, start=n_contexts):
        of_place[k, s][j], held[k][j] = 1.0, n_bytes
    for k, s in product(range(n_contexts), range(program.n_slots)):
        rows.row(f"one_layout[{k},{s}]", {**of_place[k, s], k: -1.0}, 0.0, 0.0)
    for k, free in enumerate((program.capacity_bytes - program.context_bytes).tolist()):
        if math.isfinite(free):
            rows.row(f"hbm[{k}]", {**held[k], k: -free}, -math.inf, 0.0)
    for limit in program.limits:
        terms = dict(enumerate([*limit.context.tolist(), *limit.column.tolist()]))
        if math.isfinite(limit.at_most) and (any(terms.values()) or limit.at_most < 0):
            rows.row(limit.name, terms, -math.inf, limit.at_most)
    return rows.program("layout")
