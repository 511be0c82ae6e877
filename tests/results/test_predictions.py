"""What a prediction computes from its passes, by hand."""

from __future__ import annotations

import pytest

from tests.report.predictions import predicted


def test_rates_of_phases_are_tokens_of_all_ranks_over_the_time_of_a_pass():
    """Two ranks of four devices and 16 sequences each: 32 sequences on 8 devices."""
    answer = predicted("deepseek-v3", "h200-nvl8-x1", "sglang", n_tensor=4, n_data=2, batch=16)
    decode, prefill = answer.passes
    assert answer.n_devices == 8
    assert answer.decode_device_tokens_per_s == pytest.approx(
        2 * decode.n_tokens / 8 / decode.total_s.value
    )
    assert answer.prefill_device_tokens_per_s == pytest.approx(
        2 * prefill.n_tokens / 8 / prefill.total_s.value
    )


def test_bytes_of_a_pass_are_of_all_runs_of_its_operations():
    """Operations inside layers run once for each of two micro-batches, the head once."""
    answer = predicted(
        "deepseek-v3", "h200-nvl8-x1", "sglang", n_data=8, n_expert_parallel=8, batch=16,
        overlaps=True,
    )  # fmt: skip
    decode = answer.passes[0]
    assert decode.n_microbatches == 2
    inside = [one for one in decode.operations if one.layer != "model"]
    beside = [one for one in decode.operations if one.layer == "model"]
    moved = sum(2 * one.n_times * one.hbm_bytes for one in inside)
    assert decode.hbm_bytes == pytest.approx(
        moved + sum(one.n_times * one.hbm_bytes for one in beside)
    )
    assert decode.sent_bytes == pytest.approx(
        sum(2 * one.n_times * one.sent_bytes for one in inside)
        + sum(one.n_times * one.sent_bytes for one in beside)
    )
    assert decode.sent_bytes > 0
