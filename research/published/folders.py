"""Files of a folder of published tables."""

import os
from pathlib import Path

from planner.errors import Problem, RequestError

MOST_FILES = 100_000
"""Looked at in a folder of tables: another folder was meant."""


def files_below(folder: Path, ending: str) -> list[Path]:
    """Files in a folder and in those inside it, in order.

    Args:
        ending: of their names, `.csv`.

    Raises:
        RequestError: the folder holds so many files that it is no folder of tables.
    """
    files, n_seen = [], 0
    for inner, _, names in os.walk(folder):
        n_seen += len(names) + 1
        files += [Path(inner, name) for name in names if name.endswith(ending)]
        if n_seen > MOST_FILES:
            fact, remedy = f"holds more than {MOST_FILES:,} files", "name the folder of the tables"
            raise RequestError([Problem(where=str(folder), fact=fact, remedy=remedy)])
    return sorted(files)
