"""What contexts and columns of deployments add up to: how each quantity follows from the facts.

A runtime says what one replica does: its times, the device time that an output token takes, what
it holds. Rent, cost, power, throughput, and what a fleet of replicas comes to, follow from these
in one way for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.targets import SIMPLICITY, Amounts, Coefficients, Facts
from planner.quantities.table import GIB, KW, MS, USD_PER_MTOKEN
from planner.specs.ask.targets import Targets

REPLICA_SLOT = "replicas"

IDLEST = "throughput"
"""Least time of a token: most of a replica's time is left over."""

PREFILLED = "prefilled"
"""The second row of memory: what was prefilled, beside what decode writes."""

Amount = Callable[[Facts], Coefficients]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What the facts of a runtime say of one replica, its contexts (K,) and its columns (J,).

    Args:
        token_s: time of a replica that an output token takes of a column, (J,) [s].
        device_s: that times its devices, the same to the last bit for copies of the same, (J,) [s].
        delays_s: how long a request waits, by quantity, (J,) [s].
        n_sequences: decoded together, (J,).
        memory: of the fullest device, (K,) and (J,) [GiB].
        slot: of columns that are numbers of replicas.
        own: quantities that this runtime alone has.
    """

    token_s: Callable[[Facts], FloatArray]
    device_s: Callable[[Facts], FloatArray]
    delays_s: Mapping[str, Callable[[Facts], FloatArray]]
    n_sequences: Callable[[Facts], FloatArray]
    memory: Amount
    slot: int
    own: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What a device takes beside time.

    Args:
        usd_per_hour: its rent.
        tdp_w: its power; None where nobody says.
    """

    usd_per_hour: float
    tdp_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How many replicas are asked for, as far as a program keeps to it.

    Args:
        demand: output tokens that they serve together [token/s]; None for no end of them.
        n_replicas: exactly so many; None leaves it open.
        is_chosen: whether there is a slot that chooses how many there are.
    """

    demand: float | None
    n_replicas: int | None
    is_chosen: bool

    @staticmethod
    def asked(targets: Targets, without: Collection[str]) -> Fleet:
        """That of a request, some of whose limits are left out."""
        demand = None if "demand" in without else targets.demand_tokens_per_s
        return Fleet(
            demand=demand,
            n_replicas=None if "replicas" in without else targets.n_replicas,
            is_chosen=demand is not None or targets.n_replicas is not None,
        )

    def tie_breakers(
        self, objective: str, *named: str, delays: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """What decides between optima: what is asked, then of fleets the simplest and idlest.

        Replicas that serve a demand cost whole devices, so that many fleets cost the same: of
        these it is the one of the smallest replicas, of these the one that could serve most.

        Args:
            delays: that decide last, where so much is served by several.
        """
        listed = (*named, SIMPLICITY, IDLEST, *delays) if self.is_chosen else named
        return tuple(one for one in dict.fromkeys(listed) if one != objective)

    def most(self, rooms: IntArray) -> IntArray:
        """Replicas to choose from of each context, of those that there is room for, (K,)."""
        return rooms if self.n_replicas is None else np.minimum(rooms, self.n_replicas)


def ways_of(
    replica: Replica, device: Priced, targets: Targets, without: Collection[str]
) -> Amounts:
    """How all that may be limited or minimised follows, each linear in contexts and columns.

    The device time of a token is that of a request over the tokens that it writes: with the
    batch fixed by the column, a ratio becomes a coefficient.
    """
    fleet = Fleet.asked(targets, without)
    each = partial(devices_of, replica, fleet)
    of_columns: dict[str, Callable[[Facts], FloatArray]] = {
        **{name: partial(_milliseconds, delay) for name, delay in replica.delays_s.items()},
        "cost": partial(_cost, replica, device, fleet),
        # time of a token of all replicas that are asked for; without a number, of one
        "throughput": lambda facts: replica.token_s(facts) * MS / (fleet.n_replicas or 1),
        "device-throughput": partial(_milliseconds, replica.device_s),
        "batch": lambda facts: -replica.n_sequences(facts),
    }
    if fleet.is_chosen:
        of_columns["replicas"] = lambda facts: -n_replicas(facts, replica.slot)
    if fleet.demand is not None:
        of_columns["demand"] = partial(_demand, replica, targets.capacity_of(fleet.demand))
    elif targets.demand_tokens_per_s is not None:
        most = _most_devices(device, targets, without)
        of_columns["capacity"] = partial(_capacity, replica, fleet, most, targets.capacity_of(1.0))
    ways: dict[str, Amount] = {
        **{name: partial(_of_columns, amount) for name, amount in of_columns.items()},
        "devices": each,
        "rent": partial(times_devices, each, device.usd_per_hour),
        "memory": replica.memory,
        SIMPLICITY: _simplicity,
        **replica.own,
    }
    if device.tdp_w is not None:
        ways["power"] = partial(times_devices, each, device.tdp_w / KW)
    return ways


def counted(replica: Replica) -> frozenset[str]:
    """Quantities that programs of such replicas count, where all that they need is known."""
    targets = Targets(demand_tokens_per_s=1.0)
    return frozenset(ways_of(replica, Priced(usd_per_hour=1.0, tdp_w=1.0), targets, ()))


def timed_replica(*delays: str, own: Mapping[str, Amount]) -> Replica:
    """A replica whose columns say by themselves what it does: programs of one slot.

    Args:
        delays: quantities that columns have, like `latency`, in seconds.
    """

    def column(name: str) -> Callable[[Facts], FloatArray]:
        return lambda facts: facts.of_column[name]

    def memory(facts: Facts) -> Coefficients:
        return facts.of_context["fixed_bytes"] * GIB, facts.of_column["held_bytes"] * GIB

    return Replica(
        token_s=column("token_s"),
        device_s=column("device_s"),
        delays_s={name: column(name) for name in delays},
        n_sequences=column("n_sequences"),
        memory=memory,
        slot=1,
        own=own,
    )


def timed_facts(
    fleet: Fleet,
    *,
    context: IntArray,
    of_context: Mapping[str, npt.NDArray[Any]],
    of_column: Mapping[str, npt.NDArray[Any]],
    model: int,
    variant: int,
) -> Facts:
    """Facts of a program of one slot, where column j is choice j; and numbers of replicas.

    Args:
        model: number of the candidates among those that are chosen among.
        variant: what is believed of these.
    """
    n_contexts = len(of_context["n_devices"])
    numbers = {"model": np.full(n_contexts, model), "number": np.arange(n_contexts)}
    columns = {
        "arm": np.arange(len(context)),
        "slot": np.zeros(len(context), dtype=np.int64),
        "variant": np.full(len(context), variant, dtype=np.int64),
    }
    facts = Facts(
        context=context, of_context={**numbers, **of_context}, of_column={**columns, **of_column}
    )
    return with_replicas(facts, fleet, 1) if fleet.is_chosen else facts


def n_replicas(facts: Facts, slot: int) -> FloatArray:
    """Replicas that a column is a number of; none of any other, (J,)."""
    of = facts.of_column
    return np.where(of["slot"] == slot, of["batch"], 0).astype(float)


def _of_columns(amount: Callable[[Facts], FloatArray], facts: Facts) -> Coefficients:
    """Nothing of contexts."""
    return np.zeros(facts.n_contexts), amount(facts)


def devices_of(replica: Replica, fleet: Fleet, facts: Facts) -> Coefficients:
    """Devices of one replica; of all of them where their number is chosen."""
    n_devices = facts.of_context["n_devices"].astype(float)
    if not fleet.is_chosen:
        return n_devices, np.zeros(len(facts.context))
    return np.zeros(facts.n_contexts), n_replicas(facts, replica.slot) * n_devices[facts.context]


def times_devices(each: Amount, amount: float, facts: Facts) -> Coefficients:
    """Devices, times what each of them takes."""
    context, column = each(facts)
    return context * amount, column * amount


def _cost(replica: Replica, device: Priced, fleet: Fleet, facts: Facts) -> FloatArray:
    """Rent over output tokens: those that are asked for, or all that can be served."""
    if fleet.demand is not None:
        hourly = devices_of(replica, fleet, facts)[1] * device.usd_per_hour
        return hourly / 3600.0 / fleet.demand * USD_PER_MTOKEN
    usd_per_s = device.usd_per_hour / 3600.0
    return replica.device_s(facts) * usd_per_s * USD_PER_MTOKEN


def _milliseconds(time_s: Callable[[Facts], FloatArray], facts: Facts) -> FloatArray:
    return time_s(facts) * MS


def _simplicity(facts: Facts) -> Coefficients:
    return facts.of_context[SIMPLICITY], np.zeros(len(facts.context))


def _demand(replica: Replica, demand: float, facts: Facts) -> FloatArray:
    """Replicas' worth of device time that the demand takes, less those beyond the first.

    At most 1, so that its tolerance is a share of one replica.
    """
    busy = replica.token_s(facts) * demand
    is_number = facts.of_column["slot"] == replica.slot
    beyond = np.where(is_number, n_replicas(facts, replica.slot) - 1.0, 0.0)
    return np.asarray(busy - beyond)


def _most_devices(device: Priced, targets: Targets, without: Collection[str]) -> float:
    """Devices of all replicas that the limits on them, their rent and their power allow."""
    limits = {name: value for name, value in targets.limits().items() if name not in without}
    each = {"devices": 1.0, "rent": device.usd_per_hour, "power": device.tdp_w}
    allowed = [limits[name] / one for name, one in each.items() if name in limits and one]
    return min(allowed, default=np.inf)


def _capacity(
    replica: Replica, fleet: Fleet, most_devices: float, factor: float, facts: Facts
) -> FloatArray:
    """Time of a token when as many replicas as there may be work on tokens [ms], times a factor.

    Its least is one over the largest demand that can be met.
    """
    allowed = np.floor(most_devices / facts.of_context["n_devices"])
    most = np.minimum(fleet.most(facts.of_context["n_rooms"]), allowed)
    together = np.maximum(most, 1.0)[facts.context]
    return np.asarray(replica.token_s(facts) * MS / together * factor)


def with_replicas(facts: Facts, fleet: Fleet, slot: int) -> Facts:
    """And, in every context, each number of replicas that there is room for and may be chosen.

    A column that is a number is of no arm of its context, and of no other way to serve.
    """
    rooms = fleet.most(facts.of_context["n_rooms"])
    of = np.repeat(np.arange(len(rooms)), rooms)
    starts = np.repeat(np.cumsum(rooms) - rooms, rooms)
    numbers = {
        "arm": np.full(len(of), -1),
        "batch": np.arange(len(of)) - starts + 1,
        "slot": np.full(len(of), slot),
        "variant": facts.of_context["number"][of],
    }
    return Facts(
        context=np.concatenate([facts.context, of]),
        of_context=facts.of_context,
        of_column={
            name: np.concatenate([values, numbers.get(name, np.zeros(len(of), values.dtype))])
            for name, values in facts.of_column.items()
        },
    )
