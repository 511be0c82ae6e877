"""What limits cost, and why there is no plan.

A request under the reference model has one slot, so that every column is a deployment by
itself: which columns keep which limits is read off the arrays, exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from planner.deadlines import is_over
from planner.economics.describing import describe_choice
from planner.economics_results import EconomicsConflict, EconomicsDeployment
from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.economics.choices import Choices, Tables, choices
from planner.estimates.economics.request import EconomicsRequest
from planner.programs.economics import pose_economics
from planner.programs.layout import ceiling
from planner.programs.posed import PosedProgram
from planner.quantities import MEMORY, QUANTITIES
from planner.results import LimitUse, Obstacle
from planner.units import show


def limits_of(request: EconomicsRequest) -> dict[str, float]:
    """The limits of a request by name, SI; the memory of a device is always one."""
    return {**request.targets.limits(), MEMORY: request.hbm_bytes}


def column_values(posed: PosedProgram, quantity: str) -> FloatArray:
    """A quantity of every column, its context's part included (J,)."""
    context, column = posed.quantities[quantity]
    return np.asarray(context[posed.program.column_context] + column)


def keeping(posed: PosedProgram) -> BoolArray:
    """Columns that keep every limit of the program (J,)."""
    program = posed.program
    kept = np.ones(program.n_columns, dtype=np.bool_)
    for limit in program.limits:
        left = limit.context[program.column_context] + limit.column
        kept &= left <= ceiling(limit.at_most)
    return kept


def limit_uses(
    request: EconomicsRequest,
    tables: tuple[Tables, ...],
    posed: PosedProgram,
    best: EconomicsDeployment,
) -> tuple[LimitUse, ...]:
    """What a plan uses of each limit, and what a little more of it would gain."""
    return tuple(
        LimitUse(
            name=name,
            used=QUANTITIES[name].told(best),
            limit=limit,
            dimension=QUANTITIES[name].dimension,
            relief=QUANTITIES[name].relief,
            gain_fraction=None if is_over() else _gain(request, tables, posed, name),
        )
        for name, limit in limits_of(request).items()
    )


def _gain(
    request: EconomicsRequest, tables: tuple[Tables, ...], posed: PosedProgram, name: str
) -> float:
    """The share of the objective that a loosened limit gains."""
    values = column_values(posed, request.objective)
    kept = keeping(posed)
    objective = values[kept].min()
    relief = QUANTITIES[name].relief
    if name == "hbm":
        found = choices(request, tables, memory_scale=relief, tight_bytes=request.hbm_bytes)
        posed = pose_economics(found, request, objective=request.objective)
        loosened, values = keeping(posed), column_values(posed, request.objective)
    else:
        loosened = np.ones(len(values), dtype=np.bool_)
        for limit in posed.program.limits:
            at_most = limit.at_most * relief if limit.name == name else limit.at_most
            left = limit.context[posed.program.column_context] + limit.column
            loosened &= left <= ceiling(at_most)
    better = values[loosened].min(initial=np.inf)  # only what the memory cuts is looked at
    return max(0.0, float((objective - better) / abs(objective)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """Whether a request without some of its limits has a plan, and its extreme ones."""

    request: EconomicsRequest
    tables: tuple[Tables, ...]
    roomy: Choices
    fitting: Choices

    def extreme(self, quantity: str, without: Collection[str]) -> tuple[float, Choices, int] | None:
        """The least of a quantity without some limits: value, choices, column."""
        if quantity == "memory":
            return self._least_memory(without)
        found = self.roomy if "hbm" in without else self.fitting
        return self._least(found, quantity, without)

    def holds(self, without: Collection[str]) -> bool:
        return self.extreme("cost", without) is not None

    def _least(
        self, found: Choices, quantity: str, without: Collection[str], room: float = np.inf
    ) -> tuple[float, Choices, int] | None:
        if not len(found.batch):
            return None
        posed = pose_economics(
            found, self.request, objective=quantity, without=without, memory_scale=room
        )
        values = np.where(keeping(posed), column_values(posed, quantity), np.inf)
        column = int(values.argmin())
        value = float(values[column])
        return (value, found, column) if np.isfinite(value) else None

    def _least_memory(self, without: Collection[str]) -> tuple[float, Choices, int] | None:
        """The fastest that fits, in less and less memory, until nothing keeps the limits."""
        best, found = None, self.roomy
        while (step := self._least(found, "memory", without)) is not None:
            best = step
            scale = float(found.held_bytes[step[2]]) / self.request.hbm_bytes
            smaller = float(np.nextafter(scale, 0.0)) * (1.0 - 1e-12)
            found = choices(self.request, self.tables, memory_scale=smaller)
        return best


def conflict_of(request: EconomicsRequest, tables: tuple[Tables, ...]) -> EconomicsConflict:
    """The limits that no plan satisfies together, and what each could be.

    One irreducible set after the other: the first limit of each that can be loosened yields,
    until what is left has a plan.
    """
    search = _Search(
        request=request,
        tables=tables,
        roomy=choices(request, tables, memory_scale=np.inf),
        fitting=choices(request, tables),
    )
    obstacles: list[Obstacle] = []
    yielding: list[str] = []
    while not search.holds(yielding):
        conflict = _irreducible(search, yielding)
        obstacles += [_obstacle(search, name, conflict, yielding) for name in conflict]
        loosened = [name for name in QUANTITIES if name in conflict and name != MEMORY]
        if not loosened:
            break
        yielding.append(loosened[0])
    return EconomicsConflict(
        request=request,
        obstacles=tuple(obstacles),
        reached=tuple(_reached(search, yielding)),
        n_candidates=search.roomy.n_considered,
    )


def _irreducible(search: _Search, without: list[str]) -> list[str]:
    """Deletion filter: memory is tried first, so that a target alone is blamed if it can be."""
    limits = list(limits_of(search.request))
    needed = [name for name in limits if name not in without]
    for name in sorted(needed, key=lambda name: name != "hbm"):
        rest = [other for other in needed if other != name]
        if not search.holds([other for other in limits if other not in rest]):
            needed = rest
    return needed


def _obstacle(search: _Search, name: str, conflict: list[str], without: list[str]) -> Obstacle:
    """The best value of one limited quantity when the other limits are kept, if they can be."""
    quantity = QUANTITIES[name]
    alone = [other for other in limits_of(search.request) if other not in conflict]
    kept = (
        [name, *without],
        [name, *(other for other in alone if other != "hbm")],
        [name, *alone],
    )
    found = next(
        one for one in (search.extreme(quantity.program, out) for out in kept) if one is not None
    )
    deployment = describe_choice(found[1], search.request, found[2])
    return Obstacle(
        name=name,
        asked=limits_of(search.request)[name],
        reachable=deployment.used_bytes if name == "hbm" else quantity.in_si(found[0]),
        dimension=quantity.dimension,
        reason=_reason(name, deployment, len(limits_of(search.request))),
    )


def _reached(search: _Search, yielding: list[str]) -> Iterator[tuple[str, float]]:
    """Values of the yielding limits at which all limits have a plan; nothing if none has."""
    found = search.extreme(QUANTITIES[yielding[0]].program, yielding) if yielding else None
    if found is None:
        return
    best = describe_choice(found[1], search.request, found[2])
    for name in yielding:
        yield name, QUANTITIES[name].told(best)


def _reason(name: str, best: EconomicsDeployment, n_limits: int) -> str:
    """The fact that stands in the way, in one sentence."""
    where = f"{best.n_devices} devices {best.layout.label}"
    quantity = QUANTITIES[name]
    reason = quantity.reason.format(
        within=" within the other limits" if n_limits > 1 else "",
        value=quantity.shown(quantity.told(best)),
        where=where,
    )
    if name == "tpot":
        reason += f"; {show(best.step.network_s, 's')} of a pass is network"
    if name == MEMORY:
        reason += f", in {best.weights_format}; a device has {show(best.capacity_bytes, 'B')}"
    return reason
