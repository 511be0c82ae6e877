"""The small mixed programs of `tests/solvers/cases`, as arrays."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import highspy
import numpy as np

from planner.programs.mixed import MixedProgram

FOLDER = Path(__file__).with_name("cases")
MOST_FLOW = 10.0
"""No flow is above 1 at an optimum: programs are in shares of a bound on the rate."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the least value of its objective."""

    name: str
    optimum: float

    def program(self) -> MixedProgram:
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(FOLDER / self.name))
        lp = highs.getLp()
        whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_]
        return MixedProgram(
            name=f"case_{self.name.removesuffix('.mps')}",
            cost=np.array(lp.col_cost_),
            row=np.array(lp.a_matrix_.index_, dtype=np.int64),
            column=np.repeat(np.arange(lp.num_col_), np.diff(np.array(lp.a_matrix_.start_))),
            value=np.array(lp.a_matrix_.value_),
            low=np.array(lp.row_lower_),
            high=np.array(lp.row_upper_),
            lower=np.array(lp.col_lower_),
            upper=np.minimum(np.array(lp.col_upper_), MOST_FLOW),
            is_whole=np.array(whole),
            columns=tuple(lp.col_names_),
            rows=tuple(lp.row_names_),
        )


def cases() -> list[Case]:
    """All of them, by number."""
    with (FOLDER / "optima.csv").open(encoding="utf-8", newline="") as file:
        return [Case(row["file"], float(row["optimum"])) for row in csv.DictReader(file)]
