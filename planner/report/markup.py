"""Text inside HTML and SVG: its marks, and what does not print, are shown and not obeyed."""

from __future__ import annotations

from html import escape as escape_marks

from planner.specs.visible import visible


def escape(text: str) -> str:
    """Text as an element or an attribute holds it."""
    return escape_marks(visible(text, keeps="\n\u00a0"))
