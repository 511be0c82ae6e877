"""Conflicts searched again: that there is no plan, which limits conflict, what would have one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from planner.errors import NoPlanError
from planner.planning.plans import decide
from planner.planning.proving import comparing
from planner.report.launch.telling import as_written
from planner.report.words import plural
from planner.results.conflicts import UNEXPLAINED, Conflict
from planner.running.deadlines import within
from planner.verifier.findings import Finding


def conflict_again(says: Conflict) -> comparing.Again:
    """The same search, with the time that it had."""
    try:
        with within(says.request.options.time_limit_s):
            best = decide(comparing.named_again(says)).deployment
    except NoPlanError as error:
        conflict = _as_named(says, cast("Conflict", error.conflict))
    else:
        fact = f"is of a request that has a plan: {best.summary}"
        return comparing.Again(findings=(Finding(path=("cores",), says=str(says), fact=fact),))
    if UNEXPLAINED in (says.verified, conflict.verified):
        return comparing.Again(proofs=("searched again: no plan; time ended before why",))
    sets, changes = len(conflict.cores), len(conflict.relaxations)
    told = f"searched again: no plan, {plural(sets, 'set')} of limits that conflict, of which none"
    told += f" can be left out, {plural(changes, 'least change')} that have a plan"
    return comparing.Again(findings=tuple(_differences(says, conflict)), proofs=(told,))


def _as_named(says: Conflict, conflict: Conflict) -> Conflict:
    """With the files in its commands as they are named in the other."""
    pairs = zip(says.relaxations, conflict.relaxations, strict=False)
    relaxed = (replace(it, command=as_written(said.command, it.command)) for said, it in pairs)
    command = as_written(says.command, conflict.command)
    whole = (*relaxed, *conflict.relaxations[len(says.relaxations) :])
    return replace(conflict, command=command, relaxations=whole)


def _differences(says: Conflict, conflict: Conflict) -> Iterator[Finding]:
    yield from comparing.proved_fields(says, conflict)
    yield from comparing.same_fields(says, conflict, "obstacles", "relaxations")
    for i, pair in enumerate(zip(says.relaxations, conflict.relaxations, strict=False)):
        ours, again = ([change.name for change in it.changes] for it in pair)
        here = ("relaxations", str(i), "changes")
        yield from comparing.same(", ".join(ours), ", ".join(again), here)
