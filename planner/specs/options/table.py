"""Every option of the command line: the one table behind reading, help and completion.

Rows are in `options.toml`, by groups; limits and percentiles are those of the quantities there are.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from planner.quantities.table import Quantity, limited, objectives
from planner.quantities.tables import packaged_table
from planner.specs.options import counts, option, readers
from planner.specs.options.option import Option
from planner.specs.records.roles import ROUTERS
from planner.specs.records.runtimes import ENGINES, TARGETS
from planner.specs.traffic.percentiles import USUAL_TARGETS

_LISTS = {
    "{listed}": ", ".join(ENGINES),
    "{either}": f"{', '.join(ENGINES[:-1])} or {ENGINES[-1]}",
    "{objectives}": f"{', '.join(objectives()[:-1])} or {objectives()[-1]}",
    "{routers}": ", ".join(ROUTERS),
    "{targets}": ", ".join(TARGETS),
}
"""What stands in the words of a row for names that are listed elsewhere."""


def _reader(said: Any) -> Callable[..., Any]:  # noqa: ANN401
    """A reader by its name; of a list, made of what stands behind the name."""
    name, *parts = [said] if isinstance(said, str) else said
    made: Callable[..., Any] = next(
        getattr(module, name) for module in (readers, counts, option) if hasattr(module, name)
    )
    if name == "by_name":
        parts[0] = _reader(parts[0])
    return made(*parts) if parts else made


def _row(row: Mapping[str, Any]) -> Option:
    said = {**row, **{name: tuple(row.get(name, "").split()) for name in ("of", "values")}}
    for reads in (row.get("reads"), row.get("gathers")):
        if isinstance(reads, list) and reads[0] in ("one_of", "word_of", "words_of"):
            said["values"] = tuple(reads[2:])
    for name in ("reads", "gathers", "writes"):
        if name in said:
            said[name] = _reader(said[name])
    for name, listed in _LISTS.items():
        said["words"] = said["words"].replace(name, listed)
    return Option(**said)


def _limit(quantity: Quantity) -> Option:
    return Option(
        f"{quantity.option} {quantity.metavar}",
        quantity.about,
        counts.count if quantity.is_count else readers.quantity(quantity.dimension),
        sets=f"Targets.{quantity.target}" if quantity.target else "",
        example=quantity.example,
    )


def _groups() -> Mapping[str, tuple[Option, ...]]:
    rows = packaged_table("specs/options/options.toml")
    groups = {name: tuple(map(_row, group)) for name, group in rows.items()}
    within = (
        Option(
            f"{name} TIME",
            f"{target.quantity.upper()} that {target.share * 100:g}% stay within.",
            readers.seconds,
        )
        for name, target in USUAL_TARGETS.items()
    )
    limits = tuple(_limit(quantity) for quantity in limited())
    return {**groups, "limits": limits, "percentiles": (*within, *groups["goodput"])}


GROUPS = _groups()
"""Options by the names of their groups."""

HEADINGS: dict[str, tuple[Option, ...]] = {
    heading: tuple(row for name in names.split() for row in GROUPS[name])
    for heading, names in packaged_table("specs/options/headings.toml").items()
}
"""Options by their heading in help, in the order in which help has them."""

_ROWS: dict[str, dict[str, Option]] = {}
"""By name, then by command; of all others where empty."""

for _rows in HEADINGS.values():
    for _one in _rows:
        for _command in _one.of or ("",):
            _ROWS.setdefault(_one.name, {})[_command] = _one


def option_of(command: str, name: str) -> Option:
    """What an option is to a command: the row of that command, or else the row of all others."""
    rows = _ROWS[name]
    return rows[command] if command in rows else rows[""]


def named(groups: str) -> tuple[str, ...]:
    """Names of the options of groups, `roles sorts`, each once."""
    return tuple(dict.fromkeys(row.name for name in groups.split() for row in GROUPS[name]))


def usual(name: str) -> str:
    """What an option is where it is left out, to commands that have no row of their own."""
    text = option_of("", name).usual
    assert text is not None
    return text


@cache
def set_by() -> Mapping[str, str]:
    """The option of each argument of the library, and of each field of a record, that one sets.

    Fields of `SolverOptions` and of roles are arguments of some functions by themselves.
    """
    rows = [row for rows in HEADINGS.values() for row in rows if row.sets]
    alone = ("SolverOptions.", "RoleOptions.")
    by_themselves = {
        row.sets.rpartition(".")[2]: row.name for row in rows if row.sets.startswith(alone)
    }
    return {**by_themselves, **{row.sets: row.name for row in rows}}
