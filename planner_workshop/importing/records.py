"""What a text says of a cluster, whatever its format: its servers, and the network they are on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.report.words import plural
from planner.specs.files.tables import literal


class Read(NamedTuple):
    """A number of a text, and the line that has it."""

    value: float
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A machine with devices; empty, or None, is what the text does not say.

    Args:
        line: where it is named.
        product: its devices, as the text calls them.
        memory_bytes: of one device; `host_bytes`: of the machine.
        leaf: the switch, or the set of rails, nearest to it.
        domain: what its devices share with other servers: an NVLink fabric, or a slice of a torus.
        shape: of that slice, in devices along each axis.
        state: `failed` or `reserved`, and `why`.
    """

    name: str
    line: int
    product: str = ""
    n_devices: int | None = None
    memory_bytes: float | None = None
    host_bytes: float | None = None
    leaf: str = ""
    domain: str = ""
    shape: tuple[int, ...] = ()
    state: str = ""
    why: str = ""


@dataclass(slots=True, kw_only=True)
class ClusterText:
    """A text, and what its reader makes of it.

    Args:
        shown: the file as the user wrote it.
        network: `port_bytes_per_s` one way, `n_ports` of a server, `n_rails` of a leaf,
            `oversubscription` of a leaf's links up.
        n_links: NVLinks between each two devices of a server, n × n, from `links_line` on.
        notes: what has no place in a topology.
        problems: what is wrong.
    """

    shown: str
    text: str
    servers: list[Server] = field(default_factory=list)
    network: dict[str, Read] = field(default_factory=dict)
    n_links: Sequence[Sequence[int]] = ()
    links_line: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        return Path(self.shown).name

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, from 1."""
        return enumerate(self.text.splitlines(), 1)

    def at(self, line: int) -> str:
        """A line as the source of a value: `nodes.json:12`."""
        return f"{self.name}:{line}"

    def lines_of(self, key: str) -> Mapping[str, int]:
        """Of JSON: the first line of each text that stands under a key."""
        lines: dict[str, int] = {}
        for number, line in self.lines():
            for text in re.findall(rf'"{key}":\s*"([^"]*)"', line):
                lines.setdefault(text, number)
        return lines

    def refuse(self, line: int, fact: str, remedy: str = "", value: object = "") -> None:
        """Keep what is wrong at a line, or with the whole text where that is 0."""
        where = f"{self.shown}:{line}" if line else self.shown
        shown = literal(value)
        self.problems.append(Problem(where=where, value=shown, fact=fact, remedy=remedy))

    def note(self, number: int, word: str, what: str) -> None:
        """Keep how many of something have no place in a topology, if there are any."""
        self.notes += [f"{plural(number, word)} {what}"] if number else []


@cache
def names() -> Mapping[str, Any]:
    """What is known of names, labels and rates: names.toml."""
    return packaged_table("importing/names.toml", "planner_workshop")


def words(key: str, *about: object) -> str:
    """A message of names.toml."""
    return str(names()["words"][key]).format(*about)


def natural(name: str) -> list[tuple[int, str]]:
    """A name by which `n2` comes before `n10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def most_common(counts: Sequence[int]) -> int:
    """The value that stands most often, the largest of those that stand as often."""
    return max(set(counts), key=lambda value: (counts.count(value), value))
