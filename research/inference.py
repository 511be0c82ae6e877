"""The six deployments that InferSim publishes a measured throughput of ([InferSim] Table 2).

Nothing is fitted on them. Kernels are those of H20 and H800; host times are the engine's, fitted
to other rows on another device (`research/sets`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import pairwise

from research.reproduced import reproduced


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table.

    Args:
        measured, predicted, theirs: tokens a second and device; `theirs` is InferSim's.
    """

    model: str
    phase: str
    device: str
    measured: float
    predicted: float
    theirs: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1.0

    @property
    def their_error(self) -> float:
        return self.theirs / self.measured - 1.0


def cases() -> tuple[Case, ...]:
    """The rows, as `plan reproduce` answers them."""
    found = []
    for one in reproduced("infersim-table-2").rows:
        words = shlex.split(one.row.command)
        option = dict(pairwise(words))
        found.append(
            Case(
                model=option["--model"],
                phase=option["--role"],
                device=option["--topology"].partition("-")[0],
                measured=one.row.published,
                predicted=one.answered,
                theirs=float(one.row.columns["theirs"]),
            )
        )
    return tuple(found)
