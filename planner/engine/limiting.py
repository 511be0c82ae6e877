"""What limits cost, and why there is no plan.

The program has one slot, so that every column is a deployment by itself: which columns keep
which limits is read off the arrays, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from planner.engine_results import EngineDeployment
from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.serving.choices import EngineChoices
from planner.estimates.serving.request import EngineRequest
from planner.explain import QUANTITY
from planner.gains import RELIEF
from planner.programs.layout import ceiling
from planner.programs.posed import PosedProgram
from planner.results import LimitUse, Obstacle
from planner.specs.commands import LIMIT_OPTIONS
from planner.units import show

LOOSENED = ("tpot", "ttft", "cost", "devices", "batch")
"""Limits that an option can loosen, the first of a conflict first."""


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
            values=column_values(posed, QUANTITY[limit.name][0]), at_most=limit.at_most
        )
        for limit in program.limits
        if limit.name in QUANTITY
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
            kept &= limit.kept(RELIEF[name] if name == looser else 1.0)
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
    targets = request.targets
    rows = (
        ("tpot", best.planned_tpot_s, targets.tpot_s, "s"),
        ("ttft", best.planned_ttft_s, targets.ttft_s, "s"),
        ("cost", best.usd_per_token, targets.usd_per_token, "USD/token"),
        ("devices", float(best.n_devices), targets.n_devices, "1"),
        ("batch", float(best.batch * best.n_data), targets.min_batch, "1"),
        ("hbm", best.used_bytes, best.capacity_bytes, "B"),
    )
    return tuple(
        LimitUse(
            name=name,
            used=used,
            limit=float(limit),
            dimension=dimension,
            relief=RELIEF[name],
            gain_fraction=gain(name),
        )
        for name, used, limit, dimension in rows
        if limit is not None
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
        loosened = [name for name in LOOSENED if name in conflict]
        if not loosened:
            return tuple(obstacles), {}
        yielding.append(loosened[0])
    column = _least(limits, yielding[0], yielding)
    reached = {name: float(limits[name].values[column]) for name in yielding}
    return tuple(obstacles), {LIMIT_OPTIONS[n]: _written(n, v) for n, v in reached.items()}


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
    scale, dimension = QUANTITY[name][1:]
    if name == "hbm":
        scale = float(choices.limit_bytes / limits["hbm"].at_most)
    reachable = float(limits[name].values[column]) * scale
    return Obstacle(
        name=name,
        asked=limits[name].at_most * scale,
        reachable=reachable,
        dimension=dimension,
        reason=_reason(request, choices, name, column, reachable),
    )


def _reason(
    request: EngineRequest, choices: EngineChoices, name: str, column: int, reachable: float
) -> str:
    """The fact that stands in the way, in one sentence."""
    table = choices.table
    n_devices, batch = int(table.n_devices[column]), int(table.batch[column])
    where = f"{n_devices} device{'s' * (n_devices > 1)} at batch {batch}"
    if name == "tpot":
        return f"the fastest token within the other limits takes {show(reachable, 's')} on {where}"
    if name == "ttft":
        return (
            f"the first token of {request.workload.n_input_tokens} tokens takes "
            f"{show(reachable, 's')} at best within the other limits, on {where}"
        )
    if name == "hbm":
        return (
            f"the plan that needs least memory takes {show(reachable, 'B')} of each device on "
            f"{where}; {request.engine} may take {show(choices.limit_bytes, 'B')}"
        )
    if name == "cost":
        cost = show(reachable, "USD/token")
        return f"the cheapest plan within the other limits takes {cost} on {where}"
    if name == "devices":
        return f"the smallest plan within the other limits takes {where}"
    return f"the most sequences within the other limits are {round(reachable)} on {where}"


def _written(name: str, value: float) -> str:
    """A value that has a plan, as an option takes it: rounded to the side that has one."""
    if name in ("devices", "batch"):
        return str(round(abs(value)))
    form = "${:.12g}/Mtoken" if name == "cost" else "{:.12g}ms"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return form.format(math.ceil(value / step) * step)
