"""Random stations with every clause of a scheduler, and README's."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from planner.estimates.fluid_rates import Load
from planner.runtimes.simulation import simulate
from planner.specs.records.roles import TOGETHER, DecodeTimes, ReadingTimes, Station
from planner.specs.traffic.percentiles import GoodputTarget
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.fleets import simulate as judge
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, ListedRequests, Pool, Route
from tests.estimates.queues.situations import situation

ROUTERS = ("least", "round-robin", "random")
README = (
    *("fleet", "--engine", "vllm", "--model", "llama-3.1-70b", "--topology", "h100-nvl8-x2"),
    *("--rate", "8req/s", "--input", "1500", "--output", "300", "--ttft-p95", "1s"),
    *("--tpot-p95", "40ms", "--json"),
)


def with_clauses(one: Station, draw: np.random.Generator) -> Station:
    """A station whose caches are in blocks, which may be found again, and may compose ahead; where
    prompts are read alone, most go by the clauses of SGLang."""
    block = int(draw.choice([1, 16, 32]))
    room = one.room_bytes
    if draw.random() < 0.3 and room < math.inf:
        room *= 0.6
    return replace(
        one,
        room_bytes=max(room, 3.0 * block),
        sequence_bytes=float(draw.choice([0.0, 30.0])),
        block_tokens=block,
        own_blocks=int(draw.integers(0, 2)),
        watermark_fraction=float(draw.choice([0.0, 0.02])),
        caches_prefixes=bool(draw.random() < 0.5),
        composes_ahead=bool(
            one.role == TOGETHER and one.n_polled_rounds == 1 and draw.random() < 0.5
        ),
        retracts=bool(one.role == TOGETHER and not one.mixes_prefill and draw.random() < 0.8),
    )


def requests(draw: np.random.Generator, load: Load, rate_per_s: float, n: int) -> ListedRequests:
    at_s = np.cumsum(draw.exponential(1.0 / rate_per_s, n)).tolist()
    cell = draw.choice(len(load.weight), size=n, p=load.weight / np.sum(load.weight))
    lengths = zip(load.n_input[cell].tolist(), load.n_output[cell].tolist(), strict=True)
    return ListedRequests(
        listed=[
            Arriving(at_s=at, n_input=int(read), n_output=int(written))
            for at, (read, written) in zip(at_s, lengths, strict=True)
        ]
    )


def outcomes(seed: int) -> tuple[FleetOutcome, FleetOutcome]:
    """A station of the field, one to three replicas, a router: as served here, and as judged."""
    one, draw = situation(seed), np.random.default_rng(seed)
    n_replicas = int(draw.integers(1, 4))
    source = requests(draw, one.load, one.load.rate_per_s * n_replicas, 600)
    station = with_clauses(one.station, draw)
    pools = [Pool(name="a", station=station, n_replicas=n_replicas, router=ROUTERS[seed % 3])]
    goodput = GoodputTarget(share=0.9, ttft_s=1.0, tpot_s=0.05)
    loads = [ClassLoad(name="x", source=source, routes=(Route(pool="a"),), goodput=goodput)]
    asked: dict[str, Any] = {"n_requests": 600, "seed": seed, "n_batches": 5}
    return simulate(pools, loads, **asked), judge(pools, loads, **asked)


def same(ours: object, theirs: object, path: str = "") -> None:
    """Every figure of two outcomes, to the last bit."""
    if dataclasses.is_dataclass(ours):
        for field in dataclasses.fields(ours):
            same(getattr(ours, field.name), getattr(theirs, field.name), f"{path}.{field.name}")
    elif isinstance(ours, dict):
        assert isinstance(theirs, dict), path
        assert ours.keys() == theirs.keys(), path
        for key, value in ours.items():
            same(value, theirs[key], f"{path}[{key}]")
    elif isinstance(ours, tuple):
        assert isinstance(theirs, tuple), path
        assert len(ours) == len(theirs), path
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{path}[{i}]")
    elif callable(ours):  # what is told when it is asked for
        assert callable(theirs), path
        same(ours(), theirs(), path)
    elif isinstance(ours, float):
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs)), (path, ours, theirs)
    else:
        assert ours == theirs, path


def differs(seed: int) -> bool:
    try:
        same(*outcomes(seed))
    except AssertionError as error:
        print(f"station {seed}: {str(error).splitlines()[0]}")
        return True
    return False


def readme_station() -> Station:
    """One of the replicas that README's first fleet is planned with."""
    command = [sys.executable, "-m", "planner", *README]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    kept = json.loads(told.stdout)["answer"]["pools"][0]["station"]
    times = {"decode": DecodeTimes, "reading": ReadingTimes}
    return Station(
        **{name: _tuples(value) for name, value in kept.items() if name not in times},
        **{  # type: ignore[arg-type]
            name: kind(**{key: _tuples(value) for key, value in kept[name].items()})
            for name, kind in times.items()
        },
    )


def _tuples(value: Any) -> Any:  # of JSON
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
