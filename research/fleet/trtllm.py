"""TensorRT-LLM 0.14 behind Triton, on H100 and H200, at rates that servers carry and at others.

500 requests a row, so that rows above what is carried are transients, replayed as such. The source
gives no arrivals; its times grow with the rate as random arrivals make them, and far more than with
constant ones, so both are printed and the random ones judged.

Answers of 256 and of 16 tokens are that long. Those of 214 are 214 on average: the last of 500
requests ends long after an answer of 214 tokens would, so throughput of these rows is left out.
The engine of 2024 had neither overlapped passes nor today's kernels: deviations of ITL say by how
much it was slower, and nothing is fitted to them.

Source: NVIDIA TensorRT-LLM v0.17, performance overview, Online Serving
Measurements (Apache-2.0).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from planner.specs.records.roles import Station
from research.fleet.deviations import Deviation, deviation, table
from research.fleet.replaying import (
    DATA,
    Replayed,
    Requests,
    Server,
    poisson,
    replay,
    station,
)

N_REQUESTS = 500
MEAN_LENGTHS = (202, 214)
"""Of prompts and answers that are so long on average only."""

_MODELS = {"LLaMA 3.1 70B": "llama-3.1-70b", "LLaMA 3.1 8B": "llama-3.1-8b"}
_TOPOLOGIES = {"H100": "h100-nvl8-x1", "H200": "h200-nvl8-x1"}

Arrivals = Callable[[int, float], list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; a rate of infinity sends all requests at once."""

    model: str
    gpu: str
    n_tensor: int
    n_input: int
    n_output: int
    rate_per_s: float
    ttft_ms: float
    itl_ms: float
    served_per_s: float

    @property
    def name(self) -> str:
        lengths = f"{self.n_input}/{self.n_output}"
        return f"{self.model} {self.gpu} TP{self.n_tensor} {lengths} {self.rate_per_s:g}/s"

    @property
    def is_carried(self) -> bool:
        """Whether as many were served as came, but for those that the end of the run cuts."""
        return self.served_per_s > 0.85 * self.rate_per_s

    @property
    def has_lengths(self) -> bool:
        return (self.n_input, self.n_output) != MEAN_LENGTHS


@cache
def rows() -> tuple[Row, ...]:
    """All 72."""
    with (DATA / "trtllm_online.csv").open(newline="") as file:
        return tuple(
            Row(
                model=_MODELS[row["model"]],
                gpu=row["gpu"][:4],
                n_tensor=int(row["tp"]),
                n_input=int(row["input"]),
                n_output=int(row["output"]),
                rate_per_s=float(row["qps"].lower()),
                ttft_ms=float(row["mean_ttft_ms"]),
                itl_ms=float(row["mean_itl_ms"]),
                served_per_s=float(row["output_tok_s"]) / int(row["output"]),
            )
            for row in csv.DictReader(file)
        )


def as_run(row: Row) -> Station:
    server = Server(
        model=row.model,
        topology=_TOPOLOGIES[row.gpu],
        engine="trtllm",
        n_tensor=row.n_tensor,
        most_running=512,
        chunk_tokens=8192,
    )
    return station(server, row.n_input, row.n_input + row.n_output)


def constant(n: int, rate_per_s: float) -> list[float]:
    return [number / rate_per_s for number in range(n)]


def replayed(row: Row, one: Station, arrivals: Arrivals = poisson) -> Replayed:
    return replay(
        one,
        Requests(
            arrival_s=arrivals(N_REQUESTS, row.rate_per_s),
            n_input=[row.n_input] * N_REQUESTS,
            n_output=[row.n_output] * N_REQUESTS,
        ),
    )


Pair = tuple[Row, Replayed]


def errors(pairs: Sequence[Pair]) -> dict[str, Deviation]:
    """By quantity."""
    timed = [(row, found) for row, found in pairs if row.has_lengths]
    return {
        "TTFT mean": deviation(
            [1e3 * float(found.ttft_s.mean()) for _, found in pairs],
            [row.ttft_ms for row, _ in pairs],
        ),
        "ITL mean": deviation(
            [1e3 * found.gaps.mean_s for _, found in pairs], [row.itl_ms for row, _ in pairs]
        ),
        "throughput": deviation(
            [N_REQUESTS / found.seconds for _, found in timed],
            [row.served_per_s for row, _ in timed],
        ),
    }


def report() -> Iterator[str]:
    """Every row, and errors by load, model and device."""
    pairs = [(row, replayed(row, as_run(row))) for row in rows()]
    yield "TensorRT-LLM 0.14 behind Triton: measured → simulated, ms and requests a second"
    for row, found in pairs:
        ttft, itl = 1e3 * found.ttft_s.mean(), 1e3 * found.gaps.mean_s
        served = f"{row.served_per_s:.3g}→{N_REQUESTS / found.seconds:.3g}/s"
        yield (
            f"  {row.name:44} TTFT {row.ttft_ms:g}→{ttft:.4g}  ITL {row.itl_ms:g}→{itl:.3g}"
            f"  {served if row.has_lengths else ''}".rstrip()
        )
    carried = [pair for pair in pairs if pair[0].is_carried]
    beyond = [pair for pair in pairs if not pair[0].is_carried]
    groups = {f"carried: {len(carried)}": carried, f"more than is served: {len(beyond)}": beyond}
    for gpu in _TOPOLOGIES:
        for model in _MODELS.values():
            chosen = [p for p in carried if (p[0].gpu, p[0].model) == (gpu, model)]
            groups[f"carried, {model} on {gpu}: {len(chosen)}"] = chosen
    for name, chosen in groups.items():
        yield name
        yield from table(errors(chosen))
    evenly = [(row, replayed(row, as_run(row), constant)) for row, _ in carried]
    yield "carried, arrivals constant"
    yield from table({"TTFT mean": errors(evenly)["TTFT mean"]})
    yield f"left out: throughput of {MEAN_LENGTHS[0]}/{MEAN_LENGTHS[1]}, whose lengths are means"
