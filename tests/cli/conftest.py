"""A working folder of its own, and the command line as a function."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from planner.commands.cli import main


@dataclass(frozen=True)
class Ran:
    """What one command line printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, 100 columns, nothing set that changes the output."""
    for name in ("PLANNER_PATH", "PLANNER_TRACEBACK", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Ran]:
    """`plan("--batch 8")` in the working folder."""

    def run(line: str) -> Ran:
        capsys.readouterr()
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run
