"""Requests of a sweep: options as the command line has them, from a grid, a list or both.

command = "plan"                       # or place, or fleet
[options]                              # of every request
latency-target = "30ms"
[grid]                                 # every combination of the values of these
model = ["llama-3.1-8b", "qwen3-8b"]
workload = [{input = 512, output = 128}, {input = 4096, output = 512}]
[[request]]                            # one by one
model = "palm-540b"
"""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import or_
from pathlib import Path
from typing import Any

from planner.commands.options.commands import ALONE, typed
from planner.errors import Problem, RequestError, SpecError
from planner.specs.files.tables import literal, read_table
from planner.specs.validation.problems import did_you_mean

SWEPT = ("plan", "place", "fleet")
"""Commands whose answer is a plan."""

MOST_REQUESTS = 100_000
_SECTIONS = ("command", "options", "grid", "request")

_Options = dict[str, tuple[object, str]]
"""Values by option, `command` among them, each with the key at which it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """A command line, and where its options are written.

    Args:
        words: after `plan`.
        places: keys in the file, by option.
        shown: the file, or what else holds the requests.
    """

    words: tuple[str, ...]
    places: Mapping[str, str] = field(default_factory=dict)
    shown: str = "requests"

    @property
    def command(self) -> str:
        return shlex.join(["plan", *self.words])

    def located(self, problem: Problem) -> Problem:
        """A problem of an option as a problem of the place at which that is written."""
        key = self.places.get(problem.where)
        return problem if key is None else replace(problem, where=self.shown, key=key)


def load_sweep(path: str | Path) -> list[SweepRequest]:
    """The requests of a file, those of its grid first.

    Raises:
        SpecError: no such file, or it holds no requests; every fault is listed.
    """
    shown = str(path)
    table, problems = read_table(Path(path), shown)
    reader = RequestReader(shown, [*problems])
    made = [] if problems else reader.requests(table)
    if not (made or reader.problems):
        reader.refuse("", "holds no request", "write a `[grid]`, or `[[request]]`")
    if reader.problems:
        raise SpecError(reader.problems)
    return made


def requests_of(listed: Iterable[Mapping[str, object]]) -> list[SweepRequest]:
    """The requests of a program: options by name, `latency_target` or `latency-target`.

    Raises:
        RequestError: some are none; every fault is listed.
    """
    reader = RequestReader("requests", [])
    made = [reader.request(_placed(one, f"[{i}]")) for i, one in enumerate(listed)]
    if reader.problems:
        raise RequestError(reader.problems)
    return made


def _placed(options: Mapping[str, object], key: str) -> _Options:
    return {name: (value, f"{key}.{name}".lstrip(".")) for name, value in options.items()}


@dataclass(slots=True)
class RequestReader:
    """Tables to requests, and what is wrong with them.

    Args:
        shown: the file, as the user knows it.
        problems: of what was read so far.
        commands: whose requests may be here.
        verb: what is done with them, for messages.
        alone: options that mean nothing to many requests at once.
    """

    shown: str
    problems: list[Problem]
    commands: tuple[str, ...] = SWEPT
    verb: str = "swept"
    alone: frozenset[str] = ALONE

    def refuse(self, key: str, fact: str, remedy: str = "", *, value: object = "") -> None:
        problem = Problem(where=self.shown, key=key, value=literal(value), fact=fact, remedy=remedy)
        self.problems.append(problem)

    def requests(self, table: dict[str, Any]) -> list[SweepRequest]:
        for key in table.keys() - set(_SECTIONS):
            self.refuse(key, "means nothing in a sweep", did_you_mean(key, _SECTIONS))
        listed = table.get("request", [])
        if not (isinstance(listed, list) and all(isinstance(one, dict) for one in listed)):
            self.refuse("request", "is no list of requests", "begin each with `[[request]]`")
            listed = []
        shared = _placed(self._section(table, "options"), "options")
        shared["command"] = (table.get("command", "plan"), "command")
        axes = [self._axis(*one) for one in self._section(table, "grid").items()]
        n_requests = math.prod(map(len, axes)) * bool(axes) + len(listed)
        if n_requests > MOST_REQUESTS:
            self.refuse("grid", f"holds {n_requests:,} requests: at most {MOST_REQUESTS:,}")
            return []
        points = [reduce(or_, one) for one in product(*axes)] if axes else []
        points += [_placed(one, f"request[{i}]") for i, one in enumerate(listed)]
        return [self.request(shared | one) for one in points]

    def _section(self, table: dict[str, Any], name: str) -> dict[str, object]:
        section = table.get(name, {})
        if isinstance(section, dict):
            return section
        self.refuse(name, "is no table", f"write `[{name}]` above its options")
        return {}

    def _axis(self, name: str, values: object) -> list[_Options]:
        """The choices of an axis: values of an option, or tables of several options."""
        if not isinstance(values, list) or not values:
            shown = literal(values) or "…"
            remedy = f"write `{name} = [{shown}]`, or write it under `[options]`"
            self.refuse(f"grid.{name}", "is no list of values", remedy)
            return []
        keys = [f"grid.{name}[{i}]" for i in range(len(values))]
        return [
            _placed(value, key) if isinstance(value, dict) else {name: (value, key)}
            for value, key in zip(values, keys, strict=True)
        ]

    def request(self, options: _Options) -> SweepRequest:
        command, key = options.get("command", ("plan", "command"))
        if command not in self.commands:
            remedy = f"write one of {', '.join(self.commands)}"
            self.refuse(key, f"is no command that is {self.verb}", remedy, value=command)
        words = [] if command == "plan" else [str(command)]
        places: dict[str, str] = {}
        for name, (value, key) in options.items():
            if name == "command":
                continue
            said = typed(name)
            if said in self.alone:
                kept = ": `--keep answers` keeps them all" * (self.verb == "swept")
                remedy = f"leave it out{kept}"
                self.refuse(key, "is of an answer alone", remedy)
            elif said in places:
                self.refuse(key, f"is `{places[said]}` too", "write one of both")
            places[said] = key
            words += self._typed(said, value, key)
        return SweepRequest(words=tuple(words), places=places, shown=self.shown)

    def _typed(self, name: str, value: object, key: str) -> Iterator[str]:
        """The words of an option: once for each value of a list, none where it is false."""
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, bool):
                yield from [name] * entry
            elif isinstance(entry, str | int | float):
                yield from [f"{name}={entry}"] if str(entry).startswith("-") else [name, str(entry)]
            else:
                self.refuse(key, "is no value of an option", value=entry)
