"""Cluster files that describe many clusters: one name with placeholders, and their values.

A file whose name is `tpu-v4-{x}x{y}x{z}` has a table `[pattern]` that lists what each
placeholder may be. A name that fits stands for the same file with the values filled in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path

from planner.errors import Problem
from planner.specs.files.places import Kind, files
from planner.specs.files.tables import Table, is_count, literal, read_table, value_at

WITH_PATTERNS = (Kind.CLUSTER, Kind.FABRIC)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_MAX_VALUES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A name with placeholders.

    Args:
        name: such as `dgx-a100-x{n}`.
        allowed: the values of each placeholder, in the order in which they stand.
    """

    name: str
    allowed: dict[str, tuple[int, ...]]

    def match(self, name: str) -> dict[str, int] | None:
        """The number at each placeholder, allowed or not; None if the name does not fit."""
        match = _matched(self.name, name)
        if match is None:
            return None
        return dict(zip(self.allowed, map(int, match.groups()), strict=True))

    def fill(self, values: dict[str, int]) -> str:
        return fill(self.name, values)

    def instances(self) -> Iterator[dict[str, int]]:
        """All values that the placeholders may take together."""
        for values in product(*self.allowed.values()):
            yield dict(zip(self.allowed, values, strict=True))

    def some_names(self, n_names: int) -> list[str]:
        return [self.fill(values) for values in islice(self.instances(), n_names)]

    def disallowed(self, values: dict[str, int]) -> list[str]:
        return [key for key, value in values.items() if value not in self.allowed[key]]

    def nearest(self, values: dict[str, int]) -> str:
        """The name nearest to one whose values are not all allowed."""
        return self.fill(
            {
                key: min(self.allowed[key], key=lambda other: (abs(other - value), other))
                for key, value in values.items()
            }
        )


def patterns(
    kind: Kind, *, within: tuple[Path, ...] | None = None
) -> Iterator[tuple[Path, Pattern]]:
    """Files that describe many clusters by one name; those with faults are left out.

    Args:
        kind: what they describe; only clusters and fabrics have patterns.
        within: folders to look in; all of the kind's where it is left out.
    """
    for path in files(kind, within=within) if kind in WITH_PATTERNS else ():
        table, _ = read_table(path, path.name)
        if is_pattern(table):
            pattern, _ = read_pattern(table, path.name)
            if pattern is not None:
                yield path, pattern


def name_of(table: Table, section: str = "cluster") -> str:
    """The name that a file gives itself, as far as it gives one."""
    name = value_at(table, section, "name")
    return name if isinstance(name, str) else ""


def is_pattern(table: Table) -> bool:
    return "pattern" in table or _PLACEHOLDER.search(name_of(table)) is not None


def fits(table: Table, name: str) -> bool:
    """Whether a file's name has placeholders that numbers of this name stand at, allowed or not."""
    written = name_of(table)
    return _PLACEHOLDER.search(written) is not None and _matched(written, name) is not None


def _matched(written: str, name: str) -> re.Match[str] | None:
    """The numbers of a name at the placeholders of a written one."""
    pieces = _PLACEHOLDER.split(written)
    expression = "".join(
        re.escape(piece) if i % 2 == 0 else "(0|[1-9][0-9]{0,8})" for i, piece in enumerate(pieces)
    )
    return re.fullmatch(expression, name)


def read_pattern(table: Table, shown: str) -> tuple[Pattern | None, tuple[Problem, ...]]:
    """The pattern of a cluster file, or what is wrong with it."""
    name, listed = name_of(table), table.get("pattern", {})
    placeholders, wrong = _PLACEHOLDER.findall(name), partial(Problem, where=shown)
    if not isinstance(listed, dict):
        return None, (wrong(key="pattern", value=literal(listed), fact="is not a table"),)
    problems = []
    if not placeholders and not listed:
        fact, remedy = "has no values", "name them, and write `{n}` in `cluster.name`"
        problems.append(wrong(key="pattern", fact=fact, remedy=remedy))
    for key in sorted(listed.keys() - set(placeholders)):
        fact, remedy = "is no placeholder of the name", f"write `{{{key}}}` in `cluster.name`"
        problems.append(wrong(key=f"pattern.{key}", fact=fact, remedy=remedy))
    if len(set(placeholders)) < len(placeholders):
        problems.append(wrong(key="cluster.name", value=name, fact="repeats a placeholder"))
    allowed = {key: _values(listed.get(key)) for key in placeholders}
    for key in (key for key in placeholders if not allowed[key]):
        remedy = f"list them, like `{key} = [1, 2, 4]` or `{key} = {{ from = 1, to = 16 }}`"
        fact, value = "has no list of positive whole numbers", literal(listed.get(key, ""))
        problems.append(wrong(key=f"pattern.{key}", value=value, fact=fact, remedy=remedy))
    return None if problems else Pattern(name=name, allowed=allowed), tuple(problems)


def fill(text: str, values: dict[str, int]) -> str:
    """A text with the placeholders that have values replaced by them."""
    return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), text)


def substitute(table: Table, values: dict[str, int]) -> Table:
    """The file of one cluster: a text that is one placeholder becomes a number."""
    filled = _substitute({k: v for k, v in table.items() if k != "pattern"}, values)
    assert isinstance(filled, dict)
    return filled


def _substitute(node: object, values: dict[str, int]) -> object:
    if isinstance(node, dict):
        return {key: _substitute(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_substitute(value, values) for value in node]
    if not isinstance(node, str):
        return node
    alone = _PLACEHOLDER.fullmatch(node)
    if alone and alone[1] in values:
        return values[alone[1]]
    return fill(node, values)


def _values(listed: object) -> tuple[int, ...]:
    """Allowed values from a list or from `{ from = 1, to = 16 }`; empty if they are neither."""
    if isinstance(listed, dict) and listed.keys() == {"from", "to"}:
        low, high = listed["from"], listed["to"]
        if not (is_count(low) and is_count(high)) or high - low >= _MAX_VALUES:
            return ()
        return tuple(range(low, high + 1))
    if isinstance(listed, list) and all(map(is_count, listed)):
        return tuple(sorted(set(listed)))
    return ()
