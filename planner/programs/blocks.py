"""A layout program and what its contexts and columns are, whole or block by block.

A program over thousands of devices has millions of columns, and a plan needs a handful. So it is
stated in blocks: every context, with all of its columns, is in one of them. What is decided
within a context is decided block by block, and only what may matter beyond is kept and joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from planner.equations.arrays import IntArray
from planner.programs.amounts import REPLICA_SLOT, Fleet
from planner.programs.layout import Assignment, LayoutProgram, Limit, concatenated, restrict
from planner.programs.targets import Facts, Quantities, further, target_limits
from planner.quantities.table import MEMORY
from planner.specs.ask.targets import Targets

NO_RELIEFS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What a program is stated for.

    Args:
        objective: the quantity to minimise.
        without: names of rows to leave out, `hbm` among them.
        at_most: further limits, a quantity and how much of it there may be, in program's units.
        tie_breaker: quantity that decides between optima.
        memory_scale: factor on the memory of a device; infinite is no limit.
        belief: what is believed of times: what the request says where empty, `INSIDE` the measured
            region only, or `MEDIAN` anywhere.
    """

    objective: str
    without: tuple[str, ...] = ()
    at_most: tuple[tuple[str, float], ...] = ()
    tie_breaker: str = "cost"
    memory_scale: float = 1.0
    belief: str = ""

    @property
    def memory(self) -> float:
        """Factor on the memory of a device; infinite where its row is left out."""
        return float("inf") if MEMORY in self.without else self.memory_scale


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What is known of candidates that a program leaves out, because they cannot matter.

    Args:
        rejected: how many of them, by what rejected them, as screens are named.
        bound: none of those that a bound rejected is better.
        n_contexts: contexts of which nothing is left.
    """

    rejected: Mapping[str, int] = field(default_factory=dict)
    bound: float = np.inf
    n_contexts: int = 0


NOTHING = LeftOut()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockProgram:
    """A program, and which candidate each of its columns is.

    Args:
        program: contexts and columns.
        quantities: coefficients (contexts, columns) by name: what may be limited or minimised.
            Its facts say what contexts and columns are: see the properties.
        tie_breakers: quantities that decide between optima, one after the other.
        n_unfit: candidates left out because they alone exceed the memory.
        roomier: the same candidates posed on devices of that many times the memory; `None`
            where they are not at hand any more.
        left_out: candidates that fit and are no columns.
    """

    program: LayoutProgram
    quantities: Quantities
    tie_breakers: tuple[str, ...]
    n_unfit: int
    roomier: Callable[[float], BlockProgram] | None = None
    left_out: LeftOut = NOTHING

    @property
    def model(self) -> IntArray:
        """Which of the models that are chosen among each context serves, (K,)."""
        return self.quantities.facts.of_context["model"]

    @property
    def number(self) -> IntArray:
        """Number of each context among those of its model, (K,)."""
        return self.quantities.facts.of_context["number"]

    @property
    def arm(self) -> IntArray:
        """Arm of each column, (J,); of a number of replicas, any of its context."""
        return self.quantities.facts.of_column["arm"]

    @property
    def batch(self) -> IntArray:
        """Batch of each column, or its number of replicas, (J,)."""
        return self.quantities.facts.of_column["batch"]

    @property
    def variant(self) -> IntArray:
        """Which way to decode each decode column is, (J,); of replicas, their context's number."""
        return self.quantities.facts.of_column["variant"]

    def amount(self, name: str, assignment: Assignment) -> float:
        """What an assignment comes to in a quantity, in the program's unit."""
        context, column = self.quantities[name]
        return float(context[assignment.context] + column[list(assignment.columns)].sum())

    def fleet(
        self, slot: int, assignment: Assignment, targets: Targets
    ) -> tuple[int, float | None]:
        """Replicas that an assignment has, and the demand that they serve; one without a slot."""
        if len(assignment.columns) <= slot:
            return 1, None
        is_served = any(limit.name == "demand" for limit in self.program.limits)
        demand = targets.demand_tokens_per_s if is_served else None
        return int(self.batch[assignment.columns[slot]]), demand

    def take(self, *, contexts: IntArray, columns: IntArray) -> BlockProgram:
        """Some contexts and columns, without the arrays of the others."""
        return replace(
            self,
            program=restrict(self.program, contexts=contexts, columns=columns),
            quantities=self.quantities.take(contexts=contexts, columns=columns),
            roomier=None,
            left_out=NOTHING,
        )

    def place_of(self, chosen: BlockProgram, assignment: Assignment) -> Assignment:
        """An assignment of another part of the same program, in the columns of this one.

        Raises:
            LookupError: its context or one of its columns is not here.
        """
        k = assignment.context
        here = (self.model == chosen.model[k]) & (self.number == chosen.number[k])
        (context,) = np.flatnonzero(here).tolist() or [-1]
        columns = []
        for j in assignment.columns:
            same = self.program.column_context == context
            same &= self.program.column_slot == chosen.program.column_slot[j]
            for mine, theirs in (
                (self.arm, chosen.arm),
                (self.batch, chosen.batch),
                (self.variant, chosen.variant),
            ):
                same &= mine == theirs[j]
            columns += np.flatnonzero(same).tolist()
        if context < 0 or len(columns) != len(assignment.columns):
            raise LookupError(f"the columns of {assignment} are not in this program")
        return Assignment(context=context, columns=tuple(columns))


def stated(
    quantities: Quantities,
    aim: Objective,
    targets: Targets,
    *,
    slots: tuple[str, ...],
    room: float,
    first: tuple[Limit, ...] = (),
    ties: tuple[str, ...] = (),
    delays: tuple[str, ...] = (),
    n_unfit: int = 0,
) -> BlockProgram:
    """The program of what contexts and columns count.

    Args:
        slots: without that of numbers of replicas, which is added where these are chosen.
        room: of each device [GiB].
        first: limits before those of targets.
        ties, delays: further quantities that decide between optima, see `Fleet.tie_breakers`.
    """
    facts, fleet = quantities.facts, Fleet.asked(targets, aim.without)
    context_objective, column_objective = quantities[aim.objective]
    context_bytes, column_bytes = quantities["memory"]
    program = LayoutProgram(
        slots=(*slots, REPLICA_SLOT) if fleet.is_chosen else slots,
        context_objective=context_objective,
        column_context=facts.context,
        column_slot=facts.of_column["slot"],
        column_objective=column_objective,
        context_bytes=context_bytes,
        column_bytes=column_bytes,
        capacity_bytes=np.full(len(context_objective), room),
        limits=(
            *first,
            *target_limits(targets, quantities, aim.without),
            *(further(quantities, name, most, row=f"also {name}") for name, most in aim.at_most),
        ),
    )
    return BlockProgram(
        program=program,
        quantities=quantities,
        tie_breakers=fleet.tie_breakers(aim.objective, aim.tie_breaker, *ties, delays=delays),
        n_unfit=n_unfit,
    )


class ProgramBlocks(Protocol):
    """A program in blocks; it may be gone through again and again."""

    @property
    def is_cut(self) -> bool:
        """Whether time ended before all of it was made."""

    def blocks(
        self, n_best: int | None = None, reliefs: Mapping[str, float] = NO_RELIEFS
    ) -> Iterator[BlockProgram]:
        """Every context once, with all of its columns; at least one block.

        Args:
            n_best: where it is said, what cannot matter for the best of so many contexts may be
                left out.
            reliefs: factors by which limits are loosened, one at a time: nothing is left out that
                matters then.
        """

    def of(self, model: int, numbers: IntArray) -> BlockProgram:
        """Some contexts of a model, by number, with all of their columns; stated anew."""


class InMemory:
    """A program that is small enough to be one block."""

    def __init__(self, posed: BlockProgram, *, is_cut: bool = False) -> None:
        self._posed, self.is_cut = posed, is_cut

    def blocks(
        self, n_best: int | None = None, reliefs: Mapping[str, float] = NO_RELIEFS
    ) -> Iterator[BlockProgram]:
        yield self._posed

    def of(self, model: int, numbers: IntArray) -> BlockProgram:
        posed = self._posed
        here = (posed.model == model) & np.isin(posed.number, numbers)
        columns = np.flatnonzero(here[posed.program.column_context])
        return posed.take(contexts=np.flatnonzero(here), columns=columns)


class ProgramUnion:
    """The programs of several models: their contexts side by side, so that one proof serves all.

    Args:
        parts: of each model, in the order that their contexts' `model` says.
    """

    def __init__(self, parts: Sequence[ProgramBlocks]) -> None:
        self._parts = parts

    @property
    def is_cut(self) -> bool:
        return any(part.is_cut for part in self._parts)

    def blocks(
        self, n_best: int | None = None, reliefs: Mapping[str, float] = NO_RELIEFS
    ) -> Iterator[BlockProgram]:
        for part in self._parts:
            yield from part.blocks(n_best, reliefs)

    def of(self, model: int, numbers: IntArray) -> BlockProgram:
        return self._parts[model].of(model, numbers)


def joined(parts: Sequence[BlockProgram]) -> BlockProgram:
    """Parts of one program as one, their contexts by number, their columns slot by slot.

    Raises:
        ValueError: they are of different requests: slots, limits or quantities differ.
    """
    first = parts[0]
    if any(set(first.quantities) != set(part.quantities) for part in parts):
        raise ValueError("programs of different requests cannot be joined")
    facts = Facts.joined([part.quantities.facts for part in parts])
    whole = replace(
        first,
        program=concatenated([part.program for part in parts]),
        quantities=Quantities(first.quantities.ways, facts),
        n_unfit=sum(part.n_unfit for part in parts),
        roomier=None,
    )
    contexts = np.lexsort((whole.number, whole.model))
    model = whole.model[whole.program.column_context]
    keys = (whole.batch, whole.arm, whole.variant, whole.program.column_slot, model)
    return whole.take(contexts=contexts, columns=np.lexsort(keys))
