"""Every option of the command line: the one table behind reading, help and completion."""

from collections.abc import Mapping
from functools import cache

from planner.specs.options.option import Option
from planner.specs.options.table import answers, deployed, measuring, search, serving, targets

HEADINGS: dict[str, tuple[Option, ...]] = {
    "What was measured": (*measuring.TABLES, *measuring.TIMING),
    "What is to be placed": measuring.LOADS,
    "What to serve": (*serving.SERVED, *deployed.AUDITED),
    "What to verify": serving.VERIFIED,
    "Which kernels": measuring.KERNELS,
    "Where": measuring.RANKS,
    "Targets": targets.TARGETS,
    "Targets by percentile": targets.PERCENTILES,
    "How it is deployed": deployed.DEPLOYED,
    "Search": (*measuring.BALANCE, *search.SEARCH),
    "Solver": answers.SOLVER,
    "Output": answers.OUTPUT,
}
"""Options by their heading in help, in the order in which help has them."""

_ROWS: dict[str, dict[str, Option]] = {}
"""By name, then by command; of all others where empty."""

for _rows in HEADINGS.values():
    for _row in _rows:
        for _command in _row.of or ("",):
            _ROWS.setdefault(_row.name, {})[_command] = _row


def option_of(command: str, name: str) -> Option:
    """What an option is to a command: the row of that command, or else the row of all others."""
    rows = _ROWS[name]
    return rows[command] if command in rows else rows[""]


def named(*groups: tuple[Option, ...]) -> tuple[str, ...]:
    """Names of the options of groups, each once."""
    return tuple(dict.fromkeys(row.name for rows in groups for row in rows))


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
