"""Load rules of engines from TOML files: those that ship, and what a user's file changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.engines.rules import EngineRule
from planner.specs.finding import find
from planner.specs.kernels import EngineSpec
from planner.specs.places import Kind, is_as_shipped
from planner.specs.tables import read_table
from planner.specs.validation.files import validate
from planner.specs.validation.layouts import Section, lay_out
from planner.specs.validation.problems import Finding, did_you_mean

CUTS = "cuts"
"""The rules of cutting a model into equal parts, which every engine has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesFile:
    """A file of rules.

    Args:
        engine: whose rules; `all` of those of every engine.
        version: whose sources and flags were read.
        lifted: names of rules that do not count, of a user's file.
    """

    shown: str = ""
    engine: str
    version: str = ""
    rules: tuple[EngineRule, ...] = ()
    lifted: tuple[str, ...] = ()


lay_out(
    RulesFile,
    Section("rules", "engine version lift=lifted", sourced=False),
    Section("", "rule=rules", sourced=False),
)
lay_out(EngineRule, Section("", "name says require source when", sourced=False))


_CHANGES: ContextVar[RulesFile | None] = ContextVar("changed rules of engines", default=None)


def load_rules(name_or_path: str, *, asked_by: str = "--rules") -> RulesFile:
    """A file of rules, by a name such as `vllm-0.33.0` or its path.

    Raises:
        SpecError: there is none, or it has faults; all are listed.
    """
    found = find(Kind.RULES, name_or_path, asked_by=asked_by)
    if found.use(Kind.RULES).replaces and not is_as_shipped(found.path):
        fact, remedy = "hides rules that ship", "rename it, and give it to `--rules`"
        raise SpecError([Problem(where=found.shown, fact=fact, remedy=remedy)])
    table, unread = read_table(found.path, found.shown, use=found.use(Kind.RULES))
    file, faults = validate(RulesFile, table, found.shown, _named_twice) if table else (None, [])
    if file is None or unread or faults:
        raise SpecError([*unread, *faults])
    origin = "" if found.name else found.shown
    rules = tuple(replace(one, origin=origin) for one in file.rules)
    return replace(file, shown=found.shown, rules=rules)


def _named_twice(said: Mapping[str, Any]) -> Iterator[Finding]:
    names = [one.name for one in said.get("rules", ())]
    for name in dict.fromkeys(name for name in names if name and names.count(name) > 1):
        yield Finding("rule.name", "is named twice", value=name)


def changed_rules(
    name_or_path: str | None, *, engines: Sequence[str] = ()
) -> AbstractContextManager[None]:
    """Engines that are loaded within have what a user's file changes of their rules.

    The file is read at once.

    Args:
        engines: those that are asked, one of which has to be the file's; any where left out.

    Raises:
        SpecError: the file cannot be read, or changes nothing; all faults are listed.
    """
    changes = load_rules(name_or_path) if name_or_path else None
    if changes and engines and changes.engine not in engines:
        fact = f"changes rules of {changes.engine}, which is not asked"
        raise SpecError([Problem(where="--rules", value=changes.shown, fact=fact)])
    return _holding(changes)


@contextmanager
def _holding(changes: RulesFile | None) -> Iterator[None]:
    token = _CHANGES.set(changes)
    try:
        yield
    finally:
        _CHANGES.reset(token)


def with_rules(engine: EngineSpec, names: Sequence[str]) -> EngineSpec:
    """An engine with the rules of files, and with what a user's file changes of them.

    Raises:
        SpecError: there is no such file, it is of another engine, or it lifts what there is not.
    """
    read = [load_rules(name, asked_by="engine.rules") for name in names]
    rules = {one.name: one for file in read for one in file.rules}
    versions = [file.version for file in read if file.version]
    engine = replace(
        engine, rules=tuple(rules.values()), started_version=versions[-1] if versions else ""
    )
    changes = _CHANGES.get()
    is_changed = changes is not None and changes.engine == engine.name
    return _changed(engine, rules, changes) if changes and is_changed else engine


def _changed(engine: EngineSpec, rules: dict[str, EngineRule], changes: RulesFile) -> EngineSpec:
    """An engine without the rules that a user's file lifts, and with those that it adds."""
    if problems := list(_unliftable(changes, rules)):
        raise SpecError(problems)
    kept = {name: one for name, one in rules.items() if name not in changes.lifted}
    kept |= {one.name: replace(one, origin=changes.shown) for one in changes.rules}
    return replace(
        engine, rules=tuple(kept.values()), lifted=changes.lifted, rules_file=changes.shown
    )


def _unliftable(changes: RulesFile, rules: dict[str, EngineRule]) -> Iterator[Problem]:
    for name in changes.lifted:
        if name not in rules:
            fact, hint = f"is no rule of {changes.engine}", did_you_mean(name, rules)
            remedy = hint or f"`plan engines {changes.engine}` lists them"
            yield Problem(
                where=changes.shown, key="rules.lift", value=name, fact=fact, remedy=remedy
            )
