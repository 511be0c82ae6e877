"""What touches the figures of a row was made without its run."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from planner.specs.files.engines import load_engine
from research.sets import biases, folds, slowness
from research.sets.constants import (
    FOLDS,
    SLOWNESS,
    TIMES,
    constants,
    out_of_fold,
    predictions,
)
from research.sets.fitting import FITTED_ON, HOST, OVERHEADS
from research.sets.folds import ALL, N_FOLDS, exclusion, fold_of, may_be_fitted, stratum
from research.sets.predicted import cluster
from research.sets.rows import saturated, served
from research.sets.scalars import SETS, scalars

ROOT = Path(__file__).parents[2]


def test_folds_are_dealt_by_run_and_evenly_in_every_stratum():
    """The salt, and so the deal, is of before any figure was known."""
    dealt = folds.folds_of_runs()
    assert folds.SALT == "planner, folds of runs, first deal"
    assert (
        dealt["deepseek-v3|h200|sglang|2026-03-25"] == dealt["deepseek-v3|h200|sglang|2025-12-10"]
    )
    joined = folds._joined_runs()
    counts = {}
    for row in folds.rows():
        if may_be_fitted(row):
            assert fold_of(row) == dealt[joined[row.series.run]]
            here = counts.setdefault(stratum(row.series), {})
            here[joined[row.series.run]] = fold_of(row)
    for each in counts.values():
        by_fold = Counter(each.values())
        assert max(by_fold.values()) - min(by_fold.get(k, 0) for k in range(N_FOLDS)) <= 1
    for row in served():
        model, gpu, engine, when = row.series.run.split("|")
        assert (model, gpu, engine) == (row.series.model.lower(), row.series.gpu, row.series.engine)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", when) or when == row.series.version


def test_no_measurement_is_fitted_and_judged():
    """Neither a run, nor a measurement that two sets have, is on both sides of a fold."""
    for fold in range(N_FOLDS):
        fitted = folds.fitted_rows(fold)
        judged = [row for row in folds.rows() if fold_of(row) == fold]
        assert judged
        assert not {row.series.run for row in fitted} & {row.series.run for row in judged}
        names = {row.name for row in fitted}
        for one, other in folds._pairs():
            assert not (one in names and other in {row.name for row in judged})


def test_devices_that_nothing_is_fitted_to_are_in_no_fit():
    every = folds.fitted_rows(ALL)
    assert not {row.series.gpu for row in every} & {"b300", "gb200"}
    unseen = {row.series.gpu for row in folds.rows() if fold_of(row) == ALL}
    assert unseen == {"b300", "gb200"}
    assert not any(may_be_fitted(row) for row in saturated())


@pytest.mark.research
def test_every_row_is_judged_by_constants_without_its_fold(monkeypatch):
    """Another constant of one fold moves the rows of that fold, and no others."""
    before = {one.row.name: one.tpot_ms for one in out_of_fold()}
    assert len(before) > 0.99 * len(folds.rows())
    slower = {name: 2.0 * value for name, value in constants(2).values.items()}
    moved = replace(constants(2), values=slower)
    rows = [one.row for one in out_of_fold() if fold_of(one.row) == 2][::25]
    own = constants(2)
    for chosen, is_same in ((own, True), (moved, False)):
        from research.sets.predicted import compared

        found = compared(rows, clocks=chosen.clock, sending=chosen.traffic)
        same = [one.tpot_ms == pytest.approx(before[one.row.name]) for one in found]
        assert all(same) if is_same else not all(same)


def test_overheads_of_layers_are_of_other_folds():
    dealt = folds.folds_of_runs()
    for gpu in FITTED_ON:
        packaged = cluster(gpu).device.layer_overhead_s
        own = dealt[OVERHEADS.format(gpu)]
        for fold in FOLDS:
            value = constants(fold).overheads[gpu]
            assert (value == packaged) is (fold != own)


def test_a_pass_with_prompts_takes_no_more_than_kernels_where_its_run_is_left_out():
    own = folds.folds_of_runs()[HOST]
    for fold in FOLDS:
        assert (constants(fold).values["prefill_host"] == 0.0) is (fold == own)


def test_biases_of_a_fold_see_no_row_of_it(monkeypatch):
    """Rows of a fold that were measured at twice the time change no bias that is taken off them."""
    for fold in (1, 3):
        before = biases.known(fold)
        altered = tuple(
            replace(one, row=replace(one.row, tpot_ms=2 * one.row.tpot_ms, ttft_ms=9.0))
            if fold_of(one.row) == fold
            else one
            for one in predictions(fold)
        )
        monkeypatch.setattr(biases, "predictions", lambda _, found=altered: found)
        assert biases.known.__wrapped__(fold) == before
        monkeypatch.undo()


def test_packaged_constants_are_those_of_all_rows():
    """Rounded; `python -m research.sets.fitting` prints them."""
    values = constants(ALL).values
    for name, engines in TIMES.items():
        for engine in engines:
            packaged = getattr(load_engine(engine), f"{name.split()[0]}_s")
            assert packaged == pytest.approx(values[name], rel=0.02, abs=5e-8), (engine, name)
    assert load_engine("trtllm").inner_norms_s == 0.0
    (factor,) = {
        float(re.findall(r"take ([\d.]+) times", one.source)[0])
        for one in scalars()
        if one.name == "fit"
    }
    assert factor == pytest.approx(values[SLOWNESS], abs=0.006)
    assert slowness.DEVICES == ("mi300x", "mi325x")


def test_what_is_fitted_to_the_sets_is_one_of_the_constants_of_folds():
    """None is fitted to rows that judge it in any other way."""
    names = {name.split()[0] for name in TIMES} | {"fit", "layer_overhead"}
    found = scalars()
    assert {one.name for one in found} == names
    for one in found:
        said = {"layer_overhead": "Llama-3.1-70B in fp8", "prefill_host": "Qwen3-32B on H100"}
        said["fit"] = "all runs"
        assert said.get(one.name, "all folds") in one.source, one
    for path in sorted((ROOT / "planner").rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for entry in csv.DictReader(file):
                text = entry.get("source") or ""
                if SETS.search(text) and text.startswith("fitted"):
                    assert "all folds" in text, (path, entry)


def test_one_measurement_of_two_sets_counts_once():
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
                assert exclusion(row)
                assert (
                    folds._joined_runs()[row.series.run] == folds._joined_runs()[other.series.run]
                )
    assert n_pairs > 500


def test_what_is_left_out_says_why():
    """Few reasons, and most rows count."""
    reasons = {exclusion(row) for row in served()}
    assert {"", "the same measurement again", "more devices than a server has"} <= reasons
    assert len(reasons) == 9
    kept = [row for row in served() if not exclusion(row)]
    assert len(kept) == len({row.name for row in kept}) > 3000
