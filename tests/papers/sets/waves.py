"""How often each place of a benchmark is taken that nobody describes, as its first tokens tell.

    python -m tests.papers.sets.waves

Of each source of the calibrating half that says nothing of how it sends requests: errors of TTFT,
and of TPOT beside them, if every place is taken so many times, the first time by all together; 0
is a loop without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.predicted import Compared, compared, traffic
from tests.papers.sets.rows import Served

TRIED = (0, 1, 2, 3, 4, 5, 6, 8, 10, 20)


def sources() -> dict[str, list[Served]]:
    """Rows whose harness is not known."""
    found: dict[str, list[Served]] = {}
    for row in calibration_rows():
        if not row.series.harness:
            found.setdefault(row.series.source, []).append(row)
    return found


def sent(rows: Sequence[Served], n_waves: int) -> list[Compared]:
    """Predictions if so many are sent to each place."""
    return compared(rows, sending=lambda row: replace(traffic(row), n_waves=n_waves))


def off(found: Sequence[Compared], quantity: str) -> float:
    """Mean of absolute relative errors."""
    return float(np.mean([abs(getattr(one, f"{quantity}_error")) for one in found]))


def main() -> None:
    for source, rows in sorted(sources().items()):
        print(f"{source}, {len(rows)} rows")
        for n_waves in TRIED:
            found = sent(rows, n_waves)
            errors = (100 * off(found, quantity) for quantity in ("ttft", "tpot"))
            print("  {:2d} waves: TTFT {:.0f} %, TPOT {:.0f} %".format(n_waves, *errors))


if __name__ == "__main__":
    main()
