"""A server as a station, and requests sent to one rank of it as a harness sent them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.specs.files.reading import load_architecture
from planner.specs.records.architecture import Architecture
from planner.specs.records.roles import TOGETHER, Station
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.simulation.log import Gaps, Log
from planner.verifier.simulation.rank import Rank
from tests.estimates.serving.situations import BF16, clock

DATA = Path(__file__).parents[2] / "tests" / "data" / "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What ran.

    Args:
        role: of `planner.specs.records.roles`.
        model: of `models`, or one of the configurations beside the rows.
        topology: whose device, kernels and links it had.
        most_running, chunk_tokens: sequences in service at once; most tokens of a pass.
    """

    model: str
    topology: str
    engine: str
    n_tensor: int
    most_running: int
    chunk_tokens: int
    formats: ServedFormats = BF16
    role: str = TOGETHER
    n_stages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """In order of arrival; `n_cached` is of each prompt what need not be read, or empty."""

    arrival_s: list[float]
    n_input: list[int]
    n_output: list[int]
    n_cached: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of requests, (N,) each; TPOT is of those that wrote two tokens and more.

    Args:
        gaps: between the tokens of all.
        seconds: until the last was served.
    """

    ttft_s: npt.NDArray[np.float64]
    tpot_s: npt.NDArray[np.float64]
    e2e_s: npt.NDArray[np.float64]
    gaps: Gaps
    seconds: float


@cache
def architecture(name: str) -> Architecture:
    """A model by name, or by its configuration beside the rows."""
    config = DATA / "configs" / f"{name}.json"
    return load_architecture(str(config) if config.exists() else name)


@cache
def station(server: Server, n_input: int, n_longest: int) -> Station:
    """One rank of a server, for requests of this length."""
    timer = clock(server.topology, server.engine)
    return stations(
        Serving(
            model=architecture(server.model),
            formats=server.formats,
            engine=timer.engine,
            clock=timer,
        ),
        deployments(
            formats=server.formats,
            n_tensor=server.n_tensor,
            n_stages=server.n_stages,
            batch=server.most_running,
            chunk_tokens=server.chunk_tokens,
        ),
        RequestShape(n_input_tokens=float(n_input), n_longest_tokens=float(n_longest)),
        names=[server.model],
        hbm_bytes=timer.device.hbm_bytes,
        role=server.role,
    )[0]


def poisson(n: int, rate_per_s: float, seed: int = 1) -> list[float]:
    """So many arrivals at random within the time that they take at this rate, sorted [s]."""
    if math.isinf(rate_per_s):
        return [0.0] * n
    draw = random.Random(seed)
    return sorted(draw.random() * n / rate_per_s for _ in range(n))


def replay(one: Station, requests: Requests) -> Replayed:
    """Serve requests on one rank."""
    n = len(requests.arrival_s)
    log = Log(
        n_input=requests.n_input,
        n_output=requests.n_output,
        ready_s=[
            at + one.request_s + one.request_token_s * tokens
            for at, tokens in zip(requests.arrival_s, requests.n_input, strict=True)
        ],
        first_s=[math.nan] * n,
        last_s=[math.nan] * n,
        gaps=Gaps(),
        n_cached=requests.n_cached,
    )
    rank = Rank(one, log)
    for number in range(n):
        rank.arrive(number)
    rank.advance(math.inf)
    first, last = np.array(log.first_s), np.array(log.last_s)
    written = np.array(requests.n_output)
    several = written > 1
    return Replayed(
        seconds=float(last.max()),
        ttft_s=first - requests.arrival_s,
        tpot_s=(last - first)[several] / (written[several] - 1),
        e2e_s=last - requests.arrival_s,
        gaps=log.gaps,
    )
