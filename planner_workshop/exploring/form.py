"""The form of a request and its command line: what fields there are, and one mapping both ways.

A form holds what `Said.texts` holds: of each option its texts, none of one without a value.
"""

import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from planner.commands.options.commands import COMMANDS, called, options_of
from planner.commands.options.helping import completions
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.errors import Problem, RequestError
from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError
from planner.specs.options.option import Option, new_file
from planner.specs.options.table import GROUPS, HEADINGS
from planner.specs.records.runtimes import TARGETS

Json = dict[str, Any]

TABLE = packaged_table("exploring/explore.toml", "planner_workshop")
OFFERED = tuple(TABLE["commands"].split())


@cache
def fields_of(command: str) -> Mapping[str, Option]:
    """Options that the form has of a command: all but those that write files or shape text."""
    answering = TABLE["answering"].split()
    outputs = [row for row in GROUPS["output"] if row.name not in answering]
    rows = options_of(command).items() if command in OFFERED else ()
    return {it: row for it, row in rows if row not in outputs and row.reads is not new_file}


def said_of(state: object) -> Said:
    """The command line that a form stands for: `{"command": "plan", "options": {"--tp": ["8"]}}`.

    Raises:
        RequestError: it is no state of the form.
    """
    match state:
        case {"command": str(command), "options": dict(options)} if all(
            map(_is_texts, options.values())
        ):
            return Said(command=command, texts=_texts(command, options))
    raise RequestError([Problem(where="the form", fact="has another shape")])


def _texts(command: str, options: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Options that are given, and what is given of each.

    Raises:
        RequestError: some are not in the form, or are given a value that they do not take.
    """
    rows = fields_of(command)
    unknown = [command] * (not rows) + [it for it in options if it not in rows]
    RequestError.raise_if_any(Problem(where=it, fact="is not in the form") for it in unknown)
    texts = {name: [it for it in given if it] for name, given in options.items()}
    flags = [name for name, given in texts.items() if given and not rows[name].value]
    RequestError.raise_if_any(Problem(where=it, fact="takes no value") for it in flags)
    return {name: given for name, given in texts.items() if given or not rows[name].value}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(it, str) for it in value)


def state_of(line: str) -> Json:
    """The form that a command line fills; where an answer goes is no part of it.

    Raises:
        RequestError: it is no command of the form, or has faults.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise RequestError([Problem(where="the line", fact=f"has {str(error).lower()}")]) from None
    said = parse(words[1:] if words[:1] == ["plan"] else words)
    if said.standing or said.command not in OFFERED:
        where, fact = said.standing or called(said.command), "is not in the form"
        said.problems = [Problem(where=where, fact=fact)]
    RequestError.raise_if_any(said.problems)
    rows = fields_of(said.command)
    return {
        "command": said.command,
        "options": {n: it for n, it in said.texts.items() if n in rows},
    }


def line_of(said: Said) -> str:
    """A command line, as it is typed: a value stands behind its option."""
    words = ["plan"]
    for word in said.words:
        name, _, text = word.partition("=")
        words += [name, text] if text and text[0] != "-" else [word]
    return shlex.join(words)


def form() -> Json:
    """All that a page needs to draw the form."""
    drawn = [{"name": it, "words": COMMANDS[it].words, "groups": [*_groups(it)]} for it in OFFERED]
    rows = {
        " ".join(row.values): (it, row.name) for it in OFFERED for row in fields_of(it).values()
    }
    lists = {
        key: completions([*called(it).split()[1:], name, ""]) for key, (it, name) in rows.items()
    }
    launched = [name for name in OFFERED if TABLE["launches"] in options_of(name)]
    beside = {"lists": lists, "launched": launched, "targets": TARGETS}
    return {"commands": drawn, "sliders": TABLE["sliders"], "examples": TABLE["example"], **beside}


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
    return {
        **{name: getattr(row, name) or "" for name in ("name", "value", "words", "usual")},
        "example": row.example.strip("'"),
        "repeats": row.gathers is not None,
        "list": " ".join(row.values),
        "is_closed": _is_closed(row),
        "is_pair": row.name in TABLE["pairs"].split(),
    }


def _is_closed(row: Option) -> bool:
    """Whether an option takes one of a few words, and no other."""
    try:
        row.reads("?!")
    except UnitError as error:
        return error.fact.startswith("no such") and "," not in row.value
    return False
