"""Intervals are as wide as predictions out of fold say, and hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations.tails import DECIDED, sigmas
from planner.specs.files.reading import load_device
from planner.specs.records.model_errors import (
    ANY,
    ModelError,
    kernels_share,
    model_error,
    model_errors,
    roofline_error,
    why_unmeasured,
)
from planner.specs.records.runtimes import ROOFLINE
from research.records import as_csv
from research.sets import intervals, rooflines
from research.sets.constants import out_of_fold
from research.sets.intervals import SHARES, Missed, deviation
from research.sets.ranking import Timed, common, common_without, engines, is_decided, lost

RESEARCH = pytest.mark.research


@pytest.fixture(scope="module")
def found():
    return out_of_fold()


def test_the_table_is_that_of_predictions_out_of_fold(found):
    """To accept a change: `python -m research.sets.intervals --write`."""
    of_rooflines = rooflines.model_errors(rooflines.judged())
    text = as_csv(ModelError, [*intervals.table(found), *of_rooflines])
    assert text == intervals.FILE.read_text(encoding="utf-8")
    others = {one.source for one in model_errors() if "all folds" not in one.source}
    assert others == {rooflines.POPE}


def test_what_is_beyond_kernels_is_found_again():
    drawn = np.random.default_rng(3).standard_t(2, size=4000) / 1.321
    kernels = np.full(4000, 0.06)
    off = np.abs(drawn) * np.hypot(kernels, 0.15)
    some = Missed(off=off, kernels=kernels)
    assert deviation(some) == pytest.approx(0.15, rel=0.06)
    for share in SHARES:
        assert some.held(0.15, share) == pytest.approx(share, abs=0.02)
        assert some.held(0.3, share) > share > some.held(0.05, share)


def test_what_two_engines_err_alike_is_found_again():
    draw = np.random.default_rng(4)
    both, *own = draw.standard_t(2, size=(3, 3000)) / 1.321
    for share in (0.0, 0.6):
        # of errors of 10 %, of which so much is that of both
        first, second = (
            np.exp(0.1 * (np.sqrt(share) * both + np.sqrt(1.0 - share) * one)) for one in own
        )
        pairs = [
            tuple(
                Timed(row=None, measured_s=1.0, predicted_s=it, peer_s=None, error=0.1)
                for it in pair
            )
            for pair in zip(first, second, strict=True)
        ]
        assert common(pairs) == pytest.approx(share, abs=0.25)
        assert not is_decided(pairs[0], 0.999, 0.0)
    assert common([]) == 0.0


def test_engines_are_told_apart_as_often_as_is_asked_for(found):
    """Three pairs of five, and of these three of four rightly; by other models on devices."""
    pairs = engines(found)
    alike = common_without(pairs)
    decided = [p for p, it in zip(pairs, alike, strict=True) if is_decided(p, DECIDED, it)]
    assert len(pairs) == 388
    assert len(decided) >= 0.6 * len(pairs)
    assert np.mean([lost(*pair) == 0.0 for pair in decided]) >= 0.75


def test_a_runtime_that_was_measured_on_too_little_has_the_error_of_all():
    for kind in ("dense", "mixture"):
        for quantity in ("TPOT", "TTFT"):
            (whole,) = (
                one
                for one in model_errors()
                if (one.runtime, one.kind, one.quantity) == (ANY, kind, quantity)
            )
            assert model_error("an engine of mine", kind, quantity) == whole.deviation_fraction
    assert {one.runtime for one in model_errors()} == {ANY, ROOFLINE.name}


@pytest.mark.parametrize("quantity", ["TPOT", "TTFT"])
@pytest.mark.parametrize("axis", ["devices", pytest.param("versions", marks=RESEARCH), "sources"])
def test_intervals_hold_of_what_nobody_has_seen(found, axis, quantity):
    """Devices, versions and sources that the model's error is found without, each counted alike."""
    parts = intervals.left_out(found, quantity, intervals.AXES[axis]).values()
    assert 0.85 <= np.mean([part.shares[1] for part in parts]) <= 0.95
    score, plain = np.mean([(part.score, part.plain_score) for part in parts], axis=0)
    assert score <= plain if quantity == "TPOT" else score <= 1.05 * plain


def test_a_score_adds_what_misses_lie_beyond_their_interval():
    """Two of ten: 2 · 0.1 wide, and 20 times 0.1 and 0.3 beyond."""
    off = np.expm1([0.05, 0.2, 0.4])
    assert intervals.interval_score(off, np.full(3, 0.1)) == pytest.approx(
        (3 * 0.2 + 20 * (0.1 + 0.3)) / 3
    )


def test_effects_are_found_again(monkeypatch, found):
    """Of a source 20 %, of a load 5 %, of a repeat 2 %, whatever rows there are."""
    draw = np.random.default_rng(5)
    rows = [one for one in found if not one.row.series.is_dense]
    of_source = {name: draw.normal(scale=0.2) for name in map(intervals.source_of, rows)}
    loads = [tuple(of(one) for of in intervals.EFFECTS.values()) for one in rows]
    of_load = {key: draw.normal(scale=0.05) for key in dict.fromkeys(loads)}
    logs = {
        id(one): of_source[intervals.source_of(one)] + of_load[key] + draw.normal(scale=0.02)
        for one, key in zip(rows, loads, strict=True)
    }
    monkeypatch.setattr(intervals, "log_ratio", lambda one, quantity: logs[id(one)])
    spread = intervals.spreads(rows, "TPOT")
    assert spread["what is left"] == pytest.approx(0.02, rel=0.1)
    assert spread["load"] == pytest.approx(0.05, rel=0.2)
    assert spread["source"] == pytest.approx(np.std([*of_source.values()], ddof=1), rel=0.2)
    assert max(spread[name] for name in ("version", "device", "model", "degree")) < 0.03


def test_ties_are_told_by_kernels_alone():
    m = model_error("vllm", "mixture", "TPOT")
    assert kernels_share(float(np.hypot(0.07, m)), m) == pytest.approx(0.07)
    assert kernels_share(m / 2, m) == 0.0


def test_wider_intervals_hold_more(found):
    error = intervals.errors_of(model_errors())
    shares = intervals.held(found, "TPOT", error)
    assert shares == sorted(shares)
    assert sigmas(0.95) > sigmas(0.9)
    for said, holds in zip(SHARES, shares, strict=True):
        assert holds == pytest.approx(said, abs=0.1)


def test_a_roofline_has_intervals_where_somebody_measured_what_a_device_attains():
    """Those of GPUs hold of any such device, TPU v4 has its own."""
    wide = {
        (one.device, one.kind, one.quantity): one.deviation_fraction
        for one in model_errors()
        if one.runtime == ROOFLINE.name
    }
    for name, known in (("tpu-v4", "tpu-v4"), ("h100-sxm", ANY), ("l40s", ANY)):
        found = roofline_error(load_device(name), "dense", "TPOT")
        assert found == wide[known, "dense", "TPOT"]
    assert wide["tpu-v4", "dense", "TPOT"] < wide[ANY, "dense", "TPOT"]
    for name in ("tpu-v5e", "trainium2", "gaudi3", "mi300x"):
        assert roofline_error(load_device(name), "dense", "TPOT") is None
        assert name in why_unmeasured(load_device(name))


def test_intervals_of_a_roofline_hold_of_models_that_they_were_not_made_of():
    """PaLM 540B makes those of TPU v4; MT-NLG and PaLM 62B judge them."""
    off = rooflines.errors([r for r in rooflines.pope.tpu_held_out() if r.model != rooflines.PALM])
    held = rooflines.missed(off).held(
        roofline_error(load_device("tpu-v4"), "dense", "TPOT") or 0.0, 0.9
    )
    assert len(off) == 31
    assert held == pytest.approx(0.9, abs=0.05)
