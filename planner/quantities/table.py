"""What a deployment is judged by: each quantity once, for limits, objectives, axes and words.

A row of `quantities.toml` says all that is known of a quantity wherever it is met: the option that
limits it, its unit, what the programs call it and in which scale, where a deployment tells it,
and what people call it. Options of the command, limits of programs, hints, reports, JSON and the
verifier read it here. To add a quantity is to add a row, and its coefficients to each runtime
that can count it (`programs.amounts`); a runtime that has none refuses it by its option's name.

Inside programs milliseconds, GiB, kilowatts and US dollars per million output tokens are the
units in which solvers' tolerances are harmless; everywhere else quantities are in SI.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.quantities.units import show

MS = 1e3
USD_PER_MTOKEN = 1e6
KW = 1e3
GIB = 1.0 / 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A quantity as an axis of a frontier, and of its picture.

    Args:
        words: what the axis is called in a sentence.
        title: what it is called in a picture, with the unit drawn.
        is_delay: it is what a frontier keeps short; else it is set against that.
        factor: of what is drawn to SI.
        is_speed: what is drawn is the inverse of the quantity.
        before: what stands before a number.
        price: what a rate costs, in the words of the preferred point.
    """

    words: str
    title: str
    is_delay: bool = False
    factor: float = 1.0
    is_speed: bool = False
    before: str = ""
    price: str = "price"

    def drawn(self, value: float) -> float:
        """The number that is drawn for a value in SI."""
        return 1 / value if self.is_speed else value * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One quantity, wherever it is met.

    Args:
        name: of its limit, one word, the row's name everywhere.
        dimension: of it, as `units.show` takes it.
        fields: of a deployment that tell it; the first that the deployment has.
        program: its coefficients in a program, by name; they may hold the inverse.
        scale: factor from SI to the program's unit, and to the unit that people write.
        is_inverse: a program holds the time of a token in place of the tokens in a time.
        option: that limits it; none does where empty.
        metavar, about: of the option, for its help.
        target: field of `Targets` that holds the limit; empty for one of `further`.
        is_least: the limit is a least, not a most.
        is_exact: a plan has just as much as the limit says.
        row: right side of the row of a program whose coefficients hold the limit already.
        least: quantity of a program whose least is the best that can be reached.
        pattern: how people write it: `{}ms`.
        example: of a value, as people write it.
        is_count: a whole number.
        relief: factor by which the limit is loosened to see what it costs; 0 where the plan is
            credited with the limit itself, so that looser is not better.
        label: what reports call it.
        head: why there is no plan, where this limit alone is at fault.
        reason: the fact that stands in the way.
        objective: its name as an objective; it is none where empty.
        aim: the objective in words.
        axis: as an axis of a frontier; it is none where left out.
        is_offered: users may ask for the objective.
        placed: how a placement keeps its limit: `each` replica by itself, `all` of them
            together, or `model` by model; where empty, none does.
        needs: a device without this figure in its file has no such quantity.
        lack, cure: what is then wrong, and its remedy.
        counted: it by itself, of a deployment and its device, where no field tells it.
    """

    name: str
    dimension: str
    label: str
    fields: tuple[str, ...] = ()
    program: str = ""
    scale: float = 1.0
    is_inverse: bool = False
    option: str = ""
    metavar: str = "N"
    about: str = ""
    target: str = ""
    is_least: bool = False
    is_exact: bool = False
    row: float | None = None
    least: str = ""
    pattern: str = "{}"
    example: str = ""
    is_count: bool = False
    relief: float = 1.1
    head: str = ""
    reason: str = ""
    objective: str = ""
    aim: str = ""
    axis: Axis | None = None
    is_offered: bool = True
    placed: Literal["", "each", "all", "model"] = ""
    needs: str = ""
    lack: str = ""
    cure: str = ""
    counted: Callable[[Any, Any], float] | None = None

    @property
    def argument(self) -> str:
        """The option as an argument's name: `max_cost`."""
        return self.option.lstrip("-").replace("-", "_")

    @property
    def best(self) -> str:
        """Quantity of a program whose least is the best that can be reached."""
        return self.least or self.program

    @property
    def is_rate(self) -> bool:
        """Of which more is better, and a program holds the inverse."""
        return self.is_inverse

    def told(self, deployment: object) -> float:
        """What a deployment comes to, SI."""
        for field in self.fields:
            try:
                return float(attrgetter(field)(deployment))
            except AttributeError:
                continue
        further: Mapping[str, float] = getattr(deployment, "further", {})
        return further[self.name]

    def counted_of(self, deployment: object, device: object) -> float:
        """What a deployment on a device comes to, SI; by itself where no field tells it."""
        return self.counted(deployment, device) if self.counted else self.told(deployment)

    def at_most(self, limit: float) -> float:
        """A limit in SI as the right side of a program's row: a least is a most of the negative."""
        if self.row is not None:
            return self.row
        return (-self.scale if self.is_least else self.scale) * limit

    def in_si(self, value: float) -> float:
        """What a program's coefficients come to, in SI."""
        scaled = value * (1.0 / self.scale)
        if self.is_inverse:
            return 1.0 / scaled if scaled else math.inf
        return -scaled if self.is_least else scaled

    def is_kept(self, value: float, limit: float, *, tolerance: float = 0.0) -> bool:
        """Whether a value of a deployment is within a limit."""
        if self.is_least:
            return value >= limit * (1 - tolerance)
        return value <= limit * (1 + tolerance)

    def written(self, value: float) -> str:
        """A value as the option takes it."""
        scaled = value if self.is_count else value * self.scale
        return self.pattern.format(f"{scaled:.12g}")

    def relaxed(self, value: float) -> float:
        """A limit at which there is a plan that comes to a value, SI.

        It has three significant digits as an option says it, to the side that has the plan; what
        the last bits of a sum add counts as nothing. Counts stay whole.
        """
        if self.is_count:
            return round(value)
        step = 10.0 ** (math.floor(math.log10(value * self.scale)) - 2)
        n_steps = value * self.scale / step
        whole = (
            math.floor(n_steps * (1 + BITS)) if self.is_least else math.ceil(n_steps * (1 - BITS))
        )
        return whole * step / self.scale

    def shown(self, value: float) -> str:
        return limited_text(value, self.dimension)

    def limit_text(self, limit: float) -> str:
        """`≤ 30 ms`, `≥ 16`, `= 2`."""
        sign = "=" if self.is_exact else "≥" if self.is_least else "≤"
        return f"{sign} {self.shown(limit)}"


def _quantity(row: Mapping[str, Any]) -> Quantity:
    made: dict[str, Any] = {"fields": tuple(row.get("fields", "").split())}
    if "axis" in row:
        made["axis"] = Axis(**row["axis"])
    return Quantity(**{**row, **made}, counted=_COUNTED.get(row["name"]))


_COUNTED: Mapping[str, Callable[[Any, Any], float]] = {
    "power": lambda deployment, device: deployment.n_devices * device.tdp_w,
}

QUANTITIES: dict[str, Quantity] = {
    row["name"]: _quantity(row) for row in packaged_table("quantities/quantities.toml")["quantity"]
}
"""Every quantity by name; limits are listed in this order everywhere."""

BITS = 1e-12
"""Share by which sums in another order differ."""

MEMORY, DEMAND = "hbm", "demand"
"""The limit that no option sets, what a device holds; and that which plans are credited with."""


def limited_text(value: float, dimension: str) -> str:
    """A quantity that can be limited: devices and sequences are counted, not rounded.

    >>> limited_text(1024.0, "1"), limited_text(0.0301234, "s")
    ('1024', '30.1 ms')
    """
    counted = dimension == "1" and float(value).is_integer()
    return f"{value:.0f}" if counted else show(value, dimension)


def limited() -> tuple[Quantity, ...]:
    """Quantities that an option limits, in order."""
    return tuple(one for one in QUANTITIES.values() if one.option)


def placed(*how: str) -> tuple[Quantity, ...]:
    """Quantities that a placement limits in one of these ways, in order."""
    return tuple(one for one in limited() if one.placed in how)


def objectives() -> tuple[str, ...]:
    """What can be optimised, the usual first."""
    names = [one.objective for one in QUANTITIES.values() if one.objective and one.is_offered]
    return tuple(sorted(names, key=lambda name: name != "cost"))


def objective_of(name: str) -> Quantity:
    return next(one for one in QUANTITIES.values() if one.objective == name)


def axes(*, delays: bool) -> tuple[str, ...]:
    """Objectives that a frontier keeps short, or sets against them."""
    by_objective = {one.objective: one.axis for one in QUANTITIES.values() if one.is_offered}
    return tuple(name for name, axis in by_objective.items() if axis and axis.is_delay == delays)


def axis_of(name: str) -> Axis:
    """An objective as an axis of a frontier."""
    axis = objective_of(name).axis
    assert axis is not None
    return axis


def lacking(limits: Collection[str], device: Any) -> Iterator[Problem]:  # noqa: ANN401
    """Limits that need a figure which the device's file does not say."""
    for name in limits:
        quantity = QUANTITIES[name]
        if quantity.needs and getattr(device, quantity.needs) is None:
            yield Problem(
                where=quantity.option,
                fact=quantity.lack.format(device=device.name),
                remedy=quantity.cure,
            )


def uncountable(
    limits: Collection[str], known: Collection[str], runtime: str, reasons: Mapping[str, str]
) -> Iterator[Problem]:
    """Limits that a runtime cannot count, by the names of their options.

    Args:
        limits: names of those that are asked for.
        known: quantities of the runtime's programs.
        runtime: what people call it.
        reasons: facts that say more than that it cannot, by limit.
    """
    for name in limits:
        quantity = QUANTITIES[name]
        if quantity.program not in known:
            fact = reasons.get(name, f"{runtime} does not count {quantity.label}")
            yield Problem(where=quantity.option, fact=fact, remedy="leave it out")
