"""Engines: all of them in a table, or one with what it starts and where that is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.report.catalogue import assumed_text
from planner.report.lines import columns, labelled, section, wrapped
from planner.report.words import plural
from planner.specs.engines.rules import EngineRule
from planner.specs.kernels import EngineSpec

_HEAD = ("", "times of", "flags and rules of", "rules", "")


def engines_text(engines: Sequence[EngineSpec], width: int) -> str:
    """One line an engine: whose kernels' times, whose flags and rules, and how many of them."""
    said = [(it.name, it.version, it.started_version, str(len(it.rules))) for it in engines]
    rows = [_HEAD, *((*one, it.title) for one, it in zip(said, engines, strict=True))]
    note = "what an engine does not start is no candidate of any search; an answer that breaks a "
    note += "rule is refused by `plan verify`"
    hint = "hint: `plan engines NAME` gives one with its rules and their sources"
    table = section("engines", columns(rows, "<<<><"))
    return "\n\n".join((table, "\n".join(wrapped(note, width)), hint))


def engine_text(engine: EngineSpec, width: int) -> str:
    """One engine: both versions, and its rules with their sources."""
    said = [
        ("times", f"kernels of {engine.title} {engine.version}"),
        ("started", f"with flags and rules of {engine.started_version or 'nobody'}"),
    ]
    said += [("changed by", changed_words(engine))] if engine.rules_file else []
    rules = [line for rule in engine.rules for line in _rule(rule, width)]
    n_rules = plural(len(engine.rules), "rule")
    return "\n\n".join(
        (
            f"{engine.name}: {engine.title}",
            section("versions", labelled(said, width)),
            section(f"{n_rules} of what it starts", rules),
            assumed_text(engine.provenance),
        )
    )


def changed_words(engine: EngineSpec) -> str:
    """What a user's file changes of the rules of an engine; empty without one."""
    if not engine.rules_file:
        return ""
    added = [rule.name for rule in engine.rules if rule.origin == engine.rules_file]
    parts = [
        f"{verb} {', '.join(f'`{name}`' for name in names)}"
        for verb, names in (("lifts", engine.lifted), ("adds", added))
        if names
    ]
    return f"{engine.rules_file}: {' and '.join(parts) or 'nothing'}"


def _rule(rule: EngineRule, width: int) -> Iterator[str]:
    yield f"  {rule.name}"
    when = f"where {rule.when}: " if rule.when else ""
    for text in (rule.says, f"{when}{rule.require}", f"source: {rule.source}"):
        yield from (f"    {line}" for line in wrapped(text, width - 4))
