"""What is answered of a fleet, as frozen records in SI units."""

import math
from dataclasses import dataclass, field

from planner.quantities.units import show
from planner.results.arrivals import Percentile, Simulated
from planner.results.placements import KindUse, Replica, RunConfig
from planner.results.records import AnswerRecord
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.certificates import Certificate
from planner.specs.records.devices import Workload
from planner.specs.records.roles import Station
from planner.specs.validation.hints import LATER, computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The share of requests that meets all limits of a class: asked for, and as simulated.

    NaN, or as files have it inf, where no request of the class came in the simulation.
    """

    asked: float
    simulated: float
    half_width: float

    @property
    def is_met(self) -> bool | None:
        """Whether the simulation keeps it; None where it saw no request."""
        return self.simulated >= self.asked if math.isfinite(self.simulated) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedClass:
    """What one class of traffic gets.

    Args:
        name, model: of the class, and of the model that serves it.
        rate_per_s: requests that come.
        served_fraction: of them; below 1 where there are too few devices for all.
        n_input_tokens, n_output_tokens: of a request, on average.
        percentiles: targets first, then those that people ask for.
        curve_s: percentiles of TTFT and of TPOT, as simulated, at `CURVE` shares [s].
        goodput: None where none is asked for.
        usd_per_hour: of the replicas that serve it, its part where they are shared.
    """

    name: str
    model: str
    rate_per_s: float
    served_fraction: float
    n_input_tokens: float
    n_output_tokens: float
    percentiles: tuple[Percentile, ...]
    curve_s: tuple[tuple[float, ...], tuple[float, ...]]
    goodput: Goodput | None
    usd_per_hour: float

    @property
    def is_tried(self) -> bool:
        """Whether a request of it came in the simulation, if any is served."""
        seen = (it.simulated_s for it in self.percentiles)
        return not self.percentiles or any(map(math.isfinite, seen))

    @computed
    def usd_per_mtoken_in(self) -> float:
        """All of the rent over the tokens that are read."""
        return self._per_mtoken(self.n_input_tokens)

    @computed
    def usd_per_mtoken_out(self) -> float:
        """All of the rent over the tokens that are written."""
        return self._per_mtoken(self.n_output_tokens)

    def _per_mtoken(self, n_tokens: float) -> float:
        tokens_per_s = self.rate_per_s * self.served_fraction * n_tokens
        return self.usd_per_hour / 3600.0 / tokens_per_s * 1e6 if tokens_per_s else math.inf


CURVE = (*(round(i / 50, 2) for i in range(1, 50)), 0.99, 0.995, 0.999)
"""Shares at which the laws of times are kept, for pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPool:
    """Replicas that are alike, for the same requests.

    Args:
        name: each once.
        recipe: number of the recipe of its replicas.
        replicas: numbers of its replicas.
        classes: whose requests it serves.
        above_tokens, upto_tokens: of their prompts.
        then: name of the pool that decodes what it reads; empty where it does that itself.
        share: that it gets of the requests of its classes with such prompts, relative to those of
            other pools for the same requests.
        parts: of the requests of each of its classes, of which it gets its share; empty for all.
        rate_per_s: requests that are sent to it.
        replica_rate_per_s: the most that one of its replicas serves within all targets, as
            simulated.
        utilisation, utilisation_half_width: share of the time in which its ranks were at work.
        usd_per_hour: rent of all its replicas.
        station: one attention rank, as a queue and the simulation see it.
        usual: the request that figures of the deployment are of, and whose cache the station's
            line goes through: of mean length of the traffic of its model.
    """

    name: str
    recipe: int
    replicas: tuple[int, ...]
    classes: tuple[str, ...]
    above_tokens: float
    upto_tokens: float
    then: str
    share: float
    rate_per_s: float
    replica_rate_per_s: float
    utilisation: float
    utilisation_half_width: float
    usd_per_hour: float
    station: Station
    usual: Workload
    parts: tuple[float, ...] = field(default=(), metadata={LATER: True})

    def share_of(self, name: str) -> float:
        """Of the requests of one of its classes that have such prompts, relative as `share`."""
        return self.share * (self.parts[self.classes.index(name)] if self.parts else 1.0)

    @computed
    def n_replicas(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHandover:
    """Caches that go from one pool to another.

    Args:
        source, target: names of the pools.
        requests_per_s: whose caches go this way.
        sequence_bytes, token_bytes: of a cache whatever its length, and of each token.
        latency_s: that one takes however little it is.
        bytes_per_s: that a pair of replicas moves.
        wire_bytes_per_s: that all links of one replica carry.
    """

    source: str
    target: str
    requests_per_s: float
    sequence_bytes: float
    token_bytes: float
    latency_s: float
    bytes_per_s: float
    wire_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuted:
    """A rate that the simulation does not confirm.

    Args:
        pool: its name in that round.
        target: that is missed, like `TTFT p95`, of the class.
        class_name: the class.
        at_most_s, simulated_s: target and what the simulation had.
        before_per_s, after_per_s: rate of a replica, as it was and as it is taken from then on.
    """

    pool: str
    target: str
    class_name: str
    at_most_s: float
    simulated_s: float
    before_per_s: float
    after_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One solution of the program, and what the simulation says of it.

    Args:
        usd_per_hour: rent of it.
        n_devices: that it has.
        refuted: what the simulation does not confirm; none of the last.
    """

    usd_per_hour: float
    n_devices: int
    refuted: tuple[Refuted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAlternative:
    """What another way would cost, by the same program; rates by formulas, not simulated.

    Args:
        name: what is otherwise: `without h100`, `apart`, `tensor parallel 8`, …
        usd_per_hour, n_devices: of the best such fleet; None where there is none.
    """

    name: str
    usd_per_hour: float | None
    n_devices: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFleet:
    """The cheapest fleet if something else were believed of times.

    Args:
        objective: its rent [USD/h].
        loss_fraction: what it costs more than the fleet that it stands beside, of that one's rent.
        recipes, replicas, pools, handovers, classes, simulated: as a fleet has them.
    """

    objective: float
    loss_fraction: float
    recipes: tuple[RunConfig, ...]
    replicas: tuple[Replica, ...]
    pools: tuple[FleetPool, ...]
    handovers: tuple[FleetHandover, ...]
    classes: tuple[ServedClass, ...]
    simulated: Simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan(AnswerRecord):
    """Pools of replicas for traffic, with a bound on both sides.

    Args:
        request: what was asked.
        title: of the site, for people.
        recipes: the ways in which replicas run.
        replicas: all of them, where they are.
        pools: in the order of the classes.
        handovers: between pools.
        classes: what each gets, in the order asked for.
        kinds: devices by kind.
        certificate: of the program: nothing is cheaper at what replicas carry in simulation.
        fluid_usd_per_hour: no fleet of these deployments, however routed and scheduled, is
            cheaper; percentiles do not count. None where nobody says.
        simulated: how the answer was tried.
        rounds: solutions up to this one.
        alternatives: nearest first.
        most_factor: times today's traffic, of all classes alike, that the same rent serves; None
            where nobody says.
        provenance: of the inputs.
        inside, anywhere: the cheapest of what was measured, and the cheapest if all that is
            predicted held; None where a share of cases is asked for, or none is known.
    """

    request: FleetRequest
    title: str
    recipes: tuple[RunConfig, ...]
    replicas: tuple[Replica, ...]
    pools: tuple[FleetPool, ...]
    handovers: tuple[FleetHandover, ...]
    classes: tuple[ServedClass, ...]
    kinds: tuple[KindUse, ...]
    certificate: Certificate
    fluid_usd_per_hour: float | None
    simulated: Simulated
    rounds: tuple[Round, ...]
    alternatives: tuple[FleetAlternative, ...] = ()
    most_factor: float | None = None
    provenance: tuple[Provenance, ...] = ()
    inside: OtherFleet | None = None
    anywhere: OtherFleet | None = None

    @computed
    def usd_per_hour(self) -> float:
        return math.fsum(one.usd_per_hour for one in self.pools)

    @computed
    def n_devices(self) -> int:
        return sum(one.n_used for one in self.kinds)

    def __str__(self) -> str:
        proof = self.certificate
        return (
            f"{len(self.replicas)} replicas in {len(self.pools)} pools on {self.n_devices} "
            f"devices, {show(self.usd_per_hour, 'USD/h')}; {proof.status}, gap {proof.gap:.3g}"
        )

    def n_longest_tokens(self, pool: FleetPool) -> int:
        """Of the longest request that a pool may get: its prompt and its answer."""
        classes = [one for one in self.request.classes if one.name in pool.classes]
        longest = max(sum(one.lengths.longest) for one in classes)
        if math.isinf(pool.upto_tokens):
            return longest
        answer = max(one.lengths.most_output_tokens for one in classes)
        return min(longest, int(pool.upto_tokens) + answer)

    @computed
    def is_whole(self) -> bool:
        """Whether all traffic is served."""
        return all(one.served_fraction >= 1.0 for one in self.classes)

    @computed
    def fluid_gap(self) -> float | None:
        """What is above the fluid bound, of the rent; None where nobody says."""
        if self.fluid_usd_per_hour is None or not self.usd_per_hour:
            return None
        return 1.0 - self.fluid_usd_per_hour / self.usd_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The least rent for traffic in a range.

    Args:
        above_factor, upto_factor: of today's traffic: the step is proved for all between.
        usd_per_hour, bound_usd_per_hour: of the cheapest fleet, and below which there is none.
        n_devices: that it has.
        words: its pools, in short.
    """

    above_factor: float
    upto_factor: float
    usd_per_hour: float
    bound_usd_per_hour: float
    n_devices: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStaircase(AnswerRecord):
    """The least rent over traffic, step by step; rates of replicas are those of formulas.

    Args:
        request: what was asked; factors are of its traffic.
        steps: ascending, without a gap.
        is_whole: whether the last step ends where it was asked to, and not for want of devices.
    """

    request: FleetRequest
    steps: tuple[Step, ...]
    is_whole: bool

    @computed
    def gap(self) -> float:
        """The largest of all steps, from the bound to the rent, of the rent."""
        return max(
            (
                1.0 - step.bound_usd_per_hour / step.usd_per_hour
                for step in self.steps
                if step.usd_per_hour
            ),
            default=0.0,
        )
