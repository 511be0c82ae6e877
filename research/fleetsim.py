"""fleet-sim's published fleets, by its own formulas, in our program and in our simulation.

    python -m research.fleetsim

fleet-sim (`vllm-project/semantic-router`, src/fleet-sim; arXiv 2603.16054) sizes pools of requests
of neighbouring lengths on GPUs of one sort each. Of n slots a GPU, a pass takes W + H (L / 8192) n,
a request of L tokens, four fifths of them read, ⌈L_in / chunk⌉ + L_out passes; slots of all GPUs
are servers of M/G/c (Erlang, Kimura), of which at most 85 % are busy, and

    TTFT p99 = p99 of the wait for a slot + mean of ⌈L_in / chunk⌉ (W + H)

Its search is over one cut between two pools. Here each interval between two lengths of its tables
is a stream, each pool that serves it a column, and one program chooses.
"""

from __future__ import annotations

import heapq
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.fluid_rates import Load
from planner.placing.fleets.choosing.program import with_choice_of_streams
from planner.placing.fleets.request_classes import WHOLE, RequestClass
from planner.placing.program import KTOKEN
from planner.programs.placement import UNLIMITED, PlacementLimit, PlacementProgram, Uses
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.specs.files.reading import load_model
from planner.specs.records.roles import DecodeTimes, ReadingTimes, Station
from planner.specs.traffic.distributions import TabledTokens
from planner.specs.traffic.lengths import DividedLengths
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.fleets import simulate
from planner.verifier.simulation.outcomes import ClassOutcome
from planner.verifier.simulation.pools import ClassLoad, Pool, Route

DATA = Path(__file__).parents[1] / "tests" / "data" / "fleet"
HOURS = 8760
CALIBRATED = 8192
"""Tokens at which H and the most slots were said."""

BLOCK, INPUT_SHARE, MOST_BUSY, LATE = 16, 0.8, 0.85, 0.01
TTFT_S = 0.5
TOKENS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One of its profiles.

    Args:
        pass_s, sequence_s: W, and H of a sequence of `CALIBRATED` tokens.
        chunk: tokens of a prompt that a pass reads.
        n_blocks, most_slots: of the cache, and sequences at `CALIBRATED` tokens.
    """

    name: str
    pass_s: float
    sequence_s: float
    chunk: int
    n_blocks: int
    most_slots: int
    usd_per_hour: float

    def n_slots(self, upto: int) -> int:
        """Sequences at once where the longest has so many tokens."""
        return min(self.most_slots * CALIBRATED // upto, self.n_blocks // math.ceil(upto / BLOCK))

    def chunks(self, n_tokens: FloatArray) -> FloatArray:
        """Passes that read the prompts of requests of so many tokens in all."""
        return np.ceil(_prompt(n_tokens) / self.chunk)

    def service_s(self, n_tokens: FloatArray, upto: int) -> FloatArray:
        """Of requests, all slots in use."""
        each = self.pass_s + self.sequence_s * n_tokens / CALIBRATED * self.n_slots(upto)
        return (self.chunks(n_tokens) + n_tokens - _prompt(n_tokens)) * each


def _prompt(n_tokens: FloatArray) -> FloatArray:
    return np.maximum(1.0, np.floor(n_tokens * INPUT_SHARE))


@cache
def gpus() -> tuple[Gpu, ...]:
    """Its three profiles."""
    found = json.loads((DATA / "fleetsim_profiles.json").read_text())
    return tuple(
        Gpu(
            name=name,
            pass_s=one["W"],
            sequence_s=one["H"],
            chunk=one["chunk"],
            n_blocks=one["blks"],
            most_slots=one["slots"],
            usd_per_hour=one["c"],
        )
        for name, one in found.items()
        if name != "source"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """Lengths of a table, and how often requests come.

    Args:
        points: tokens, and the share of requests that have no more, (P,).
        longest: what is longer counts as this long.
        counts_reading: whether the target is of TTFT; it is of the wait alone without, as its
            search for the fewest GPUs has it before it looks at TTFT.
    """

    name: str
    points: tuple[tuple[int, float], ...]
    longest: int
    rate_per_s: float = 100.0
    counts_reading: bool = True

    @property
    def cuts(self) -> tuple[int, ...]:
        """Lengths between which pools may divide the requests, none and the longest too."""
        return (0, *(n for n, _ in self.points if n < self.longest), self.longest)

    def weights(self, above: int, upto: int) -> tuple[FloatArray, FloatArray]:
        """Lengths of an interval and their shares of all: alike between two points."""
        lengths, shares, low, before = [], [], 0, 0.0
        for high, share in self.points:
            n = np.minimum(np.arange(low + 1.0, high + 1.0), float(self.longest))
            lengths.append(n)
            shares.append(np.full(len(n), (share - before) / len(n)))
            low, before = high, share
        n, weight = np.concatenate(lengths), np.concatenate(shares)
        inside = (n > above) & (n <= upto)
        return n[inside], weight[inside]


@cache
def case(name: str, longest: int) -> Case:
    """One of its tables, at 100 requests a second."""
    points = json.loads((DATA / "fleetsim_cdfs.json").read_text())[name]
    return Case(name=name, points=tuple((n, share) for n, share in points), longest=longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedPool:
    """Requests of an interval on GPUs of one sort, as many as its formula asks for."""

    above: int
    upto: int
    gpu: Gpu
    n_gpus: int
    rate_per_s: float
    mean_output: float

    @property
    def usd_per_hour(self) -> float:
        return self.n_gpus * self.gpu.usd_per_hour


def sized(one: Case, gpu: Gpu, above: int, upto: int) -> SizedPool | None:
    """The fewest GPUs by its formula; None where prompts alone take too long, or nobody comes."""
    n, weight = one.weights(above, upto)
    share = float(np.sum(weight))
    slots = gpu.n_slots(upto)
    if share <= 0.0 or slots < 1:
        return None
    weight = weight / share
    service_s = gpu.service_s(n, upto)
    mean_s = float(weight @ service_s)
    cv2 = max(0.01, float(weight @ service_s**2) / mean_s**2 - 1.0)
    read_s = float(weight @ gpu.chunks(n)) * (gpu.pass_s + gpu.sequence_s)
    read_s *= one.counts_reading
    rate = share * one.rate_per_s
    if read_s > TTFT_S:
        return None
    of_gpu = slots / mean_s
    n_gpus = max(math.ceil(rate / of_gpu) + 1, math.ceil(rate / of_gpu / MOST_BUSY))
    while _wait_s(n_gpus * slots, rate, mean_s, cv2) + read_s > TTFT_S:
        n_gpus += 1
    outputs = n - _prompt(n)
    return SizedPool(
        above=above,
        upto=upto,
        gpu=gpu,
        n_gpus=n_gpus,
        rate_per_s=rate,
        mean_output=float(weight @ outputs),
    )


def _wait_s(n_servers: int, rate_per_s: float, service_s: float, cv2: float) -> float:
    """p99 of M/G/c as it has it: ln(C / 0.01) (1 + cv²) / (2 (c μ − λ))."""
    offered, blocked = rate_per_s * service_s, 1.0
    if offered >= n_servers:
        return math.inf
    for k in range(1, n_servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    waits = blocked / (1.0 - offered / n_servers * (1.0 - blocked))
    if waits <= LATE:
        return 0.0
    spare = n_servers / service_s - rate_per_s
    return math.log(waits / LATE) * (1.0 + cv2) / (2.0 * spare)


@cache
def pools(one: Case) -> tuple[SizedPool, ...]:
    """Every interval on every sort of GPU."""
    found = (
        sized(one, gpu, above, upto) for above, upto in combinations(one.cuts, 2) for gpu in gpus()
    )
    return tuple(each for each in found if each is not None)


def chosen(one: Case, most_pools: int) -> tuple[PlacementSolution, list[SizedPool]]:
    """The cheapest pools that serve all lengths, at most so many, with proof."""
    offered, cuts = pools(one), one.cuts
    intervals = list(dict.fromkeys((each.above, each.upto) for each in offered))
    streams = [
        _stream(next(p for p in offered if (p.above, p.upto) == it), cuts) for it in intervals
    ]
    demand = np.array([each.rate_per_s * each.n_output_tokens * KTOKEN for each in streams])
    model = np.array([intervals.index((each.above, each.upto)) for each in offered])
    none = np.zeros(0, dtype=np.int64)
    program = PlacementProgram(
        resources=(),
        free=none,
        uses=Uses(resource=none, column=none, amount=none),
        models=tuple(each.name for each in streams),
        column_model=model,
        objective=np.array([each.usd_per_hour for each in offered]),
        rate=demand[model],
        demand=demand,
        least=np.zeros(len(streams), dtype=np.int64),
        most=np.full(len(streams), UNLIMITED),
        column_most=np.ones(len(offered), dtype=np.int64),
        limits=(
            PlacementLimit(name="pools", column=np.ones(len(offered)), at_most=float(most_pools)),
        ),
    )
    whole, _ = with_choice_of_streams(program, None, streams, program.demand, 1)
    solution = solve_placement(whole)
    assert solution.answer is not None
    used = solution.answer.copies[: len(offered)]
    return solution, [each for each, n in zip(offered, used, strict=True) if n]


def _stream(one: SizedPool, cuts: Sequence[int]) -> RequestClass:
    first, last = cuts.index(one.above), cuts.index(one.upto)
    return RequestClass(
        name=f"{one.above} to {one.upto}",
        units=tuple(range(first, last)),
        parts=(WHOLE,) * (last - first),
        classes=(),
        model=_model(),
        above_tokens=one.above * INPUT_SHARE,
        upto_tokens=one.upto * INPUT_SHARE,
        load=Load(
            rate_per_s=one.rate_per_s,
            n_input=np.ones(1),
            n_output=np.array([max(1.0, one.mean_output)]),
            weight=np.ones(1),
        ),
        member=np.zeros(1, dtype=np.int64),
        targets=(),
        n_longest_input=one.upto,
        n_longest_tokens=one.upto,
        rate_of_unit={},
    )


_model = cache(lambda: load_model("llama-3-70b"))


def by_shortest_path(one: Case, most_pools: int) -> float:
    """The least rent from no length to the longest, one pool a step: no program at all."""
    best = {0: 0.0}
    for _ in range(most_pools):
        further = dict(best)
        for each in pools(one):
            if each.above in best:
                rent = best[each.above] + each.usd_per_hour
                further[each.upto] = min(rent, further.get(each.upto, math.inf))
        best = further
    return best[one.longest]


def homogeneous(one: Case, gpu: Gpu) -> SizedPool | None:
    """All lengths on one sort of GPU."""
    return sized(one, gpu, 0, one.longest)


def station_of(pool: SizedPool) -> Station:
    """One GPU as a station: passes of W + H n, a chunk of prompts in each beside its decodes."""
    gpu, slots = pool.gpu, pool.gpu.n_slots(pool.upto)
    contexts = (0.0, float(1 << 17))
    each = [gpu.sequence_s * c / CALIBRATED for c in contexts]
    decode = DecodeTimes(
        n_sequences=(1, max(2, slots)),
        context_tokens=contexts,
        seconds=tuple(
            tuple(gpu.pass_s + n * second for second in each) for n in (1, max(2, slots))
        ),
    )
    reading = ReadingTimes(
        n_sequences=(0, 1),
        prompt_tokens=(0.0, 1.0, float(gpu.chunk)),
        span_tokens=contexts,
        seconds=tuple(
            tuple(tuple((alone + second) * (p > 0) for second in each) for p in (0, 1, 2))
            for alone in (gpu.pass_s, 0.0)
        ),
    )
    return Station(
        name=gpu.name,
        most_running=slots,
        chunk_tokens=gpu.chunk + slots,
        room_bytes=float(gpu.n_blocks * BLOCK),
        token_bytes=1.0,
        decode=decode,
        reading=reading,
    )


def simulated(
    one: Case, fleet: Sequence[SizedPool], *, n_requests: int = 20_000, seed: int = 1
) -> dict[SizedPool, ClassOutcome]:
    """What our simulation says of each pool; requests of a pool are a class."""
    found = {}
    for pool in fleet:
        name = f"{pool.above}-{pool.upto}"
        lengths = _lengths(one, pool)
        load = TrafficClass(
            name=name, models=(_model(),), rate_per_s=pool.rate_per_s, lengths=lengths
        )
        outcome = simulate(
            [Pool(name=name, station=station_of(pool), n_replicas=pool.n_gpus)],
            [ClassLoad(name=name, source=load, routes=(Route(pool=name),))],
            n_requests=n_requests,
            seed=seed,
        )
        found[pool] = outcome.of(name)
    return found


def _lengths(one: Case, pool: SizedPool) -> DividedLengths:
    """Those of an interval, at the points of the table."""
    n, weight = one.weights(pool.above, pool.upto)
    below = np.cumsum(weight) / np.sum(weight)
    edges = [point for point, _ in one.points if pool.above < point < pool.upto]
    at = [int(np.searchsorted(n, edge, side="right")) - 1 for edge in edges]
    tokens = (max(1.5, float(pool.above) + 0.5), *map(float, edges), float(pool.upto))
    shares = (1e-9, *(float(below[i]) for i in at), 1.0)
    total = TabledTokens(tokens=tokens, shares=shares)
    return DividedLengths(total=total, input_fraction=INPUT_SHARE)


def by_slots(one: Case, pool: SizedPool, *, n_requests: int = 20_000, seed: int = 1) -> FloatArray:
    """TTFT of requests in its own model, simulated: slots that do not disturb each other (N,)."""
    draw, n_slots = random.Random(seed), pool.gpu.n_slots(pool.upto)
    n, weight = one.weights(pool.above, pool.upto)
    lengths = np.array(draw.choices(n.tolist(), weight.tolist(), k=n_requests))
    service = pool.gpu.service_s(lengths, pool.upto)
    read = pool.gpu.chunks(lengths) * (
        pool.gpu.pass_s + pool.gpu.sequence_s * lengths / CALIBRATED * n_slots
    )
    free, now, found = [0.0] * (n_slots * pool.n_gpus), 0.0, []
    for took, reads in zip(service.tolist(), read.tolist(), strict=True):
        now += draw.expovariate(pool.rate_per_s)
        begins = max(now, free[0])
        heapq.heapreplace(free, begins + took)
        found.append(begins - now + reads)
    return np.array(found[n_requests // 10 :])


def _told(one: Case, fleet: Sequence[SizedPool]) -> Iterator[str]:
    outcomes = simulated(one, fleet)
    for pool in fleet:
        slots, found = by_slots(one, pool), outcomes[pool]
        yield (
            f"    {pool.above:6d} to {pool.upto:6d} tokens: {pool.n_gpus:3d} {pool.gpu.name:5s}"
            f" {pool.rate_per_s:5.1f} req/s; TTFT p50, p99 "
            f"its slots {np.quantile(slots, 0.5):.2f}, {np.quantile(slots, 0.99):.2f} s; "
            f"chunks shared {found.ttft.at_s(0.5):.2f}, {found.ttft.at_s(0.99):.2f} s"
        )


CASES = (("azure_2023", 8192), ("lmsys_chat_1m", 65536))


def main() -> None:
    """Print fleets of both cases, and what simulations say of them."""
    for name, longest in CASES:
        one = case(name, longest)
        print(f"{name} up to {longest} tokens, {one.rate_per_s:g} req/s, TTFT p99 {TTFT_S:g} s")
        for gpu in gpus():
            alone = homogeneous(one, gpu)
            if alone is not None:
                print(f"  one pool of {gpu.name}: {alone.n_gpus} GPUs, {_year(alone.usd_per_hour)}")
        for most in (2, 3, len(one.cuts)):
            solution, fleet = chosen(one, most)
            words = " + ".join(f"{p.n_gpus} {p.gpu.name} to {p.upto}" for p in fleet)
            print(
                f"  {most} pools: {_year(solution.objective)}, {words}; "
                f"by {', '.join(solution.vouched.by)}; "
                f"by shortest path {_year(by_shortest_path(one, most))}"
            )
            if most == 2:
                for line in _told(one, fleet):
                    print(line, flush=True)
        waits = replace(one, counts_reading=False)
        rents = (_year(by_shortest_path(waits, most)) for most in (2, 3))
        print(f"  2 and 3 pools, reading not counted: {', '.join(rents)}")
        quick = homogeneous(one, gpus()[1])
        assert quick is not None
        for line in _told(one, [quick]):
            print(line, flush=True)


def _year(usd_per_hour: float) -> str:
    return f"${usd_per_hour * HOURS / 1e3:.1f} K a year"


if __name__ == "__main__":
    main()
