"""Names and titles of what can be planned with; files are read, but not validated."""

from dataclasses import dataclass

from planner.specs.files.patterns import is_pattern, name_of, read_pattern
from planner.specs.files.places import Kind, files, shown_path
from planner.specs.files.tables import Table, read_table, value_at
from planner.specs.files.texts import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One file in a list.

    Args:
        name: what to write to have it; of a pattern, the name with its placeholders.
        title: what it is called in reports; of a pattern, empty.
        description: one line about it, or why its file cannot be read.
        examples: of a pattern, names that fit it.
        file: the file that says so.
    """

    name: str
    title: str
    description: str
    examples: tuple[str, ...]
    file: str


def variants_of(name: str) -> tuple[str, ...]:
    """Names of the models that can be named and say that they are variants of this one."""
    names = []
    for path in files(Kind.MODEL):
        table, _ = read_table(path, shown_path(path))
        if value_at(table, "variant", "of") == name:
            names.append(path.stem)
    return tuple(dict.fromkeys(names))


def list_files(kind: Kind) -> tuple[Listing, ...]:
    """What can be named of a kind, that of the working folder first."""
    section = "cluster" if kind in (Kind.CLUSTER, Kind.FABRIC) else kind.word
    listings = []
    for path in files(kind):
        shown = shown_path(path)
        table, problems = read_table(path, shown)
        if not problems and is_pattern(table):
            _, problems = read_pattern(table, shown)
        if problems:
            why = f"cannot be read: {problems[0].fact}"
            listing = Listing(name=path.stem, title="", description=why, examples=(), file=shown)
        else:
            listing = _listing(table, section, stem=path.stem, shown=shown)
        listings.append(listing)
    return tuple(listings)


def _listing(table: Table, section: str, *, stem: str, shown: str) -> Listing:
    many, listed = is_pattern(table), value_at(table, section, "examples")
    examples = listed if isinstance(listed, list) else []
    return Listing(
        name=visible(name_of(table, section) if many else stem),
        title="" if many else visible(str(value_at(table, section, "title", default=""))),
        description=visible(str(value_at(table, section, "description", default=""))),
        examples=tuple(text for text in examples if isinstance(text, str)),
        file=shown,
    )
