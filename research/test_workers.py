"""Workers of one phase against measured ones: how far off a decode pass and a read prompt are.

Rows: Qwen3-8B in bf16 under vLLM with NIXL on A100 80 GB (PCIe, which has 5 % less bandwidth of
memory than the SXM that is predicted), requests at random times; p50 and means as measured from
outside. Times to first token are left out: 8192 tokens read in less time than the peak allows say
that prefixes were cached. How many decode at once follows from Little's law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.roles import DECODE, PREFILL
from tests.estimates.serving.situations import BF16, served

CHAT, LONG = (1024, 512), (8192, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prefill worker and some that decode, of as many devices each.

    Args:
        tokens: of a prompt and of an answer.
        tokens_per_s: output of all, mean.
        itl_s: mean.
    """

    n_tensor: int
    n_decode: int
    tokens: tuple[int, int]
    tokens_per_s: float
    itl_s: float


def _row(n_tensor, n_decode, tokens, tokens_per_s, itl_ms):
    return Row(
        n_tensor=n_tensor,
        n_decode=n_decode,
        tokens=tokens,
        tokens_per_s=tokens_per_s,
        itl_s=itl_ms / 1e3,
    )


ROWS = (
    *(
        _row(1, 1, CHAT, *measured)
        for measured in (
            (839.1, 13.62),
            (1362.8, 15.74),
            (1893.8, 18.21),
            (2140.1, 19.32),
            (2291.7, 19.93),
        )
    ),
    *(_row(1, 1, LONG, *measured) for measured in ((126.9, 13.92), (172.7, 14.52))),
    *(_row(1, 2, CHAT, *m) for m in ((851.3, 12.49), (2112.7, 14.60), (2671.4, 15.94))),
    *(_row(1, 3, CHAT, *m) for m in ((852.1, 12.17), (2184.3, 13.58), (2880.7, 14.21))),
    *(_row(2, 1, CHAT, *m) for m in ((901.1, 8.32), (2481.8, 10.19), (3291.4, 11.56))),
    *(_row(2, 1, LONG, *m) for m in ((137.9, 8.47), (371.0, 9.74), (497.9, 10.49))),
)

MOST_READ = 174.3 / 128
"""Prompts of 8192 tokens a second that one prefill worker and two that decode came to, however
many were sent."""


def _error(row):
    """Relative, of the predicted time of a token."""
    n_input, n_output = row.tokens
    in_flight = row.tokens_per_s * row.itl_s / row.n_decode
    found = served(
        "qwen3-8b",
        deployments(formats=BF16, n_tensor=row.n_tensor, batch=max(1.0, in_flight)),
        Traffic(n_input_tokens=n_input, n_output_tokens=n_output, role=DECODE),
        topology="a100-nvl8-x1",
    )
    return float(found.tpot_s[0]) / row.itl_s - 1.0


def test_a_decode_worker_writes_as_fast_as_measured():
    """Mean of 3.3 %, the worst 9.7 %, and 3.2 % too slow on the whole.

    None of these rows is fitted to: 5.4 µs between kernels, which other servers' rows ask for,
    are more than these take.
    """
    errors = np.array([_error(row) for row in ROWS])
    assert np.abs(errors).mean() < 0.035
    assert np.abs(errors).max() < 0.1
    assert abs(errors.mean()) < 0.035


def test_a_prefill_worker_reads_more_than_one_that_hands_caches_over():
    """1.71 prompts a second against 1.36: a fifth of its time went to 1.2 GB of cache each.

    What a hand-over takes of the worker that reads is no part of the prediction.
    """
    table = deployments(formats=BF16, chunk_tokens=8192)
    asked = Traffic(n_input_tokens=8192, n_output_tokens=128, role=PREFILL)
    times = served("qwen3-8b", table, asked, topology="a100-nvl8-x1")
    rate = float(times.n_running[0] / times.prompt_s[0])
    assert rate == pytest.approx(1.26 * MOST_READ, rel=0.03)
