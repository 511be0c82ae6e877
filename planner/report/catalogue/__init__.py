"""What there is to plan with, as documents: lists, and one of each with its sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.report.documents.blocks import Document, Note, Table, section
from planner.specs.records.devices import ClusterSpec

if TYPE_CHECKING:
    from planner.results.listings import Catalogue, CatalogueEntry


def document(answer: Catalogue) -> Document:
    """Names in a column, what they stand for beside it, what is known of them below.

    Or everything that is known of what was named.
    """
    if not answer.lists:
        return _described(answer)
    sections = []
    for part in answer.lists:
        rows = [row for entry in part.entries for row in _entry(entry)]
        table = Table(rows=rows, wraps=True) if rows else Note("none found")
        sections += [section(part.title, table), section("", Note(part.hint), is_bare=True)]
    return Document(title=answer.title, line=answer.title, head=(), sections=tuple(sections))


def _described(answer: Catalogue) -> Document:
    """A model by its shape, or by its classes of layers; a topology."""
    if answer.models or answer.architectures:
        from planner.report.catalogue import models

        if answer.models:
            return models.document(answer.models[0])
        return models.layers_document(answer.architectures[0])
    from planner.report.catalogue.topologies import cluster_document, pool_document

    (site,) = answer.sites
    return cluster_document(site) if isinstance(site, ClusterSpec) else pool_document(site)


def _entry(entry: CatalogueEntry) -> Iterator[tuple[str, str]]:
    words = ": ".join(filter(None, (entry.title, entry.description)))
    yield entry.name, words + f" (like {', '.join(entry.examples)})" * bool(entry.examples)
    if entry.facts:
        yield "", entry.facts
