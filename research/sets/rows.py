"""Rows of three public sets of serving measurements, as `tests/data/serving` has them.

S: `silicon_sample.csv` of aiconfigurator-core 0.12.0, aggregated serving. X: InferenceX's sweeps of
DeepSeek-R1 on one server. T: TensorRT-LLM's performance page of v1.0, saturated throughput. Where
each comes from is in `tests/data/README.md`; `gathering.py` writes the files.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.specs.files.reading import load_client
from planner.specs.records.roles import Client

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "serving"

DENSE = frozenset({"Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Qwen3-32B"})
"""Architectures without experts; every other model of the sets is a mixture."""


CLIENTS = {"InferenceX": "inferencex"}
"""Clients of `clients/` that harnesses are: others are `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A committed file and its columns."""

    name: str
    columns: tuple[str, ...]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.csv"

    def read(self) -> list[dict[str, str]]:
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def write(self, rows: Iterable[dict[str, Any]]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([row.get(name, "") for name in self.columns] for row in rows)


_SERIES = "series set model checkpoint gpu engine version date weights experts statistic harness"
_SERVED = "row series n_input n_output in_flight servers tensor data expert_tensor expert"
_TIMES = "ttft_ms tpot_ms mean_ttft_ms mean_tpot_ms drafts"
_SATURATED = "row series n_input n_output n_requests tensor output_tokens_per_s"

SERIES = Table(name="series", columns=(*_SERIES.split(), "image", "source"))
SERVED = Table(name="served", columns=(*_SERVED.split(), *_TIMES.split()))
SATURATED = Table(name="saturated", columns=tuple(_SATURATED.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What rows have in common: what ran, where, when, and who says so.

    Args:
        set_name: S, X or T.
        model: architecture, as files of `tests/specs/huggingface/configs` are named.
        checkpoint: as the source names the model.
        gpu: this project's name of the device.
        engine: vllm, sglang, trtllm, or another that no file of this project describes.
        version: of the engine, empty where the source does not say.
        date: day of the measurement, empty where the source does not say.
        weights: number format of matrix products, as the source has it; empty for 16 bits.
        experts: of experts, likewise.
        statistic: what times are of the requests: mean or median.
        harness: who sends the requests: InferenceX, Dynamo, trtllm-bench; empty where unknown.
        image: of the container, where the source says.
        source: file that the source names.
    """

    set_name: str
    model: str
    checkpoint: str
    gpu: str
    engine: str
    version: str
    date: str
    weights: str
    experts: str
    statistic: str
    harness: str
    image: str
    source: str

    @property
    def is_dense(self) -> bool:
        return self.model in DENSE

    @property
    def client(self) -> Client | None:
        """Who sends requests, where the source says so and the client is described."""
        name = CLIENTS.get(self.harness)
        return _client(name) if name else None

    @property
    def mean_length(self) -> float:
        """Of requests that are sent, over those that are named."""
        return self.client.mean_length if self.client else 1.0

    @property
    def run(self) -> str:
        """Model, GPU, engine and day; where no day is known, the engine's version."""
        return f"{self.model.lower()}|{self.gpu}|{self.engine}|{self.date or self.version}"


_client = cache(load_client)  # which reads a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One measurement of serving.

    Args:
        name: S or X and a number: of the row in the published file, or in order.
        in_flight: requests that the benchmark keeps in flight.
        n_servers: servers that those are for, where the source's batch of one says so.
        ttft_ms, tpot_ms: mean or median, as the series says.
        mean_ttft_ms, mean_tpot_ms: means beside medians, where the source has both, or None.
        drafts: `none`, `mtp`, or empty where nobody says.
    """

    name: str
    series: Series
    n_input: int
    n_output: int
    in_flight: int
    n_servers: int
    tensor: int
    data: int
    expert_tensor: int
    expert: int
    ttft_ms: float
    tpot_ms: float
    mean_ttft_ms: float | None
    mean_tpot_ms: float | None
    drafts: str

    @property
    def n_devices(self) -> int:
        return self.tensor * self.data

    @property
    def batch(self) -> float:
        """Requests on each attention rank."""
        return self.in_flight / self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturated:
    """Output tokens a second of a server that all requests are sent to at once."""

    name: str
    series: Series
    n_input: int
    n_output: int
    n_requests: int
    tensor: int
    output_tokens_per_s: float


@cache
def all_series() -> dict[str, Series]:
    return {
        entry.pop("series"): Series(set_name=entry.pop("set"), **entry) for entry in SERIES.read()
    }


@cache
def served() -> tuple[Served, ...]:
    """Every row of S and X, those that are not compared too."""
    return tuple(_served(entry) for entry in SERVED.read())


def _served(entry: dict[str, str]) -> Served:
    degrees = ("n_input", "n_output", "in_flight", "tensor", "data", "expert_tensor", "expert")
    return Served(
        name=entry["row"],
        series=all_series()[entry["series"]],
        n_servers=int(entry["servers"]),
        ttft_ms=float(entry["ttft_ms"]),
        tpot_ms=float(entry["tpot_ms"]),
        mean_ttft_ms=float(entry["mean_ttft_ms"]) if entry["mean_ttft_ms"] else None,
        mean_tpot_ms=float(entry["mean_tpot_ms"]) if entry["mean_tpot_ms"] else None,
        drafts=entry["drafts"],
        **{name: int(entry[name]) for name in degrees},
    )


@cache
def saturated() -> tuple[Saturated, ...]:
    """Every row of T."""
    return tuple(
        Saturated(
            name=entry["row"],
            series=all_series()[entry["series"]],
            output_tokens_per_s=float(entry["output_tokens_per_s"]),
            **{name: int(entry[name]) for name in ("n_input", "n_output", "n_requests", "tensor")},
        )
        for entry in SATURATED.read()
    )
