"""Rows of figures that the package carries as CSV, each as a frozen record."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.resources import files
from typing import Any, TypeVar

_Row = TypeVar("_Row")

_READ: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float}
"""What reads a cell, by the hint of its field; any other is text."""


def packaged_rows(file: str, record: type[_Row]) -> tuple[_Row, ...]:
    """All rows of a file beside the modules of `planner.specs`, in its order.

    Args:
        record: a dataclass whose fields are the columns.
    """
    text = files("planner.specs").joinpath(file).read_text(encoding="utf-8")
    read = {one.name: _READ.get(str(one.type), str) for one in fields(record)}  # type: ignore[arg-type]
    return tuple(
        record(**{name: of(row[name]) for name, of in read.items()})
        for row in csv.DictReader(text.splitlines())
    )
