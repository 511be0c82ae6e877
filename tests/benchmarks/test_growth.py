"""4096 devices take no more memory than a laptop has to spare."""

from __future__ import annotations

import pytest

from tests.benchmarks.growth import MOST_MB, words
from tests.benchmarks.measuring import measured


@pytest.mark.parametrize(
    ("command", "model", "pool"),
    [
        ("plan", "llama-3.1-70b", "h100-nvl8-x512"),
        ("place", "palm-540b", "tpu-v4-16x16x16"),
    ],
)
def test_the_peak_at_4096_devices_is_at_most_500_megabytes(command, model, pool):
    """Of a process of its own, default options, both proofs included."""
    found = measured(words(command, model, pool))
    print(f"\n{command} {model} {pool}: {found.peak_mb:.0f} MB, {found.cpu_s:.1f} s of CPU")
    assert found.code == 0, found.stderr
    assert found.peak_mb <= MOST_MB
