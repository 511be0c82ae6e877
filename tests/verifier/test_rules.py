"""Each field of each kind of answer has one rule, and docs/verification.md says which.

`python -m tests.verifier.test_rules` writes the tables of the document anew.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from planner.report.answer_kinds import ANSWER_KINDS
from planner.report.json_records import record_hints
from planner.verifier.rules import COUNTED, FIELDS, RULES, judge_of, names_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "verification.md"
MARK = "<!-- from here on: python -m tests.verifier.test_rules -->\n"
WORDS = {COUNTED: "recounted"}


def _judged_records() -> list[type]:
    """Records of answers that can be verified, in the order of the kinds; none of requests."""
    found: dict[type, None] = {}

    def walk(hint: Any) -> None:
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint not in found:
            found[hint] = None
            hints = record_hints(hint)
            for field in dataclasses.fields(hint):
                if field.name not in ("request", "other_requests", "requests", "speculation"):
                    walk(hints[field.name])
        for inner in get_args(hint):
            walk(inner)

    for kind in ANSWER_KINDS:
        if judge_of(kind.record) is not None:
            walk(kind.record)
    requests = {hint for one in found for name, hint in record_hints(one).items()
                if name == "request"}  # fmt: skip
    return [
        one
        for one in (*found, *sorted(requests & FIELDS.keys(), key=str))
        if not one.__module__.startswith("planner.specs") or one in FIELDS
    ]


def test_each_field_of_each_answer_has_one_rule():
    judged = _judged_records()
    assert {*judged} == FIELDS.keys()
    for record in judged:
        names = Counter(name for rule in RULES for name in names_of(record, rule))
        assert names == Counter(field.name for field in dataclasses.fields(record)), record


def test_the_document_says_the_rules():
    assert DOCUMENT.read_text(encoding="utf-8").partition(MARK)[2] == _tables()


def _tables() -> str:
    return "\n".join(line for record in _judged_records() for line in _table(record))


def _table(record: type) -> Iterator[str]:
    judged = FIELDS[record]
    yield f"\n### {record.__name__}\n"
    if judged.how:
        yield f"{judged.how[0].upper()}{judged.how[1:]}.\n"
    yield "| | |\n| --- | --- |"
    for rule in RULES:
        names = ", ".join(f"`{name}`" for name in names_of(record, rule))
        if names:
            yield f"| {WORDS.get(rule, rule)} | {names} |"
    yield ""


def _write() -> None:
    before = DOCUMENT.read_text(encoding="utf-8").partition(MARK)[0]
    DOCUMENT.write_text(f"{before}{MARK}{_tables()}", encoding="utf-8")


if __name__ == "__main__":
    _write()
