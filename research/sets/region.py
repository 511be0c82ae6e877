"""Which settings times were compared with measurements of, and how far off they are elsewhere.

    python -m research.sets.region            both tables, and how many deployments are inside
    python -m research.sets.region --write    writes planner/specs/region/measured_region.csv
                                                  and planner/specs/region/region_errors.csv

Settings are those of all rows of S and X that are compared, whichever fold they are in. An error is
`left out` where rows have several values of a property: of each value in turn, the model's error m
(see `intervals`) of the rows that have it, each divided by the mean error of all other rows of the
same engine and kind of model, beyond the m of those others; the root of the mean square over all
values, rows counted alike. `client` is what TPOT errs more where a source does not say how requests
were sent (`intervals`). Predictions are out of fold. What no row has more than one value of is
`assumed`.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from planner.specs.files.engines import load_engine
from planner.specs.records.served_formats import STATIC, as_run
from planner.specs.region import CLIENT, LEAST_ROWS, RegionError, Setting
from research.records import as_csv
from research.sets import folds
from research.sets.constants import out_of_fold
from research.sets.intervals import Missed, client_error, deviation, missed, table as model_errors
from research.sets.predicted import Compared, architecture, formats
from research.sets.rows import Served

SPECS = Path(__file__).parents[2] / "planner" / "specs" / "region"
REGION, ERRORS = SPECS / "measured_region.csv", SPECS / "region_errors.csv"

SOURCE = "aiconfigurator-core 0.12.0 and InferenceX: tests/data/serving"

ASSUMED = 0.3
"""Of what was never measured: as much as times of a device are off that were fitted elsewhere."""

NEVER = {
    "pp": "no row has stages",
    "nodes": "no row spans nodes",
    "role": "no row has a role of its own",
    "drafts": "no row that is compared drafts",
    "micro_batches": "no row overlaps two batches",
    "pp × role": "no row has either",
    "engine": "of an engine that a user's file describes nothing was measured",
}


@cache  # reads the engine's files
def setting_of(row: Served) -> Setting:
    """A row's setting, by itself; its run is numbered by `table`."""
    series = row.series
    run = as_run(architecture(series.model), formats(row), load_engine(series.engine))
    return Setting(
        engine=series.engine,
        device=series.gpu,
        kind="dense" if series.is_dense else "mixture",
        tp=str(row.tensor),
        dp=str(row.data),
        ep=str(1 if series.is_dense else row.expert),
        pp="1",
        nodes="1",
        role="together",
        weights=(run.weights if series.is_dense else run.experts).removesuffix(STATIC),
        cache=run.cache,
        drafts="0",
        micro_batches="1",
        in_flight=row.in_flight,
        n_input=row.n_input,
        n_output=row.n_output,
        n_rows=1,
        runs="",
    )


def table(rows: Sequence[Served]) -> list[Setting]:
    """The distinct settings of some rows, sorted."""
    numbers = {run: i for i, run in enumerate(sorted({row.series.run for row in rows}))}
    groups: dict[Setting, list[int]] = defaultdict(list)
    for row in rows:
        groups[setting_of(row)].append(numbers[row.series.run])
    merged = [
        Setting(
            **{
                **vars(one),
                "n_rows": len(runs),
                "runs": " ".join(map(str, sorted(set(runs)))),
            }
        )
        for one, runs in groups.items()
    ]
    return sorted(merged, key=lambda one: tuple(vars(one).values()))


def _text(*names: str) -> Callable[[Served], str]:
    return lambda row: " × ".join(getattr(setting_of(row), name) for name in names)


LEFT_OUT: dict[str, Callable[[Served], str]] = {
    **{name: _text(name) for name in ("tp", "dp", "ep", "weights", "cache")},
    "tp × ep": _text("tp", "ep"),
    "lengths": lambda row: f"{row.n_input} in, {row.n_output} out",
    "batch": lambda row: str(round(math.log2(row.in_flight))),
    "device": lambda row: row.series.gpu,
}
"""What is left out in turn, value by value, of rows of one engine and kind of model."""


def errors(found: Sequence[Compared]) -> list[RegionError]:
    return [
        *(
            RegionError(
                property=name,
                deviation_fraction=round(left_out(found, of), 3),
                basis="left out",
                source=SOURCE,
            )
            for name, of in LEFT_OUT.items()
        ),
        RegionError(
            property=CLIENT,
            deviation_fraction=round(client_error(found, model_errors(found)), 3),
            basis="left out",
            source=SOURCE,
        ),
        *(
            RegionError(property=name, deviation_fraction=ASSUMED, basis="assumed", source=why)
            for name, why in NEVER.items()
        ),
    ]


def left_out(found: Sequence[Compared], of: Callable[[Served], str]) -> float:
    """How much further off TPOT of rows is where none of the others has their value."""
    squares, n_rows = 0.0, 0
    for one, rest in _parted(found, of):
        here, there = missed(one, "TPOT"), missed(rest, "TPOT")
        beyond = deviation(_without_bias(here, one, rest)) ** 2 - deviation(there) ** 2
        squares += len(one) * max(0.0, beyond)
        n_rows += len(one)
    return math.sqrt(squares / n_rows)


def _parted(
    found: Iterable[Compared], of: Callable[[Served], str]
) -> Iterator[tuple[list[Compared], list[Compared]]]:
    """Rows of one value and those of all others, of one engine and kind of model."""
    groups: dict[tuple[str, bool], dict[str, list[Compared]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in found:
        groups[one.row.series.engine, one.row.series.is_dense][of(one.row)].append(one)
    for values in groups.values():
        for value, some in values.items():
            rest = [one for name, others in values.items() if name != value for one in others]
            if min(len(some), len(rest)) >= LEAST_ROWS:
                yield some, rest


def _without_bias(here: Missed, some: Sequence[Compared], rest: Sequence[Compared]) -> Missed:
    """Errors of rows, less the mean error that the others teach."""
    mean = float(np.exp(np.mean([np.log1p(one.tpot_error) for one in rest])))
    ratios = np.array([(1.0 + one.tpot_error) / mean for one in some])
    return Missed(off=np.maximum(ratios, 1.0 / ratios) - 1.0, kernels=here.kernels)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.region")
    parser.add_argument("--write", action="store_true")
    rows = folds.rows()
    region = as_csv(Setting, table(rows))
    further = as_csv(RegionError, errors(out_of_fold()))
    if parser.parse_args().write:
        REGION.write_text(region, encoding="utf-8")
        ERRORS.write_text(further, encoding="utf-8")
    else:
        print(region)
    print(further, end="")


if __name__ == "__main__":
    main()
