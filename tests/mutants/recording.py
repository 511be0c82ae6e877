"""Which tests reach which lines of `planner/`, and how long each takes: a plugin of pytest.

    python -m pytest -p tests.mutants.recording tests/equations --reached=FOLDER

leaves one file of JSON a test file in the folder.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parents[2]
ALONE = ""
"""Context of lines that run as a module is loaded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reached", help="folder of what tests reach")


class Recorder:
    """Follows a session, and writes what it saw at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.took_s: dict[str, float] = {}
        self.red: set[str] = set()
        self.coverage = coverage.Coverage(data_file=None, source=[str(ROOT / "planner")])
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.took_s[item.nodeid] = round(time.process_time() - began, 3)
            self.coverage.switch_context(ALONE)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.red.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        reached: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(data.measured_files()):
            name = Path(path).relative_to(ROOT).as_posix()
            for line, tests in data.contexts_by_lineno(path).items():
                for test in tests:
                    reached[test][name].append(line)
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in (test for test in self.took_s if test not in self.red):
            by_file[test.partition("::")[0]].append(test)
        for name, tests in by_file.items():
            record = {
                "sha256": digest(ROOT / name),
                "took_s": {test: self.took_s[test] for test in tests},
                "reached": {test: reached.get(test, {}) for test in tests},
            }
            path = self.folder / (name.replace("/", "+") + ".json")
            path.write_text(json.dumps(record), encoding="utf-8")


def digest(path: Path) -> str:
    """Of the text of a test file, to know whether it is the one that was recorded."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--reached")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Recorder(Path(folder)))
