"""Requests as files, and `planner.predict` of options by name.

`--save-request FILE` writes what a command was told, and `plan run FILE` answers it:

command = "place"                      # `plan` where it is left out
model = "llama-3.1-70b"                # an option as it is typed, without its dashes
json = true                            # one that takes no value
demand = ["a=2000tok/s", "b=1req/s"]   # one that is given again

Files are named from the folder of the request file. A request of `plan sweep` has the same keys.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.commands import ALONE, COMMANDS, called, options_of
from planner.commands.options.parsing import PRINTED, is_option, parse
from planner.commands.options.said import Said, settings
from planner.commands.sweeping.requests import RequestReader, SweepRequest
from planner.errors import RequestError, SpecError
from planner.report.as_json import versions
from planner.report.files import Answer
from planner.specs.files.places import is_path
from planner.specs.files.tables import table_of
from planner.specs.files.texts import UnreadError, read_text
from planner.specs.options.option import Option
from planner.specs.validation.problems import did_you_mean

if TYPE_CHECKING:
    from planner.results.audits import LayoutPrediction
    from planner.results.predictions import Prediction

SAVE = "--save-request"
_SAVED = tuple(name for name, command in COMMANDS.items() if SAVE in command.names)
_PATHS = {"FILE", "FOLDER", "DIR", "-"}


def run(said: Said) -> Answer:
    """What is wrong with a command line that names no request before its options."""
    said.check()
    return Answer()


def explore(said: Said) -> Answer:
    """A page that makes requests and shows what answers them, until Ctrl-C."""
    said.check()
    from planner_workshop.exploring import serve

    own = ("--request", "--port", "--no-browser")
    options = replace(said, texts={it: said.texts[it] for it in said.texts if it not in own})
    file, words = said.request, options.words[1:]
    begun = words if file is None else as_typed(["run", file, *words])
    serve(begun, port=said.port, opens_browser=not said.no_browser)
    return Answer()


def predict(model: str, **options: object) -> Prediction | LayoutPrediction:
    """Evaluate one given deployment, as `plan predict` does.

    >>> predict("llama-3.1-8b", topology="h100-nvl8-x1", engine="vllm", tp=2, batch=8).n_devices
    2

    Args:
        model: its name, or a file.
        options: those of `plan predict` by name, `hit_rate` for `--hit-rate`: numbers where the
            option takes a bare one, else texts with a unit, like `rate="2req/s"`; True for one
            that takes no value. None is as if it were left out.

    Raises:
        RequestError: it cannot be read, or engines do not run it so; each reason names its option.
        NoPlanError: the layouts that are given do not fit.
    """
    from planner.commands.deployed import read_flags
    from planner.commands.predict import prediction_of

    own, alone = ("predict",), ALONE | {"--explain"}
    reader = RequestReader("predict", [], commands=own, verb="predicted", alone=alone)
    given = {"command": "predict", "model": model, **options}
    request = reader.request({name: (it, name) for name, it in given.items() if it is not None})
    RequestError.raise_if_any(reader.problems)
    said = parse(request.words)
    if said.values.get("flags") is not None:
        read_flags(said)
    with settings(said):
        return prediction_of(said)


def request_text(said: Said, path: str) -> str:
    """What a command line says, as the text of a request file at a path."""
    folder = Path(path).parent
    is_here = folder.resolve() == Path.cwd()

    def moved(name: str) -> str:
        return name if is_here or Path(name).is_absolute() else os.path.relpath(name, folder)

    def value(name: str) -> str | list[str] | bool:
        values = [_with_paths(rows[name], it, Path(), moved) for it in said.texts[name]]
        return values if values[1:] else values[0] if values else True

    rows = options_of(said.command)
    date, version = time.strftime("%Y-%m-%d"), versions()["planner"]
    keys = {name: name[2:] if "." not in name else f'"{name[2:]}"' for name in said.texts}
    lines = [
        f"# Request of `{called(said.command)}`, {date}, llm-serving-planner {version}",
        f"# `plan run {Path(path).name}` answers it; options behind that replace these",
        f'command = "{said.command}"',
        *(
            f"{key} = {json.dumps(value(name), ensure_ascii=False)}"
            for name, key in keys.items()
            if name != SAVE
        ),
    ]
    return "\n".join([*lines, ""])


def as_typed(words: list[str]) -> list[str]:
    """The command line that `plan run FILE` is, with options behind it in place of the file's.

    Any other command line is what it is.

    Raises:
        SpecError: the file cannot be read, or holds what means nothing; each fault has its line.
    """
    if words[:1] != ["run"] or not words[1:] or is_option(words[1]):
        return words
    path, *behind = words[1:]
    request = load_request(path)
    saved = parse(request.words)
    replaced = _replaced(saved.command, behind)
    saved.texts = {name: texts for name, texts in saved.texts.items() if name not in replaced}
    merged = [*saved.words, *behind]
    whole = parse(merged)
    faulty = {it.where for it in whole.problems} & saved.texts.keys()
    if faulty and not whole.standing:
        located = [request.located(it) if it.where in faulty else it for it in whole.problems]
        raise SpecError(located, hint="\n".join(dict.fromkeys(whole.hints)))
    return merged


def _replaced(command: str, words: list[str]) -> set[str]:
    """Options of a request that words behind it take the place of."""
    names = {*parse([*called(command).split()[1:], *words]).texts}
    return names.union(PRINTED) if names & {*PRINTED} else names


def load_request(path: str) -> SweepRequest:
    """The request of a file, its files named from the working folder.

    Raises:
        SpecError: no such file, or it holds what means nothing; every fault is listed.
    """
    try:
        text = read_text(Path(path))
    except UnreadError as error:
        hint = "`plan COMMAND --save-request FILE` writes requests"
        raise SpecError([error.problem(path)], hint=hint) from None
    table, problems = table_of(text, path)
    SpecError.raise_if_any(problems)
    reader = RequestReader(path, [], commands=_SAVED, verb="run", alone=frozenset())
    lines = _lines_of(text)
    places = {name: f"line {lines[name]}: {name}" if name in lines else name for name in table}
    request = reader.request({name: (value, places[name]) for name, value in table.items()})
    command = table.get("command", "plan")
    rows = options_of(command) if command in _SAVED else {}
    known = [name.removeprefix("--") for name in rows]
    for name, key in request.places.items():
        if rows and name not in rows:
            fact = f"is no option of `{called(command)}`"
            reader.refuse(key, fact, did_you_mean(name[2:], known))
    SpecError.raise_if_any(reader.problems)
    return request if Path(path).parent == Path() else _moved(request, Path(path).parent)


def _moved(request: SweepRequest, folder: Path) -> SweepRequest:
    """A request whose files are named from a folder, with these named from the working folder."""
    said = parse(request.words)
    rows = options_of(said.command)

    def moved(name: str) -> str:
        return name if Path(name).is_absolute() else os.path.relpath(folder / name)

    for name, texts in said.texts.items():
        said.texts[name] = [_with_paths(rows[name], text, folder, moved) for text in texts]
    return replace(request, words=tuple(said.words))


def _lines_of(text: str) -> dict[str, int]:
    """Keys, and the lines from 1 on which they stand."""
    rows = (re.match(r'\s*(?:"([^"]+)"|([\w-]+))\s*=', line) for line in text.splitlines())
    return {match[1] or match[2]: i for i, match in enumerate(rows, 1) if match}


def _with_paths(row: Option, text: str, folder: Path, move: Callable[[str], str]) -> str:
    """A value of an option with its paths moved: of names or files, those that are in a folder."""
    words = row.value.split()
    *before, text = text.split(" ", len(words) - 1)  # `--emit TARGET DIR` has several
    kinds = set(words[-1].removesuffix(",…").split("|"))
    if kinds <= _PATHS:
        return " ".join([*before, text if text == "-" else move(text)])
    if "FILE" not in kinds and "table:" not in text:
        return " ".join([*before, text])
    parts = re.split(r"((?:^|[,+])(?:table:)?)", text)
    return "".join(move(it) if _is_file(it, folder) else it for it in parts)


def _is_file(name: str, folder: Path) -> bool:
    """Whether a file is meant: `meta-llama/Llama-3.1-8B` is none."""
    return (is_path(name) or bool(Path(name).suffix)) and (folder / name).is_file()
