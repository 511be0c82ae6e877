"""Markdown whose `console` blocks are run: what they show is what the command prints.

    ```console exit=2 figures=any     the exit code; figures may change with the constants
    $ plan … --json > placed.json     what comes first, its output in a file
    $ plan --batch 0                  run in an empty folder, 100 columns wide
    error: ...                        `...` stands for anything, alone on a line for any lines
    ```

    ```toml file=my.toml              written into that folder first; json, csv, conf too
    ```

`python -m tests.cli.test_documents` writes what is printed into the blocks without `...`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planner.commands.cli import main

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
DOCUMENTS = (
    *sorted(HERE.glob("*.md")),
    *(
        DOCS / name
        for name in (
            "guide.md",
            "messages.md",
            "one-answer.md",
            "apart.md",
            "audit.md",
            "caches.md",
            "explain.md",
            "import.md",
            "fleets.md",
            "launch.md",
            "programs.md",
            "rules.md",
            "solver-report.md",
            "what-if.md",
        )
    ),
)

_COMMAND = re.compile(r"^\$ (.*)$", re.M)
_BLOCK = re.compile(r"^```(console|toml|json|csv|conf)([^\n]*)\n(.*?)^```$", re.M | re.S)


@dataclass
class Example:
    """One command, what it should print, and the files and commands that stand before it."""

    name: str
    command: str
    expected: str
    code: int
    any_figures: bool
    files: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()

    def agrees_with(self, printed: str) -> bool:
        if self.any_figures:
            return _form(self.expected).fullmatch(_normal(printed)) is not None
        return _lines(self.expected).fullmatch(printed) is not None


def examples(path: Path) -> list[Example]:
    found: list[Example] = []
    files: dict[str, str] = {}
    text = path.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        kind, info, body = block.groups()
        said = dict(word.split("=", 1) for word in info.split())
        if kind != "console":
            files[said["file"]] = body
            continue
        *before, command = _COMMAND.findall(body)
        expected = body.rpartition(f"$ {command}\n")[2]
        found.append(
            Example(
                before=tuple(before),
                name=f"{path.name}:{text[: block.start()].count(chr(10)) + 1}",
                command=command,
                expected=expected,
                code=int(said.get("exit", "0")),
                any_figures=said.get("figures") == "any",
                files=dict(files),
            )
        )
    return found


def _lines(expected: str) -> re.Pattern[str]:
    """The text itself, with `...` for anything in a line, or for lines if it stands alone."""
    parts = [
        "(?:.*\n)*" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
        for line in expected.splitlines(keepends=True)
    ]
    return re.compile("".join(parts))


def _form(expected: str) -> re.Pattern[str]:
    return re.compile(re.escape(_normal(expected)).replace(r"\.\.\.", ".*"))


def _normal(text: str) -> str:
    """Without wall times, figures, bars and line breaks: 20.1 and 19.87 are of one form."""
    text = " ".join(re.sub(r"[█▏▎▍▌▋▊▉]+", "", text).split())
    text = re.sub(r"time [\d.]+ \w+ of [\d.]+ \w+ in provers", "", text)
    text = re.sub(r"(?:(?<= in )|(?<=ified; ))[\d.]+ (?:us|ms|s)\b", "", text)  # `verified; 2 s`
    return re.sub(r"\d+(?:[.,]\d+)*", "#", text)


def run(example: Example) -> tuple[int, str]:
    """Exit code, and stdout followed by stderr."""
    for name, text in example.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    for command in example.before:
        code, printed = _run(command)
        assert (code, printed) == (0, ""), command
    return _run(example.command)


def _run(command: str) -> tuple[int, str]:
    program, *argv = shlex.split(command)
    assert program == "plan"
    path = None
    if argv[-2:-1] == [">"]:
        *argv, _, path = argv
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    if path is None:
        return code, out.getvalue() + err.getvalue()
    Path(path).write_text(out.getvalue(), encoding="utf-8")
    return code, err.getvalue()


ALL = [example for path in DOCUMENTS for example in examples(path)]


@pytest.mark.parametrize("example", ALL, ids=[example.name for example in ALL])
def test_a_console_block_shows_what_the_command_prints(example, folder):
    (folder / "examples").symlink_to(DOCS.parent / "examples")
    code, printed = run(example)
    assert code == example.code, printed
    assert example.agrees_with(printed), printed


def test_there_are_examples():
    assert len(ALL) >= 12


def test_the_comparison_can_fail():
    def agrees(expected, printed, *, any_figures=False):
        return Example("", "", expected, 0, any_figures).agrees_with(printed)

    assert agrees("a\n...\nb ... c\n", "a\n1\n2\nb x c\n")
    assert not agrees("a\n...\nb\n", "a\n1\n2\nc\n")
    assert not agrees("a ... c\n", "a x\ny c\n")
    assert agrees("20.1 ms ██▌\n", "7 ms █\n", any_figures=True)
    assert not agrees("20.1 ms\n", "7 s\n", any_figures=True)
    timed = "proved by  HiGHS {} in {}\ntime  {} of {} in provers\n"
    first, then = timed.format(1, "5 ms", "5 ms", "1 s"), timed.format(2, "1 s", "1 s", "2 s")
    assert agrees(first, then, any_figures=True)


def _accept(path: Path) -> None:
    """Write what is printed into the blocks of a document that have no `...`."""
    commands = iter(examples(path))

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        example = next(commands)
        printed = example.expected if "..." in example.expected else run(example)[1]
        commands_run = "".join(f"$ {one}\n" for one in (*example.before, example.command))
        return f"```console{match[2]}\n{commands_run}{printed}```"

    text = _BLOCK.sub(block, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for document in DOCUMENTS:
            _accept(document)
