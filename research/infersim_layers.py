"""Decode layers added up from `tests/data/infersim_rows.csv`, by fits without their shapes."""

from __future__ import annotations

import csv

import numpy as np

from planner.equations.kernels import FAMILIES
from planner.specs.files.reading import load_device
from research import infersim_kernels as experiment


def _read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _constants(model):
    return {
        family: {
            row["constant"]: float(row["value"])
            for row in _read(experiment.CONSTANTS)
            if (row["model"], row["family"]) == (model.name, family)
        }
        for family in ("gemm", model.attention, experiment.EXPERTS)
    }


def _predicted_s(model, row):
    """One row of the selection."""
    device = load_device(model.device)
    if row["family"] == model.attention:
        heads = {"n_heads": 128.0} if model.n_kv_heads == 0 else {"n_heads": 32.0}
        shared = {"n_kv_heads": 4.0, "d_head": 128.0} if model.n_kv_heads else {}
        sizes = {name: float(row[name]) for name in ("batch", "context")}
        columns, peak = {**sizes, **heads, **shared, "cache_bytes": 2.0}, "bf16"
    else:
        formats = {"weight_bytes": 1.0, "input_bytes": 1.03125, "output_bytes": 2.0}
        sizes = {name: float(row[name]) for name in ("n", "k")}
        if row["family"] == "gemm":
            rows = {"m": float(row["m"])}
        else:
            groups = model.n_experts / float(row["devices"])
            rows = {"tokens": float(row["tokens"]), "n_groups_hit": groups}
        columns, peak = {**rows, **sizes, **formats}, "fp8"
    rates = {
        "peak_flop_per_s": device.peak_flop_per_s[peak],
        "hbm_bytes_per_s": device.hbm_bytes_per_s,
    }
    family = FAMILIES[row["family"]]
    return float(family.seconds(columns, rates, _constants(model)[row["family"]]))


def chosen_layers(model):
    """(predicted, measured) of the layers that the selection makes up [s]."""
    rows = [row for row in _read(experiment.ROWS) if row["model"] == model.name]
    times = [(_predicted_s(model, row), float(row["latency_us"]) * 1e-6) for row in rows]
    for batch, devices, context in model.chosen:
        wanted = {
            "gemm": lambda row, b=batch: float(row["m"]) == b,
            model.attention: lambda row, b=batch, c=context: (
                (float(row["batch"]), float(row["context"])) == (b, c)
            ),
            experiment.EXPERTS: lambda row, b=batch, d=devices: (
                (float(row["batch"]), float(row["devices"])) == (b, d)
            ),
        }
        parts = [time for row, time in zip(rows, times, strict=True) if wanted[row["family"]](row)]
        assert len(parts) == len(model.products) + 3
        yield np.sum(parts, axis=0)
