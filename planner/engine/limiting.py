"""What limits cost, and why there is no plan.

The program has one slot, so that every column is a deployment by itself: which columns keep
which limits is read off the arrays, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from planner.engine_results import EngineDeployment
from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.serving.choices import EngineChoices
from planner.estimates.serving.request import EngineRequest
from planner.programs.layout import ceiling
from planner.programs.posed import PosedProgram
from planner.quantities import MEMORY, QUANTITIES
from planner.results import LimitUse, Obstacle
from planner.specs.commands import reached_options
from planner.units import show


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limited:
    """One limit over all columns: kept where `values` are at most `at_most`, program's units."""

    values: FloatArray
    at_most: float

    def kept(self, relief: float = 1.0) -> BoolArray:
        return np.asarray(self.values <= ceiling(self.at_most * relief))


def column_values(posed: PosedProgram, quantity: str) -> FloatArray:
    """A quantity of every column, its context's part included (J,)."""
    context, column = posed.quantities[quantity]
    return np.asarray(context[posed.program.column_context] + column)


def limits_of(posed: PosedProgram) -> dict[str, Limited]:
    """Every limit of a program by name; the memory is always one."""
    program = posed.program
    found = {
        limit.name: Limited(
            values=column_values(posed, QUANTITIES[limit.name].program), at_most=limit.at_most
        )
        for limit in program.limits
        if limit.name in QUANTITIES
    }
    capacity = float(program.capacity_bytes[0])
    return {**found, "hbm": Limited(values=column_values(posed, "memory"), at_most=capacity)}


def keeping(
    limits: dict[str, Limited], *, without: Collection[str] = (), looser: str = ""
) -> BoolArray:
    """Columns that keep all limits but some; one of them may be loosened (J,)."""
    kept = np.ones(len(limits["hbm"].values), dtype=np.bool_)
    for name, limit in limits.items():
        if name not in without:
            kept &= limit.kept(QUANTITIES[name].relief if name == looser else 1.0)
    return kept


def limit_uses(
    request: EngineRequest,
    posed: PosedProgram | None,
    best: EngineDeployment,
) -> tuple[LimitUse, ...]:
    """What a plan uses of each limit, and what a little more of it would gain.

    Args:
        posed: over the choices that more memory would allow too; None where they are not known.
    """
    gain = _gains(request, posed)
    limits = {**request.targets.limits(), MEMORY: best.capacity_bytes}
    return tuple(
        LimitUse(
            name=name,
            used=QUANTITIES[name].told(best),
            limit=limit,
            dimension=QUANTITIES[name].dimension,
            relief=QUANTITIES[name].relief,
            gain_fraction=gain(name),
        )
        for name, limit in limits.items()
    )


def _gains(request: EngineRequest, posed: PosedProgram | None) -> Callable[[str], float | None]:
    """The share of the objective that each limit gains, loosened by its relief."""
    if posed is None:
        return lambda name: None
    limits = limits_of(posed)
    values = column_values(posed, request.objective)
    optimum = float(values[keeping(limits)].min())

    def gain(name: str) -> float | None:
        better = float(values[keeping(limits, looser=name)].min())
        return max(0.0, (optimum - better) / abs(optimum))

    return gain


def conflict_parts(
    request: EngineRequest, choices: EngineChoices, posed: PosedProgram
) -> tuple[tuple[Obstacle, ...], dict[str, str]]:
    """The limits that no deployment keeps together, and options with which one exists.

    One irreducible set after the other: the first limit of each that can be loosened yields,
    until what is left has a plan.

    Args:
        choices: those of any memory.
    """
    limits = limits_of(posed)
    obstacles: list[Obstacle] = []
    yielding: list[str] = []
    while not keeping(limits, without=yielding).any():
        conflict = _irreducible(limits, yielding)
        obstacles += [
            _obstacle(request, choices, limits, name, conflict, yielding) for name in conflict
        ]
        loosened = [name for name in QUANTITIES if name in conflict and name != MEMORY]
        if not loosened:
            return tuple(obstacles), {}
        yielding.append(loosened[0])
    column = _least(limits, yielding[0], yielding)
    reached = {n: QUANTITIES[n].in_si(float(limits[n].values[column])) for n in yielding}
    return tuple(obstacles), reached_options(reached)


def _irreducible(limits: dict[str, Limited], without: list[str]) -> list[str]:
    """Deletion filter: memory is tried first, so that a target alone is blamed if it can be."""
    needed = [name for name in limits if name not in without]
    for name in sorted(needed, key=lambda name: name != "hbm"):
        rest = [other for other in needed if other != name]
        if not keeping(limits, without=[o for o in limits if o not in rest]).any():
            needed = rest
    return needed


def _least(limits: dict[str, Limited], name: str, without: Collection[str]) -> int:
    """The column with the least of a limited quantity among those that keep the others, or −1."""
    kept = keeping(limits, without=without)
    if not kept.any():
        return -1
    return int(np.argmin(np.where(kept, limits[name].values, np.inf)))


def _obstacle(
    request: EngineRequest,
    choices: EngineChoices,
    limits: dict[str, Limited],
    name: str,
    conflict: list[str],
    without: list[str],
) -> Obstacle:
    """The best value of one limited quantity when the other limits are kept, if they can be."""
    alone = [other for other in limits if other not in conflict]
    kept = ([name, *without], [name, *(o for o in alone if o != "hbm")], [name, *alone])
    column = next(j for j in (_least(limits, name, out) for out in kept) if j >= 0)
    quantity = QUANTITIES[name]
    reachable = quantity.in_si(float(limits[name].values[column]))
    return Obstacle(
        name=name,
        asked=quantity.in_si(limits[name].at_most),
        reachable=reachable,
        dimension=quantity.dimension,
        reason=_reason(request, choices, name, column, reachable, len(limits)),
    )


def _reason(
    request: EngineRequest,
    choices: EngineChoices,
    name: str,
    column: int,
    reachable: float,
    n_limits: int,
) -> str:
    """The fact that stands in the way, in one sentence."""
    table = choices.table
    n_devices, batch = int(table.n_devices[column]), int(table.batch[column])
    where = f"{n_devices} device{'s' * (n_devices > 1)} at batch {batch}"
    reason = QUANTITIES[name].reason.format(
        within=" within the other limits" if n_limits > 1 else "",
        value=QUANTITIES[name].shown(reachable),
        where=where,
    )
    if name == MEMORY:
        reason += f"; {request.engine} may take {show(choices.limit_bytes, 'B')}"
    return reason
