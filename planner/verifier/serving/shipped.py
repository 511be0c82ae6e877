"""Rules of an engine's record against the files that ship, which are read here once more."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.specs.files.places import shipped_file
from planner.specs.files.texts import toml_of
from planner.specs.records.engine_rules import EngineRule
from planner.specs.records.kernels import EngineSpec
from planner.verifier.findings import Finding, differences


def altered_rules(engine: EngineSpec, at_hand: Collection[str] = ()) -> Iterator[Finding]:
    """Where the rules of a record are not those that ship, nor changed by a user's file it names.

    Args:
        at_hand: paths of files that are here as they were; of a user's file that is not among
            them it is believed what the record says.
    """
    file = _table(f"engines/{engine.name}.toml")
    if not file:
        return  # an engine of the user's, who says what it starts
    shipped = [_table(f"engines/rules/{name}.toml") for name in file["engine"]["rules"]]
    version = next(it["rules"]["version"] for it in shipped[::-1] if "version" in it["rules"])
    lifted, own = _changes_of(engine, at_hand)
    copies = {f"n_{key}": one["value"] for key, one in file.get("experts", {}).items()}
    yield from differences(
        engine, replace(engine, started_version=version, lifted=lifted, **copies)
    )
    rules = {one.name: one for table in shipped for one in _rules_of(table)}
    rules = {name: one for name, one in rules.items() if name not in lifted}
    yield from _other_rules(engine, rules | {one.name: one for one in own}, version)


def _changes_of(
    engine: EngineSpec, at_hand: Collection[str]
) -> tuple[tuple[str, ...], list[EngineRule]]:
    """Names of rules that a user's file lifts, and the rules that it adds."""
    if engine.rules_file in at_hand:
        table = tomllib.loads(Path(engine.rules_file).read_text(encoding="utf-8"))
        lifted = tuple(table.get("rules", {}).get("lift", ()))
        return lifted, list(_rules_of(table, engine.rules_file))
    own = [one for one in engine.rules if one.origin and one.origin == engine.rules_file]
    return engine.lifted if engine.rules_file else (), own


def _other_rules(
    engine: EngineSpec, rules: Mapping[str, EngineRule], version: str
) -> Iterator[Finding]:
    """Rules that a record has and should not, or lacks, or has otherwise."""
    if lacking := sorted(rules.keys() - {one.name for one in engine.rules}):
        fact = f"lack {', '.join(f'`{name}`' for name in lacking)}, which nobody lifts"
        yield Finding(path=("rules",), says=len(engine.rules), fact=fact)
    for i, rule in enumerate(engine.rules):
        if rule.name in rules:
            yield from differences(rule, rules[rule.name], ("rules", str(i)))
        else:
            fact = f"is no rule of {engine.title} {version}, nor of a file that adds it"
            yield Finding(path=("rules", str(i), "name"), says=rule.name, fact=fact)


def _table(name: str) -> dict[str, Any]:
    """A file that ships; nothing of one that does not."""
    path = shipped_file(name)
    return toml_of(path.read_text(encoding="utf-8")) if path else {}


def _rules_of(table: Mapping[str, Any], origin: str = "") -> Iterator[EngineRule]:
    for one in table.get("rule", ()):
        plain = {key: " ".join(one.get(key, "").split()) for key in ("when", "require")}
        yield EngineRule(**{**one, **plain}, origin=origin)
