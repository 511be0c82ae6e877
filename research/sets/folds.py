"""Which rows are compared, and which fold each is in.

A run is model × GPU × engine × day, over all sets together; runs that have a measurement in
common are one. Runs of each stratum, engine × GPU × kind of model, are put in the order of a hash
and dealt to folds: whatever touches a row's figures is fitted without its fold. B300 and GB200 are
in no fit, so that what is packaged has not seen them. No prediction is looked at, nor is any time
but to tell that two rows are one: docs/decisions/0030-folds.md.

    python -m research.sets folds        counts by stratum, fold and reason
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from research.sets.rows import Saturated, Series, Served, saturated, served

SALT = "planner, folds of runs, first deal"
"""Another one would deal runs otherwise: it was written before any figure of a fold was known."""

N_FOLDS = 5

ALL = N_FOLDS
"""Instead of a fold: rows that no fit sees, and constants of all rows that may be fitted."""

NEVER_FITTED = frozenset({"b300", "gb200"})

ENGINES = frozenset({"vllm", "sglang", "trtllm"})
"""Those that this project describes."""

ONE_MEASUREMENT = 0.03
"""Relative difference of TPOT below which rows of two sets are one measurement."""

MOST_DEVICES = 8
"""In one server; of GB200 a measurement is of as many in one rack."""


def may_be_fitted(row: Served | Saturated) -> bool:
    return row.series.set_name != "T" and row.series.gpu not in NEVER_FITTED


def fold_of(row: Served | Saturated) -> int:
    """The fold that a row is predicted without; `ALL` of one that is in no fit."""
    return folds_of_runs()[row.series.run] if may_be_fitted(row) else ALL


def stratum(series: Series) -> tuple[str, str, str]:
    return (series.engine, series.gpu, "dense" if series.is_dense else "mixture")


@cache
def folds_of_runs() -> dict[str, int]:
    """The fold of every run that has a row that may be fitted."""
    dealt: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    joined = _joined_runs()
    for row in rows():
        if may_be_fitted(row):
            dealt[stratum(row.series)].add(joined[row.series.run])
    found = {}
    for which, runs in dealt.items():
        first = _hashed("|".join(which))
        for place, run in enumerate(sorted(runs, key=_hashed)):
            found[run] = (first + place) % N_FOLDS
    return {run: found[one] for run, one in joined.items() if one in found}


def _hashed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{SALT}|{name}".encode()).digest(), "big")


@cache
def _joined_runs() -> dict[str, str]:
    """For every run the first of those that it has measurements in common with, or itself."""
    runs = {row.name: row.series.run for row in served()}
    first = {run: run for run in runs.values()}

    def root(run: str) -> str:
        while first[run] != run:
            run = first[run]
        return run

    pairs = [(same[0].name, row.name) for same in _same_measurements() for row in same[1:]]
    for one, other in (*pairs, *_pairs()):
        low, high = sorted((root(runs[one]), root(runs[other])))
        first[high] = low
    return {run: root(run) for run in first}


def exclusion(row: Served) -> str:
    """Why a row is not compared; empty if it is. What counts is what the row says of itself."""
    if row.series.engine not in ENGINES:
        return f"engine {row.series.engine} is not described"
    if row.drafts == "mtp":
        return "drafts by multi-token prediction"
    if row.drafts == "either":
        return "runs of that day draft or do not, and nobody says which this is"
    if row.n_servers > 1:
        return "several servers behind one router"
    if row.n_devices > MOST_DEVICES:
        return "more devices than a server has"
    if not row.series.is_dense and row.expert * row.expert_tensor != row.n_devices:
        return "degrees of attention and experts do not agree"
    if row.ttft_ms > row.n_output * row.tpot_ms:
        return "requests wait longer than they decode: fewer ran than are said to be in flight"
    if row.name in _repeats():
        return "the same measurement again"
    return ""


@cache
def rows() -> tuple[Served, ...]:
    """The one list of rows of S and X that constants are fitted to and that figures are of."""
    return tuple(row for row in served() if not exclusion(row))


def fitted_rows(left_out: int = ALL) -> list[Served]:
    """Those that may be fitted without a fold."""
    return [row for row in rows() if fold_of(row) not in (ALL, left_out)]


@cache
def _repeats() -> frozenset[str]:
    """Rows that another row stands for."""
    again = {row.name for same in _same_measurements() for row in same[1:]}
    return frozenset(again | {swept for _, swept in _pairs()})


@cache
def _same_measurements() -> tuple[tuple[Served, ...], ...]:
    """Rows of equal times: the sample has some under two models' names, or in two exports of
    which one names no day."""
    found: dict[tuple[object, ...], list[Served]] = defaultdict(list)
    for row in served():
        found[(*_configuration(row), round(row.ttft_ms, 1), round(row.tpot_ms, 2))].append(row)
    return tuple(tuple(same) for same in found.values())


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    return tuple(_found_pairs())


def _found_pairs() -> Iterator[tuple[str, str]]:
    """A row of S and one of X, of one configuration, whose TPOT nearly agree."""
    swept = defaultdict(list)
    for row in served():
        if row.series.set_name == "X":
            swept[_configuration(row)].append(row)
    for row in served():
        if row.series.set_name == "S" and row.drafts != "mtp":
            for other in swept[_configuration(row)]:
                if abs(row.tpot_ms / other.tpot_ms - 1.0) <= ONE_MEASUREMENT:
                    yield row.name, other.name


def _configuration(row: Served) -> tuple[object, ...]:
    series = row.series
    what = (series.model, series.gpu, series.engine, formats_of(series))
    degrees = (row.tensor, row.data, row.expert_tensor, row.expert)
    return (*what, row.n_input, row.n_output, *degrees, row.in_flight)


def formats_of(series: Series) -> str:
    """Formats by their bits: sets name the formats of one checkpoint differently."""
    is_four = series.weights in ("nvfp4", "mxfp4", "int4_wo")
    return "4 bits" if is_four else series.weights.partition("_")[0]


def counts() -> str:
    """Runs and rows of each stratum and how they fall, and how many rows are left out why."""
    numbers = range(N_FOLDS + 1)
    lines = [
        f"{'runs/rows by fold':36s}" + "".join(f"{n if n < ALL else 'no':>8}" for n in numbers)
    ]
    for which in sorted({stratum(row.series) for row in rows()}):
        some = [row for row in rows() if stratum(row.series) == which]
        cells = []
        for number in numbers:
            here = [row for row in some if fold_of(row) == number]
            cells.append(f"{len({row.series.run for row in here})}/{len(here)}" if here else "")
        lines.append(f"{' '.join(which):36s}" + "".join(f"{cell:>8s}" for cell in cells))
    for name in ("S", "X"):
        of_set = [row for row in served() if row.series.set_name == name]
        left_out = Counter(exclusion(row) for row in of_set)
        lines.append(f"{name} {left_out.pop('', 0):5d} of {len(of_set)} are compared")
        lines += [f"    {n:5d}  {why}" for why, n in left_out.most_common()]
    return "\n".join([*lines, f"T {len(saturated()):5d}, no fit sees any"])
