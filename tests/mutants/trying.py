"""Faults tried one by one in a copy of the tree, by the tests that reach their lines."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tests.mutants.recording import ALONE, ROOT
from tests.mutants.sites import Mutant

COPIED = (
    "planner",
    "tests",
    "research",
    "topologies",
    "models",
    "kernels",
    "engines",
    "connectors",
    "papers",
    "examples",
    "docs",
)
FILES = ("pyproject.toml", "conftest.py", "README.md")
GOLDEN = "tests/golden/"
"""Tests that keep what was answered: they are asked last, and said apart."""

QUICK_S, LONG_S = 6.0, 30.0
"""CPU seconds of the tests that are asked first, and of those asked then."""

MOST_TESTS = 200
"""That are asked at once."""

START_S = 90.0
FACTOR = 12.0
"""A fault may take so many times as long as the tests without it, on a machine that is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How a fault ended.

    Args:
        mutant: the fault.
        by: the test that turned red; none if it survived.
        how: `failed`, `timed out`, `survived`, or `unreached`.
        n_tests: that were asked.
        diff: of the module.
    """

    mutant: Mutant
    by: str
    how: str
    n_tests: int
    diff: str
    wall_s: float

    @property
    def is_caught(self) -> bool:
        return self.how in ("failed", "timed out")


@dataclass(slots=True)
class Reach:
    """Which tests reach which lines, as they were recorded.

    Args:
        folder: with the records, and the tree that they are of.
    """

    folder: Path
    took_s: dict[str, float] = field(default_factory=dict)
    by_line: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    by_file: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Reach:
        """The records of a folder."""
        reach = cls(folder)
        lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        files: dict[str, set[str]] = defaultdict(set)
        for path in sorted((folder / "reached").glob("*.json")):
            record = json.loads(path.read_text(encoding="utf-8"))
            reach.took_s |= record["took_s"]
            for test, reached in record["reached"].items():
                for name, numbers in reached.items():
                    files[name].add(test)
                    for number in numbers:
                        lines[name][number].add(test)
        reach.by_line, reach.by_file = dict(lines), dict(files)
        return reach

    def of(self, mutant: Mutant, source: str) -> list[str]:
        """The tests that reach a fault, quickest first; all of its module where it is loaded."""
        number = self._then(mutant, source)
        found = self.by_line.get(mutant.path, {}).get(number, set()) - {ALONE}
        found = found or self.by_file.get(mutant.path, set()) - {ALONE}
        stands = [test for test in found if _stands(test)]
        return sorted(stands, key=lambda test: (test.startswith(GOLDEN), self.took_s[test], test))

    def _then(self, mutant: Mutant, source: str) -> int:
        """The line of a fault in the tree that was recorded."""
        then = self.folder / "tree" / mutant.path
        now = source.splitlines()
        if not then.exists():
            return mutant.line
        before = then.read_text(encoding="utf-8").splitlines()
        matched = difflib.SequenceMatcher(a=now, b=before, autojunk=False)
        for block in matched.get_matching_blocks():
            if block.a < mutant.line <= block.a + block.size:
                return block.b + mutant.line - block.a
        return -1


def _stands(test: str) -> bool:
    """Whether a test that was recorded still is there."""
    name, _, rest = test.partition("::")
    text = _text(name)
    if name.startswith("planner/"):  # an example of a docstring
        return bool(text)
    return all(
        re.search(rf"\b(def|class) {re.escape(part.partition('[')[0])}\b", text) is not None
        for part in rest.partition("[")[0].split("::")
    )


@cache
def _text(name: str) -> str:
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def copied(folder: Path) -> Path:
    """A copy of the tree to write faults into."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def tried(mutant: Mutant, tree: Path, reach: Reach) -> Tried:
    """Write a fault into the copy, ask the tests that reach it, and take it out."""
    began = time.monotonic()
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    faulty = mutant.applied(source)
    diff = "".join(
        difflib.unified_diff(
            source.splitlines(keepends=True),
            faulty.splitlines(keepends=True),
            mutant.path,
            mutant.path,
            n=1,
        )
    )
    tests = reach.of(mutant, source)
    path.write_text(faulty, encoding="utf-8")
    try:
        how, by, n_tests = _asked(mutant, tests, tree, reach)
    finally:
        path.write_text(source, encoding="utf-8")
    took_s = time.monotonic() - began
    return Tried(mutant=mutant, by=by, how=how, n_tests=n_tests, diff=diff, wall_s=took_s)


def _asked(mutant: Mutant, tests: list[str], tree: Path, reach: Reach) -> tuple[str, str, int]:
    if not tests:
        return "unreached", "", 0
    n_asked = 0
    for part in _parts(mutant, tests, reach):
        n_asked += len(part)
        how, by = _run(part, tree, sum(reach.took_s[test] for test in part))
        if how != "survived":
            return how, by, n_asked
    return "survived", "", n_asked


def _parts(mutant: Mutant, tests: list[str], reach: Reach) -> Iterable[list[str]]:
    """Quick tests of the module's own folder, then a few of each file, then kept answers."""
    own = f"tests/{mutant.path.split('/')[1]}/"
    usual = [test for test in tests if not test.startswith(GOLDEN)]
    near = [test for test in usual if test.startswith((own, mutant.path))]
    first = _within(_dealt(near), QUICK_S, reach)
    yield first
    done = set(first)
    yield _within([test for test in _dealt(usual) if test not in done], LONG_S, reach)
    yield _within([test for test in tests if test.startswith(GOLDEN)], QUICK_S, reach)


def _dealt(tests: list[str]) -> list[str]:
    """One of each file, then the next one of each."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.partition("::")[0]].append(test)
    rounds = zip_longest(*by_file.values())
    return [test for one in rounds for test in one if test is not None]


def _within(tests: list[str], limit_s: float, reach: Reach) -> list[str]:
    found: list[str] = []
    total_s = 0.0
    for test in tests:
        if total_s + reach.took_s[test] <= limit_s or not found:
            found.append(test)
            total_s += reach.took_s[test]
    return found[:MOST_TESTS]


def _run(tests: list[str], tree: Path, usual_s: float) -> tuple[str, str]:
    if not tests:
        return "survived", ""
    listed = tree / "asked.txt"
    # one argument a line: names of tests have spaces in them
    listed.write_text("\n".join(tests), encoding="utf-8")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
    command = [sys.executable, "-m", "pytest", *options, f"@{listed}"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=START_S + FACTOR * usual_s,
        )
    except subprocess.TimeoutExpired:
        return "timed out", ""
    if ran.returncode in (0, 5):
        return "survived", ""
    red = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", ran.stdout, re.M)
    missing = re.findall(r"^ERROR: not found: .*?([^/\s]\S*::.*)$", ran.stdout + ran.stderr, re.M)
    if ran.returncode == 4 and missing:
        names = [name.removeprefix(f"{tree}/") for name in missing]
        rest = [test for test in tests if not any(name.endswith(test) for name in names)]
        return _run(rest, tree, usual_s) if len(rest) < len(tests) else ("survived", "")
    return "failed", red[1] if red else ran.stdout[-300:]
