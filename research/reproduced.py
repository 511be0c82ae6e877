"""Every row of `papers/` as `plan reproduce` answers it, and how far each is off.

python -m research.reproduced --write      keeps the errors in `research/reproduced.csv`
"""

from __future__ import annotations

import argparse
import csv
from functools import cache
from pathlib import Path

from planner.commands.reproduce import answered
from planner.results.listings import ReproducedRow, ReproducedTable
from planner.specs.files.papers import load_paper, paper_names
from research.rows import Row

FILE = Path(__file__).with_name("reproduced.csv")
HEAD = ("table", "series", "row", "error")
DISAGREES = "disagrees"

Key = tuple[str, str, str]


@cache
def reproduced(name: str) -> ReproducedTable:
    """A table, every row answered."""
    return answered([load_paper(name)])[0]


TIMED = ("table-2", "table-3", "table-d2", "table-d3", "table-d4")


@cache
def _places_of_pope() -> dict[tuple[str, ...], tuple[str, int]]:
    """Where rows of `pope2022.csv` are asked for with a time: table and place, by their cells."""
    places = {}
    for name in (f"pope2022-{name}" for name in TIMED):
        for place, row in enumerate(load_paper(name).rows):
            columns = {name: text for name, text in row.columns.items() if name != "folder"}
            if row.unit == "s":
                places[tuple(columns.values())] = name, place
    return places


def is_asked(row: Row) -> bool:
    """Whether a table asks for a measured row of [Pope2022]; nothing is answered for it."""
    return row.cells in _places_of_pope()


def reproduced_row(row: Row) -> ReproducedRow | None:
    """A measured row of [Pope2022] as it is answered; None where no table asks for it."""
    if not is_asked(row):
        return None
    name, place = _places_of_pope()[row.cells]
    return reproduced(name).rows[place]


def shown(one: ReproducedRow) -> str:
    """How far a row is off, to a tenth of a per mille; empty where nothing is printed."""
    if one.disagrees:
        return DISAGREES
    return "" if one.error is None else f"{one.error:.4f}"


def errors(name: str) -> dict[Key, str]:
    """How far each row of a table is off."""
    return {(name, one.row.series, one.row.label): shown(one) for one in reproduced(name).rows}


@cache
def kept() -> dict[Key, str]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return {tuple(row[name] for name in HEAD[:3]): row["error"] for row in csv.DictReader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for name in paper_names():
            writer.writerows((*key, error) for key, error in errors(name).items())


if __name__ == "__main__":
    main()
