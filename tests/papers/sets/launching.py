"""What SGLang's passes that read prompts take beside kernels, fitted to the calibrating half.

    python -m tests.papers.sets.launching

They have no graph: kernels are launched one by one. A time of each layer with experts, and of each
whose mixer carries a state over the prompt or chooses by an indexer: the least mean of
|log(predicted / measured)| of TTFT over InferenceX's rows of SGLang, at all loads. Printed beside
it: the same of TPOT, which the fit does not see, and both leaving out each model in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.estimates.serving.kernels import KernelClock
from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.predicted import Compared, clock, compared
from tests.papers.sets.rows import Served

ENGINE = "sglang"
EXPERTS_MS = np.arange(0.0, 1.6, 0.2)
SCANS_MS = np.arange(0.0, 4.5, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Predictions with times of a layer.

    Args:
        experts_ms, scans_ms: of a layer.
        ttft, tpot: logarithms of predicted over measured, of every row.
    """

    experts_ms: float
    scans_ms: float
    ttft: np.ndarray
    tpot: np.ndarray


def fitted_rows() -> list[Served]:
    rows = calibration_rows()
    return [
        one for one in rows if (one.series.engine, one.series.harness) == (ENGINE, "InferenceX")
    ]


def tried(rows: Sequence[Served]) -> Iterator[Tried]:
    """Every pair of times."""
    for experts_ms in EXPERTS_MS:
        for scans_ms in SCANS_MS:
            found = predicted(rows, experts_ms=float(experts_ms), scans_ms=float(scans_ms))
            yield Tried(
                experts_ms=float(experts_ms),
                scans_ms=float(scans_ms),
                ttft=np.log([one.ttft_ms / one.row.ttft_ms for one in found]),
                tpot=np.log([one.tpot_ms / one.row.tpot_ms for one in found]),
            )


def predicted(rows: Sequence[Served], *, experts_ms: float, scans_ms: float) -> list[Compared]:
    """In the order of the rows."""

    def told(gpu: str, engine: str) -> KernelClock:
        timer = clock(gpu, engine)
        spec = replace(
            timer.engine, prefill_experts_s=experts_ms / 1e3, prefill_scans_s=scans_ms / 1e3
        )
        return replace(timer, engine=spec)

    by_name = {one.row.name: one for one in compared(rows, clocks=told)}
    return [by_name[row.name] for row in rows if row.name in by_name]


def best(found: Sequence[Tried], which: np.ndarray) -> Tried:
    """With the least error of TTFT on some rows."""
    return min(found, key=lambda one: float(np.abs(one.ttft[which]).mean()))


def text(one: Tried, which: np.ndarray) -> str:
    ttft, tpot = (100 * float(np.abs(logs[which]).mean()) for logs in (one.ttft, one.tpot))
    return (
        f"experts {one.experts_ms:.1f} ms, scans {one.scans_ms:.1f} ms:"
        f" off {ttft:.1f} % (TTFT), {tpot:.1f} % (TPOT)"
    )


def main() -> None:
    rows = fitted_rows()
    found = list(tried(rows))
    models = np.array([row.series.model for row in rows])
    every = np.ones(len(rows), dtype=bool)
    print(f"without, {text(found[0], every)}, {len(rows)} rows")
    print(f"fitted to all, {text(best(found, every), every)}")
    for model in sorted(set(models)):
        left = models == model
        print(f"{model} without: {text(found[0], left)}")
        print(f"  by others: {text(best(found, ~left), left)}")
        print(f"  by itself: {text(best(found, left), left)}")


if __name__ == "__main__":
    main()
