"""Where files are, and what names mean.

A path stands for itself: it ends in `.toml` or `.json`, or holds a separator. A name is looked up
in `./models` or `./topologies` of the working folder, then in the folders of
`$PLANNER_PATH`, then among the files that come with the planner; the first one wins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.patterns import Pattern, is_pattern, read_pattern
from planner.specs.tables import literal, read_table

SEARCH_PATH = "PLANNER_PATH"

_MAX_NAMED = 5


class Kind(Enum):
    """What a file describes: the word for it, its folder, and the command that lists them."""

    MODEL = ("model", "models", "plan models")
    CLUSTER = ("topology", "topologies", "plan topologies")
    FABRIC = ("fabric", "topologies/fabrics", "")
    DEVICE = ("device", "topologies/devices", "plan devices")
    KERNELS = ("kernel table", "kernels", "")
    ENGINE = ("engine", "engines", "")

    def __init__(self, word: str, folder: str, lister: str) -> None:
        self.word = word
        self.folder = folder
        self.lister = lister


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file, and how it was asked for.

    Args:
        path: where it is.
        shown: where it is, as the user knows it.
        name: the name that it was found by; empty if it was given as a path.
        values: of the placeholders of a pattern.
    """

    path: Path
    shown: str
    name: str = ""
    values: dict[str, int] = field(default_factory=dict)


def find(kind: Kind, name: str, *, asked_by: str) -> Found:
    """The file that a name or a path stands for.

    Args:
        kind: what is looked for.
        name: a name, or the path of a file.
        asked_by: option or key that named it, for messages.

    Raises:
        SpecError: there is no such file, or a value of its pattern is not allowed.
    """
    if is_path(name):
        if not exists(Path(name)):
            raise _no_such_file(kind, name)
        return Found(path=Path(name), shown=name)
    for folder in folders(kind):
        path = folder / f"{name}.toml"
        if exists(path):
            return _found_by_name(kind, path, name)
    for path, pattern in patterns(kind):
        values = pattern.match(name)
        if values is None:
            continue
        if pattern.disallowed(values):
            raise _disallowed(pattern, values, asked_by=asked_by)
        return Found(path=path, shown=shown_path(path), name=name, values=values)
    raise _unknown(kind, name, asked_by=asked_by)


def _found_by_name(kind: Kind, path: Path, name: str) -> Found:
    """A file named without a number, `gb200-nvl72`, stands for its smallest cluster: one of it."""
    if kind in (Kind.CLUSTER, Kind.FABRIC):
        table, _ = read_table(path, path.name)
        pattern = read_pattern(table, path.name)[0] if is_pattern(table) else None
        if pattern is not None and len(pattern.allowed) == 1:
            values = next(pattern.instances())
            return Found(
                path=path, shown=shown_path(path), name=pattern.fill(values), values=values
            )
    return Found(path=path, shown=shown_path(path), name=name)


def is_path(name: str) -> bool:
    separators = {os.sep, os.altsep, "/"} - {None}
    is_file = name.endswith((".toml", ".json"))
    return is_file or any(separator in name for separator in separators if separator)


def folders(kind: Kind) -> tuple[Path, ...]:
    """Folders that may hold files of a kind, the first to be searched first."""
    roots = [Path(), *map(Path, filter(None, os.environ.get(SEARCH_PATH, "").split(os.pathsep)))]
    found: dict[str, Path] = {}
    for folder in [*(root / kind.folder for root in roots), _shipped(kind)]:
        if _is_dir(folder):
            found.setdefault(os.path.realpath(folder), folder)
    return tuple(found.values())


def files(kind: Kind) -> Iterator[Path]:
    """Files of a kind; one that is hidden by another of the same name is left out."""
    seen = set()
    for folder in folders(kind):
        for path in sorted(folder.glob("*.toml")):
            if path.name not in seen:
                seen.add(path.name)
                yield path


def patterns(kind: Kind) -> Iterator[tuple[Path, Pattern]]:
    """Files that describe many clusters by one name; those with faults are left out."""
    for path in files(kind) if kind in (Kind.CLUSTER, Kind.FABRIC) else ():
        table, _ = read_table(path, path.name)
        if is_pattern(table):
            pattern, _ = read_pattern(table, path.name)
            if pattern is not None:
                yield path, pattern


def shown_path(path: Path) -> str:
    """The path, relative to the working folder if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


def _shipped(kind: Kind) -> Path:
    """The files that come with the planner: inside it in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    packed = package / "_data"
    return (packed if packed.is_dir() else package.parent) / kind.folder


def exists(path: Path) -> bool:
    """Whether there is such a file; not if there cannot be."""
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a null character
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _disallowed(pattern: Pattern, values: dict[str, int], *, asked_by: str) -> SpecError:
    name, nearest = pattern.fill(values), pattern.nearest(values)
    problems = [
        Problem(
            where=asked_by,
            value=name,
            fact=f"`{key}` of `{pattern.name}` cannot be {values[key]}",
            remedy=f"it is {_listed(pattern.allowed[key])}",
        )
        for key in pattern.disallowed(values)
    ]
    return SpecError(problems, hint=f"did you mean `{nearest}`?")


def _no_such_file(kind: Kind, name: str) -> SpecError:
    from difflib import get_close_matches

    path = Path(name)
    beside = (
        sorted(other.name for other in path.parent.glob("*.toml")) if _is_dir(path.parent) else []
    )
    close = get_close_matches(path.name, beside, n=1)
    meant = str(path.with_name(close[0])) if close else ""
    if not meant and path.stem in {file.stem for file in files(kind)}:
        meant = path.stem
    hint = f"did you mean `{meant}`?" if meant else ""
    return SpecError([Problem(where=literal(name), fact="no such file")], hint=hint)


def _unknown(kind: Kind, name: str, *, asked_by: str) -> SpecError:
    if kind is Kind.CLUSTER and _is_fabric(name):
        remedy = f"`plan place --topology {name}` places on it"
        fact = "is a fabric of leaves"
        return SpecError([Problem(where=asked_by, value=literal(name), fact=fact, remedy=remedy)])
    fact = f"no such {kind.word}" if name.strip() else "is empty"
    problem = Problem(where=asked_by, value=literal(name), fact=fact)
    close = _closest(kind, name)
    meant = f"did you mean `{close}`?" if close else ""
    lister = f"`{kind.lister}` lists them all" if kind.lister else "" if close else _known(kind)
    return SpecError([problem], hint=" ".join(filter(None, (meant, lister))))


def _is_fabric(name: str) -> bool:
    """Whether fabrics have a name that clusters do not."""
    named = any(path.stem == name for path in files(Kind.FABRIC))
    return named or any(pattern.match(name) for _, pattern in patterns(Kind.FABRIC))


def _closest(kind: Kind, name: str) -> str:
    """The nearest name; of a topology, fabrics too: `plan place` looks among both."""
    from difflib import get_close_matches

    known = _names(kind)
    if name.lower() in known:
        return name.lower()
    longer = [one for one in known if name and one.startswith(f"{name.lower()}-")]
    if longer:
        return longer[-1]
    others = _names(Kind.FABRIC) if kind is Kind.CLUSTER else []
    return next(iter(get_close_matches(name, [*known, *others], n=1, cutoff=0.5)), "")


def _names(kind: Kind) -> list[str]:
    """Names that files of a kind have; of patterns, a thousand each at most."""
    names = [path.stem for path in files(kind)]
    for path, pattern in patterns(kind):
        names.remove(path.stem)
        names += pattern.some_names(1_000)
    return names


def _known(kind: Kind) -> str:
    """Names of a kind that no command lists; a few of them, if there are many."""
    names = sorted(path.stem for path in files(kind))
    n_others = max(0, len(names) - _MAX_NAMED)
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_NAMED])
    return f"there are {listed}{f' and {n_others} others' if n_others else ''}" if names else ""


def _listed(values: tuple[int, ...]) -> str:
    if len(values) > 2 and values == tuple(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    *some, last = map(str, values)
    return f"{', '.join(some)} or {last}" if some else last
