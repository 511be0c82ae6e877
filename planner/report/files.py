"""Files that options name: whether they can be written, and writing them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planner.errors import Problem
from planner.report.paint import write

STDOUT = "-"


def unwritable(option: str, text: str) -> list[Problem]:
    """Why a file cannot be written, as far as one can know before."""
    path, fact = Path(text), ""
    if not text.strip() or text == STDOUT:
        fact = "is no file"
    elif path.is_dir():
        fact = "is a folder"
    elif not path.absolute().parent.is_dir():
        fact = "its folder does not exist"
    elif not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        fact = "permission denied"
    return [Problem(where=option, value=text, fact=fact)] if fact else []


def save(name: str, text: str) -> None:
    """Write a file, and say so."""
    Path(name).write_text(text, encoding="utf-8", newline="\n")
    write(f"wrote {name}", sys.stderr)
