"""What a fleet is asked for: classes of traffic, percentiles, and what may serve them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.specs.placement_request import AnyModel, SiteSpec
from planner.specs.roles import Connector
from planner.specs.state import State
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, Arrivals
from planner.specs.traffic.lengths import AnyLengths, TraceLengths

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
        trace = self.arrivals.trace
        if trace is None or not isinstance(self.lengths, TraceLengths):
            return None
        if self.lengths.trace is not trace:
            return None
        return _again_and_again(self.lengths)


def _again_and_again(lengths: TraceLengths) -> Iterator[tuple[int, int]]:
    while True:
        yield from zip(lengths.trace.n_input, lengths.trace.n_output, strict=True)


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
class Supply:
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
    supply: Supply | None = None
    shown: str = "traffic"

    @property
    def rate_per_s(self) -> float:
        return sum(one.rate_per_s for one in self.classes)


TTFT, TPOT, ITL, E2E = "ttft", "tpot", "itl", "e2e"

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        TTFT: "TTFT of a request: from its arrival to its first token; over all requests",
        TPOT: "TPOT of a request: from its first token to its last, over its output tokens less "
        "one; over all requests with two tokens or more",
        ITL: "ITL: from one token of a request to its next; over all tokens of all requests but "
        "first ones",
        E2E: "E2E of a request: from its arrival to its last token; over all requests",
    }
)
"""For help and reports."""

GOODPUT = (
    "goodput: the share of requests that meet all of the limits given; one with a single token "
    "meets any limit of TPOT"
)

USUAL_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)

_KEY = re.compile(r"(?P<quantity>[a-z0-9]+)[-_]p(?P<percent>\d{1,2}(?:\.\d{1,6})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileTarget:
    """A share of all requests, or of all tokens, is to have no more of a quantity.

    Args:
        quantity: of `DEFINITIONS`.
        share: inside (0, 1).
        at_most_s: above zero [s].

    >>> PercentileTarget(quantity="ttft", share=0.95, at_most_s=1.0).name
    'TTFT p95'
    """

    quantity: str
    share: float
    at_most_s: float

    @property
    def name(self) -> str:
        return f"{self.quantity.upper()} p{self.share * 100.0:.8g}"

    @property
    def option(self) -> str:
        return option_of(self.quantity, self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputTarget:
    """A share of all requests is to meet all of these limits; None is no limit.

    Args:
        share: inside (0, 1].
        ttft_s, tpot_s, e2e_s: of a request, above zero [s].
    """

    share: float
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def is_met(self, ttft_s: float, tpot_s: float, e2e_s: float) -> bool:
        """Whether one request meets the limits.

        Args:
            tpot_s: 0 of a request with a single token.
        """
        return (
            (self.ttft_s is None or ttft_s <= self.ttft_s)
            and (self.tpot_s is None or tpot_s <= self.tpot_s)
            and (self.e2e_s is None or e2e_s <= self.e2e_s)
        )


def option_of(quantity: str, share: float) -> str:
    """How the command spells a target.

    >>> option_of("itl", 0.999)
    '--itl-p99.9'
    """
    return f"--{quantity}-p{share * 100.0:.8g}"


USUAL_TARGETS: Mapping[str, PercentileTarget] = MappingProxyType(
    {
        option_of(quantity, percent / 100.0): PercentileTarget(
            quantity=quantity, share=round(percent / 100.0, 8), at_most_s=float("inf")
        )
        for quantity in DEFINITIONS
        for percent in USUAL_PERCENTILES
    }
)
"""Options of the command, each with a target that holds always."""


def percentile_named(key: str) -> tuple[str, float] | None:
    """The quantity and the share that a key names, `ttft_p95` or `itl-p99.9`; None if it does not.

    >>> percentile_named("ttft_p95"), percentile_named("ttft_p0"), percentile_named("tps_p95")
    (('ttft', 0.95), None, None)
    """
    found = _KEY.fullmatch(key.lower().removeprefix("--"))
    if found is None or found["quantity"] not in DEFINITIONS:
        return None
    share = round(float(found["percent"]) / 100.0, 8)
    return (found["quantity"], share) if share > 0.0 else None
