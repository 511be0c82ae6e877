"""Engines: all of them in a table, or one with what it starts and where that is said."""

from collections.abc import Iterator

from planner.report.catalogue.figures import assumed_text, described
from planner.report.documents.blocks import Document, Note, Pairs, Table, hint, section
from planner.report.engine_requests import changed_words
from planner.report.words import plural
from planner.results.listings import Engines
from planner.specs.records.engine_rules import EngineRule
from planner.specs.records.kernels import EngineSpec

_HEAD = ("", "times of", "flags and rules of", "rules", "")


def document(engines: Engines, *, is_one: bool = False) -> Document:
    """A row an engine: whose kernels' times, whose flags and rules, and how many of them.

    Args:
        is_one: a single one was asked for, which has its rules then.
    """
    if is_one:
        return _engine(engines.engines[0])
    rows = [
        (it.name, it.version, it.started_version, str(len(it.rules)), it.title)
        for it in engines.engines
    ]
    note = "what an engine does not start is no candidate of any search; an answer that breaks a "
    note += "rule is refused by `plan verify`"
    sections = (
        section("engines", Table(heads=_HEAD, rows=rows, align="<<<><", sorts=True)),
        section("", Note(note), is_bare=True),
        hint("`plan engines NAME` gives one with its rules and their sources"),
    )
    return Document(title="engines", line=plural(len(rows), "engine"), head=(), sections=sections)


def _engine(engine: EngineSpec) -> Document:
    """Both versions, and its rules with their sources."""
    said = [
        ("times", f"kernels of {engine.title} {engine.version}"),
        ("started", f"with flags and rules of {engine.started_version or 'nobody'}"),
    ]
    said += [("changed by", changed_words(engine))] if engine.rules_file else []
    rules = [note for rule in engine.rules for note in _rule(rule)]
    n_rules = plural(len(engine.rules), "rule")
    sections = (section("versions", Pairs(said)), section(f"{n_rules} of what it starts", *rules))
    return described(engine.name, engine.title, sections, [assumed_text(engine.provenance)])


def _rule(rule: EngineRule) -> Iterator[Note]:
    yield Note(rule.name)
    when = f"where {rule.when}: " if rule.when else ""
    for text in (rule.says, f"{when}{rule.require}", f"source: {rule.source}"):
        yield Note(text, kind="part")
