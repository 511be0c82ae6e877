"""What is said beside an answer: files that replace those that ship, fields without effect.

note: `topologies/devices/h100-sxm.toml` replaces the device `h100-sxm` that ships
warning: `mine.toml: nodes.scale_up.bandwidth` times no collectives: …
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.errors import Problem
from planner.report.lines import wrapped
from planner.report.problems import literal, shown
from planner.specs.ledger import DataFile, Ledger


def remarks_text(ledger: Ledger, width: int) -> str:
    """Everything that a ledger says; empty if it says nothing."""
    lines = [*_replaced(ledger.files, width), *_remarked(ledger.remarks, width)]
    return "\n".join(lines)


def _replaced(files: Iterable[DataFile], width: int) -> Iterator[str]:
    for file in files:
        if file.replaces:
            said = f"`{file.path}` replaces the {file.kind} `{file.name}` that ships"
            yield from _hung(f"note: {shown(said)}", width)


def _remarked(remarks: Iterable[Problem], width: int) -> Iterator[str]:
    for one in remarks:
        remedy = f": {shown(one.remedy)}" if one.remedy else ""
        yield from _hung(f"warning: `{_place(one)}` {shown(one.fact)}{remedy}", width)


def _place(remark: Problem) -> str:
    """Where something stands; several keys in full."""
    if remark.value or not remark.key:
        return literal(remark)
    return f"{shown(remark.where, 60)}: {shown(remark.key)}"


def _hung(text: str, width: int) -> list[str]:
    """Lines of at most `width`, all but the first indented."""
    first, *rest = wrapped(text, width - 2)
    return [first, *(f"  {line}" for line in rest)]
