"""Constants of engines fitted to servers from end to end: of all rows, and without each fold.

    python -m research.sets.fitting            prints them
    python -m research.sets.fitting --write    writes tests/data/serving/constants.csv

Each by the quantity that it is most of, on rows whose client is described: the
least sum of |log(predicted / measured)|

    layer_gap, inner_norms            TPOT
    decode_sequence                   TPOT
    prefill_experts, prefill_scans    TTFT under SGLang, AMD's devices included
    request, request_token            TTFT of rows with few in flight, which hardly wait
    slowness                          TPOT on MI300X and MI325X

on devices with measured kernels but where AMD's are named. Predictions are made linear in the
constants where these are, and linear programs find the next; several times, from round numbers.
docs/decisions/0030-folds.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from planner.specs.files.engines import load_engine
from research.sets import slowness
from research.sets.constants import (
    ALL,
    FOLDS,
    SLOWNESS,
    TIMES,
    Constants,
    name_of,
    write,
)
from research.sets.folds import fitted_rows, folds_of_runs
from research.sets.predicted import cluster, compared
from research.sets.rows import Served

Numbers = NDArray[np.float64]

QUANTITIES = ("tpot", "ttft")

FITTED_ON = frozenset({"h100-sxm", "h200", "b200"})
"""Devices with measured kernels, of which rows may be fitted."""

FEW = 4
"""Requests in flight at most for a TTFT to be that of a request that hardly waits for others."""

START_AND_STEP = {
    "layer_gap": (3e-6, 2e-6),
    "decode_sequence": (10e-6, 5e-6),
    "inner_norms": (30e-6, 10e-6),
    "prefill_experts": (0.5e-3, 0.5e-3),
    "prefill_scans": (2e-3, 1e-3),
    "request": (30e-3, 10e-3),
    "request_token": (4e-6, 2e-6),
    SLOWNESS: (1.8, 0.2),
}
"""Round numbers to begin with, and differences that derivatives are taken over."""

HOST = "qwen3-32b|h100-sxm|sglang|0.5.1.post1"
"""The run that `prefill_host` is of; nothing else tells it, so that without its fold it is 0."""

OVERHEADS = "llama-3.1-70b|{}|vllm|2025-10-29"
"""The run of a device that its layers' overhead under a roofline is of: tests/data/tpot.csv."""

N_STEPS = 3


def fitted(left_out: int = ALL) -> Constants:
    """Constants of all rows that may be fitted, without a fold."""
    told = [row for row in fitted_rows(left_out) if row.series.client]
    values = {name: start for name, (start, _) in START_AND_STEP.items()}
    host_s = 0.0 if folds_of_runs()[HOST] == left_out else load_engine("sglang").prefill_host_s
    found = Constants(values={**values, "prefill_host": host_s})
    for _ in range(N_STEPS):
        found = replace(found, values=_next(found, *_linear(told, found)))
    return replace(found, overheads=overheads(left_out))


def tells(row: Served, quantity: str, name: str) -> bool:
    """Whether a constant is fitted to a quantity of a row."""
    engine, gpu = row.series.engine, row.series.gpu
    is_measured = gpu in FITTED_ON
    if name == SLOWNESS:
        return quantity == "tpot" and gpu in slowness.DEVICES
    if name in ("prefill_experts", "prefill_scans"):
        return quantity == "ttft" and engine == "sglang"
    if name in ("request", "request_token"):
        return quantity == "ttft" and is_measured and row.in_flight <= FEW
    return quantity == "tpot" and is_measured and engine in TIMES[name]


def overheads(left_out: int) -> dict[str, float]:
    """Of a layer of a roofline, by device [s]; that of the others where its run is left out."""
    folds = folds_of_runs()
    told = {
        gpu: cluster(gpu).device.layer_overhead_s
        for gpu in sorted(FITTED_ON)
        if folds[OVERHEADS.format(gpu)] != left_out
    }
    return {gpu: told.get(gpu, float(np.mean([*told.values()]))) for gpu in sorted(FITTED_ON)}


def _linear(rows: Sequence[Served], there: Constants) -> tuple[Numbers, Numbers, list[str]]:
    """Logarithms where constants are (M,), and derivatives of those that each tells (M, K)."""
    names = [*START_AND_STEP]
    own = _logs(rows, there)
    parts = []
    for name in names:
        telling = [row for row in rows if any(tells(row, it, name) for it in QUANTITIES)]
        step = START_AND_STEP[name][1]
        values = {**there.values, name: there.values[name] + step}
        moved = _logs(telling, replace(there, values=values))
        told = {(row.name, it) for row in telling for it in QUANTITIES if tells(row, it, name)}
        parts.append({key: (moved[key] - own[key]) / step for key in told & moved.keys()})
    kept = [key for key in own if any(key in part for part in parts)]
    slopes = np.array([[part.get(key, 0.0) for part in parts] for key in kept])
    return np.array([own[key] for key in kept]), slopes, names


def _logs(rows: Sequence[Served], there: Constants) -> dict[tuple[str, str], float]:
    """log(predicted / measured) by row and quantity."""
    return {
        (one.row.name, it): float(np.log(getattr(one, f"{it}_ms") / getattr(one.row, f"{it}_ms")))
        for one in compared(rows, clocks=there.clock, sending=there.traffic)
        for it in QUANTITIES
    }


def _next(
    there: Constants, off: Numbers, slopes: Numbers, names: Sequence[str]
) -> dict[str, float]:
    """Constants with the least sum of errors, were logarithms linear: over how far each moves and
    what is left of each row, up and down."""
    at = np.array([there.values[name] for name in names])
    size = np.array([START_AND_STEP[name][1] for name in names])
    scaled = csr_array(slopes * size)
    n, k = slopes.shape
    rest = eye_array(n, format="csr")
    found = linprog(
        np.r_[np.zeros(k), np.ones(n)],
        A_ub=vstack([hstack([scaled, -rest]), hstack([-scaled, -rest])]),
        b_ub=np.r_[-off, off],
        bounds=[*((-one, None) for one in at / size), *[(0.0, None)] * n],
        method="highs",
    )
    moved = zip(names, (at + found.x[:k] * size).tolist(), strict=True)
    return {**there.values, **dict(moved)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.fitting")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = {}
    for fold in FOLDS:
        one = found[fold] = fitted(fold)
        print(f"without fold {name_of(fold)}", flush=True)
        for name, value in {**one.values, **one.overheads}.items():
            print(f"  {name:16s} {value:.4g}", flush=True)
    if asked.write:
        write(found)


if __name__ == "__main__":
    main()
