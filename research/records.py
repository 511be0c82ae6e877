"""Records as CSV: a column for each field, a line for each record."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any


def as_csv(record: type, found: Iterable[Any]) -> str:
    """The text of a file that `packaged_rows` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(record))
    writer.writerows(astuple(one) for one in found)
    return text.getvalue()
