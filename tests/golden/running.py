"""Files of requests and their answers, and the command in this process.

    $ plan --latency-target 30ms           the request, after those whose files it reads
    deployment.tpot_s = 0.029992926        a value of the answer, by its path
    ~certificate.n_solved = 8              what the search says of itself

The words of a request are edited here when an option is renamed: the values must stay.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from planner.commands.cli import main
from tests.golden.answers import Kept, Value, agrees, kept

HERE = Path(__file__).parent
ANSWERS = HERE / "answers"
CONFIGS = HERE.parent / "specs" / "huggingface" / "configs"

_SETTINGS = ("PLANNER_PATH", "PLANNER_TRACEBACK", "FORCE_COLOR", "NO_COLOR")


@dataclass(slots=True, kw_only=True)
class Case:
    """A request, and what is kept of its answer.

    Args:
        lines: the command lines, the last of which is answered.
        values: of the answer, by path.
        statistics: of the search, by path.
    """

    lines: tuple[str, ...]
    values: dict[str, Value] = field(default_factory=dict)
    statistics: dict[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "; ".join(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A value that is not as it was; None where there is none.

    Args:
        path: of the value.
        name: the path under which the same value stands now, if it has only been renamed.
    """

    path: str
    old: Value | None
    new: Value | None
    name: str = ""

    def __str__(self) -> str:
        if self.name:
            return f"{self.path} is now {self.name}"
        return f"{self.path}: {_said(self.old)} → {_said(self.new)}"


def files() -> list[Path]:
    """The files of answers."""
    return sorted(ANSWERS.glob("*.txt"))


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    cases: list[Case] = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip().splitlines()
        case = Case(lines=tuple(line[7:] for line in lines if line.startswith("$ plan ")))
        for line in lines:
            if not line.startswith("$ "):
                name, _, value = line.partition(" = ")
                part = case.statistics if name.startswith("~") else case.values
                part[name.removeprefix("~")] = json.loads(value)
        if case.lines:
            cases.append(case)
    return cases


def write(path: Path, cases: list[Case]) -> None:
    """Write the cases of a file."""
    path.write_text("\n".join(map(_text, cases)), encoding="utf-8")


def _text(case: Case) -> str:
    lines = [f"$ plan {line}" for line in case.lines]
    lines += [f"{path} = {_said(value)}" for path, value in sorted(case.values.items())]
    lines += [f"~{path} = {_said(value)}" for path, value in sorted(case.statistics.items())]
    return "\n".join(lines) + "\n"


def _said(value: Value | None) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def moved(old: dict[str, Value], new: dict[str, Value]) -> list[Moved]:
    """What is not as it was."""
    changed = [
        Moved(path=path, old=old[path], new=new[path])
        for path in old
        if path in new and not agrees(path, old[path], new[path])
    ]
    come = {path: new[path] for path in new if path not in old}
    for path, value in old.items():
        if path in new:
            continue
        name = next((name for name in come if agrees(name, value, come[name])), "")
        changed.append(Moved(path=path, old=value, new=come.pop(name, None), name=name))
    return [*changed, *(Moved(path=path, old=None, new=value) for path, value in come.items())]


@contextlib.contextmanager
def working_folder() -> Iterator[None]:
    """A folder with the files that requests name, and nothing set that changes an answer."""
    with tempfile.TemporaryDirectory() as folder:
        for source in (HERE / "files", CONFIGS):
            shutil.copytree(source, folder, dirs_exist_ok=True)
        before = {name: os.environ.pop(name) for name in _SETTINGS if name in os.environ}
        try:
            with contextlib.chdir(folder):
                yield
        finally:
            os.environ.update(before)


def answered(case: Case) -> Kept:
    """What is kept of the answer to a case, in the working folder."""
    *before, last = case.lines
    for line in before:
        words, _, path = line.partition(" > ")
        code, printed = _printed(words)
        assert code == 0, f"plan {words}: {printed}"
        Path(path).write_text(printed, encoding="utf-8")
    code, printed = _printed(last)
    return kept(code, json.loads(printed))


def _printed(line: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*shlex.split(line), "--json"])
    return code, out.getvalue()
