"""What intervals need beyond kernels' errors to hold what they say, of predictions out of fold.

    python -m research.sets.intervals            the table, and how often intervals hold
    python -m research.sets.intervals --write    writes planner/specs/model_errors.csv

A time is in its interval where measured over predicted, or predicted over measured, is at most
1 + z · √(k² + m²): k is the kernels' error, m the model's, z of the share that is asked for. m is
that for which shares of 67, 90 and 95 % hold best among rows that are judged, by runtime, kind of
model and quantity; a runtime with rows of fewer than four models on devices has that of all. TTFT
is of rows whose harness says how it sends requests: who asks for an interval says it too. Known
biases are off: each row's constants and biases are of other folds.

`left out` is how often intervals hold of folds, models on devices, devices, engines, versions and
sources that m was found without, each of at least ten rows counted alike, and of the worst of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from planner.equations.tails import sigmas
from planner.specs.records.model_errors import ANY, QUANTITIES, ModelError, Quantity
from research.records import as_csv
from research.sets.constants import out_of_fold, tells
from research.sets.folds import fold_of
from research.sets.predicted import Compared
from research.sets.ranking import SHARES, common, engines

FILE = Path(__file__).parents[2] / "planner" / "specs" / "model_errors.csv"
SOURCE = "fitted: aiconfigurator-core 0.12.0 and InferenceX, all folds: tests/data/serving"

LEAST_GROUPS = 4

LEAST_ROWS = 10
"""Of a value of an axis for a share of its rows to say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """How far off times of rows were, each (N,).

    Args:
        off: the larger of measured over predicted and its inverse, less one.
        kernels: relative deviation that kernels' errors give.
        weights: of the rows, by which they are counted; all alike where left out.
    """

    off: np.ndarray
    kernels: np.ndarray
    weights: np.ndarray | None = None

    def held(self, model: float | np.ndarray, share: float) -> np.ndarray:
        """Share of the rows that are in an interval that says `share`, for each model's error."""
        reach = sigmas(share) * np.hypot(self.kernels, np.asarray(model)[..., None])
        return np.asarray(np.average(self.off <= reach, axis=-1, weights=self.weights))


def group(one: Compared) -> tuple[str, str]:
    return (one.row.series.model, one.row.series.gpu)


def told(found: Sequence[Compared], quantity: Quantity) -> list[Compared]:
    """Rows that say enough for a quantity to be predicted."""
    return [one for one in found if tells(one, quantity)]


def missed(some: Sequence[Compared], quantity: Quantity) -> Missed:
    name = quantity.lower()
    ratios = np.array([getattr(one, f"{name}_ms") / getattr(one.row, f"{name}_ms") for one in some])
    return Missed(
        off=np.maximum(ratios, 1.0 / ratios) - 1.0,
        kernels=np.array([getattr(one, f"{name}_deviation") for one in some]),
    )


def deviation(found: Missed) -> float:
    """The model's error for which intervals hold nearest to what they say, over all shares."""
    tried = np.geomspace(0.005, 20.0, 400)
    gaps = sum((found.held(tried, share) - share) ** 2 for share in SHARES)
    return float(tried[int(np.argmin(gaps))])


def table(found: Sequence[Compared]) -> list[ModelError]:
    """With what errors of two engines side by side have in common, where there are such pairs."""
    rows = list(_rows(found))
    pairs = engines(found, partial(errors_of(rows), quantity="TPOT"))
    for i, one in enumerate(rows):
        mine = [it for it in pairs if _kind(it[0].row) == one.kind]
        if mine and (one.runtime, one.quantity) == (ANY, "TPOT"):
            rows[i] = replace(one, common_fraction=round(common(mine), 2))
    return rows


def _rows(found: Sequence[Compared]) -> Iterator[ModelError]:
    for is_dense in (True, False):
        of_kind = [one for one in found if one.row.series.is_dense is is_dense]
        engines = sorted({one.row.series.engine for one in of_kind})
        for runtime in (ANY, *engines):
            some = [one for one in of_kind if runtime in (ANY, one.row.series.engine)]
            for quantity in QUANTITIES:
                rows = told(some, quantity)
                n_groups = len({group(one) for one in rows})
                if rows and (runtime == ANY or n_groups >= LEAST_GROUPS):
                    yield ModelError(
                        runtime=runtime,
                        device=ANY,
                        kind="dense" if is_dense else "mixture",
                        quantity=quantity,
                        deviation_fraction=round(deviation(missed(rows, quantity)), 3),
                        n_rows=len(rows),
                        n_groups=n_groups,
                        source=SOURCE,
                    )


def errors_of(rows: Sequence[ModelError]) -> Callable[[Compared, Quantity], float]:
    """The model's error of a row, by a table."""
    by_name = {(one.runtime, one.kind, one.quantity): one.deviation_fraction for one in rows}

    def error(one: Compared, quantity: Quantity) -> float:
        kind = "dense" if one.row.series.is_dense else "mixture"
        own = by_name.get((one.row.series.engine, kind, quantity))
        return own if own is not None else by_name[ANY, kind, quantity]

    return error


def held(
    some: Sequence[Compared], quantity: Quantity, error: Callable[[Compared, Quantity], float]
) -> list[float]:
    """Shares of rows, each counted alike, that intervals hold which say `SHARES`."""
    found = missed(some, quantity)
    model = np.array([error(one, quantity) for one in some])
    wide = np.hypot(found.kernels, model)
    return [float(np.mean(found.off <= sigmas(share) * wide)) for share in SHARES]


AXES: dict[str, Callable[[Compared], Hashable]] = {
    "folds of runs": lambda one: fold_of(one.row),
    "models on devices": group,
    "models": lambda one: one.row.series.model,
    "devices": lambda one: one.row.series.gpu,
    "engines": lambda one: one.row.series.engine,
    "versions": lambda one: (one.row.series.engine, one.row.series.version or one.row.series.date),
    "sources": lambda one: (one.row.series.set_name, one.row.series.harness, one.row.series.source),
}


def left_out(
    found: Sequence[Compared], quantity: Quantity, axis: Callable[[Compared], Hashable]
) -> dict[Hashable, list[float]]:
    """How often intervals hold of each value of an axis, whose model's error is of the others."""
    found, shares = told(found, quantity), {}
    for value in dict.fromkeys(axis(one) for one in found):
        others = table([one for one in found if axis(one) != value])
        kinds = {one.kind for one in others if one.quantity == quantity}
        own = [one for one in found if axis(one) == value and _kind(one) in kinds]
        if len(own) >= LEAST_ROWS:
            shares[value] = held(own, quantity, errors_of(others))
    return shares


def _kind(one: Compared) -> str:
    return "dense" if one.row.series.is_dense else "mixture"


def coverage(found: Sequence[Compared], rows: Sequence[ModelError]) -> str:
    """By quantity and set: what intervals hold that say 67, 90 and 95 %."""
    lines = [
        f"{'intervals that say':32s} {'rows':>5s}" + "".join(f"{100 * s:7.0f}" for s in SHARES)
    ]
    error = errors_of(rows)
    for quantity in QUANTITIES:
        known = told(found, quantity)
        for name, some in (
            ("S and X", known),
            ("S", [one for one in known if one.row.series.set_name == "S"]),
            ("X", [one for one in known if one.row.series.set_name == "X"]),
            ("dense", [one for one in known if one.row.series.is_dense]),
            ("mixtures", [one for one in known if not one.row.series.is_dense]),
            ("sent nobody knows how", [one for one in found if one not in known]),
        ):
            if some:
                cells = "".join(f"{100 * one:7.1f}" for one in held(some, quantity, error))
                lines.append(f"{f'{quantity}, {name}':32s} {len(some):5d}{cells}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.intervals")
    parser.add_argument("--write", action="store_true")
    from research.sets import rooflines  # which finds its own as this does

    asked = parser.parse_args()
    found = out_of_fold()
    rows = table(found)
    text = as_csv(ModelError, [*rows, *rooflines.model_errors(rooflines.judged())])
    if asked.write:
        FILE.write_text(text, encoding="utf-8")
    print(text)
    print(coverage(found, rows))
    for quantity in QUANTITIES:
        for name, axis in AXES.items():
            shares = left_out(found, quantity, axis)
            mean = np.mean([*shares.values()], axis=0)
            least, of = min((one[1], value) for value, one in shares.items())
            cells = "".join(f"{100 * share:7.1f}" for share in mean)
            print(f"{f'{quantity}, {name} left out':32s} {len(shares):5d}{cells}", end="")
            print(f"   least of 90: {100 * least:.1f}, {of}")


if __name__ == "__main__":
    main()
