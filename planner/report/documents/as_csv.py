"""A document's data as a table for machines: SI units, keys that name them."""

from __future__ import annotations

import csv
import io

from planner.report.documents.blocks import Document
from planner.specs.texts import visible

_FORMULAS = ("=", "+", "-", "@")


def csv_of(document: Document) -> str:
    """The table below its heads; texts that would be taken for formulas are shown as texts."""
    assert document.data is not None
    heads, rows = document.data()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    """A text that a table would take for a formula begins with a quote, which shows it as text.

    Source: OWASP, CSV Injection. Numbers stay what they are, negative ones too.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text
