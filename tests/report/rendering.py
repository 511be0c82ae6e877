"""Answers as people and programs get them: text, a line, a page, a table."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from planner.report.answer_kinds import document_of
from planner.report.documents.as_html import Origin, page_of
from planner.report.documents.as_text import section_text as section_text, text_of
from planner.report.documents.blocks import csv_of
from planner.results.surveys import Curves

ORIGIN = Origin(command="plan --batch=8", date="2026-01-31", version="llm-serving-planner 0.1.0")


def report_text(answer: Any, width: int, **beside: Any) -> str:
    return text_of(document_of(_whole(answer), **beside), width)


def report_line(answer: Any) -> str:
    return document_of(_whole(answer)).line


def report_page(answer: Any, **beside: Any) -> str:
    return page_of(document_of(_whole(answer), **beside), ORIGIN)


def report_csv(answer: Any, **beside: Any) -> str:
    return csv_of(document_of(_whole(answer), **beside))


def tree(page: str) -> ElementTree.Element:
    """A page as XML; the document type is not one of XML's."""
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def _whole(answer: Any) -> Any:
    return Curves(curves=tuple(answer)) if isinstance(answer, (list, tuple)) else answer
