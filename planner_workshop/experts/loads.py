"""Loads of experts, co-activations and placements, from CSV, JSON and TOML files; or drawn.

loads         a vector: a row or a column of CSV, a list, or `loads` of a table; with a row
              for each layer, the layer is chosen
coactivation  a square table: tokens that went to both experts
placement     experts of each rank: a line of CSV, a list of lists, or what
              `plan experts --json` prints
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.errors import Problem, RequestError
from planner.specs.files.ledger import Use
from planner.specs.files.tables import read_table
from planner.specs.files.texts import UnreadError, json_of, read_text
from planner.specs.options.counts import MOST_EXPERTS
from planner.specs.validation.arguments import arguments_checked

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_BYTES = 64 * 2**20
_LOADS, _PAIRS = ("loads", "load"), ("coactivation", "pairs")


@arguments_checked()
def load_loads(
    name: str,
    *,
    layer: int | None = None,
    asked_by: str = "--loads",
    one_layer: str = "choose one of them: `--layer 0`",
) -> FloatArray:
    """The load of each expert [E], of one layer.

    Args:
        name: path of the file.
        layer: row of the file, from 0; None where it has one.
        asked_by: the option that named it, for messages.
        one_layer: what to do where the file has several rows and none is chosen, for messages.

    Raises:
        RequestError: the file cannot be read, or holds no loads; all faults are listed.
    """
    rows = _numbers(name, _LOADS, asked_by)
    if len(rows) > 1 and all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]  # a column
    if len({len(row) for row in rows}) > 1:
        raise _wrong(asked_by, name, "has rows of different lengths")
    if layer is None and len(rows) > 1:
        raise _wrong(asked_by, name, f"has {len(rows)} rows, of several layers", one_layer)
    if layer is not None and layer >= len(rows):
        fact = f"{name} has {len(rows)} rows, counted from 0"
        raise _wrong("--layer", str(layer), fact)
    loads = np.array(rows[layer or 0], dtype=float)
    problem = load_problem(loads, asked_by, name)
    if problem is not None:
        raise RequestError([problem])
    return loads


LARGEST = 1e18
"""Of a load: nothing is counted that often."""


def load_problem(loads: FloatArray, where: str, value: str) -> Problem | None:
    """What is wrong with a vector of loads."""
    fact = ""
    if loads.ndim != 1 or not len(loads):
        fact = "is no list of numbers"
    elif len(loads) > MOST_EXPERTS:
        fact = f"has more than {MOST_EXPERTS} experts"
    elif not np.isfinite(loads).all():
        fact = f"expert {int(np.flatnonzero(~np.isfinite(loads))[0])} has a load that is no number"
    elif (loads < 0).any():
        fact = f"expert {int(np.flatnonzero(loads < 0)[0])} has a negative load"
    elif not loads.any():
        fact = "has no load at all"
    elif (loads > LARGEST).any():
        fact = f"expert {int(np.argmax(loads))} has a load above {LARGEST:g}"
    return Problem(where=where, value=value, fact=fact) if fact else None


@arguments_checked()
def load_coactivation(name: str, *, asked_by: str = "--coactivation") -> FloatArray:
    """Tokens sent to both of two experts [E, E]; made symmetric where one half is given.

    Raises:
        RequestError: the file cannot be read, or is no square table of numbers.
    """
    rows = _numbers(name, _PAIRS, asked_by)
    if any(len(row) != len(rows) for row in rows):
        raise _wrong(asked_by, name, f"is no square table: it has {len(rows)} rows")
    table = np.array(rows, dtype=float)
    if not np.isfinite(table).all() or (table < 0).any():
        raise _wrong(asked_by, name, "has an entry that is negative or no number")
    is_half = not np.tril(table, -1).any() or not np.triu(table, 1).any()
    if not is_half and not np.array_equal(table, table.T):
        raise _wrong(asked_by, name, "is not symmetric", "give one half, or both alike")
    return table + table.T - np.diag(np.diag(table)) if is_half else table


@arguments_checked()
def load_placement(name: str, *, asked_by: str = "--present") -> tuple[tuple[int, ...], ...]:
    """The experts that each rank holds; one that it holds twice stands twice.

    Raises:
        RequestError: the file cannot be read, or is no placement.
    """
    table = _parsed(name, asked_by)
    if isinstance(table, dict):
        table = table.get("answer", table)  # what `plan experts --json` wrote, or its like
    if isinstance(table, dict):
        table = table.get("ranks")
    if isinstance(table, list):
        table = [row.get("experts") if isinstance(row, dict) else row for row in table]
    rows = table if isinstance(table, list) else []
    if not rows or not all(isinstance(row, list) for row in rows):
        raise _wrong(asked_by, name, "lists no ranks", "write the experts of a rank in a line")
    try:
        return tuple(tuple(_index(expert) for expert in row) for row in rows)
    except ValueError as error:
        raise _wrong(asked_by, name, str(error)) from error


def placement_copies(
    ranks: Sequence[Sequence[int]], *, n_experts: int, n_ranks: int, n_slots: int
) -> tuple[IntArray, list[Problem]]:
    """Copies of each expert on each rank [E, G], and what does not fit the program."""
    problems = []
    copies = np.zeros((n_experts, n_ranks), dtype=np.int64)
    if len(ranks) != n_ranks:
        fact = f"has {len(ranks)} ranks, and there are {n_ranks}"
        return copies, [Problem(where="--present", fact=fact)]
    for g, held in enumerate(ranks):
        if len(held) > n_slots:
            fact = f"rank {g} holds {len(held)} experts, and has {n_slots} slots"
            problems.append(Problem(where="--present", fact=fact))
        for e in held:
            if e < n_experts:
                copies[e, g] += 1
            else:
                fact = f"rank {g} holds expert {e}, and there are {n_experts}, from 0"
                problems.append(Problem(where="--present", value=str(e), fact=fact))
    return copies, problems


def zipf_loads(n_experts: int, exponent: float, *, seed: int = 0) -> FloatArray:
    """Loads k^-exponent of the k-th busiest expert, in a drawn order; they add up to 1 [E]."""
    loads = np.arange(1, n_experts + 1, dtype=float) ** -exponent  # of a steep law the last are 0
    return np.asarray(np.random.default_rng(seed).permutation(loads / loads.sum()))


def _index(value: object) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"`{value}` is no number of an expert")
    return value


def _numbers(name: str, keys: tuple[str, ...], asked_by: str) -> list[list[float]]:
    """Rows of numbers; a single list is one row."""
    table = _parsed(name, asked_by)
    if isinstance(table, dict):
        table = next((table[key] for key in keys if key in table), None)
        if table is None:
            raise _wrong(asked_by, name, f"has no `{keys[0]}`")
    if isinstance(table, list) and table and not any(isinstance(row, list) for row in table):
        table = [table]
    if not isinstance(table, list) or not all(isinstance(row, list) and row for row in table):
        raise _wrong(asked_by, name, "holds no numbers")
    if not table:
        raise _wrong(asked_by, name, "is empty")
    problems = []
    rows = [[_number(value) for value in row] for row in table]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is None:
                fact, at = "is no number", f"row {i}, entry {j}"
                shown = str(table[i][j])[:60]
                problems.append(Problem(where=name, key=at, value=shown, fact=fact))
    if problems:
        raise RequestError(problems[:20])
    return [[value for value in row if value is not None] for row in rows]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _parsed(name: str, asked_by: str) -> Any:  # noqa: ANN401 as the file has it
    """What a file holds: tables and lists; CSV as lists of text."""
    kind, use = Path(name).suffix.lower(), Use(kind=asked_by.lstrip("-"))
    if kind == ".toml":
        table, problems = read_table(Path(name), name, use=use)
        RequestError.raise_if_any(problems)
        return table
    try:
        text = read_text(name, most_bytes=MOST_BYTES, use=use)
        if kind == ".json":
            return json_of(text)
    except UnreadError as error:
        raise _wrong(asked_by, name, str(error)) from None
    if kind not in (".csv", ".txt"):
        raise _wrong(asked_by, name, "is no CSV, JSON or TOML file", "name it `.csv`, say")
    lines = [line.strip().rstrip(",;") for line in text.splitlines()]
    rows = [[cell.strip() for cell in re.split("[,;]", line)] for line in lines if line]
    has_head = len(rows) > 1 and all(_number(cell) is None for cell in rows[0])
    return rows[1:] if has_head else rows


def _wrong(where: str, value: str, fact: str, remedy: str = "") -> RequestError:
    return RequestError([Problem(where=where, value=value, fact=fact, remedy=remedy)])
