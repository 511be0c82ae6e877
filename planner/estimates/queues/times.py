"""Percentiles of a station's times, without simulating it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.queues.backlog import Backlog, backlogs
from planner.estimates.queues.decoding import decode_times
from planner.estimates.queues.firsts import Firsts, firsts
from planner.estimates.queues.gaps import gaps
from planner.estimates.queues.laws import (
    EVEN,
    NEVER,
    NONE,
    UPPER,
    Law,
    mixed,
    sliced,
    summed,
    topped,
)
from planner.estimates.queues.loads import Cells, Load
from planner.estimates.queues.population import Population, population
from planner.estimates.queues.rates import kept_up_with
from planner.estimates.queues.served import Own, Served
from planner.specs.stations import Station

_SLICES = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
"""Shares of the law of the population, from few to many: each is a state of the station."""

_SLICES_BESIDE = np.array([0.15, 0.35, 0.35, 0.15])
_OFTEN = 0.02
"""Where nothing decodes for this share of the time, that is a state, and these are the others."""

_WAITS = -np.log1p(-(np.arange(32) + 0.5) / 32)
"""Points of an exponential law of mean 1, of the same weight."""

_LEAST_WAITING = 1e-4
_LEAST_RATE = 1e-6
_PARTS = 8
_MOST_LONGER = 1.25
"""Mean passes of backlogs over those of the population's account, and the reverse, at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QueueTimes:
    """What becomes of requests; times are infinite where more come than are served.

    Args:
        served: the requests, and the station.
        utilisation: rate over the largest that the station keeps up with.
    """

    served: Served
    utilisation: float

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

    def of(self, cells: Cells) -> QueueTimes:
        """Of the requests of some cells of the load only, among all that come.

        Raises:
            ValueError: there are none of these.
        """
        return self.judging(Own(self.served.load.only(cells)))

    def judging(self, own: Own) -> QueueTimes:
        """Of some requests only, by their lengths: who waits where, and for whom, is as before."""
        found = QueueTimes(served=self.served.judging(own), utilisation=self.utilisation)
        if self.is_stable:  # what does not depend on who is judged
            shared = {name: getattr(self, name) for name in ("population", "shares", "states")}
            found.__dict__.update(shared, backlog=self.backlog)
        return found

    @property
    def is_stable(self) -> bool:
        """Whether the station keeps up."""
        return self.utilisation < 1.0

    @property
    def n_running(self) -> float:
        """Sequences that decode on average."""
        return self.population.mean if self.population else 0.0

    @property
    def wait_probability(self) -> float:
        """Share of the requests that wait for a place."""
        return self.population.wait_probability if self.population else 0.0

    @cached_property
    def population(self) -> Population | None:
        """Of a station that decodes."""
        return population(self.served) if self.served.decodes else None

    @cached_property
    def shares(self) -> FloatArray:
        """Of the time, of each state of the station (S,)."""
        if self.population is None:
            return np.ones(1)
        idle = float(self.population.probability[0])
        return _SLICES if idle < _OFTEN else np.append(idle, (1.0 - idle) * _SLICES_BESIDE)

    @cached_property
    def states(self) -> FloatArray:
        """Sequences that decode in each state (S,)."""
        if self.population is None:
            return np.zeros(1)
        return sliced(self.population.probability, self.shares)

    @cached_property
    def backlog(self) -> Backlog | None:
        """Prompts that wait for their passes, of a station that reads."""
        return backlogs(self.served, self.states) if self.served.reads else None

    @cached_property
    def firsts(self) -> Firsts | None:
        """First tokens in each state, of a station that reads."""
        if self.backlog is None:
            return None
        free = self.population.most - self.states if self.population else np.full(1, np.inf)
        found = firsts(self.served, self.backlog, free)
        if self.population is None or not self.served.mixes:
            return found
        usual = self.population.at(self.population.round_s, self.states)
        longer = np.where(self.backlog.idles, 1.0, self.backlog.mean_s / usual)
        return replace(found, longer=np.clip(longer, 1.0 / _MOST_LONGER, _MOST_LONGER))

    @cached_property
    def decodes(self) -> list[tuple[Law, FloatArray]]:
        """TPOT in each state, and the passes that each value is the mean of."""
        if self.population is None or not self.served.own.decodes:
            return []
        return decode_times(self.served, self.population, self.states, self.firsts)

    @cached_property
    def ttft(self) -> Law:
        """Of requests; where prompts are read elsewhere, until they have a place [s]."""
        if not self.is_stable:
            return NEVER
        laws, shares = self._begins
        return mixed(laws, shares)

    @cached_property
    def tpot(self) -> Law:
        """Of requests [s]; NaN where nothing is decoded."""
        if not self.is_stable:
            return NEVER
        laws = [law for law, _ in self.decodes]
        return mixed(laws, self.shares) if laws else NONE

    @cached_property
    def itl(self) -> Law:
        """Of gaps between tokens [s]; NaN where nothing is decoded."""
        if not self.is_stable:
            return NEVER
        if self.population is None or not self.served.own.decodes:
            return NONE
        return gaps(self.served, self.states, self.shares, self.backlog)

    @cached_property
    def request(self) -> Law:
        """Of whole requests [s]: in each state, TTFT and decode time are independent."""
        if not self.is_stable:
            return NEVER
        laws, shares = self._begins
        if not self.decodes:
            return mixed(laws, shares)
        rests = [Law(law.values * rounds, law.weights) for law, rounds in self.decodes]
        rests += rests[-1:] * (len(laws) - len(rests))
        sums = [
            summed(first.grouped(UPPER), rest.grouped(UPPER))
            for first, rest in zip(laws, rests, strict=True)
        ]
        return mixed(sums, shares)

    @cached_property
    def _begins(self) -> tuple[list[Law], FloatArray]:
        """TTFT in each state, and last of those that wait for a place; with their shares."""
        own = self.firsts.ttft if self.firsts else _rests(self.served, self.states)
        waits = self.wait_probability
        if self.population is None or waits < _LEAST_WAITING:
            return own, self.shares
        # who stands in line for a place stands before those in line for a pass
        held = Law(self.population.wait_s * _WAITS + own[0].percentile(0.5), np.ones(len(_WAITS)))
        late = topped(held, mixed(own, self.shares).grouped(EVEN))
        return [*own, late], np.append(self.shares * (1.0 - waits), waits)


def percentiles(station: Station, load: Load) -> QueueTimes:
    """The laws of TTFT, TPOT, ITL and whole requests of a load on a station.

    The station is in one of five states, by how many sequences decode (`population`); in each
    prompts wait for their passes (`backlog`), first tokens come (`firsts`) and answers are written
    (`decoding`). Each law is computed when it is first asked for.

    Where it holds: within 10 % of simulations, see `tests/estimates/queues/against_simulation.py`;
    less well where requests often lose their places, or where lengths that differ much share
    little room. Arrivals that vary more than Poisson ones are taken as groups that come at once.
    """
    served = Served(station, load)
    return times_at(served, load.rate_per_s, kept_up_with(served))


def times_at(served: Served, rate_per_s: float, most: float) -> QueueTimes:
    """The same at another rate, where `most` is known, what the station keeps up with [1/s]."""
    steady = served.at(max(rate_per_s, _LEAST_RATE * most))
    return QueueTimes(served=steady, utilisation=rate_per_s / most)


def _rests(served: Served, n: FloatArray) -> list[Law]:
    """Rest of the pass under way where nothing but decodes is (S)."""
    parts = (np.arange(_PARTS) + 0.5) / _PARTS
    ahead = 1.0 if served.station.composes_ahead else 0.0
    rest = served.plain_s(n)[:, None] * (parts + ahead)
    return [Law(np.where(k < 0.5, 0.0, x), np.ones(_PARTS)) for k, x in zip(n, rest, strict=True)]
