"""Tables of made-up kernels, whose constants are known."""

import csv

import numpy as np
import pytest

from planner.equations.kernels.gemm import gemm_s

RATES = {"peak_flop_per_s": 296e12, "hbm_bytes_per_s": 4e12}
TRUE = {"floor_s": 6e-6, "compute_fraction": 0.8, "memory_fraction": 0.7, "exponent": 3.0}
HEADER = ("family", "format", "m", "n", "k", "weight_bytes", "input_bytes", "latency_us")


def gemm_rows(shapes=((1024, 4096), (4096, 4096), (1024, 2048), (2048, 6144), (5120, 5120))):
    """(m, n, k, seconds) of products that `TRUE` describes exactly, in fp8."""
    for k, n in shapes:
        for m in (1, 16, 64, 256, 1024, 4096):
            time = gemm_s(m, n, k, weight_bytes=1, input_bytes=1, **RATES, **TRUE)
            yield m, n, k, float(time)


@pytest.fixture(name="plain")
def _plain(tmp_path):
    """Writes rows as a user's own table; each may have its time changed."""

    def write(name="kernels.csv", *, scale=lambda place: 1.0):
        path = tmp_path / name
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(HEADER)
            for place, (m, n, k, seconds) in enumerate(gemm_rows()):
                time_us = seconds * 1e6 * scale(place)
                writer.writerow(("gemm", "fp8", m, n, k, 1, 1, f"{time_us:.6g}"))
        return path

    return write


def close(values, wanted, rel=0.02):
    return np.asarray(values) == pytest.approx(np.asarray(wanted), rel=rel)
