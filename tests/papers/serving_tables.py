"""Tables of `docs/accuracy.md` about serving: InferSim's, and published measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.papers.inference import CASES, error, predicted
from tests.papers.silicon import SELECTION, Compared, judged


def infersim_errors():
    return np.abs([error(case) for case in CASES])


def infersim_table() -> str:
    lines = [
        "| model | phase | measured | here | error | InferSim | its error |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case in CASES:
        theirs = case.theirs / case.measured - 1.0
        lines.append(
            f"| {case.model} | {case.phase} | {case.measured:.0f} | {predicted(case):.0f} "
            f"| {100 * error(case):+.1f} % | {case.theirs:.0f} | {100 * theirs:+.1f} % |"
        )
    return "\n".join(lines)


def silicon_table() -> str:
    found = judged(SELECTION)
    lines = [
        "| TPOT | rows | mean | median | 90th | bias |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for is_dense, name in ((True, "dense"), (False, "mixtures of experts")):
        some = [one for one in found if one.row.is_dense is is_dense]
        lines.append(_line(f"**{name}**", some))
        for key in ("engine", "system", "short"):
            for value in sorted({getattr(one.row, key) for one in some}):
                rows = [one for one in some if getattr(one.row, key) == value]
                lines.append(_line(f"{name}, {value}", rows))
    return "\n".join(lines)


def _line(name: str, some: Sequence[Compared]) -> str:
    errors = np.array([one.tpot_error for one in some])
    size = np.abs(errors)
    return (
        f"| {name} | {len(size)} | {100 * size.mean():.1f} % | {100 * np.median(size):.1f} % "
        f"| {100 * np.quantile(size, 0.9):.1f} % | {100 * errors.mean():+.1f} % |"
    )
