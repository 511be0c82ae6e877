"""Every command line of README and docs, run as printed from a fresh clone.

    python -m tests.cli.front_door                  all of them, a line each; 1 where one fails
    python -m tests.cli.front_door --only fleet     those whose text has a word
    python -m tests.cli.front_door --plan .venv/bin/plan    by a `plan` that is installed
    python -m tests.cli.front_door --write          write the examples that are answers again

* A command line is a `$ …` of a `console` block, or inline code that starts with `plan` and has
  more than the command's name. Inline code of prose that stands for many (`…`, `NAME`, `FILE`) is
  none; in a table of the README or of docs/commands.md it is.
* It has to end as is said: `exit=1` of the block, `(exit 1)` of the row, else 0. Where it ends with
  0 nothing goes to stderr, unless the block says `warns=yes` or the row `(warns …`.
* What takes more than ten seconds of CPU time says so, `takes 40 s`, and has a `--time-limit`.
  A line that installs has to end well: its time and its warnings are the machine's.
* A block that says `needs=…`, or a row `(needs …`, needs what this machine may lack: it is not run.
* Files that a document shows (`toml file=…`) stand in the folder, as does what its earlier lines
  wrote.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITTEN = {
    "examples/answer.json": "plan --latency-target 30ms --json",
    "examples/placement.json": "plan place --engine roofline --model llama-3.1-70b "
    "--topology h100-nvl8-x4 --state examples/state.toml --weights bf16 --latency-target 50ms "
    "--ttft-target 1s --json",
}
"""Examples that are answers, and what writes them: `--write` does so again."""
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
LONG_S = 10.0

_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)
_INLINE = re.compile(r"`(plan [^`]+)`")
_NAMES = re.compile(r"plan (?!models|topologies|devices|connectors|clients)\w+( --prove)?")
"""A command by its name alone; those that list what there is are command lines."""
_STANDS_FOR_MANY = re.compile(r"…|\b[A-Z]{3,}\b|\.\.\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command line of a document.

    Args:
        where: document and line.
        text: as it is printed.
        code: that it says it ends with.
        warns: whether it says that something goes to stderr.
        takes: what it says of its time, empty if nothing.
        files: that the document shows before it.
    """

    where: str
    text: str
    code: int = 0
    warns: bool = False
    takes: str = ""
    files: dict[str, str] = field(default_factory=dict)


def command_lines(path: Path) -> Iterator[CommandLine]:
    """The command lines of a document, in its order."""
    text = path.read_text(encoding="utf-8")
    files: dict[str, str] = {}
    end = 0
    for block in _BLOCK.finditer(text):
        yield from _inline(path, text, end, block.start())
        end = block.end()
        kind, info, body = block.groups()
        said = dict(word.split("=", 1) for word in info.split() if "=" in word)
        if "file" in said:
            files[said["file"]] = body
        if kind != "console" or "needs" in said:
            continue
        for match in re.finditer(r"^\$ (.*)$", body, re.M):
            yield CommandLine(
                where=_where(path, text, block.start(3) + match.start()),
                text=match[1],
                code=int(said.get("exit", "0")),
                warns="warns" in said,
                takes=said.get("takes", ""),
                files=dict(files),
            )
    yield from _inline(path, text, end, len(text))


def _inline(path: Path, text: str, start: int, end: int) -> Iterator[CommandLine]:
    for line in re.finditer(r"^.*$", text[start:end], re.M):
        if "(needs " in line[0]:
            continue
        is_row = path.name in ("README.md", "commands.md") and line[0].startswith("|")
        code = re.search(r"\(exit (\d)\)", line[0])
        takes = re.search(r"takes ([^:;,|()]+?)(?: *[:;,|()]|$)", line[0])
        for match in _INLINE.finditer(line[0]):
            if _NAMES.fullmatch(match[1]) or (not is_row and _STANDS_FOR_MANY.search(match[1])):
                continue
            yield CommandLine(
                where=_where(path, text, start + line.start()),
                text=match[1],
                code=int(code[1]) if code else 0,
                warns="(warns" in line[0],
                takes=takes[1] if takes else "",
            )


def _where(path: Path, text: str, at: int) -> str:
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command line ended: exit code, stderr, CPU time [s]."""

    code: int
    err: str
    cpu_s: float


def run(one: CommandLine, folder: Path, environment: dict[str, str]) -> Ended:
    """Run a command line by the shell, in a folder."""
    for name, text in one.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    before = _cpu_s()
    ended = subprocess.run(
        ["bash", "-c", one.text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Ended(code=ended.returncode, err=ended.stderr, cpu_s=_cpu_s() - before)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def faults(one: CommandLine, ended: Ended) -> list[str]:
    """What a command line does that its document does not say."""
    found = []
    if ended.code != one.code:
        found.append(f"ends with {ended.code}, not {one.code}")
    if "pip install" in one.text:  # its time and its warnings are the machine's
        return found
    if said_beside(ended.err) and not (one.warns or (ended.code == one.code != 0)):
        found.append("writes to stderr")
    if ended.cpu_s > LONG_S and not one.takes:
        found.append(f"takes {ended.cpu_s:.0f} s of CPU time and does not say so")
    if ended.cpu_s > LONG_S and "--time-limit" not in one.text:
        found.append("takes long and has no --time-limit")
    return found


def said_beside(err: str) -> str:
    """What stands on stderr but for the files that were written as asked."""
    return re.sub(r"^wrote \S+\n", "", err, flags=re.M)


def clone(folder: Path) -> None:
    """Copy what git knows of, as it stands in the working tree."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def environment(plan: Path | None, folder: Path) -> dict[str, str]:
    """Variables of a user: none of ours, and `plan` of this interpreter or the one named."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PLANNER_")}
    tool = plan or Path(sys.executable).with_name("plan")
    kept["PATH"] = os.pathsep.join((str(tool.absolute().parent), kept.get("PATH", "")))
    if plan is None:
        kept["PYTHONPATH"] = str(folder)
    else:
        kept.pop("PYTHONPATH", None)
    return kept


def main(argv: Sequence[str] | None = None) -> int:
    """Run all of them; 1 where one does what its document does not say."""
    parser = argparse.ArgumentParser(prog="python -m tests.cli.front_door")
    parser.add_argument("--only", action="append", default=[], help="a word of the command line")
    parser.add_argument("--skip", action="append", default=[], help="a word of those left out")
    parser.add_argument("--plan", type=Path, help="a `plan` that is installed")
    parser.add_argument("--write", action="store_true", help="write the examples again")
    said = parser.parse_args(argv)
    if said.write:
        for name, text in WRITTEN.items():
            command = ["bash", "-c", f"{text} > {name}"]
            subprocess.run(command, cwd=ROOT, env=environment(said.plan, ROOT), check=True)
        return 0
    every = [one for path in DOCUMENTS for one in command_lines(path)]
    chosen = [
        one
        for one in every
        if all(word in f"{one.where} {one.text}" for word in said.only)
        and not any(word in one.text for word in said.skip)
    ]
    n_failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clone(folder)
        for one in chosen:
            ended = run(one, folder, environment(said.plan, folder))
            wrong = faults(one, ended)
            n_failed += bool(wrong)
            mark = "FAILS" if wrong else "ok"
            print(f"{mark:5} {ended.cpu_s:6.1f} s  {one.where}  {one.text}", flush=True)
            for fault in wrong:
                print(f"      {fault}")
            if wrong:
                print("".join(f"      | {line}\n" for line in ended.err.splitlines()[-8:]), end="")
    print(f"{len(chosen)} of {len(every)} command lines, {n_failed} fail")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
