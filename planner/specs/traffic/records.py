"""What a fleet is asked for: classes of traffic, and what may serve them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

from planner.specs.files.pools import SiteSpec
from planner.specs.files.state import State
from planner.specs.records.devices import AnyModel
from planner.specs.records.roles import Connector
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, Arrivals
from planner.specs.traffic.lengths import AnyLengths, TraceLengths
from planner.specs.traffic.percentiles import GoodputTarget, PercentileTarget

FREE_CUTS = "free"
"""The planner chooses where prompts are divided among pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arriving:
    """One request: when it comes [s], and its tokens."""

    at_s: float
    n_input: int
    n_output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficClass:
    """Requests of one kind, with targets of their own.

    Args:
        name: each once.
        models: of which any may serve them.
        rate_per_s: requests a second, in the long run.
        lengths: tokens in and out.
        arrivals: how they come.
        targets: percentiles, all to be met.
        goodput: limits that a share of the requests is to meet at once; None is no such target.
        priority: where not everybody can be served, the largest goes first.
        cuts: tokens of prompts at which the class is divided among pools, ascending, a prompt of
            that length below; `FREE_CUTS` leaves them to the planner.
    """

    name: str
    models: tuple[AnyModel, ...]
    rate_per_s: float
    lengths: AnyLengths
    arrivals: Arrivals = POISSON_ARRIVALS
    targets: tuple[PercentileTarget, ...] = ()
    goodput: GoodputTarget | None = None
    priority: int = 0
    cuts: tuple[int, ...] | str = ()

    @property
    def model(self) -> AnyModel:
        """The first that may serve it."""
        return self.models[0]

    def requests(self, seed: int) -> Iterator[Arriving]:
        """Without end, in order of arrival; a trace that is replayed keeps its rows in order."""
        source = random.Random(seed)
        times = self.arrivals.times_s(self.rate_per_s, source)
        lengths = self._replayed() or self.lengths.drawn(random.Random(source.getrandbits(64)))
        for at_s, (n_input, n_output) in zip(times, lengths, strict=False):
            yield Arriving(at_s=at_s, n_input=n_input, n_output=n_output)

    def _replayed(self) -> Iterator[tuple[int, int]] | None:
        """Lengths in the order of the trace that also says when requests come."""
        if not isinstance(self.lengths, TraceLengths):
            return None
        trace = self.lengths.trace
        if trace is not self.arrivals.trace:
            return None
        rounds = (zip(trace.n_input, trace.n_output, strict=True) for _ in count())
        return chain.from_iterable(rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppliedKind:
    """Devices of one kind at one site.

    Args:
        name: each once.
        hardware: what they hang on, at the rent that is asked.
        n_devices: that may be used, busy and failed ones among them.
        site: where it is; caches are handed over within one.
        state: what of it is busy, failed, slow or narrow; None for nothing.
    """

    name: str
    hardware: SiteSpec
    n_devices: int
    site: str = "one"
    state: State | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInventory:
    """What may serve traffic.

    Args:
        kinds: by name.
        connector: that hands caches over from prefill to decode; None leaves it usual.
    """

    kinds: tuple[SuppliedKind, ...]
    connector: Connector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTraffic:
    """A request for a fleet.

    Args:
        shown: the file as the user knows it; opens messages.
        supply: None where the file says nothing of it.
    """

    classes: tuple[TrafficClass, ...]
    supply: DeviceInventory | None = None
    shown: str = "traffic"

    @property
    def rate_per_s(self) -> float:
        return sum(one.rate_per_s for one in self.classes)
