"""The form of a request and its command line: what fields there are, and one mapping both ways.

A form holds what `Said.texts` holds: of each option its texts, none of one without a value.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from planner.commands.options.commands import COMMANDS, called, options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.errors import Problem, RequestError
from planner.quantities.tables import packaged_table
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from planner.specs.options.option import Option, new_file
from planner.specs.options.table import GROUPS, HEADINGS
from planner.specs.records.runtimes import TARGETS

Json = dict[str, Any]

TABLE = packaged_table("exploring/form.toml", "planner_workshop")
OFFERED = tuple(TABLE["commands"].split())


@cache
def fields_of(command: str) -> Mapping[str, Option]:
    """Options that the form has of a command: all but those that write files or shape text."""
    answering = TABLE["answering"].split()
    outputs = [row for row in GROUPS["output"] if row.name not in answering]
    rows = options_of(command).items()
    return {it: row for it, row in rows if row not in outputs and row.reads is not new_file}


def said_of(state: object) -> Said:
    """The command line that a form stands for.

    Args:
        state: `{"command": "plan", "options": {"--model": ["palm-540b"]}}`.

    Raises:
        RequestError: it is no state of the form.
    """
    command, options = _parts(state)
    rows = fields_of(command) if command in OFFERED else {}
    unknown = [name for name in options if name not in rows]
    if command not in OFFERED or unknown:
        where = unknown[0] if unknown else str(command)
        raise RequestError([Problem(where=where, fact="is not in the form")])
    texts = {name: [it for it in given if it] for name, given in options.items()}
    return Said(
        command=command,
        texts={name: it for name, it in texts.items() if it or not rows[name].value},
    )


def _parts(state: object) -> Any:  # noqa: ANN401
    """Command and options of a state.

    Raises:
        RequestError: it has another shape.
    """
    match state:
        case {"command": str(command), "options": dict(options)} if all(
            isinstance(texts, list) and all(isinstance(it, str) for it in texts)
            for texts in options.values()
        ):
            return command, options
    raise RequestError([Problem(where="the form", fact="has another shape")])


def state_of(words: Sequence[str]) -> Json:
    """The form that a command line fills.

    Raises:
        RequestError: it is no command of the form, or has what the form has not, or has faults.
    """
    said = parse(words)
    if said.standing or said.command not in OFFERED:
        where, fact = said.standing or called(said.command), "is not in the form"
        said.problems = [Problem(where=where, fact=fact)]
    said.texts = {name: it for name, it in said.texts.items() if name in fields_of(said.command)}
    RequestError.raise_if_any(said.problems)
    return {"command": said.command, "options": said.texts}


def line_of(said: Said) -> str:
    """A command line, as it is typed: a value stands behind its option."""
    words = (word.partition("=") for word in said.words)
    parts = (
        [name, it] if it and it[0] != "-" else [f"{name}{sign}{it}"] for name, sign, it in words
    )
    return shlex.join(["plan", *(it for part in parts for it in part)])


def form() -> Json:
    """All that a page needs to draw the form."""
    return {
        "commands": [
            {"name": name, "words": COMMANDS[name].words, "groups": list(_groups(name))}
            for name in OFFERED
        ],
        "lists": {kinds: list(_names(kinds)) for kinds in TABLE["suggests"].values()},
        "sliders": TABLE["sliders"],
        "examples": TABLE["example"],
        "launched": [name for name in OFFERED if "--emit" in options_of(name)],
        "targets": TARGETS,
    }


def _names(kinds: str) -> Iterator[Json]:
    """What there is of kinds of files; of a pattern its examples."""
    for listing in (it for kind in kinds.split() for it in list_files(Kind[kind])):
        for name in listing.examples or (listing.name,):
            yield {"name": name, "words": listing.title or listing.description}


def _groups(command: str) -> Iterator[Json]:
    """Fields of a command below their headings; first those that most requests have."""
    rows = fields_of(command)
    first = [name for name in TABLE["first"].split() if name in rows]
    yield {"title": "", "fields": [_field(rows[name]) for name in first]}
    for heading, listed in HEADINGS.items():
        own = [row for row in listed if rows.get(row.name) is row and row.name not in first]
        if own:
            yield {"title": heading, "fields": [_field(row) for row in own]}


def _field(row: Option) -> Json:
    words, many = _choices().get((row.usage, " ".join(row.of)), ((), False))
    return {
        "name": row.name,
        "value": row.value,
        "words": row.words,
        "usual": row.usual or "",
        "example": row.example.strip("'"),
        "repeats": row.gathers is not None,
        "list": TABLE["suggests"].get(row.name, ""),
        "choices": list(words),
        "is_one": bool(words) and not many,
        "is_pair": row.name in TABLE["pairs"].split(),
    }


@cache
def _choices() -> Mapping[Any, Any]:
    """Words that an option takes, by its usage and commands, and whether it takes several."""
    choices: dict[Any, Any] = {}
    for row in (
        it for rows in packaged_table("specs/options/options.toml").values() for it in rows
    ):
        reader = row.get("gathers") or row.get("reads", "")
        name, *parts = [reader] if isinstance(reader, str) else reader
        known = TABLE["words"].get(name) or TABLE["words"].get(row["usage"].partition(" ")[0])
        words: Sequence[str] = ()
        if name in ("word_of", "words_of"):
            words = _constant(parts[1])
        elif name == "one_of":
            words = parts[1:]
        elif known:
            words = _constant(known)
        is_many = name not in ("word_of", "one_of", "number_format")
        choices[row["usage"], row.get("of", "")] = tuple(words), is_many
    return choices


def _constant(path: str) -> Sequence[str]:
    module, _, name = path.rpartition(".")
    return tuple(getattr(import_module(module), name))
