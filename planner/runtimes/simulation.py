"""Fleets as the planner tries them: requests drawn, served on arrays, summed up in percentiles."""

import math
import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from statistics import fmean

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.simulation.arrays import PoolOfReplicas, Routes, Sent, SimulatedRun, serve
from planner.estimates.simulation.core import NOBODY
from planner.estimates.simulation.drawing import merged, seeds_of
from planner.specs.records.roles import AT_RANDOM
from planner.specs.traffic.percentiles import GoodputTarget
from planner.specs.validation.hints import from_fields
from planner.verifier.simulation.fleets import N_BATCHES, WARM_UP_SHARE, WIND_DOWN_SHARE
from planner.verifier.simulation.outcomes import (
    SHARES,
    ClassOutcome,
    Distribution,
    Estimate,
    FleetOutcome,
    PoolOutcome,
    estimate,
)
from planner.verifier.simulation.pools import ClassLoad, Pool

_BINS_PER_DECADE, _FIRST_BIN = 400, 3200
_scales = attrgetter(
    "latency_s", "bytes_per_s", "wire_bytes_per_s", "sequence_bytes", "token_bytes"
)
"""What is simulated of a hand-over."""


def simulate(
    pools: Sequence[Pool],
    classes: Sequence[ClassLoad],
    *,
    n_requests: int,
    seed: int = 0,
    n_batches: int = N_BATCHES,
    warm_up_share: float = WARM_UP_SHARE,
    wind_down_share: float = WIND_DOWN_SHARE,
    shares: Sequence[float] = SHARES,
) -> FleetOutcome:
    """Serve requests that come whether others have ended or not, and say what became of them.

    The numbers drawn are those of the verifier's simulation, so that both serve the same requests.

    Args:
        pools: of replicas.
        classes: what is sent to them, nothing of their prompts cached.
        n_requests: of all classes together; sources may end earlier.
        seed: of lengths, arrivals and routers.
        n_batches: that intervals are made of.
        warm_up_share, wind_down_share: of the requests, the first and the last, which are not
            counted.
        shares: of percentiles.

    Raises:
        ValueError: a prompt has no route.
    """
    n_first, n_last = int(n_requests * warm_up_share), int(n_requests * wind_down_share)
    n_counted = n_requests - n_first - n_last
    n_batches = max(1, min(n_batches, n_counted))
    edges = [n_first + n_counted * b // n_batches for b in range(n_batches + 1)]
    chance = random.Random(seed)
    sent = _sent(classes, n_requests, chance)
    of_routers = [random.Random(chance.getrandbits(64)) for _ in pools]
    drawn = [
        from_fields(
            PoolOfReplicas,
            pool,
            chances=np.array(
                [source.random() for _ in range(len(sent) if pool.router == AT_RANDOM else 0)]
            ),
        )
        for pool, source in zip(pools, of_routers, strict=True)
    ]
    routes = _routes(pools, classes)
    served = serve(drawn, routes, sent, n_classes=len(classes), edges=edges, counts_gaps=True)
    return _outcome(pools, classes, sent, served, routes, edges, shares, seed=seed, n_first=n_first)


def _sent(classes: Sequence[ClassLoad], n_requests: int, chance: random.Random) -> Sent:
    """The first requests of all classes in the order of arrival, and where each goes."""
    seeds = seeds_of(len(classes), chance)
    sources = [one.source for one in classes]
    arrived_s, tokens, of_class = merged(sources, [first for first, _ in seeds], n_requests)
    route = np.cumsum([0, *(len(one.routes) for one in classes)])[of_class]
    for number, (load, (_, seed)) in enumerate(zip(classes, seeds, strict=True)):
        if len(load.routes) > 1:
            rows, choosing = np.flatnonzero(of_class == number), random.Random(seed)
            route[rows] += [_route_number(load, int(n), choosing) for n in tokens[0, rows]]
    return Sent(
        arrived_s=arrived_s, n_input=tokens[0], n_output=tokens[1], of_class=of_class, route=route
    )


def _route_number(load: ClassLoad, n_input: int, chance: random.Random) -> int:
    """Of the routes of a class one that takes such prompts, by their shares."""
    able = [i for i, route in enumerate(load.routes) if route.takes(n_input)]
    if not able:
        raise ValueError(f"class `{load.name}` has no route for a prompt of {n_input} tokens")
    if len(able) == 1:
        return able[0]
    at = chance.random() * sum(load.routes[i].share for i in able)
    for i in able[:-1]:
        at -= load.routes[i].share
        if at < 0.0:
            return i
    return able[-1]


def _routes(pools: Sequence[Pool], classes: Sequence[ClassLoad]) -> Routes:
    """Routes of all classes, and what hands over; routes with one hand-over share its links."""
    number = {pool.name: i for i, pool in enumerate(pools)}
    listed = [route for one in classes for route in one.routes]
    handed = list({id(one.handover): one.handover for one in listed if one.handover}.values())
    order = {id(one): i for i, one in enumerate(handed)}
    return Routes(
        pool=np.array([number[one.pool] for one in listed], np.int64),
        then=np.array([number.get(str(one.then), NOBODY) for one in listed], np.int64),
        links=np.array([order.get(id(one.handover), NOBODY) for one in listed], np.int64),
        of_links=np.array([_scales(one) for one in handed], dtype=float).reshape(-1, 5),
    )


def _outcome(
    pools: Sequence[Pool],
    classes: Sequence[ClassLoad],
    sent: Sent,
    served: SimulatedRun,
    routes: Routes,
    edges: Sequence[int],
    shares: Sequence[float],
    *,
    seed: int,
    n_first: int,
) -> FleetOutcome:
    n, batch_of = len(sent), np.searchsorted(edges, np.arange(len(sent)), side="right") - 1
    batch_of[batch_of >= len(edges) - 1] = -1
    last_s = served.last_s[np.isfinite(served.last_s)]

    def told(number: int, pool: int | None = None) -> ClassOutcome:
        mine: BoolArray = (sent.of_class == number) & (batch_of >= 0)
        if pool is not None:
            mine &= routes.pool[sent.route] == pool
        gaps = served.gaps[1:-1, number], served.gap_total_s[1:-1, number]
        return _class_outcome(
            classes[number], sent, served, np.flatnonzero(mine), batch_of, gaps, shares
        )

    names = {pool.name: i for i, pool in enumerate(pools)}
    return FleetOutcome(
        classes=tuple(told(number) for number in range(len(classes))),
        pools=tuple(_pool_outcomes(pools, served)),
        n_requests=n,
        n_warm_up=n_first,
        n_wind_down=max(0, n - edges[-1]),
        n_batches=len(edges) - 1,
        seed=seed,
        duration_s=float(np.max(last_s, initial=0.0)),
        ways={
            (load.name, pool): partial(told, number, names[pool])
            for number, load in enumerate(classes)
            for pool in dict.fromkeys(route.pool for route in load.routes)
            if len(load.routes) > 1
        },
    )


def _class_outcome(
    load: ClassLoad,
    sent: Sent,
    served: SimulatedRun,
    rows: IntArray,
    batch_of: IntArray,
    gaps: tuple[IntArray, FloatArray],
    shares: Sequence[float],
) -> ClassOutcome:
    """What became of some requests of a class."""
    arrived, n_gaps = sent.arrived_s[rows], sent.n_output[rows] - 1
    first_s, last_s = served.first_s[rows], served.last_s[rows]
    refused = np.isinf(last_s)
    with np.errstate(invalid="ignore"):  # of two infinite times
        tpot_s = np.where(n_gaps > 0, (last_s - first_s) / np.maximum(n_gaps, 1), 0.0)
    tpot_s[refused] = math.inf
    ttft_s, e2e_s, batch, several = first_s - arrived, last_s - arrived, batch_of[rows], n_gaps > 0
    return ClassOutcome(
        name=load.name,
        n_refused=int(refused.sum()),
        ttft=_distribution(ttft_s, batch, shares),
        tpot=_distribution(tpot_s[several], batch[several], shares),
        itl=_gap_distribution(*gaps, shares),
        e2e=_distribution(e2e_s, batch, shares),
        goodput=None if load.goodput is None else _met(load.goodput, ttft_s, tpot_s, e2e_s, batch),
    )


def _batches(values: FloatArray, batch: IntArray) -> list[FloatArray]:
    """Values of each batch that has some; they come in the order of batches."""
    return [part for part in np.split(values, np.flatnonzero(np.diff(batch)) + 1) if len(part)]


def _distribution(values: FloatArray, batch: IntArray, shares: Sequence[float]) -> Distribution:
    if not len(values):
        none = estimate(math.nan, ())
        return Distribution(n=0, mean_s=none, percentiles_s=dict.fromkeys(shares, none))
    parts = [np.sort(part) for part in _batches(values, batch)]
    whole = np.sort(values)
    return Distribution(
        n=len(whole),
        mean_s=estimate(fmean(whole.tolist()), [fmean(part.tolist()) for part in parts]),
        percentiles_s=_estimates(shares, _at(whole, shares), [_at(part, shares) for part in parts]),
    )


def _estimates(
    shares: Sequence[float], whole: Sequence[float], parts: Sequence[Sequence[float]]
) -> dict[float, Estimate]:
    """Percentiles of all, with the intervals that those of batches give."""
    numbered = enumerate(zip(shares, whole, strict=True))
    return {share: estimate(value, [it[k] for it in parts]) for k, (share, value) in numbered}


def _at(values: FloatArray, shares: Sequence[float]) -> list[float]:
    """Percentiles of values in ascending order, linear between two of them."""
    at, last = np.array(shares) * (len(values) - 1), len(values) - 1
    below = np.minimum(np.floor(at).astype(np.int64), last)
    low, high = values[below], values[np.minimum(below + 1, last)]
    with np.errstate(invalid="ignore"):  # of two infinite values
        points: list[float] = np.where(low == high, low, low + (at - below) * (high - low)).tolist()
    return points


def _gap_distribution(
    counts: IntArray, total_s: FloatArray, shares: Sequence[float]
) -> Distribution:
    """Of tokens, whose gaps are counted by batch and bin, (B, bins)."""
    kept = counts.sum(axis=1) > 0
    counts, total_s = counts[kept], total_s[kept]
    whole = counts.sum(axis=0)
    n = int(whole.sum())
    means = (total_s / counts.sum(axis=1)).tolist()
    batches = [gaps_at(row, shares) for row in counts]
    return Distribution(
        n=n,
        mean_s=estimate(sum(total_s.tolist()) / n if n else math.nan, means),
        percentiles_s=_estimates(shares, gaps_at(whole, shares), batches),
    )


def gaps_at(counts: IntArray, shares: Sequence[float]) -> list[float]:
    """What such shares of all gaps are no longer than [s]; NaN of none."""
    below = counts.cumsum()
    if not len(below) or not below[-1]:
        return [math.nan] * len(shares)
    at = np.searchsorted(below, np.array(shares) * below[-1]).clip(min=int(np.argmax(counts > 0)))
    return [10.0 ** ((it - _FIRST_BIN) / _BINS_PER_DECADE) for it in at.tolist()]


def bin_of(gap_s: float) -> int:
    """The last bin whose gaps are no longer."""
    return math.floor(math.log10(gap_s) * _BINS_PER_DECADE + _FIRST_BIN)


def _met(
    goodput: GoodputTarget,
    ttft_s: FloatArray,
    tpot_s: FloatArray,
    e2e_s: FloatArray,
    batch: IntArray,
) -> Estimate:
    """The share of requests that meet all limits; NaN of no request."""
    met = np.ones(len(ttft_s))
    limits = ((goodput.ttft_s, ttft_s), (goodput.tpot_s, tpot_s), (goodput.e2e_s, e2e_s))
    for most, values in limits:
        if most is not None:
            met *= values <= most
    share = float(met.mean()) if len(met) else math.nan
    return estimate(share, [float(part.mean()) for part in _batches(met, batch)])


def _pool_outcomes(pools: Sequence[Pool], served: SimulatedRun) -> Iterator[PoolOutcome]:
    spans, first = np.diff(served.edge_s).tolist(), 0
    for pool, n_begun_again in zip(pools, served.n_begun_again.tolist(), strict=True):
        n = pool.n_replicas * pool.station.n_ranks
        busy = [sum(row) for row in served.busy_s[:, first : first + n].tolist()]
        first += n
        shares = [
            (after - before) / span / n
            for (before, after), span in zip(pairwise(busy), spans, strict=True)
            if span > 0.0
        ]
        whole = sum(spans) * n
        used = (busy[-1] - busy[0]) / whole if whole else math.nan
        yield PoolOutcome(
            name=pool.name, utilisation=estimate(used, shares), n_begun_again=n_begun_again
        )
