"""Files to write, checked before the work that fills them."""

from __future__ import annotations

from pathlib import Path

from planner.errors import Problem


def unwritable(where: str, name: str | None) -> list[Problem]:
    """What keeps a file from being written; nothing where none is asked for."""
    if name is None:
        return []
    path = Path(name)
    if path.is_dir():
        fact, remedy = (
            "is a folder",
            f"name a file in it, like `{path / 'placement'}.{where.lstrip('-')}`",
        )
    elif not path.parent.is_dir():
        fact, remedy = "is in no folder that there is", f"make it: `mkdir -p {path.parent}`"
    else:
        return []
    return [Problem(where=where, value=name, fact=fact, remedy=remedy)]
