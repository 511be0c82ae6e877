"""Percentiles of a station's times, without simulating it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import interrupted
from planner.estimates.queues.backlog import Backlog, backlogs
from planner.estimates.queues.decoding import decode_times
from planner.estimates.queues.firsts import Firsts, firsts
from planner.estimates.queues.laws import EVEN, UPPER, Law, mixed, sliced, summed
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.estimates.queues.population import Population, population
from planner.estimates.queues.rates import stable_rate
from planner.estimates.queues.served import Served
from planner.specs.stations import Station

SLICES = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
"""Shares of the law of the population, from few to many: each is a state of the station."""

_WAITS = -np.log1p(-(np.arange(32) + 0.5) / 32)
"""Points of an exponential law of mean 1, of the same weight."""

_LEAST_WAITING = 1e-4
_LEAST_RATE = 1e-6
_PARTS = 8
_NONE = Law(np.array([np.nan]), np.ones(1))


@dataclass(frozen=True, kw_only=True, eq=False)
class QueueTimes:
    """What becomes of requests; times are infinite where more come than are served.

    Args:
        utilisation: rate over the largest that the station keeps up with.
        n_running: sequences that decode on average.
        wait_probability: share of the requests that wait for a place.
        ttft, tpot, itl: laws [s]; NaN of what does not occur there.
        parts: TTFT and decode time of requests that found each state of the station.
        shares: of all requests, of each part.
    """

    utilisation: float
    n_running: float
    wait_probability: float
    ttft: Law
    tpot: Law
    itl: Law
    parts: tuple[tuple[Law, Law], ...]
    shares: FloatArray

    def ttft_s(self, share: float) -> float:
        """What so large a share of the requests has their first token within."""
        return self.ttft.percentile(share)

    def tpot_s(self, share: float) -> float:
        """Of requests with two tokens or more, from first to last, over the tokens less one."""
        return self.tpot.percentile(share)

    def itl_s(self, share: float) -> float:
        """Between two tokens of a request, over all tokens."""
        return self.itl.percentile(share)

    def request_s(self, share: float) -> float:
        """From arrival to last token."""
        return self.request.percentile(share)

    @cached_property
    def request(self) -> Law:
        """Of whole requests: in each state both times are independent."""
        sums = [summed(first.grouped(UPPER), rest.grouped(UPPER)) for first, rest in self.parts]
        return mixed(sums, self.shares)


def percentiles(station: Station, load: Load, *, times: PassTimes | None = None) -> QueueTimes:
    """The laws of TTFT, TPOT, ITL and whole requests of a load on a station.

    The station is in one of five states, by how many sequences decode (`population`); in each
    prompts wait for their passes (`backlog`), first tokens come (`firsts`) and answers are written
    (`decoding`). Of a station that only decodes, TTFT is until a request has its place.

    Args:
        times: of the station, where they are known already.
    """
    most = stable_rate(station, load)
    utilisation = load.rate_per_s / most
    if utilisation >= 1.0:
        return _endless(utilisation, station)
    served = Served(station, load.at(max(load.rate_per_s, _LEAST_RATE * most)), times)
    people = population(served) if served.decodes else None
    shares = SLICES if people else np.ones(1)
    n = sliced(people.probability, SLICES) if people else np.zeros(1)
    state = backlogs(served, n) if served.reads else None
    first = firsts(served, state) if state else None
    ttft = first.ttft if first else _rests(served, n)
    decodes = decode_times(served, people, n, first) if people else []
    parts, weights = _parts(people, shares, ttft, decodes)
    return QueueTimes(
        utilisation=utilisation,
        n_running=people.mean if people else 0.0,
        wait_probability=people.wait_probability if people else 0.0,
        ttft=mixed([one for one, _ in parts], weights),
        tpot=mixed([law for law, _ in decodes], shares) if decodes else _NONE,
        itl=_gaps(served, n, state) if people else _NONE,
        parts=parts,
        shares=weights,
    )


def _endless(utilisation: float, station: Station) -> QueueTimes:
    never = Law(np.array([np.inf]), np.ones(1))
    return QueueTimes(
        utilisation=utilisation,
        n_running=float(station.most_running),
        wait_probability=1.0,
        ttft=never,
        tpot=never,
        itl=never,
        parts=((never, never),),
        shares=np.ones(1),
    )


def _rests(served: Served, n: FloatArray) -> list[Law]:
    """Rest of the pass under way where nothing but decodes is (S)."""
    parts = (np.arange(_PARTS) + 0.5) / _PARTS
    ahead = 1.0 if served.station.composes_ahead else 0.0
    rest = served.plain_s(n)[:, None] * (parts + ahead)
    return [Law(np.where(k < 0.5, 0.0, x), np.ones(_PARTS)) for k, x in zip(n, rest, strict=True)]


def _parts(
    people: Population | None,
    shares: FloatArray,
    ttft: list[Law],
    decodes: list[tuple[Law, FloatArray]],
) -> tuple[tuple[tuple[Law, Law], ...], FloatArray]:
    """TTFT and decode time of each state, and of those that wait for a place, with their shares."""
    if people is None:
        nothing = Law(np.zeros(1), np.ones(1))
        return tuple((law, nothing) for law in ttft), shares
    spent = [Law(law.values * rounds, law.weights) for law, rounds in decodes]
    waits = people.wait_probability
    found = list(zip(ttft, spent, strict=True))
    if waits < _LEAST_WAITING:
        return tuple(found), shares
    held = Law(_WAITS * people.wait_s, np.ones(len(_WAITS)))
    late = summed(held, mixed(ttft, shares).grouped(EVEN))
    return (*found, (late, spent[-1])), np.append(shares * (1.0 - waits), waits)


def _gaps(served: Served, n: FloatArray, state: Backlog | None) -> Law:
    """Times between two tokens, of all tokens of all states."""
    plain, looks = served.plain_s(n), served.n_looks
    laws = []
    for at, one in enumerate(plain):
        if state is None:
            laws.append(Law(np.array([one]), np.ones(1)))
        elif served.mixes:
            busy = slice(1 if state.idles[at] else 0, None)
            laws.append(Law(state.class_s[at, busy], np.maximum(state.share[at, busy], 1e-12)))
        else:
            laws.append(_stalled(served, float(one), looks))
    tokens = [k / law.mean for k, law in zip(n, laws, strict=True)]
    return mixed(laws, SLICES * np.maximum(tokens, 1e-12))


def _stalled(served: Served, plain_s: float, looks: int) -> Law:
    """A pass, and at each look all prompts that are read before the next."""
    alone = served.prompts_s(np.zeros(1))[0][0]
    mean = served.load.mean(alone)
    cv2 = max(1e-9, served.load.mean(alone**2) / mean**2 - 1.0)
    block = np.array([looks * plain_s])
    took, likely = interrupted(block, served.load.rate_per_s, np.array([mean]), cv2)
    values = np.append(took.ravel() - (looks - 1) * plain_s, plain_s)
    return Law(values, np.append(likely.ravel() / looks, 1.0 - 1.0 / looks))
