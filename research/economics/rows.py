"""Rows of `papers/erdil2025.csv`, tables and curves, and of `tests/data/epoch.csv`, points.

`papers/README.md` and `tests/data/README.md` say what the columns are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "papers" / "erdil2025.csv", ROOT / "tests" / "data" / "epoch.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of the paper or of its program; `printed` where the paper prints it."""

    number: int
    table: str
    name: str
    quantity: str
    printed: float | None
    value: float
    unit: str
    settings: str

    @property
    def assignments(self) -> dict[str, str]:
        """The `key=value` parts of the settings."""
        parts = (part.partition("=") for part in self.settings.split(";"))
        return {key.strip(): value.strip() for key, equals, value in parts if equals}

    def __str__(self) -> str:
        return f"{self.number} {self.table} {self.name} {self.quantity}"


@cache
def all_rows() -> tuple[Row, ...]:
    """Every row of the files, in their order."""
    found = []
    for path in FILES:
        with path.open(newline="", encoding="utf-8") as file:
            found += csv.DictReader(file)
    return tuple(_row(number, raw) for number, raw in enumerate(found))


def _row(number: int, raw: dict[str, str]) -> Row:
    value = {"False": "0", "True": "1"}.get(raw["code_value"], raw["code_value"])
    return Row(
        number=number,
        table=raw["table"],
        name=raw["row"],
        quantity=raw["quantity"],
        printed=float(raw["paper_value"]) if raw["paper_value"] else None,
        value=float(value),
        unit=raw["unit"],
        settings=raw["settings"],
    )


def of_table(*tables: str) -> tuple[Row, ...]:
    """Rows of some tables."""
    return tuple(row for row in all_rows() if row.table in tables)


def prints_as(row: Row, value: float) -> bool:
    """Whether a value rounds to what the paper prints: dollars to cents, all else to ones.

    The paper rounds twice, from two decimals, so that 246.496 becomes 247.
    """
    digits = 2 if row.unit == "USD/Mtok" else 0
    return row.printed == round(round(value, 2) + 1e-9, digits)


def by_name(rows: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
    """Rows of one name together, names in their order."""
    rows = tuple(rows)
    names = dict.fromkeys(row.name for row in rows)
    return {name: tuple(row for row in rows if row.name == name) for name in names}
