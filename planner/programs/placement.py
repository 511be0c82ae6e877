"""Which replicas, and where: how many copies of each column to place on what is free.

A *column* j is one way to run one replica of one model at one place: a kind of device, a
layout, and a place or a class of places that are alike. A *resource* r is whatever places
share and copies use up: devices of a leaf, cells of a torus, devices of a kind.

    minimise   Σ_j objective_j n_j        or, with `is_for_share`, maximise s
    such that  Σ_j amount_rj n_j ≤ free_r                        ∀ r      free
               Σ_{j of m} rate_j n_j ≥ demand_m (s)              ∀ m      demand
               Σ_j column_j n_j + added ≥ 1 (s)                  ∀ cut    its own name
               least_m ≤ Σ_{j of m} n_j ≤ most_m                 ∀ m      replicas
               Σ_j column_j n_j ≤ at_most                        ∀ limit  its own name
               Σ_{j of k} n_j ≤ most_k y_k,  Σ_k y_k ≤ most      ∀ sort k used, sorts
               n_j ∈ {0, 1, 2, …},  s ≥ 0,  y_k ∈ {0, 1}

The rows of sorts stand only where their number is limited. `s` is the served share of the demand
of the model that is served worst; it stands in the rows only where it is the objective. A model
without a demand has no such row. A cut says of all copies together what a demand says of those of
one model: whoever adds it has proved that what the program does not know holds nowhere else
(`programs.handover`).

Units: resources are whole numbers. The tolerances of solvers are absolute, so the poser scales
everything else to values between about 1e-3 and 1e4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from planner.equations.arrays import AnyInts, FloatArray, IntArray
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling, exceeds

UNLIMITED = 1 << 40
"""Replicas of a model, or right side of a resource, that nothing reaches."""

ROWS = ("free", "demand", "replicas", "used", "sorts")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uses:
    """What one copy of a column takes of each resource, entry by entry.

    Args:
        resource, column: where an entry stands, (E,); no pair twice.
        amount: how much a copy takes, (E,); negative is what it adds, never zero.
    """

    resource: AnyInts
    column: AnyInts
    amount: AnyInts


AT_ONCE = 1 << 20
"""Entries of uses that are summed at a time: of wide numbers these take eight times the memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementLimit:
    """One named upper bound on all copies together.

    Args:
        name: one word, the row's name everywhere ("rent", "devices", …).
        column: what a copy of each column takes, (J,), in `unit`.
        at_most: right side, in `unit`.
        unit: the unit, for people.
    """

    name: str
    column: FloatArray
    at_most: float
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """One named lower bound on what all copies together come to.

    Args:
        name: one word, the row's name everywhere.
        column: what a copy of each column adds, never negative, (J,).
        added: what there is besides; negative is what has to be made up for.
        is_of_share: whether it bounds the share where one is maximised; it is at least 1 otherwise.
    """

    name: str
    column: FloatArray
    added: float = 0.0
    is_of_share: bool = True

    def reached(self, copies: FloatArray | IntArray) -> float:
        """What copies of each column, (J,), come to."""
        return float(self.column @ copies) + self.added


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementProgram:
    """The program's data: R resources, J columns, M models.

    Args:
        resources: name of each resource, (R,).
        free: how much of it there is, (R,).
        uses: what columns take of resources.
        models: name of each model, (M,).
        column_model: model that a column serves, (J,).
        objective: what a copy adds to what is minimised, (J,); not looked at for a share.
        rate: what a copy serves, in the unit of the demand, (J,).
        demand: what each model must serve, (M,); 0 is none.
        least, most: replicas that each model may have, (M,).
        limits: the named limits.
        is_for_share: maximise the served share of the demands instead.
        ties: among optima the least of the first, then of the second, …: each (J,), none negative.
        ties_within: share of the objective that may be given up for the first of them.
        column_most: copies that each column may have, (J,); None is no such bound.
        cuts: the named lower bounds.
        sort: number of the sort of replica that a column is of, (J,); -1 is of none. None where
            nothing is asked of sorts.
        most_sorts: sorts that may have copies; None is no such bound.

    Raises:
        ValueError: arrays of different lengths, entries out of range or not positive, limits or
            cuts that share a name, or a share of no demand and of no cut.
    """

    resources: tuple[str, ...]
    free: IntArray
    uses: Uses
    models: tuple[str, ...]
    column_model: IntArray
    objective: FloatArray
    rate: FloatArray
    demand: FloatArray
    least: IntArray
    most: IntArray
    limits: tuple[PlacementLimit, ...] = ()
    is_for_share: bool = False
    ties: tuple[FloatArray, ...] = ()
    ties_within: float = 0.0
    column_most: IntArray | None = None
    cuts: tuple[Cut, ...] = ()
    sort: IntArray | None = None
    most_sorts: int | None = None

    def __post_init__(self) -> None:
        sizes: dict[str, tuple[int, list[AnyInts | FloatArray]]] = {
            "resources": (len(self.resources), [self.free]),
            "models": (len(self.models), [self.demand, self.least, self.most]),
            "columns": (
                len(self.objective),
                [
                    self.column_model,
                    self.rate,
                    *self.ties,
                    *(one.column for one in self.limits),
                    *(one.column for one in self.cuts),
                    *([] if self.column_most is None else [self.column_most]),
                    *([] if self.sort is None else [self.sort]),
                ],
            ),
            "uses": (len(self.uses.amount), [self.uses.resource, self.uses.column]),
        }
        for kind, (length, arrays) in sizes.items():
            if any(array.shape != (length,) for array in arrays):
                raise ValueError(f"the arrays over {kind} are not all of length {length}")
        self._check_values()

    def _check_values(self) -> None:
        entries = (
            (self.uses.resource, len(self.resources), "a resource"),
            (self.uses.column, self.n_columns, "a column"),
            (self.column_model, len(self.models), "a model"),
        )
        for indices, length, what in entries:
            if indices.size and not (indices.min() >= 0 and indices.max() < length):
                raise ValueError(f"an index of {what} is out of range")
        if (self.uses.amount == 0).any():
            raise ValueError("a copy that uses nothing of a resource has no entry for it")
        names = [*ROWS, *(limit.name for limit in self.limits), *(cut.name for cut in self.cuts)]
        if len(set(names)) != len(names):
            raise ValueError(f"two rows share a name: {names}")
        if any((cut.column < 0).any() for cut in self.cuts):
            raise ValueError("a copy takes something from what a cut says is there at least")
        is_bounded = (self.demand > 0).any() or any(cut.is_of_share for cut in self.cuts)
        if self.is_for_share and not is_bounded:
            raise ValueError("there is no demand of which a share could be served")

    def needed(self, cut: Cut) -> float:
        """What a cut has to come to at least, whatever else: a share is never negative."""
        return 0.0 if self.is_for_share and cut.is_of_share else 1.0

    @property
    def cuts_of_share(self) -> tuple[Cut, ...]:
        """Those in which the share stands."""
        return tuple(cut for cut in self.cuts if self.is_for_share and cut.is_of_share)

    @property
    def n_columns(self) -> int:
        return len(self.objective)

    @property
    def limited_sorts(self) -> list[IntArray]:
        """Columns of each sort, where their number is limited."""
        if self.most_sorts is None or self.sort is None:
            return []
        return [np.flatnonzero(self.sort == k) for k in range(int(self.sort.max(initial=-1)) + 1)]

    @property
    def n_resources(self) -> int:
        return len(self.resources)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Counts:
    """A choice: copies of each column, (J,)."""

    copies: tuple[int, ...]

    @property
    def chosen(self) -> tuple[tuple[int, int], ...]:
        """The columns that are placed, each with its copies."""
        return tuple((j, n) for j, n in enumerate(self.copies) if n)


def total_served(program: PlacementProgram, counts: Counts) -> FloatArray:
    """What all copies of each model serve together, (M,), in the unit of the demand."""
    total = np.zeros(len(program.models))
    np.add.at(total, program.column_model, program.rate * np.array(counts.copies, dtype=float))
    return total


def worst_share(program: PlacementProgram, counts: Counts) -> float:
    """The share of its demand that the worst served model gets; inf without any demand.

    No more than any cut in which the share stands says.
    """
    demanded = program.demand > 0
    shares = total_served(program, counts)[demanded] / program.demand[demanded]
    copies = np.array(counts.copies, dtype=float)
    most = min((cut.reached(copies) for cut in program.cuts_of_share), default=math.inf)
    return min(float(shares.min(initial=math.inf)), most)


def n_sorts(program: PlacementProgram, counts: Counts) -> int:
    """Sorts of replicas that have copies."""
    if program.sort is None:
        return 0
    return len({k for j, _ in counts.chosen if (k := int(program.sort[j])) >= 0})


def placement_objective(program: PlacementProgram, counts: Counts) -> float:
    """What the choice comes to, always to be minimised: a share counts negative."""
    if program.is_for_share:
        return -worst_share(program, counts)
    return total(program.objective, counts)


def total(column: FloatArray, counts: Counts) -> float:
    """What all copies come to, of so much each."""
    return float(column @ np.array(counts.copies, dtype=float))


def violations(program: PlacementProgram, counts: Counts) -> dict[str, float]:
    """Every constraint the choice breaks, by name, and by how much; {} means verified.

    It reads the arrays and nothing else, one scalar sum a row. `copies` counts columns whose
    number of copies is none; the rows of resources and models carry their names.
    """
    copies = counts.copies
    strange = abs(len(copies) - program.n_columns) + sum(n < 0 or n != int(n) for n in copies)
    if strange:
        return {"copies": float(strange)}
    broken = _free_excess(program, copies)
    most = copies if program.column_most is None else program.column_most.tolist()
    beyond = sum(max(0, n - int(bound)) for n, bound in zip(copies, most, strict=True))
    if beyond:
        broken["copies"] = float(beyond)
    for m, model in enumerate(program.models):
        mine = [j for j in np.flatnonzero(program.column_model == m).tolist() if copies[j]]
        n_replicas = sum(copies[j] for j in mine)
        outside = max(n_replicas - int(program.most[m]), int(program.least[m]) - n_replicas)
        if outside > 0:
            broken[f"replicas({model})"] = float(outside)
        missing = float(program.demand[m]) - sum(float(program.rate[j]) * copies[j] for j in mine)
        if not program.is_for_share and missing > RELATIVE_TOLERANCE * float(program.demand[m]):
            broken[f"demand({model})"] = missing
    for limit in program.limits:
        left = sum(float(limit.column[j]) * n for j, n in counts.chosen)
        if exceeds(left, limit.at_most):
            broken[limit.name] = left - limit.at_most
    if program.most_sorts is not None and n_sorts(program, counts) > program.most_sorts:
        broken["sorts"] = float(n_sorts(program, counts) - program.most_sorts)
    return broken | _short_of_cuts(program, counts)


def _short_of_cuts(program: PlacementProgram, counts: Counts) -> dict[str, float]:
    """Cuts that come to less than they have to."""
    broken = {}
    for cut in program.cuts:
        needed = program.needed(cut)
        missing = needed - cut.added - sum(float(cut.column[j]) * n for j, n in counts.chosen)
        if missing > RELATIVE_TOLERANCE * (needed or abs(cut.added)):
            broken[cut.name] = missing
    return broken


def _free_excess(program: PlacementProgram, copies: tuple[int, ...]) -> dict[str, float]:
    """Resources of which more is used than is free."""
    used = [0] * program.n_resources
    uses, is_chosen = program.uses, np.array(copies) != 0
    of_chosen = np.flatnonzero(is_chosen[uses.column])
    columns = (uses.resource, uses.column, uses.amount)
    entries = zip(*(column[of_chosen].tolist() for column in columns), strict=True)
    for r, j, amount in entries:
        used[r] += amount * copies[j]
    excess = ((r, n - int(program.free[r])) for r, n in enumerate(used))
    return {f"free({program.resources[r]})": float(n) for r, n in excess if n > 0}


def sizes(program: PlacementProgram) -> FloatArray:
    """What a copy of each column takes of all resources together, (J,)."""
    uses, size = program.uses, np.zeros(program.n_columns)
    for begin in range(0, len(uses.column), AT_ONCE):
        few = slice(begin, begin + AT_ONCE)
        size += np.bincount(uses.column[few], uses.amount[few], minlength=program.n_columns)
    return size


def most_copies(program: PlacementProgram) -> IntArray:
    """Copies of each column that resources, replicas and limits leave room for, (J,)."""
    uses = program.uses
    most = np.minimum(program.most[program.column_model], UNLIMITED)
    if program.column_most is not None:
        most = np.minimum(most, program.column_most)
    # a resource that columns add to is bounded by them, which is for the solver to see
    is_added_to = np.zeros(program.n_resources, np.bool_)
    is_added_to[uses.resource[uses.amount < 0]] = True
    resource, column, amount = uses.resource, uses.column, uses.amount
    if is_added_to.any():
        taking = np.flatnonzero(~is_added_to[resource])
        resource, column, amount = resource[taking], column[taking], amount[taking]
    np.minimum.at(most, column, np.maximum(program.free, 0)[resource] // amount)
    for limit in program.limits:
        takes = limit.column > 0
        if takes.any() and (limit.column >= 0).all():
            fits = np.floor(ceiling(max(limit.at_most, 0.0)) / limit.column[takes])
            most[takes] = np.minimum(most[takes], np.minimum(fits, UNLIMITED).astype(np.int64))
    return most


def largest_share(program: PlacementProgram) -> float:
    """A served share of the demands that no choice exceeds; 0 where none is maximised."""
    if not program.is_for_share:
        return 0.0
    reach = np.zeros(len(program.models))
    np.add.at(reach, program.column_model, program.rate * most_copies(program))
    demanded = program.demand > 0
    shares = (reach[demanded] / program.demand[demanded]).tolist()
    most = most_copies(program)
    cuts = [cut.reached(most) for cut in program.cuts_of_share]
    return max(0.0, float(min([*shares, *cuts])))


def is_hopeless(program: PlacementProgram, most: IntArray) -> bool:
    """Whether one row by itself cannot hold, whatever the copies, at most (J,) of each."""
    reach = np.zeros(len(program.models))
    np.add.at(reach, program.column_model, program.rate * most)
    n_replicas = np.zeros(len(program.models), dtype=np.int64)
    np.add.at(n_replicas, program.column_model, most)
    short = reach < program.demand * (1 - RELATIVE_TOLERANCE)
    few = (n_replicas < program.least) | (program.most < program.least) | (program.most < 0)
    tight = any(
        exceeds(float(np.minimum(limit.column, 0.0) @ most), limit.at_most)
        for limit in program.limits
    )
    tight = tight or any(
        program.needed(cut) - cut.reached(most) > RELATIVE_TOLERANCE * max(1.0, abs(cut.added))
        for cut in program.cuts
    )
    added = np.zeros(program.n_resources, dtype=np.int64)
    adds = program.uses.amount < 0
    resource, column = program.uses.resource[adds], program.uses.column[adds]
    np.add.at(added, resource, -program.uses.amount[adds] * most[column])
    full = bool((program.free + added < 0).any())
    return bool(full or few.any() or tight or (short.any() and not program.is_for_share))


def keeping(program: PlacementProgram, counts: Counts) -> PlacementProgram:
    """The program over choices as good within `ties_within`, its first tie the objective.

    Raises:
        ValueError: there is no tie left to break.
    """
    if not program.ties:
        raise ValueError("there is no tie to break")
    value, within = placement_objective(program, counts), program.ties_within
    following = replace(program, objective=program.ties[0], ties=program.ties[1:], ties_within=0.0)
    if program.is_for_share:
        return serving(following, -value * (1.0 - within))
    # the rounding of a sum is no reason to lose what was found
    at_most = ceiling(value) + within * abs(value)
    return limited(following, program.objective, at_most)


def limited(program: PlacementProgram, column: FloatArray, at_most: float) -> PlacementProgram:
    n_kept = sum(limit.name.startswith("kept") for limit in program.limits)
    kept = PlacementLimit(name=f"kept{n_kept}", column=column, at_most=at_most)
    return replace(program, limits=(*program.limits, kept))


def serving(program: PlacementProgram, share: float) -> PlacementProgram:
    """The program of a share over choices that serve so much of every demand: no share any more."""
    cuts = [cut for cut in program.cuts if not cut.is_of_share]
    if share > 0:  # of nothing, none says anything
        cuts += [
            replace(cut, column=cut.column / share, added=cut.added / share)
            for cut in program.cuts_of_share
        ]
    demand = program.demand * share
    return replace(program, is_for_share=False, demand=demand, cuts=tuple(cuts))


def side_by_side(programs: Sequence[PlacementProgram], names: Sequence[str]) -> PlacementProgram:
    """Programs of the same models, each on resources of its own, as one; columns in their order.

    Args:
        programs: of the first no model is missing; limits are those of all.
        names: of each, which open those of its resources.
    """

    def of_all(name: str) -> Any:  # noqa: ANN401 an array
        return np.concatenate([getattr(it, name) for it in programs])

    sorts = [np.full(it.n_columns, -1) if it.sort is None else it.sort for it in programs]
    limits = zip(*(it.limits for it in programs), strict=True)
    return replace(
        programs[0],
        resources=tuple(_resources(programs, names)),
        free=of_all("free"),
        uses=_uses(programs),
        column_model=of_all("column_model"),
        objective=of_all("objective"),
        rate=of_all("rate"),
        limits=tuple(map(_side_by_side, limits)),
        ties=tuple(map(np.concatenate, zip(*_as_many_ties(programs), strict=True))),
        column_most=np.concatenate(list(map(most_copies, programs))),
        sort=_numbered(sorts, [int(it.max(initial=-1)) + 1 for it in sorts]),
    )


def _resources(programs: Sequence[PlacementProgram], names: Sequence[str]) -> Iterator[str]:
    for program, name in zip(programs, names, strict=True):
        yield from (f"{name}/{it}" if name else it for it in program.resources)


def _uses(programs: Sequence[PlacementProgram]) -> Uses:
    uses = [it.uses for it in programs]
    return Uses(
        resource=_numbered([it.resource for it in uses], [it.n_resources for it in programs]),
        column=_numbered([it.column for it in uses], [it.n_columns for it in programs]),
        amount=np.concatenate([it.amount for it in uses]),
    )


def _side_by_side(limits: Sequence[PlacementLimit]) -> PlacementLimit:
    return replace(limits[0], column=np.concatenate([it.column for it in limits]))


def _as_many_ties(programs: Sequence[PlacementProgram]) -> Iterator[list[FloatArray]]:
    """Of each program its ties, and as many that decide nothing as others have more."""
    most = max(len(it.ties) for it in programs)
    for program in programs:
        yield [*program.ties, *[np.zeros(program.n_columns)] * (most - len(program.ties))]


def _numbered(parts: Sequence[AnyInts], sizes: Sequence[int]) -> IntArray:
    """Numbers of several lists, those of each behind all before it; of none stay negative."""
    starts = zip(parts, accumulate(sizes, initial=0), strict=False)
    return np.concatenate([np.where(part < 0, part, part + start) for part, start in starts])


def columns_of(program: PlacementProgram, columns: IntArray) -> PlacementProgram:
    """The program over some of its columns, renumbered in the given order, (J',)."""
    number = np.full(program.n_columns, -1, dtype=np.int64)
    number[columns] = np.arange(len(columns))
    stays = number[program.uses.column] >= 0
    return replace(
        program,
        uses=Uses(
            resource=program.uses.resource[stays],
            column=number[program.uses.column[stays]],
            amount=program.uses.amount[stays],
        ),
        column_model=program.column_model[columns],
        objective=program.objective[columns],
        rate=program.rate[columns],
        limits=tuple(replace(one, column=one.column[columns]) for one in program.limits),
        cuts=tuple(replace(one, column=one.column[columns]) for one in program.cuts),
        ties=tuple(tie[columns] for tie in program.ties),
        column_most=None if program.column_most is None else program.column_most[columns],
        sort=None if program.sort is None else program.sort[columns],
    )
