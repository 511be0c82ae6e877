"""Tables of a user's own: CSV with the columns that the closed forms know.

A header, then a row for each kernel: `family`, `format`, `latency_us`, and the dimensions of the
family, named as its function names them; dimensions of other families stay empty. One file may
hold several families:

    family,format,m,n,k,weight_bytes,input_bytes,latency_us
    gemm,bf16,64,6144,4096,2,2,21.4

`peak_format` names the format whose peak bounds the arithmetic, if it is not that of `format`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from planner.calibration.tables import MOST_BYTES, Measured, Reading
from planner.equations.kernels import FAMILIES
from planner.errors import Problem, SpecError
from planner.specs.texts import UnreadError, csv_of, read_text

EXAMPLE = "its first line is like `family,format,m,n,k,weight_bytes,input_bytes,latency_us`"
WORDS = ("family", "format", "latency_us")
_MICRO = 1e-6

Row = tuple[int, dict[str, str]]


def read_plain(path: Path) -> Reading:
    """Rows of one file.

    Raises:
        SpecError: the file, its header or any of its rows cannot be read; all faults are listed.
    """
    shown = str(path)
    try:
        text = csv_of(read_text(path, most_bytes=MOST_BYTES))
    except UnreadError as error:
        remedy = EXAMPLE if error.fact == "is empty" else ""
        raise SpecError([Problem(where=shown, fact=error.fact, remedy=remedy)]) from None
    unlike = _unlike(path, text)
    if unlike:
        fact, remedy = unlike
        raise SpecError([Problem(where=shown, fact=fact, remedy=remedy)])
    header = [cell.strip() for cell in text[0]] if text else []
    problems = [
        Problem(where=shown, value=word, fact="is no column of it", remedy=_remedy())
        for word in WORDS
        if word not in header
    ]
    if problems:
        raise SpecError(problems)
    rows = [
        (line, dict(zip(header, (cell.strip() for cell in cells), strict=False)))
        for line, cells in enumerate(text[1:], start=2)
        if any(cells)
    ]
    tables = _tables(rows, shown, problems)
    if problems or not tables:
        raise SpecError(problems or [Problem(where=shown, fact="has no rows")])
    return Reading(tables=tuple(tables))


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
        family, form = row.get("family", ""), row.get("format", "")
        if family not in FAMILIES:
            remedy = f"it is one of {', '.join(FAMILIES)}"
            fact, where = "no such family", f"{shown}:{line}"
            problems.append(Problem(where=where, value=family, fact=fact, remedy=remedy))
        else:
            peak = row.get("peak_format") or _peak(family, form)
            kinds.setdefault((family, form, peak), []).append((line, row))
    return [_table(kind, members, shown, problems) for kind, members in kinds.items()]


def _table(
    kind: tuple[str, str, str], rows: list[Row], shown: str, problems: list[Problem]
) -> Measured:
    family = FAMILIES[kind[0]]
    given = [name for name in family.optional if all(row.get(name) for _, row in rows)]
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


def _number(row: dict[str, str], name: str, where: str, problems: list[Problem]) -> float:
    text = row.get(name, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value >= 0:
        return value
    fact = "is not a number from 0" if text else "is missing"
    problems.append(Problem(where=where, key=name, value=text, fact=fact))
    return math.nan


def _peak(family: str, form: str) -> str:
    """Attention works in bf16 whatever its cache is of; others work in their format."""
    is_attention = "attention" in family or "latent" in family
    return "bf16" if is_attention or not form else form.partition("_")[0]


def _remedy() -> str:
    return f"its header names {', '.join(WORDS)} and the dimensions of each family"
