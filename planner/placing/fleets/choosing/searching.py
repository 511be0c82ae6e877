"""The choice of a fleet: solve with what is known, look closer at what is chosen, solve again."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.choosing.program import (
    with_choice_of_streams,
    with_counts,
    with_pools,
    within_places,
)
from planner.placing.fleets.solutions import N_PARTS, PlannedPool, Solution, planned, usd_per_hour
from planner.placing.program import KTOKEN, ModelDemand, Objective
from planner.placing.searching import mastered
from planner.placing.sites import SiteProgram
from planner.programs.handover import Handover
from planner.programs.placement import PlacementProgram
from planner.running.deadlines import check, is_over
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status
from planner.specs.ask.targets import SolverOptions

RENT, SHARE = "rent", "share"

MOST_SHARE = 64.0
"""Times its traffic that a share is looked for."""

N_BESIDE, MORE_BESIDE = 2, 1.5
"""Configurations that are looked at beside the chosen ones, where they seem as cheap; and times as
many the next time: where many seem so, solving between them would take longer than looking."""

LOOKING_GAP = 1e-3
"""Of programs that only say what to look at next; what is answered is proved as was asked."""

NEARLY = 1.0 + 1e-9

MOST_DIRECT = 2000
"""Columns up to which the backend that was asked for sees a whole program: fleets have few rows."""

Allowed = Callable[[AnyConfiguration], bool]
Now = Callable[[AnyConfiguration], AnyConfiguration | None]


@solving_for("fleet at the rates known so far")
def settled(
    market: CandidateSet,
    *,
    objective: str = RENT,
    factors: Mapping[str, float] | None = None,
    limits: dict[str, float] | None = None,
    allowed: Allowed = lambda config: True,
    now: Now | None = None,
    most_sorts: int | None = None,
) -> Solution:
    """The best fleet, at rates of which each that it rests on is known.

    What is not known is taken at its bounds, which no queue exceeds: so an optimum in which all is
    known is the optimum.

    Args:
        objective: the least `rent`, or the largest `share` of all demands.
        factors: times the traffic of classes by name; that of others is as it is.
        limits: of all replicas together, in place of those of the request.
        allowed: configurations that may be used, as they were offered.
        now: what is known of a configuration, without looking at any.
        most_sorts: of replicas; None is as many as the request allows.

    Raises:
        OutOfTimeError: time ended before it was known, or known that there is none.
    """
    options, factors = market.request.options, factors or {}
    posing = _Posing(
        market=market,
        aim=Objective(
            wanted=tuple(
                ModelDemand(
                    name=stream.name,
                    demand_tokens_per_s=stream.tokens_per_s(factors),
                    n_output_tokens=stream.n_output_tokens,
                    served=stream.model.name,
                )
                for stream in market.streams
            ),
            objective=objective,
            limits=dict(market.request.limits) if limits is None else limits,
        ),
        allowed=allowed,
        now=now or market.book.now,
        most_sorts=most_sorts or options.most_sorts,
        factors=factors,
    )
    if now in (as_offered, market.book.now):  # a bound, where no replica exceeds its rates
        return _solved(posing, options, tied=False)
    quick = replace(options, proof="one", gap=max(options.gap, LOOKING_GAP))
    if now is not None:
        return _solved(posing, quick, tied=True)
    n_beside = float(N_BESIDE)
    while True:
        chosen = _solved(posing, quick, tied=False)
        if not _looked_closer(chosen, int(n_beside)):
            # ties are broken, and the proof is asked for, last; of a share nobody reads the fleet
            chosen = _solved(posing, options, tied=not chosen.is_for_share)
            if not _looked_closer(chosen, int(n_beside)):
                return chosen
        check()
        n_beside *= MORE_BESIDE


def _looked_closer(chosen: Solution, n_beside: int) -> bool:
    """Learn more of what a solution rests on; whether that changes anything.

    Whether pools carry what they get is all that is asked, and where they do not, of few that seem
    as cheap, whether they would for no more rent. Of a share all that replicas carry counts.
    """
    if not chosen.is_found:
        return False
    pools = planned(chosen).pools
    new = [pool for pool in pools if _is_news(chosen, pool)]
    for key in {(one.configuration.model, one.role) for one in new}:
        mine = [it for it in pools if (it.configuration.model, it.role) == key]
        _look_beside(chosen, mine, n_beside)
    return bool(new)


def _is_news(chosen: Solution, pool: PlannedPool) -> bool:
    """Whether a pool carries less than it was chosen for, or does so in another way."""
    book, origin = chosen.market.book, chosen.origin(pool.configuration)
    if not chosen.is_for_share:
        if book.carries(origin, pool.replica_rate_per_s):
            return bool(book.now(origin).choice != pool.configuration.choice)
        book.narrow(origin, pool.replica_rate_per_s)
        return True
    book.look_at(origin)
    return book.now(origin).output_tokens_per_s < pool.configuration.output_tokens_per_s


def _look_beside(chosen: Solution, pools: Sequence[PlannedPool], n_most: int) -> None:
    """See what else could do what pools of a stream and role do: few, the cheapest first.

    As much of a share for as much rent; or all that they get for no more, in whole replicas.
    """
    book, first = chosen.market.book, pools[0]
    key, offered = (first.configuration.model, first.role), chosen.market.offered.configurations
    alike = [it for it in offered if (it.model, it.role) == key]
    rates = _rates(chosen, pools, np.array([it.usd_per_hour for it in alike]))
    for i in np.argsort([_price(book.now(it)) for it in alike], kind="stable").tolist():
        if not n_most or is_over():
            break
        if book.is_open(alike[i], float(rates[i])):
            book.carries(alike[i], float(rates[i]))
            n_most -= 1


def _rates(chosen: Solution, pools: Sequence[PlannedPool], usd: FloatArray) -> FloatArray:
    """Requests a second that replicas at such rents are asked for (J,)."""
    if chosen.is_for_share:
        prices = [_price(chosen.market.book.now(chosen.origin(it.configuration))) for it in pools]
        return usd / (min(prices) * pools[0].stream.n_output_tokens)
    with np.errstate(divide="ignore"):  # what is dearer for one replica is asked for nothing
        n_replicas = np.floor(usd_per_hour(pools) * NEARLY / usd)
        return np.asarray(sum(it.rate_per_s for it in pools) / n_replicas)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Posing:
    """A program that is posed again and again, with what is known by then.

    Args:
        now: a configuration as it is known; None leaves it out.
        origins: of what is posed, as it was offered, by identity.
    """

    market: CandidateSet
    aim: Objective
    allowed: Allowed
    now: Now
    most_sorts: int | None
    factors: Mapping[str, float]
    origins: dict[int, AnyConfiguration] = field(default_factory=dict)


def as_offered(config: AnyConfiguration) -> AnyConfiguration:
    """At its fluid rate."""
    return config


def _solved(posing: _Posing, options: SolverOptions, *, tied: bool) -> Solution:
    """One program, solved.

    Raises:
        OutOfTimeError: time ended before there was a fleet, or a proof that there is none.
    """
    market = posing.market
    most = posing.aim.limits.get(RENT, math.inf)
    base = [
        config
        for config in market.offered.configurations
        if config.usd_per_hour <= most and posing.allowed(config)
    ]
    known = [(now, one) for one in base if (now := posing.now(one)) is not None]
    serving = tuple(now for now, _ in known if now.output_tokens_per_s > 0.0)
    posing = replace(posing, origins={id(now): one for now, one in known})
    offered = market.offered.taking(serving)
    posed = offered.posed(posing.aim)
    program, network = _program(posing, posed, tied=tied)
    solution, flows = mastered(program, network, options, most_direct=MOST_DIRECT)
    if solution.status is Status.UNKNOWN:
        raise solution.unsettled()
    return Solution(
        market=market,
        offered=offered,
        posed=posed,
        program=program,
        network=network,
        solution=solution,
        flows=flows,
        origins=posing.origins,
        factors=posing.factors,
        is_for_share=posing.aim.objective == SHARE,
    )


def _program(
    posing: _Posing, posed: SiteProgram, *, tied: bool
) -> tuple[PlacementProgram, Handover | None]:
    """What was posed, with counts of kinds and the choice of streams; fewest stages tie first."""
    columns, market = posed.columns, posing.market
    of_column = [columns.configurations[i].pattern for i in columns.which.tolist()]
    none = [0.0] * columns.n_parts
    devices = np.array([*none, *(one.n_devices for one in of_column)])
    stages = np.array([*none, *(max(0, sum(one.simplicity[1:2]) - 1) for one in of_column)])
    ties = (stages, *posed.program.ties) if tied else ()
    program = replace(posed.program, ties=ties, ties_within=0.0, most_sorts=posing.most_sorts)
    kinds = [""] * columns.n_parts + [one.kind_name for one in of_column]
    program = with_counts(program, kinds, devices, market.request.counts)
    offered = [id(posing.origins[id(columns.configurations[i])]) for i in columns.which.tolist()]
    program = with_pools(program, [0] * columns.n_parts + offered, market.book.pools)
    places, network = market.request.places, posed.network
    if places and network is not None:
        network = within_places(network, [places.get(kind, kind) for kind in kinds])
    demands = np.array([(one.demand_tokens_per_s or 0.0) * KTOKEN for one in posing.aim.wanted])
    is_for_share = posing.aim.objective == SHARE
    serves = demands * (MOST_SHARE if is_for_share else 1.0)
    n_parts = 1 if is_for_share else N_PARTS  # parts of what is to be found are no whole numbers
    return with_choice_of_streams(program, network, market.streams, serves, n_parts)


def _price(config: AnyConfiguration) -> float:
    """Of what it serves; without end where it serves nothing."""
    rate = config.output_tokens_per_s
    return config.usd_per_hour / rate if rate > 0.0 else float("inf")
