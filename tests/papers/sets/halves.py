"""Which rows constants may see, which rows figures are of, and which are not compared.

A run is model × GPU × engine × day, over all sets together; the last byte of its SHA-256 says the
half. Some rows are judged wherever the hash puts their run: B300 and GB200, which nothing is ever
fitted to, and measurements that two sets have, or one set twice. No prediction is looked at, nor
is any time but to tell that two rows are one.

    python -m tests.papers.sets.halves        counts by set, half and reason
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from tests.papers.sets.rows import Saturated, Series, Served, saturated, served

CALIBRATING, JUDGING = "calibrating", "judging"

NEVER_FITTED = frozenset({"b300", "gb200"})

ENGINES = frozenset({"vllm", "sglang", "trtllm"})
"""Those that this project describes."""

ONE_MEASUREMENT = 0.03
"""Relative difference of TPOT below which rows of two sets are one measurement."""

MOST_DEVICES = 8
"""In one server; of GB200 a measurement is of as many in one rack."""


def half_of_run(run: str) -> str:
    """By the last byte of the hash of `model|gpu|engine|date`: even calibrates."""
    return JUDGING if hashlib.sha256(run.encode()).digest()[-1] % 2 else CALIBRATING


def half_of_series(series: Series) -> str:
    return JUDGING if series.gpu in NEVER_FITTED else half_of_run(series.run)


def half(row: Served | Saturated) -> str:
    """The half that a row belongs to, whether it is compared or not."""
    return JUDGING if row.name in _judged_otherwise() else half_of_series(row.series)


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
def calibration_rows() -> tuple[Served, ...]:
    """The one list of rows of S and X that constants may be fitted to."""
    return _compared(CALIBRATING)


@cache
def judging_rows() -> tuple[Served, ...]:
    """Rows of S and X that figures are of, and nothing else."""
    return _compared(JUDGING)


def _compared(which: str) -> tuple[Served, ...]:
    return tuple(row for row in served() if half(row) == which and not exclusion(row))


@cache
def calibration_throughputs() -> tuple[Saturated, ...]:
    """The one list of rows of T that constants may be fitted to."""
    return tuple(row for row in saturated() if half(row) == CALIBRATING)


@cache
def judging_throughputs() -> tuple[Saturated, ...]:
    return tuple(row for row in saturated() if half(row) == JUDGING)


@cache
def _judged_otherwise() -> frozenset[str]:
    """Rows that are one measurement with one of another set, or with one of the judging half."""
    names = {name for pair in _pairs() for name in pair}
    for same in _same_measurements():
        if any(half_of_series(row.series) == JUDGING for row in same):
            names |= {row.name for row in same}
    return frozenset(names)


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
    what = (series.model, series.gpu, series.engine, _format(series))
    degrees = (row.tensor, row.data, row.expert_tensor, row.expert)
    return (*what, row.n_input, row.n_output, *degrees, row.in_flight)


def _format(series: Series) -> str:
    """Formats by their bits: sets name the formats of one checkpoint differently."""
    is_four = series.weights in ("nvfp4", "mxfp4", "int4_wo")
    return "4 bits" if is_four else series.weights.partition("_")[0]


def counts() -> str:
    """How many rows are in each half, and how many are left out why."""
    lines = []
    for which in (CALIBRATING, JUDGING):
        for name in ("S", "X"):
            rows = [one for one in served() if half(one) == which and one.series.set_name == name]
            left_out = Counter(exclusion(one) for one in rows)
            lines.append(f"{name} {which:12s} {left_out.pop('', 0):5d} of {len(rows)}")
            lines += [f"    {n:5d}  {why}" for why, n in left_out.most_common()]
        n_saturated = sum(half(one) == which for one in saturated())
        lines.append(f"T {which:12s} {n_saturated:5d}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(counts())
