"""How many sequences decode, and how many requests wait for a place beside them.

A station whose rate of service depends on the number in it is a processor that is shared, whose
law does not depend on that of the lengths [Cohen1979]:

    μ(n) p(n) = λ p(n − 1),    μ(n) = n / (E[rounds] T(n))

While a prompt is read no sequence ends, and others come: requests begin to decode in groups, one
of them with all that came in its reading, and theirs, so that n varies more. Of geometric groups
of mean b, as variable as these and as the arrivals (`equations.queueing`), the balance of the
flows across n is

    μ(n) p(n) = λ / b F(n),    F(n) = (1 − 1/b) F(n − 1) + p(n − 1)

Groups make exponential stays vary half as much as equal ones: the excess of E[X²] / E[X] over 1 is
taken 2 κ times, κ = E[min of two stays] / E[stay] [Shanbhag1966]. Where n has to stay within N,
which varies with the sizes of those that are there, the others wait: μ(n) is the mean over N of
μ(min(n, N)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import family_dispersion, group_of_dispersion
from planner.estimates.queues.loads import Load
from planner.estimates.queues.served import Served

_MOST_BUSY = 0.995
_MOST_READING = 0.9
_SURE = 0.999
_STEADIEST = 0.05
_UNLIKE = 0.25
"""Variance of how far stations are from each other that a router keeps alike, in requests."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """The stationary law of the sequences that decode, and the wait for a place.

    Args:
        probability: of 0 … N (N + 1,).
        plain_s, round_s: of a pass that decodes so many, by itself and on average (N + 1,) [s].
        wait_probability: that one that comes finds no place.
        wait_s: mean of those that wait [s].
        most: sequences that have a place at once, on average where there is always one more.
    """

    probability: FloatArray
    plain_s: FloatArray
    round_s: FloatArray
    wait_probability: float
    wait_s: float
    most: float

    @property
    def mean(self) -> float:
        return float(self.probability @ np.arange(len(self.probability)))

    def at(self, values: FloatArray, n: FloatArray) -> FloatArray:
        """Of values for 0 … N, those of any n."""
        return np.asarray(np.interp(n, np.arange(len(values)), values))


def population(served: Served) -> Population:
    """p(n), the wait and the passes of a station under its load."""
    load, most = served.load, served.station.most_running
    usual = served.usual
    n = np.arange(1.0, most + 1.0)
    plain = np.interp(n, usual.n, usual.plain_s)
    round_s = np.interp(n, usual.n, served.round_s(usual))
    rates = np.full(most + 1, load.rate_per_s)  # of those that begin to decode beside 0 … N
    if served.reads and served.mixes:
        read = usual.chunk_tokens / usual.full_s / load.mean_input
        rates[1:] = np.minimum(rates[1:], np.interp(n, usual.n, read))
    dispersion = _dispersion(served, plain / round_s)
    places = _places(served, n, round_s)
    leave = np.concatenate([[0.0], np.cumsum(np.diff(n / round_s, prepend=0.0) * places)])
    # who stands in line is not read, so that groups are smaller there: between both, by simulation
    bursts = load.pool_cv2 - 1.0
    lined = bursts + float(np.sqrt(dispersion[-1] - bursts)) if dispersion[-1] > bursts else 1.0
    dispersion = np.append(dispersion, lined)
    excess = 2.0 * load.shared_stay * (dispersion - 1.0)
    flows = rates, leave / load.mean_rounds
    law, queued, waits = _balance(flows, excess, places, load)
    grown = 2.0 * load.shared_stay * bursts if bursts > 0.0 else bursts
    factor = (lined - bursts + grown + _size_cv2(served, places)) / (2.0 + excess[-1])
    if _is_roomy(served, places):
        mean = int(np.clip(law @ np.arange(most + 1.0), 1, most)) - 1
        factor *= float(np.sqrt((2.0 + excess[-1]) / (2.0 + excess[mean])))
    wait_s = queued / load.rate_per_s / waits * max(0.0, factor) if waits > 0.0 else 0.0
    return Population(
        probability=law,
        plain_s=np.append(plain[0], plain),
        round_s=np.append(round_s[0], round_s),
        wait_probability=waits,
        wait_s=wait_s,
        most=float(np.sum(places)),
    )


def _dispersion(served: Served, plain_share: FloatArray) -> FloatArray:
    """E[X²] / E[X] of the requests that begin to decode together beside 1 … N (N,)."""
    load = served.load
    bursts = np.full(len(plain_share), load.pool_cv2)
    if not served.reads:
        return bursts
    cv2 = served.reading_moments[1]
    reading = np.clip(1.0 - plain_share, 0.0, _MOST_READING)
    family = family_dispersion(reading, cv2)
    if served.mixes:  # whose prompts take passes of their own, one after the other
        passes = float(served.usual.passes[0])
        family = 1.0 + (family - 1.0) * load.mean_rounds / (load.mean_rounds + passes * family)
    return np.asarray(family + bursts - 1.0)


def _places(served: Served, n: FloatArray, round_s: FloatArray) -> FloatArray:
    """P(N ≥ n): there is a place and room for n that decode, n = 1 … (N,).

    A place is taken while a prompt is read, and until the engine looks after its answer ended.
    """
    load, looks = served.load, served.n_looks
    usual = min(len(n) - 1, int(load.rate_per_s * load.mean_rounds * round_s[len(n) // 2]))
    reading_s = 0.0
    if served.reads:
        points = served.usual
        alone, passes = (np.interp(n[usual], points.n, x) for x in (points.alone_s, points.passes))
        reading_s = float(alone + passes * served.ridden_s(n[usual]))
    unseen = load.mean(np.ceil(load.n_rounds / looks) * looks - load.n_rounds)
    taken = load.rate_per_s * (reading_s + unseen * round_s[usual])
    free = np.clip(len(n) - taken - n + 1.0, 0.0, 1.0)
    free[0] = 1.0
    found = served.room.fits(load.rate_per_s * reading_s)
    return np.asarray(np.minimum.accumulate(found * free))


def _is_roomy(served: Served, places: FloatArray) -> bool:
    """Whether room for caches may be used up before places are."""
    return bool(np.isfinite(served.station.room_bytes) and places[-1] < _SURE)


def _size_cv2(served: Served, places: FloatArray) -> float:
    """Squared coefficient of variation of what a request takes of that which is scarce.

    Of places it is its time in them, of room its bytes too; of room alone it is between both.
    """
    load, station = served.load, served.station
    rounds = load.n_rounds
    cv2 = load.mean(rounds**2) / load.mean_rounds**2 - 1.0
    if not _is_roomy(served, places):
        return cv2
    cached = load.n_input + load.n_output / 2.0
    work = rounds * (station.sequence_bytes + station.token_bytes * cached)
    return (cv2 + load.mean(work**2) / load.mean(work) ** 2 - 1.0) / 2.0


def _balance(
    flows: tuple[FloatArray, FloatArray], excess: FloatArray, places: FloatArray, load: Load
) -> tuple[FloatArray, float, float]:
    """The law of those that decode, the mean number that wait, and the share that has to.

    Args:
        flows: rates at which beside 0 … N some come, and of 0 … N some end (N + 1,) [1/s].
        excess: of E[X²] / E[X] of groups over 1, as of exponential stays, beside 1 … N, and of
            those that come while none may begin (N + 1,).
        places: P(N ≥ n) of 1 … (N,).
        load: how requests come.
    """
    rates, leave = flows
    begin = np.minimum(rates, _MOST_BUSY * np.max(leave))
    stays = 1.0 - 1.0 / group_of_dispersion(1.0 + excess)
    p, flow = _outflows(begin, leave, stays)
    power = _steadier(p, excess, load)
    largest = max(float(np.max(p)), flow)  # one of them stays, whatever the power
    p, flow = (p / largest) ** power, (flow / largest) ** power
    # beyond all places the law is geometric
    busy = float(begin[-1] / leave[-1]) ** power
    beyond = busy * flow / (1.0 - busy)
    longer = 1.0 / ((1.0 - stays[-1]) * (1.0 - busy))
    total = float(np.sum(p)) + beyond
    p, beyond = p / total, beyond / total
    companions = float(group_of_dispersion(load.arrival_cv2)) - 1.0
    found_full = _with_companions(np.append(1.0 - places, 1.0), companions)
    waits = float(p @ found_full) + beyond
    served = np.append(0.0, np.cumsum(places))
    most = len(places)
    queued = float(p @ (np.arange(most + 1.0) - served)) + beyond * (most - served[-1] + longer)
    above = (1.0 - np.append(0.0, np.cumsum(p)[:-1])) * np.append(1.0, places)
    law = np.maximum(0.0, above - np.append(above[1:], 0.0))
    return law / np.sum(law), queued, waits


def _outflows(begin: FloatArray, leave: FloatArray, stays: FloatArray) -> tuple[FloatArray, float]:
    """p(n) and F(N), as parts of what p(n) adds up to."""
    found, flow = [1.0], 1.0
    for n, (rate, stay) in enumerate(zip(begin[:-1].tolist(), stays[:-1].tolist(), strict=True), 1):
        p = rate * (1.0 - stay) * flow / leave[n]
        flow = stay * flow + p
        found.append(p)
        if flow > 1e200:
            found = [x / flow for x in found]
            flow = 1.0
    total = math.fsum(found)
    return np.array(found) / total, flow / total


def _steadier(p: FloatArray, excess: FloatArray, load: Load) -> float:
    """The power of a law that varies as much less as streams steadier than Poisson make it.

    Logarithms of laws of populations are sums over steps of log λ / μ: of R stations that a router
    keeps alike there are R steps where one has one, and so there are of numbers whose variance over
    their mean is an R-th. Those of smooth streams vary by z = 1 + κ (c² − 1) [Eckberg1983].
    """
    n = np.arange(len(p))
    mean = float(p @ n)
    usual = float(excess[int(np.clip(mean, 1, len(excess))) - 1]) / 2.0
    varies = max(_STEADIEST, 1.0 + usual)
    if load.n_alike > 1:
        varies = varies / load.n_alike + _UNLIKE / max(mean, 1.0)
    return max(1.0, (1.0 + max(0.0, usual)) / varies)


def _with_companions(full: FloatArray, companions: float) -> FloatArray:
    """Probability of no place beside 0 … N and a geometric number of companions (N + 1,)."""
    if companions <= 0.0:
        return full
    stays = companions / (1.0 + companions)
    found, after = np.empty_like(full), 1.0
    for n in range(len(full) - 1, -1, -1):
        after = (1.0 - stays) * float(full[n]) + stays * after
        found[n] = after
    return found
