"""Requests as files, and `planner.predict` of options by name.

`--save-request FILE` writes what a command was told, and `plan run FILE` answers it:

command = "place"                      # `plan` where it is left out
model = "llama-3.1-70b"                # an option as it is typed, without its dashes
latency-target = "40ms"
json = true                            # one that takes no value
demand = ["a=2000tok/s", "b=1req/s"]   # one that is given again

Files are named from the folder of the request file. A request of `plan sweep` has the same keys.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.commands import COMMANDS, called, options_of
from planner.commands.options.parsing import is_option, parse
from planner.commands.options.said import Said
from planner.commands.sweeping.requests import ALONE, RequestReader, SweepRequest
from planner.errors import Problem, RequestError, SpecError
from planner.report.as_json import versions
from planner.report.files import Answer
from planner.specs.files.places import is_path
from planner.specs.files.tables import table_of
from planner.specs.files.texts import UnreadError, read_text
from planner.specs.options.option import Option
from planner.specs.validation.problems import did_you_mean

if TYPE_CHECKING:
    from planner.commands.predict import AnyPrediction

SAVE = "--save-request"
_RUN = tuple(name for name, command in COMMANDS.items() if SAVE in command.names)
_SHAPES = {"--json", "--quiet"}
_PATHS = {"FILE", "FOLDER", "DIR", "-"}


def run(said: Said) -> Answer:
    """What is wrong with a command line that names no request before its options."""
    said.check()
    return Answer()


def predict(model: str, **options: object) -> AnyPrediction:
    """Evaluate one given deployment, as `plan predict` does.

    >>> predict("llama-3.1-8b", topology="h100-nvl8-x1", engine="vllm", tp=2, batch=8).n_devices
    2

    Args:
        model: its name, or a file.
        options: those of `plan predict` by name, `ttft_target` for `--ttft-target`: numbers where
            the option takes a bare one, else texts with a unit, like `rate="2req/s"`; True for one
            that takes no value. None is as if it were left out.

    Raises:
        RequestError: it cannot be read, or engines do not run it so; each reason names its option.
        NoPlanError: the layouts that are given do not fit.
    """
    from planner.commands.cli import settings
    from planner.commands.predict import prediction_of

    own, alone = ("predict",), ALONE | {"--explain"}
    reader = RequestReader("predict", [], commands=own, verb="predicted", alone=alone)
    given = {"command": "predict", "model": model, **options}
    request = reader.request({name: (it, name) for name, it in given.items() if it is not None})
    RequestError.raise_if_any(reader.problems)
    said = parse(request.words)
    with settings(said):
        return prediction_of(said)


def request_text(said: Said, path: str) -> str:
    """What a command line says, as the text of a request file at a path."""
    folder = Path(path).parent
    is_here = folder.resolve() == Path.cwd()

    def moved(name: str) -> str:
        return name if is_here or Path(name).is_absolute() else os.path.relpath(name, folder)

    def lines() -> Iterator[str]:
        version, date = versions()["planner"], time.strftime("%Y-%m-%d")
        yield f"# Request of `{called(said.command)}`, {date}, llm-serving-planner {version}"
        yield f"# `plan run {Path(path).name}` answers it; options behind that replace these"
        yield f"command = {json.dumps(said.command)}"
        rows = options_of(said.command)
        for name, texts in said.texts.items():
            if name != SAVE:
                values = [_with_paths(rows[name], text, Path(), moved) for text in texts]
                key = name[2:] if "." not in name else json.dumps(name[2:])
                said_of = values if values[1:] else values[0] if values else True
                value = json.dumps(said_of, ensure_ascii=False)
                yield f"{key} = {value}"

    return "\n".join([*lines(), ""])


def as_typed(words: list[str]) -> list[str]:
    """The command line that `plan run FILE` is, with options behind it in place of the file's.

    Any other command line is what it is.

    Raises:
        SpecError: the file cannot be read, or holds what means nothing; all faults are listed, each
            at its line.
    """
    if words[:1] != ["run"] or not words[1:] or is_option(words[1]):
        return words
    path, *behind = words[1:]
    request, lines = load_request(path)
    saved = parse(request.words)
    command = called(saved.command).split()[1:]
    replaced = {*parse([*command, *behind]).texts}
    replaced |= _SHAPES if replaced & _SHAPES else set()
    saved.texts = {name: texts for name, texts in saved.texts.items() if name not in replaced}
    merged = [*saved.words, *behind]
    whole = parse(merged)
    faults = {it.where for it in whole.problems} & (saved.texts.keys() & request.places.keys())
    if faults and not whole.standing:
        located = [_located(it, request, lines, faults) for it in whole.problems]
        raise SpecError(located, hint="\n".join(dict.fromkeys(whole.hints)))
    return merged


def _located(
    problem: Problem, request: SweepRequest, lines: dict[str, int], faults: set[str]
) -> Problem:
    if problem.where not in faults:
        return problem
    problem = request.located(problem)
    return replace(problem, where=_place(request.shown, lines, problem.key))


def _place(shown: str, lines: dict[str, int], key: str) -> str:
    return f"{shown}:{lines[key]}" if key in lines else shown


def load_request(path: str) -> tuple[SweepRequest, dict[str, int]]:
    """The request of a file, its files named from the working folder, and the line of each key.

    Raises:
        SpecError: no such file, or it holds what means nothing; every fault is listed.
    """
    try:
        text = read_text(Path(path))
    except UnreadError as error:
        remedy = "`plan COMMAND --save-request FILE` writes requests"
        raise SpecError([error.problem(path)], hint=remedy) from None
    table, problems = table_of(text, path)
    if problems:
        raise SpecError(problems)
    lines = _lines_of(text)
    reader = RequestReader(path, [], commands=_RUN, verb="run", alone=frozenset())
    request = reader.request({key: (value, key) for key, value in table.items()})
    command = table.get("command", "plan")
    rows = options_of(command) if command in _RUN else {}
    known = [name.removeprefix("--") for name in rows]
    for name, key in request.places.items() if rows else ():
        if name not in rows:
            reader.refuse(key, f"is no option of `{called(command)}`", did_you_mean(key, known))
    if reader.problems:
        raise SpecError([replace(it, where=_place(path, lines, it.key)) for it in reader.problems])
    folder = Path(path).parent
    if folder == Path():
        return request, lines

    def moved(name: str) -> str:
        return name if Path(name).is_absolute() else os.path.relpath(folder / name)

    said = parse(request.words)
    said.texts = {
        name: [_with_paths(rows[name], text, folder, moved) for text in texts]
        for name, texts in said.texts.items()
    }
    return replace(request, words=tuple(said.words)), lines


def _lines_of(text: str) -> dict[str, int]:
    """Lines on which keys stand, from 1."""
    keys = (re.match(r'\s*(?:"([^"]+)"|([\w-]+))\s*=', line) for line in text.splitlines())
    return {match[1] or match[2]: i for i, match in enumerate(keys, 1) if match}


def _with_paths(row: Option, text: str, folder: Path, move: Callable[[str], str]) -> str:
    """A value of an option with its paths moved: of names or files, those that are in a folder."""
    kinds = set(row.value.removesuffix(",…").split("|"))
    if kinds <= _PATHS:
        return text if text == "-" else move(text)
    parts = re.split(r"((?:^|[,+])(?:table:)?)", text)
    is_named = "FILE" in kinds or text.startswith("table:") or ",table:" in text
    return "".join(
        move(it) if is_named and _is_file(it, folder) else it  # `meta-llama/Llama-3.1-8B` is none
        for it in parts
    )


def _is_file(name: str, folder: Path) -> bool:
    return (is_path(name) or bool(Path(name).suffix)) and (folder / name).is_file()
