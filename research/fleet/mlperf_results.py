"""Results of MLPerf's Server scenario, those that are asked and why others are not."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache

from research.fleet.replaying import DATA

_DEVICES = re.compile(r"(?:(H100|H200|B200)[-_]SXM[-_]\d+GB(?:-CTS)?|(L40S))x(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One result.

    Args:
        n_devices: that served in all.
        n_output: tokens of an answer on average, to the nearest five.
        spread: p99 over p50 of TTFT and of TPOT.
    """

    submitter: str
    system: str
    model: str
    gpu: str
    n_devices: int
    rate_per_s: float
    n_output: int
    ttft_limit_s: float
    tpot_limit_s: float
    spread: dict[str, float]


@cache
def points() -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Results that are asked, each once, and what each other one was left out for."""
    found: dict[str, Point] = {}
    left = []
    with (DATA / "mlperf_server.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            why = _unasked(row)
            if why:
                left.append(why)
                continue
            point = _point(row)
            key = f"{point.submitter} {point.system} {point.model} {row['ttft_p99_ms']}"
            if key in found:
                left.append("the same run under another accuracy")
            found.setdefault(key, point)
    return tuple(found.values()), tuple(left)


def _unasked(row: dict[str, str]) -> str:
    if not row["ttft_p50_ms"]:
        return "no times of tokens"
    if row["division"] != "closed":
        return "another model or other rules (open division)"
    if "MaxQ" in row["system"]:
        return "less power than usual"
    if not _DEVICES.search(row["system"]) or not row["system"].endswith(("_TRT", "_Triton")):
        return "devices or engines whose kernels were not measured, or that are not named"
    return ""


def _point(row: dict[str, str]) -> Point:
    devices = _DEVICES.search(row["system"])
    assert devices is not None
    return Point(
        submitter=row["submitter"],
        system=row["system"],
        model=row["model"].split("-99")[0],
        gpu=(devices[1] or devices[2]).upper(),
        n_devices=int(devices[3]),
        rate_per_s=float(row["completed_qps"]),
        n_output=5 * round(float(row["tok_s"]) / float(row["completed_qps"]) / 5.0),
        ttft_limit_s=float(row["ttft_limit_ms"]) / 1e3,
        tpot_limit_s=float(row["tpot_limit_ms"]) / 1e3,
        spread={
            name: float(row[f"{name}_p99_ms"]) / float(row[f"{name}_p50_ms"])
            for name in ("ttft", "tpot")
        },
    )
