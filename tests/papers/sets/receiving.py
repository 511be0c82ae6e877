"""What a request takes before its first pass, fitted to the half that constants may see.

    python -m tests.papers.sets.receiving

One constant for all engines, and one for each token of the prompt, which comes as text, is cut into
tokens and put into blocks: the least mean of |log(predicted / measured)| over rows of InferenceX
with few in flight, whose TTFT is hardly anything but this and the passes of the prompt. Rows of
AMD's devices are left out, whose kernels are assumed.
"""

from __future__ import annotations

import numpy as np

from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.predicted import clock, compared, traffic
from tests.papers.sets.report import AMD, FEW

REQUEST_MS = np.arange(10.0, 60.5, 0.5)
TOKEN_US = np.arange(0.0, 12.1, 0.1)


def fitted() -> tuple[float, float, int]:
    """Milliseconds of a request, microseconds of a token, and the rows that they are of."""
    few = [
        row
        for row in calibration_rows()
        if row.series.harness == "InferenceX" and row.in_flight <= FEW and row.series.gpu not in AMD
    ]
    found = compared(few)
    measured = np.array([one.row.ttft_ms for one in found])
    tokens = np.array([traffic(one.row).n_input_tokens for one in found]) / 1e3
    engines = [clock(one.row.series.gpu, one.row.series.engine).engine for one in found]
    there = [1e3 * one.request_s for one in engines]
    each = np.array([1e6 * one.request_token_s for one in engines])
    bare = np.array([one.ttft_ms for one in found]) - there - each * tokens
    request, token = np.meshgrid(REQUEST_MS, TOKEN_US, indexing="ij")
    predicted = bare + request[..., None] + token[..., None] * tokens
    off = np.abs(np.log(predicted / measured)).mean(axis=-1)
    best = np.unravel_index(np.argmin(off), off.shape)
    return float(request[best]), float(token[best]), len(found)


def main() -> None:
    request_ms, token_us, n_rows = fitted()
    print(f"request {request_ms:g} ms, of a token {token_us:.1f} us; {n_rows} rows")


if __name__ == "__main__":
    main()
