"""Tables of a user's own: CSV with the columns that the closed forms know.

A header, then a row for each kernel: `family`, `format`, `latency_us`, and the dimensions of the
family, named as its function names them; dimensions of other families stay empty. One file may
hold several families:

    family,format,m,n,k,weight_bytes,input_bytes,latency_us
    gemm,bf16,64,6144,4096,2,2,21.4

`peak_format` names the format whose peak bounds the arithmetic, if it is not that of `format`.
Rows may say what they were timed with, as `plan measure` writes it; those of another device than
the one asked for are a fault, and the machine and its software become part of the source.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from planner.equations.collectives import COLLECTIVES
from planner.equations.kernels.constants import formats_of
from planner.equations.kernels.families import Family
from planner.errors import Problem, SpecError
from planner.specs.files.texts import UnreadError, csv_of, read_text
from planner.specs.validation.problems import did_you_mean
from planner_workshop.calibration.tables import FITTED, MOST_BYTES, Measured, Reading

EXAMPLE = "its first line is like `family,format,m,n,k,weight_bytes,input_bytes,latency_us`"
WORDS = ("family", "format", "latency_us")
PEAK = "peak_format"
DEVICE, MACHINE, SOFTWARE = "device", "machine", "software"
NOTES = (DEVICE, MACHINE, SOFTWARE, "program", "spread", "n_repeats")
"""What a row may say of how it was timed; nothing is fitted to it."""

MAY_BE_ZERO = frozenset({"past_tokens", "d_q_latent", "latency_us"})
"""Of which a row may have none: tokens before, a latent of the queries, a time that was taken."""

LARGEST = 1e18
"""Of any dimension, rate or time: no kernel has more."""

_MICRO = 1e-6
_COLUMNS = frozenset(
    name
    for family in FITTED.values()
    for name in (*WORDS, PEAK, *NOTES, *family.dimensions, *family.optional)
)

Row = tuple[int, dict[str, str]]


def read_plain(path: Path, device: str = "") -> Reading:
    """Rows of one file.

    Args:
        path: the file.
        device: that is calibrated; rows that say another were timed elsewhere.

    Raises:
        SpecError: the file, its header or any of its rows cannot be read; all faults are listed.
    """
    shown = str(path)
    try:
        text = csv_of(read_text(path, most_bytes=MOST_BYTES))
    except UnreadError as error:
        remedy = EXAMPLE if error.fact == "is empty" else ""
        raise SpecError([error.problem(shown, remedy=remedy)]) from None
    unlike = _unlike(path, text)
    if unlike:
        fact, remedy = unlike
        raise SpecError([Problem(where=shown, fact=fact, remedy=remedy)])
    header = list(map(str.strip, text[0])) if text else []
    problems = [*_header_problems(header, shown)]
    if any(problem.value in WORDS for problem in problems):
        raise SpecError(problems)
    rows = _rows(text, header, shown, problems)
    problems += _of_another_device(rows, device, shown)
    tables = _tables(rows, shown, problems)
    if problems or not tables:
        raise SpecError(problems or [Problem(where=shown, fact="has no rows")])
    said = (", ".join(filter(None, map(row.get, (MACHINE, SOFTWARE)))) for _, row in rows)
    return Reading(tables=tuple(tables), timed_on=tuple(dict.fromkeys(filter(None, said))))


def _rows(
    text: list[list[str]], header: list[str], shown: str, problems: list[Problem]
) -> list[Row]:
    """Rows below the header by number of line, without empty ones."""
    rows = []
    for line, cells in enumerate(text[1:], start=2):
        if len(cells) > len(header):
            fact = f"has {len(cells)} cells, and there are {len(header)} columns"
            problems.append(Problem(where=f"{shown}:{line}", fact=fact))
        elif any(cells):
            rows.append((line, dict(zip(header, map(str.strip, cells), strict=False))))
    return rows


def _of_another_device(rows: list[Row], device: str, shown: str) -> Iterator[Problem]:
    """Rows that were timed on a device that is not calibrated, one for each device."""
    others: dict[str, int] = {}
    for line, row in rows:
        said = row.get(DEVICE, "")
        if said and device and said != device:
            others.setdefault(said, line)
    for said, line in others.items():
        fact, remedy = f"was timed on it, not on {device}", f"write `--device {said}`"
        yield Problem(where=f"{shown}:{line}", key=DEVICE, value=said, fact=fact, remedy=remedy)


def _header_problems(header: list[str], shown: str) -> Iterator[Problem]:
    """Words that are missing, columns that no family has, and columns that are there twice."""
    for word in WORDS:
        if word not in header:
            remedy = f"its header names {', '.join(WORDS)} and the dimensions of each family"
            yield Problem(where=shown, value=word, fact="is no column of it", remedy=remedy)
    for name in dict.fromkeys(header):
        if name not in _COLUMNS:
            absent = [word for word in WORDS if word not in header]
            otherwise = "leave it out" if name else "name it, or leave it out"
            remedy = did_you_mean(name, [*absent, *sorted(_COLUMNS)], otherwise=otherwise)
            fact = "is a column of no family"
            yield Problem(
                where=f"{shown}:1", value=name or "an empty name", fact=fact, remedy=remedy
            )
        elif header.count(name) > 1:
            yield Problem(where=f"{shown}:1", value=name, fact="is a column twice")


def _unlike(path: Path, text: list[list[str]]) -> tuple[str, str] | None:
    """What a file is instead of a table, and what to do about it; None if it may be one."""
    first = next((row for row in text if any(cell.strip() for cell in row)), None)
    if first is None:
        return "is empty", EXAMPLE
    if path.suffix in (".json", ".jsonl") or first[0].lstrip()[:1] in ("{", "["):
        return "is JSON, which is not read", f"write it as CSV: {EXAMPLE}"
    return None


def _tables(rows: list[Row], shown: str, problems: list[Problem]) -> list[Measured]:
    kinds: dict[tuple[str, str, str], list[Row]] = {}
    for line, row in rows:
        family, form, where = row.get("family", ""), row.get("format", ""), f"{shown}:{line}"
        if family not in FITTED:
            otherwise = f"it is one of {', '.join(FITTED)}"
            remedy = did_you_mean(family, FITTED, otherwise=otherwise)
            fact = "no such family"
            problems.append(Problem(where=where, value=family, fact=fact, remedy=remedy))
        elif form not in formats_of(FITTED[family]):
            known = formats_of(FITTED[family])
            remedy = did_you_mean(form, known, otherwise=f"it is {known[0]}, or the like")
            fact = f"is no number format of `{family}`"
            problems.append(
                Problem(where=where, key="format", value=form, fact=fact, remedy=remedy)
            )
        else:
            problems += _strange(row, FITTED[family], where)
            peak = row.get(PEAK) or _peak(family, form)
            if family in COLLECTIVES:  # each size of groups has constants of its own
                form = f"{row.get('n_devices', '')} devices"
            kinds.setdefault((family, form, peak), []).append((line, row))
    return [_table(kind, members, shown, problems) for kind, members in kinds.items()]


def _table(
    kind: tuple[str, str, str], rows: list[Row], shown: str, problems: list[Problem]
) -> Measured:
    family = FITTED[kind[0]]
    given = [name for name in family.optional if any(row.get(name) for _, row in rows)]
    names = (*family.dimensions, *given, "latency_us")
    values = np.array(
        [[_number(row, name, f"{shown}:{line}", problems) for name in names] for line, row in rows]
    )
    *columns, latency_us = values.T
    return Measured(
        family=kind[0],
        format=kind[1],
        peak_format=kind[2],
        columns=dict(zip(names, columns, strict=False)),
        measured_s=latency_us * _MICRO,
        file=shown,
        lines=np.array([line for line, _ in rows]),
    )


def _strange(row: dict[str, str], family: Family, where: str) -> Iterator[Problem]:
    """Dimensions of other families that a row says something of."""
    own = {*WORDS, PEAK, *NOTES, *family.dimensions, *family.optional}
    for name, text in row.items():
        if text and name not in own and name in _COLUMNS:
            fact = f"is no dimension of `{family.name}`"
            yield Problem(where=where, key=name, value=text, fact=fact, remedy="leave it empty")


def _number(row: dict[str, str], name: str, where: str, problems: list[Problem]) -> float:
    text = row.get(name, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    least = 0.0 if name in MAY_BE_ZERO else math.ulp(0.0)
    if least <= value <= LARGEST:
        return value
    fact, remedy = "is missing", ""
    if text:
        fact = "is no positive number" if least else "is no number from 0"
        fact = f"is above {LARGEST:g}" if LARGEST < value < math.inf else fact
    elif any(name in FITTED[family].optional for family in FITTED):
        remedy = "other rows have it: write it in each, or in none"
    problems.append(Problem(where=where, key=name, value=text, fact=fact, remedy=remedy))
    return math.nan


def _peak(family: str, form: str) -> str:
    """Attention works in bf16 whatever its cache is of; others work in their format."""
    is_attention = "attention" in family or "latent" in family
    return "bf16" if is_attention or not form else form.partition("_")[0]
