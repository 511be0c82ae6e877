"""Files that a file names: beside it, or from the working folder."""

from __future__ import annotations

from pathlib import Path

from planner.specs.places import exists


def beside(file: Path, named: str) -> Path:
    """The path of a name in a file: beside the file if it is there, else as it stands."""
    near = file.parent / named
    return near if exists(near) else Path(named)
