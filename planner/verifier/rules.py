"""Which field of an answer is judged how; docs/verification.md has a table of it for each record.

counted     follows from the request and from what was chosen, and is counted anew
asked       has to be what the request says
chosen      is free, but has to be a choice that the request and the cluster allow
proved      says that nothing is better, or counts a search: a new search alone can judge it
unverified  nobody can judge it: seconds of a solver, how many programs it had, its notes
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from planner.quantities.tables import packaged_table
from planner.verifier.findings import Finding

COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED = "counted", "asked", "chosen", "proved", "unverified"
RULES = (COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the fields of a record are judged: names, by rule; all others are counted.

    Args:
        by: of an answer, who judges it: by module of `planner` and name.
    """

    asked: str = ""
    chosen: str = ""
    proved: str = ""
    unverified: str = ""
    by: str = ""

    def names(self, rule: str) -> tuple[str, ...]:
        """Those of a rule that is not `counted`."""
        return tuple(getattr(self, rule).split())


TABLES = packaged_table("verifier/rules.toml")

FIELDS: Mapping[str, Rules] = {
    **dict.fromkeys(TABLES["counted"].split(), Rules()),
    **{name: Rules(**row) for name, row in TABLES["records"].items()},
}
"""Every record of every kind of answer that can be verified, by name, and how its fields are
judged; what they are counted from, docs/verification.md says."""


Judge = Callable[[Any], tuple[Any, list[Finding]]]
"""From an answer to the one that is true of what was chosen, and all that is not so in it."""


def judge_of(record: type) -> Judge | None:
    """Who judges answers of a record; None if nobody can."""
    module, _, name = FIELDS.get(record.__name__, Rules()).by.rpartition(".")
    judge: Judge | None = getattr(import_module(module), name) if module else None
    return judge


@cache
def rule_of(record: type, name: str) -> str:
    """The rule of a field; of records of requests and of kinds that are not verified `asked`."""
    rules = FIELDS.get(record.__name__)
    if rules is None:
        return ASKED
    return next((rule for rule in RULES[1:] if name in rules.names(rule)), COUNTED)
