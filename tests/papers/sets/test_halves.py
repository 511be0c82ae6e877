"""Rows that constants see and rows that figures are of never meet."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

from tests.papers.sets.halves import (
    CALIBRATING,
    JUDGING,
    calibration_rows,
    calibration_throughputs,
    exclusion,
    half,
    half_of_run,
    judging_rows,
    judging_throughputs,
)
from tests.papers.sets.rows import saturated, served
from tests.papers.sets.scalars import SETS, scalars

ROOT = Path(__file__).parents[3]

FITTED_BEFORE = frozenset(
    {
        ("engines/sglang.toml", "prefill_host"),
        ("topologies/devices/b200.toml", "layer_overhead"),
        ("topologies/devices/h100-sxm.toml", "layer_overhead"),
        ("topologies/devices/h200.toml", "layer_overhead"),
    }
)
"""Constants fitted to rows of the sample before it was split: none may be added."""


def test_the_hash_decides():
    """Runs as they were hashed before any row was looked at."""
    for run in ("deepseek-v3|h200|sglang|2026-03-25", "qwen3-32b|h100-sxm|vllm|0.12.0"):
        even = int(hashlib.sha256(run.encode()).hexdigest()[-2:], 16) % 2 == 0
        assert half_of_run(run) == (CALIBRATING if even else JUDGING)
    runs = {row.series.run for row in served() if half(row) == half_of_run(row.series.run)}
    assert {half_of_run(run) for run in runs} == {CALIBRATING, JUDGING}
    for row in served():
        model, gpu, engine, when = row.series.run.split("|")
        assert (model, gpu, engine) == (row.series.model.lower(), row.series.gpu, row.series.engine)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", when) or when == row.series.version


def test_no_row_is_in_both_halves():
    for fitted, judged, every in (
        (calibration_rows(), judging_rows(), served()),
        (calibration_throughputs(), judging_throughputs(), saturated()),
    ):
        assert not {row.name for row in fitted} & {row.name for row in judged}
        assert fitted
        assert len(judged) > len(every) / 4
    assert not {row.series.run for row in calibration_rows()} & {
        row.series.run for row in judging_rows() if half_of_run(row.series.run) == JUDGING
    }


def test_devices_that_nothing_is_fitted_to_are_judged_wholly():
    for rows in (calibration_rows(), calibration_throughputs()):
        assert not {row.series.gpu for row in rows} & {"b300", "gb200"}
    assert {row.series.gpu for row in judging_rows()} >= {"b300", "gb200"}


def test_one_measurement_of_two_sets_is_judged_and_counts_once():
    """The same configuration in both, of times within three hundredths."""

    def ran(row):
        series = row.series
        bits = 4 if series.weights in ("nvfp4", "mxfp4") else 8
        degrees = (row.tensor, row.data, row.expert_tensor, row.expert)
        what = (series.model, series.gpu, series.engine, bits, row.n_input, row.n_output)
        return (*what, *degrees, row.in_flight)

    sample = {}
    for row in served():
        if row.series.set_name == "S" and row.drafts != "mtp":
            sample.setdefault(ran(row), []).append(row)
    n_pairs = 0
    for row in served():
        for other in sample.get(ran(row), ()) if row.series.set_name == "X" else ():
            if abs(other.tpot_ms / row.tpot_ms - 1) <= 0.03:
                n_pairs += 1
                assert half(row) == half(other) == JUDGING
                assert exclusion(row)
    assert n_pairs > 500


def test_what_is_left_out_says_why():
    """Few reasons, and most rows count."""
    reasons = {exclusion(row) for row in served()}
    assert {"", "the same measurement again", "more devices than a server has"} <= reasons
    assert len(reasons) == 9
    kept = [row for row in served() if not exclusion(row)]
    assert len(kept) == len({row.name for row in kept}) > 3000


def test_no_constant_is_of_the_judging_half():
    """What is fitted to the sets says of which half, and of no run that is judged."""
    found = set()
    for one in scalars():
        if "calibrating half" not in one.source:
            found.add((one.file, one.name))
        for run in re.findall(r"[\w.-]+\|[\w-]+\|\w+\|[\w.-]+", one.source):
            assert half_of_run(run) == CALIBRATING, (one, run)
    assert found == FITTED_BEFORE


def test_no_packaged_table_is_of_the_judging_half():
    for path in sorted((ROOT / "planner").rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for entry in csv.DictReader(file):
                source = entry.get("source") or ""
                if SETS.search(source) and source.startswith("fitted"):
                    assert "calibrating half" in source, (path, entry)
