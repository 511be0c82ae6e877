"""Each field of each kind of answer has one rule, and docs/verification.md says which.

`python -m tests.verifier.test_rules` writes the tables of the document anew, and keeps what it says
of each record.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from planner.report.answer_kinds import ANSWER_KINDS
from planner.report.json_records import record_hints
from planner.verifier.rules import COUNTED, FIELDS, RULES, judge_of

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "verification.md"
MARK = "<!-- from here on: python -m tests.verifier.test_rules -->\n"
WORDS = {COUNTED: "recounted"}


def names_of(record: type, rule: str) -> tuple[str, ...]:
    """Fields of a record that is judged by a rule."""
    if rule != COUNTED:
        return FIELDS[record.__name__].names(rule)
    others = {name for one in RULES[1:] for name in FIELDS[record.__name__].names(one)}
    return tuple(one.name for one in dataclasses.fields(record) if one.name not in others)


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
                if name == "request" and getattr(hint, "__name__", "") in FIELDS}  # fmt: skip
    return [
        one
        for one in (*found, *sorted(requests, key=str))
        if not one.__module__.startswith("planner.specs") or one.__name__ in FIELDS
    ]


def test_each_field_of_each_answer_has_one_rule():
    judged = _judged_records()
    assert sorted(record.__name__ for record in judged) == sorted(FIELDS)
    for record in judged:
        names = Counter(name for rule in RULES for name in names_of(record, rule))
        assert names == Counter(field.name for field in dataclasses.fields(record)), record


def test_no_other_record_of_answers_or_requests_has_the_name_of_a_judged_one():
    texts = [path.read_text(encoding="utf-8") for part in ("results", "specs")
             for path in (ROOT / "planner" / part).rglob("*.py")]  # fmt: skip
    classes = Counter(name for text in texts for name in re.findall(r"^class (\w+)", text, re.M))
    assert [name for name in FIELDS if classes[name] != 1] == []


def test_the_document_says_the_rules_and_what_fields_are_counted_from():
    text = DOCUMENT.read_text(encoding="utf-8").partition(MARK)[2]
    said = _said(text)
    assert text == _tables(said)
    assert all(said[name].endswith(".") for name in FIELDS)


def _said(text: str) -> dict[str, str]:
    """What the document says of each record, before its table."""
    return dict(re.findall(r"^### (\w+)\n\n(\S.*)\n\n\| \| \|$", text, re.MULTILINE))


def _tables(said: dict[str, str]) -> str:
    return "\n".join(line for record in _judged_records() for line in _table(record, said))


def _table(record: type, said: dict[str, str]) -> Iterator[str]:
    yield f"\n### {record.__name__}\n"
    yield f"{said.get(record.__name__, 'What is it counted from')}\n"
    yield "| | |\n| --- | --- |"
    for rule in RULES:
        names = ", ".join(f"`{name}`" for name in names_of(record, rule))
        if names:
            yield f"| {WORDS.get(rule, rule)} | {names} |"
    yield ""


def _write() -> None:
    before, _, after = DOCUMENT.read_text(encoding="utf-8").partition(MARK)
    DOCUMENT.write_text(f"{before}{MARK}{_tables(_said(after))}", encoding="utf-8")


if __name__ == "__main__":
    _write()
