"""The table of measurements itself: complete, claimed, and as anomalous as its notes say."""

from __future__ import annotations

from collections import Counter

import pytest

from planner.specs.files.reading import load_device, load_model
from research import rows, test_memory, test_timings
from research.rows import Row

CLAIMS = (test_memory.ROWS, test_timings.ROWS)

DEVICES = {"TPUv4": ("tpu-v4", "bf16"), "A100-80GB": ("a100-80gb", "fp16")}
WITH_MFU = tuple(row for row in rows.all_rows() if row.mfu is not None and row.judged_ms)


def test_every_row_is_a_case_of_some_test():
    claimed = {row for claim in CLAIMS for row in claim}
    unclaimed = [str(row) for row in rows.all_rows() if row not in claimed]
    assert not unclaimed
    assert len(claimed) == 205


def test_rows_have_distinct_names():
    names = Counter(str(row) for row in rows.all_rows())
    assert [name for name, n in names.items() if n > 1] == []


def test_rows_for_fitting_and_for_judging_have_nothing_in_common():
    groups = (
        rows.tpu_calibration(),
        rows.tpu_repeated(),
        rows.tpu_held_out(),
        rows.a100_calibration(),
        rows.a100_held_out(),
    )
    assert [len(group) for group in groups] == [5, 1, 112, 27, 51]
    assert len({row for group in groups for row in group}) == 5 + 1 + 112 + 27 + 51


@pytest.mark.parametrize("row", WITH_MFU, ids=str)
def test_the_printed_utilisation_counts_published_parameters(row: Row):
    """2 × parameters × tokens / (chips × peak × time), to the two printed digits of both.

    Both totals of Table D.4 go with the times printed as PaLM's: anomaly 1.
    """
    time_ms = row.time_ms
    if row.table == "D.4" and row.column == "MT-NLG-total":
        time_ms = row.judged_ms
    device, number = DEVICES[row.chip]
    n_tokens = (
        row.batch
        * {
            "prefill": row.n_input,
            "generate": row.n_output,
            "total": row.n_input + row.n_output,
        }[row.phase]
    )
    peak = load_device(device).peak_flop_per_s[number]
    flop = 2 * load_model(row.model).n_params_published * n_tokens
    assert flop / (row.n_chips * peak * time_ms / 1e3) == pytest.approx(row.mfu, abs=0.0075)


def test_in_table_d4_palms_phases_add_up_to_the_total_printed_for_the_other_model():
    """Anomaly 1, in nine of nine batches within a millisecond, and never to PaLM's own."""
    by_column = {
        column: {row.batch: row.time_ms for row in rows.of_table("D.4") if row.column == column}
        for column in ("PaLM-prefill", "PaLM-generate", "PaLM-total", "MT-NLG-total")
    }
    own, other = by_column["PaLM-total"], by_column["MT-NLG-total"]
    assert len(own) == 9
    for batch, prefill_ms in by_column["PaLM-prefill"].items():
        phases_ms = prefill_ms + by_column["PaLM-generate"][batch]
        assert abs(phases_ms - other[batch]) <= 1
        assert abs(phases_ms - own[batch]) > 1


def test_only_the_totals_of_table_d4_are_corrected():
    corrected = [row for row in rows.all_rows() if row.judged_ms != row.time_ms]
    assert {(row.table, row.column) for row in corrected} == {
        ("D.4", "PaLM-total"),
        ("D.4", "MT-NLG-total"),
    }
