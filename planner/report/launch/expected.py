"""What an answer expects of servers: figures of a load test, and room in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.results.engines import EngineDeployment
from planner.specs.ask.engine import PredictionRequest
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import E2E, TTFT

if TYPE_CHECKING:
    from planner.results.arrivals import Load, Percentile
    from planner.results.fleets import FleetPlan
    from planner.results.placements import Placement
    from planner.results.predictions import Interval, Prediction

USUAL = "two times out of three, as predicted"


class Band(NamedTuple):
    """A figure of `vllm bench serve`, and the range that it is in [s]."""

    name: str
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """What the answer predicts for the traffic of a load test.

    Args:
        lengths: tokens of each request, read and written.
        requests_per_s: that come at random times; 0 where `n_in_flight` always run.
        n_in_flight: requests at a time; 0 where they come at a rate.
        basis: what the ranges are, for people.
    """

    lengths: tuple[int, int]
    requests_per_s: float = 0.0
    n_in_flight: int = 0
    figures: tuple[Band, ...]
    basis: str


def _means(**times: Interval) -> Iterator[Band]:
    for name, interval in times.items():
        if interval.value > 0.0:
            yield Band(f"mean_{name}_ms", interval.low, interval.high)


def _is_random(said: Workload | PredictionRequest, *bests: Any) -> bool:  # noqa: ANN401
    """Whether random prompts do what is predicted: they share nothing, and no draft knows them."""
    alike = said.hit_fraction or said.n_shared_tokens or said.n_samples > 1
    return not (alike or any(getattr(best, "n_drafted", 0) for best in bests))


def bands_of_replicas(
    best: EngineDeployment | Prediction,
    said: Workload | PredictionRequest,
    n_in_flight: int,
    load: Load | None = None,
) -> Bands | None:
    """Of replicas that do both phases, with full batches or under a load; None of others.

    Args:
        said: what says the traffic.
        n_in_flight: requests of all full batches.
        load: what comes at a rate, as simulated.
    """
    lengths = (said.n_input_tokens, said.n_output_tokens)
    if best.role != TOGETHER or not _is_random(said, best, said):
        return None
    if load is not None:
        is_carried = load.is_carried and load.percentiles
        rate = load.requests_per_s
        return _simulated(load.percentiles, lengths, rate, [best]) if is_carried else None
    figures = tuple(_means(ttft=best.ttft_s, tpot=best.tpot_s))
    basis = f"{USUAL} for full batches"
    return Bands(lengths=lengths, n_in_flight=n_in_flight, figures=figures, basis=basis)


def bands_of_handover(
    answer: Placement, bests: Mapping[str, EngineDeployment], said: Workload
) -> Bands | None:
    """At the rate that is asked for, of replicas that read prompts and others that answer."""
    reads, writes = bests[PREFILL], bests[DECODE]
    (demand,) = (it.demand_tokens_per_s for it in answer.served if it.model == reads.model)
    if not demand or not _is_random(said, reads, writes):
        return None
    took = [it.seconds for it in answer.handovers]
    ttft = Band("mean_ttft_ms", reads.ttft_s.low + min(took), reads.ttft_s.high + max(took))
    return Bands(
        lengths=(said.n_input_tokens, said.n_output_tokens),
        requests_per_s=demand / said.n_output_tokens,
        figures=(ttft, *_means(tpot=writes.tpot_s)),
        basis=f"{USUAL}; of TPOT with full batches, and without queues before servers",
    )


def bands_of_fleet(answer: FleetPlan) -> Bands | None:
    """Percentiles of a fleet that serves one class of requests; None of others."""
    if len(answer.classes) != 1:
        return None
    (served,) = answer.classes
    lengths = (round(served.n_input_tokens), round(served.n_output_tokens))
    rate = served.rate_per_s * served.served_fraction
    bests = (it.deployment for it in answer.recipes)
    engines = [it for it in bests if isinstance(it, EngineDeployment)]
    return _simulated(served.percentiles, lengths, rate, engines)


def _simulated(
    percentiles: Iterable[Percentile],
    lengths: tuple[int, int],
    requests_per_s: float,
    bests: Sequence[EngineDeployment | Prediction],
) -> Bands:
    """Percentiles of passes as predicted, as far off as means are predicted of the deployments."""
    first = next(it.ttft_s for it in bests if it.ttft_s.value > 0.0)
    later = next(it.tpot_s for it in bests if it.tpot_s.value > 0.0)
    figures = (
        Band(
            f"p{it.share * 100:g}_{it.quantity.replace(E2E, 'e2el')}_ms",
            (it.simulated_s - it.half_width_s) * mean.low / mean.value,
            (it.simulated_s + it.half_width_s) * mean.high / mean.value,
        )
        for it in percentiles
        for mean in [first if it.quantity == TTFT else later]
        if it.half_width_s >= 0.0
    )
    basis = f"{USUAL}, percentiles as simulated; lengths here are the means of the answer's"
    return Bands(lengths=lengths, requests_per_s=requests_per_s, figures=(*figures,), basis=basis)


class CacheRoom(NamedTuple):
    """Blocks of the KV cache of an attention rank, and sequences that fit while they grow.

    `mean_blocks` are those that the batch of the plan holds on average.
    """

    block_tokens: int
    n_blocks: int
    mean_blocks: int
    largest_batch: int


def room_of(answer: Prediction) -> CacheRoom | None:
    """Blocks of a deployment, from its memory; None where a sequence holds no cache."""
    memory, block_tokens = answer.memory, int(answer.request.records.engine.n_block_tokens)
    longest = answer.n_running * ceil(answer.n_kept_tokens / block_tokens)
    if not memory.longest_cache_bytes or not longest:
        return None
    block_bytes = memory.longest_cache_bytes / longest
    weights = memory.weights_bytes + memory.drafter_bytes
    room = memory.limit_bytes - weights - memory.activation_bytes - memory.workspace_bytes
    mean = ceil(memory.cache_bytes / block_bytes)
    return CacheRoom(block_tokens, int(room / block_bytes), mean, memory.largest_batch)
