"""A program of rows in free MPS or as LP, as solvers and people read it."""

import math
import re
import textwrap
from collections.abc import Sequence

import numpy as np

from planner.programs.mixed import MixedProgram


def as_mps(program: MixedProgram, *, notes: Sequence[str] = ()) -> str:
    """The program in free MPS, every number as exact as it is here.

    Args:
        notes: lines of comment at its head.
    """
    columns = _words([program.column_name(j) for j in range(program.n_columns)], "x")
    rows = row_words(program)
    lines = [
        *(f"* {note}" for note in notes),
        f"NAME {_word(program.name)}",
        "ROWS",
        " N objective",
    ]
    kinds = [_kind(a, b) for a, b in zip(program.low.tolist(), program.high.tolist(), strict=True)]
    lines += [f" {kind} {row}" for kind, row in zip(kinds, rows, strict=True)]
    lines.append("COLUMNS")
    order = np.lexsort((program.row, program.column))
    starts = np.searchsorted(program.column[order], np.arange(program.n_columns + 1))
    is_whole = False
    for j, name in enumerate(columns):
        if bool(program.is_whole[j]) != is_whole:
            is_whole = not is_whole
            lines.append(f" M{j} 'MARKER' 'INT{'ORG' if is_whole else 'END'}'")
        lines.append(f" {name} objective {float(program.cost[j])!r}")
        for e in order[starts[j] : starts[j + 1]].tolist():
            lines.append(f" {name} {rows[program.row[e]]} {float(program.value[e])!r}")
    if is_whole:
        lines.append(" MEND 'MARKER' 'INTEND'")
    lines.append("RHS")
    if program.offset:
        lines.append(f" rhs objective {-program.offset!r}")
    sides = np.where(np.isfinite(program.high), program.high, program.low).tolist()
    for row, kind, side in zip(rows, kinds, sides, strict=True):
        if kind != "N" and side:
            lines.append(f" rhs {row} {side!r}")
    ranged = np.isfinite(program.low) & np.isfinite(program.high) & (program.low != program.high)
    if ranged.any():
        lines.append("RANGES")
        for r in np.flatnonzero(ranged).tolist():
            lines.append(f" rng {rows[r]} {float(program.high[r] - program.low[r])!r}")
    lines.append("BOUNDS")
    for name, low, high in zip(
        columns, program.lower.tolist(), program.upper.tolist(), strict=True
    ):
        lines += [f" LO bnd {name} {low!r}", f" UP bnd {name} {high!r}"]
    return "\n".join([*lines, "ENDATA", ""])


def row_words(program: MixedProgram) -> list[str]:
    """Names of the rows (R,) as MPS has them."""
    return _words([program.row_name(r) for r in range(program.n_rows)], "r")


def as_lp(program: MixedProgram, *, notes: Sequence[str] = ()) -> str:
    """The program as LP, every number as exact as it is here.

    A row with two sides that differ is two, `NAME_least` and `NAME_most`; one without is left out.

    Args:
        notes: lines of comment at its head.
    """
    columns = _words([_bare(program.column_name(j)) for j in range(program.n_columns)], "x")
    rows = _words([_bare(program.row_name(r)) for r in range(program.n_rows)], "r")
    *terms, costs = _sums(program, columns)
    lines = [*(f"\\ {note}" for note in notes), "min"]
    lines += [*_lp_row("objective", costs, f"{program.offset:+.17g}"), "st"]
    sides = zip(program.low.tolist(), program.high.tolist(), strict=True)
    for name, values, (low, high) in zip(rows, terms, sides, strict=True):
        is_two = -math.inf < low < high < math.inf
        if low < high:
            lines += _lp_row(f"{name}_least" if is_two else name, values, f">= {low!r}")
        last = f"<= {high!r}" if low < high else f"= {low!r}"
        lines += _lp_row(f"{name}_most" if is_two else name, values, last)
    bounds = zip(columns, program.lower.tolist(), program.upper.tolist(), strict=True)
    lines += ["bounds", *(f" {low!r} <= {name} <= {high!r}" for name, low, high in bounds), "gen"]
    whole = np.flatnonzero(program.is_whole).tolist()
    return "\n".join([*lines, *(f" {columns[j]}" for j in whole), "end", ""])


def _sums(program: MixedProgram, columns: Sequence[str]) -> list[str]:
    """What is added up in each row, and last in the objective."""
    terms: list[list[str]] = [[] for _ in range(program.n_rows + 1)]
    rows = np.append(program.row, np.full(len(columns), program.n_rows)).tolist()
    at = np.append(program.column, np.arange(len(columns))).tolist()
    values = np.append(program.value, program.cost).tolist()
    for r, j, value in zip(rows, at, values, strict=True):
        terms[int(r)].append(f"{'-' if value < 0 else '+'} {abs(value)!r} {columns[int(j)]}")
    return [" ".join(each) or f"0 {(*columns, 'none')[0]}" for each in terms]


def _bare(name: str) -> str:
    """A name without what LP takes for a sign or a square."""
    return re.sub(r"[^\w(),.]", "_", name.replace("[", "(").replace("]", ")"))


def _lp_row(name: str, terms: str, side: str) -> list[str]:
    """A row in lines that readers of LP take, which is 560 letters; none where its side is none."""
    text = "" if side.endswith("inf") else f" {name}: {terms} {side}"
    return textwrap.wrap(
        text, 200, break_long_words=False, break_on_hyphens=False, drop_whitespace=False
    )


def _kind(low: float, high: float) -> str:
    if low == high:
        return "E"
    if math.isfinite(high):
        return "L"
    return "G" if math.isfinite(low) else "N"


def _words(names: Sequence[str], letter: str) -> list[str]:
    """Names as MPS takes them: without blanks, and numbered where two would be one."""
    words = [_word(name) for name in names]
    if len(set(words)) == len(words) and "objective" not in words:
        return words
    return [f"{letter}{i}_{word}" for i, word in enumerate(words)]


def _word(name: str) -> str:
    return re.sub(r"[^\w()\[\],.+\-/]", "_", name) or "_"
