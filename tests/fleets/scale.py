"""A large market: how long the least rent takes to prove, and a staircase of demands.

    python -m tests.fleets.scale [--classes 4] [--kinds 5] [--configurations 300] [--steps 100]

Each class may be served by so many configurations of each kind, whose rents are their own, as those
of a table may be, so that few stand for others: rates rise with rent, less and less, and by chance.
Rates are as if looked for already; then also from fluid rates, each looked for when needed. The
staircase is of the same with rents of devices, whose steps are some cents apart and more.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.capacity import Capacities, PoolLoad
from planner.placing.fleets.choosing.alternatives import at_factor, largest_factor
from planner.placing.fleets.choosing.searching import settled
from planner.placing.fleets.solutions import Solution
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.reading import load_model
from planner.specs.traffic.lengths import IndependentLengths
from planner.specs.traffic.percentiles import TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.specs.traffic.texts import tokens_of
from tests.fleets.stationed import GivenKind, Offer, fluid_rate, given_market, pool_of_kinds
from tests.verifier.simulation.stations import station

MODELS = ("llama-3-8b", "llama-3-70b", "qwen3-32b", "llama-3.1-405b", "mixtral-8x7b")
SIZES = (1, 2, 4, 8)


def large_market(
    n_classes: int, n_kinds: int, n_configurations: int, *, has_rents: bool = True
) -> CandidateSet:
    """Classes of different models on kinds, with so many configurations of each of both.

    Args:
        has_rents: whether each has a rent of its own, not that of its devices.
    """
    draw = random.Random(1)
    kinds = [
        GivenKind(name=f"kind{i}", n_nodes=16, per_node=8, usd_per_hour=draw.uniform(1.0, 6.0))
        for i in range(n_kinds)
    ]
    model = load_model(MODELS[0])
    models = [replace(model, name=f"model{i}") for i in range(n_classes)]
    classes = [
        TrafficClass(
            name=f"class{i}",
            models=(one,),
            rate_per_s=draw.uniform(50.0, 200.0),
            lengths=IndependentLengths(
                input=tokens_of(str(draw.randint(200, 4000))),
                output=tokens_of(str(draw.randint(50, 500))),
            ),
            targets=(PercentileTarget(quantity=TTFT, share=0.95, at_most_s=2.0),),
        )
        for i, one in enumerate(models)
    ]
    offers = {
        one.name: tuple(
            _offer(draw, kind, number, has_rents)
            for kind in kinds
            for number in range(n_configurations)
        )
        for one in models
    }
    request = FleetRequest(
        site=pool_of_kinds(kinds),
        classes=tuple(classes),
        options=SolverOptions(time_limit_s=600.0),
    )
    return given_market(request, offers)


def _offer(draw: random.Random, kind: GivenKind, number: int, has_rent: bool) -> Offer:
    """One of a size, which serves as much more as it is dearer, but for a little."""
    size = SIZES[number % len(SIZES)]
    dear = draw.uniform(0.7, 1.4)
    speed = 1.0 / (size * kind.usd_per_hour * dear**0.9 * draw.uniform(0.95, 1.05)) ** 0.9
    return Offer(
        kind=kind.name,
        n_devices=size,
        n_stages=number,
        usd_per_hour=round(size * kind.usd_per_hour * dear, 4) if has_rent else None,
        stations=(
            station(step_s=0.05 * speed, each_s=1e-3 * speed, read_s=1e-4 * speed, most_running=64),
        ),
    )


def some_rate(one: PoolLoad) -> float:
    """In the place of simulations: a share of the fluid rate, of each station its own."""
    assert one.station.decode is not None
    load = one.stream.load
    key = repr((one.station.decode.seconds, load.mean_input))
    return fluid_rate(one.station, load) * random.Random(key).uniform(0.5, 0.95)


def given_rates(rate: Callable[[PoolLoad], float]) -> dict[str, Callable[..., object]]:
    """What `Capacities` says where rates of ranks are given."""

    def largest(self: Capacities, one: PoolLoad, most: float, least: float = 0.0) -> float:
        del self, least
        return min(most, rate(one) * one.station.n_ranks)

    def carries(self: Capacities, one: PoolLoad, rate_per_s: float) -> bool:
        del self
        return rate_per_s <= rate(one) * one.station.n_ranks

    return {"largest": largest, "carries": carries}


def known(market: CandidateSet) -> CandidateSet:
    """With every rate found."""
    for one in market.offered.configurations:
        market.book.look_at(one)
    return market


def gap(chosen: Solution) -> float:
    """Of the rent, over what is vouched for."""
    solution = chosen.solution
    return solution.objective / solution.vouched.bound - 1.0


def climbed(market: CandidateSet, n_demands: int) -> list[tuple[float, float, float]]:
    """Demands one above the other, each step's rent, and the most that it serves, proved."""
    found, at = [], 0.5
    for _ in range(n_demands):
        chosen = at_factor(market, at)
        if not chosen.is_found:
            break
        rent = chosen.solution.objective
        upto = largest_factor(market, rent)
        assert upto is not None
        found.append((at, rent, upto))
        at = max(upto, at) * (1.0 + 1e-6)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Print sizes, seconds and gaps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--kinds", type=int, default=5)
    parser.add_argument("--configurations", type=int, default=300)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args(argv)
    for name, answer in given_rates(some_rate).items():
        setattr(Capacities, name, answer)
    shape = asked.classes, asked.kinds, asked.configurations
    began = _clock()
    market = known(large_market(*shape))
    _say(f"{len(market.offered.configurations)} configurations made", began)
    began = _clock()
    n_kept = len(replace(market.offered, configurations=_now(market)).listed)
    _say(f"{n_kept} that none stands for", began)
    began = _clock()
    chosen = settled(market)
    solution = chosen.solution
    _say(
        f"${solution.objective:.2f}/h, gap {gap(chosen):.1e}, {chosen.program.n_columns} columns, "
        f"by {', '.join(solution.vouched.by)}",
        began,
    )
    for one in solution.vouched.proofs:
        print(
            f"    {one.prover}: {one.outcome}, {one.value:.4f}, {one.bound:.4f}, {one.wall_s:.1f} s"
        )
    began = _clock()
    lazy = large_market(*shape)
    found = settled(lazy)
    _say(
        f"${found.solution.objective:.2f}/h from fluid rates, "
        f"{lazy.book.capacities.n_asked} looked for",
        began,
    )
    began = _clock()
    steps = climbed(known(large_market(*shape, has_rents=False)), asked.steps)
    _say(f"{len(steps)} steps, from {steps[0][0]:g} to {steps[-1][2]:.4f} times the traffic", began)


def _now(market: CandidateSet) -> tuple:
    return tuple(market.book.now(one) for one in market.offered.configurations)


def _clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _say(words: str, began: tuple[float, float]) -> None:
    wall_s, cpu_s = (now - then for now, then in zip(_clock(), began, strict=True))
    print(f"{words}: {wall_s:.1f} s, {cpu_s:.1f} s of processors", flush=True)


if __name__ == "__main__":
    main()
