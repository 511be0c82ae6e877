"""What names mean: files, clusters of patterns.

A path stands for itself: it ends in `.toml` or `.json`, or holds a separator. A name is looked up
in `./models` or `./topologies` of the working folder, then in the folders of
`$PLANNER_PATH`, then among the files that come with the planner; the first one wins.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import Use
from planner.specs.files.listing import did_you_mean
from planner.specs.files.patterns import (
    WITH_PATTERNS,
    Pattern,
    fits,
    is_pattern,
    patterns,
    read_pattern,
)
from planner.specs.files.places import (
    Kind,
    exists,
    files,
    folders,
    is_folder,
    is_path,
    shipped_as,
    shown_path,
)
from planner.specs.files.tables import literal, read_table

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
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

    def use(self, kind: Kind) -> Use:
        """What a request uses it for, once it reads it."""
        return Use(kind=kind.word, name=self.name, replaces=self._hidden(kind))

    def _hidden(self, kind: Kind) -> str:
        """The file that ships and that would have been found if this one were not there."""
        if not self.name or shipped_as(self.path):
            return ""
        with suppress(SpecError):
            hidden = _first(kind, self.name, folders(kind)[-1:], asked_by="")
            return shipped_as(hidden.path) if hidden else ""
        return ""


def find(kind: Kind, name: str, *, asked_by: str) -> SpecFile:
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
        return SpecFile(path=Path(name), shown=name)
    file = find_named(kind, name, asked_by=asked_by)
    if file is None:
        raise _unknown(kind, name, asked_by=asked_by)
    return file


def find_named(kind: Kind, name: str, *, asked_by: str) -> SpecFile | None:
    """The file that a name stands for; None where there is none, which may be no fault.

    Raises:
        SpecError: a value of its pattern is not allowed.
    """
    return _first(kind, name, folders(kind), asked_by=asked_by)


def _first(kind: Kind, name: str, within: tuple[Path, ...], *, asked_by: str) -> SpecFile | None:
    """The file of a name in the first folder that has one: its own, or that of a pattern.

    Raises:
        SpecError: a value of the pattern is not allowed.
    """
    exact = next((n for n, one in enumerate(within) if exists(one / f"{name}.toml")), len(within))
    for path, pattern in patterns(kind, within=within[:exact]):
        values = pattern.match(name)
        if values is None:
            continue
        if pattern.disallowed(values):
            raise _disallowed(pattern, values, asked_by=asked_by)
        return SpecFile(path=path, shown=shown_path(path), name=name, values=values)
    if exact < len(within):
        return _found_by_name(kind, within[exact] / f"{name}.toml", name)
    return None


def _found_by_name(kind: Kind, path: Path, name: str) -> SpecFile:
    """A file named without a number, `gb200-nvl72`, stands for its smallest cluster: one of it."""
    if kind in WITH_PATTERNS:
        table, _ = read_table(path, path.name)
        pattern = read_pattern(table, path.name)[0] if is_pattern(table) else None
        if pattern is not None and len(pattern.allowed) == 1:
            values = next(pattern.instances())
            return SpecFile(
                path=path, shown=shown_path(path), name=pattern.fill(values), values=values
            )
    return SpecFile(path=path, shown=shown_path(path), name=name)


def _spoilt(kind: Kind, name: str) -> tuple[list[Problem], list[Problem]]:
    """Faults of files that a name may mean, and of the user's others, none of which has names.

    Of a file the TOML or the pattern cannot be read. One of the planner's own is passed over
    unless it is the one that is meant.
    """
    meant: list[Problem] = []
    others: list[Problem] = []
    for path in files(kind):
        table, faults = read_table(path, shown_path(path))
        if not faults and kind in WITH_PATTERNS and is_pattern(table):
            _, faults = read_pattern(table, shown_path(path))
        if faults and (name == path.stem or name.startswith(f"{path.stem}-") or fits(table, name)):
            meant += faults
        elif faults and not shipped_as(path):
            others += faults
    return meant, others


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
        sorted(other.name for other in path.parent.glob("*.toml")) if is_folder(path.parent) else []
    )
    close = get_close_matches(path.name, beside, n=1)
    meant = str(path.with_name(close[0])) if close else ""
    if not meant and path.stem in {file.stem for file in files(kind)}:
        meant = path.stem
    hint = f"did you mean `{meant}`?" if meant else ""
    return SpecError([Problem(where=literal(name), fact="no such file")], hint=hint)


def _unknown(kind: Kind, name: str, *, asked_by: str) -> SpecError:
    if kind is Kind.CLUSTER and (fact := _fabric_words(name)):
        remedy = f"`plan place --topology {name}` places on it"
        return SpecError([Problem(where=asked_by, value=literal(name), fact=fact, remedy=remedy)])
    fact = f"no such {kind.word}" if name.strip() else "is empty"
    problem = Problem(where=asked_by, value=literal(name), fact=fact)
    spoilt, others = _spoilt(kind, name)
    if spoilt:
        return SpecError(spoilt)  # there is such a file, and it has faults
    here = name.strip() and name == Path(name).name and exists(Path(name))
    by_option = asked_by == f"--{kind.word}"
    meant = did_you_mean(kind, name, by_option=by_option)
    meant = f"did you mean `./{name}`?" if here else meant
    lister = f"`{kind.lister}` lists them all" if kind.lister else "" if meant else _listing(kind)
    return SpecError([problem, *others], hint=" ".join(filter(None, (meant, lister))))


def _fabric_words(name: str) -> str:
    """What a name stands for that fabrics have and clusters do not; empty of any other."""
    if "+" in name:
        return "is several fabrics"
    named = any(path.stem == name for path in files(Kind.FABRIC))
    is_fabric = named or any(pattern.match(name) for _, pattern in patterns(Kind.FABRIC))
    return "is a fabric of leaves" if is_fabric else ""


def _listing(kind: Kind) -> str:
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
