"""What reports say of the times of runtimes is what the rows say."""

from __future__ import annotations

import pytest

from planner.specs.files.reading import load_device
from planner.specs.records.runtimes import RUNTIMES, MeasuredErrors, judged_on, judgements
from research.judged import FILE, judged_rows
from research.records import as_csv

TOLERANCE = 6e-4  # figures are kept to four digits after the point


def test_the_figures_are_those_of_the_rows():
    """To accept a change: `python -m research.judged --write`."""
    found, kept = judged_rows(), judgements()
    assert [name(one) for one in found] == [name(one) for one in kept]
    for one, other in zip(found, kept, strict=True):
        assert one.mean_error_fraction == pytest.approx(other.mean_error_fraction, abs=TOLERANCE)
        assert one.bias_fraction == pytest.approx(other.bias_fraction, abs=TOLERANCE)
    assert as_csv(MeasuredErrors, kept) == FILE.read_text(encoding="utf-8")


def name(one):
    said = (one.rows, one.source, one.n_most_devices, one.beyond)
    return (one.runtime, one.device, one.kind, one.quantity, one.n_rows, *said)


def test_every_figure_is_of_a_runtime_and_a_device_that_there_are():
    for one in judgements():
        assert one.runtime in RUNTIMES
        assert load_device(one.device).name == one.device
        assert one.n_rows > 0
        assert abs(one.bias_fraction) <= one.mean_error_fraction + TOLERANCE


def test_what_was_not_measured_is_not_judged():
    assert judged_on("vllm", "h200", "dense")
    assert judged_on("roofline", "h200", "dense")
    assert judged_on("vllm", "a100-80gb", "dense") == ()
    assert judged_on("roofline", "tpu-v4", "mixture") == ()
    assert judged_on("erdil2025", "h100-sxm", "dense") == ()
