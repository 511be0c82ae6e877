"""A verification for people: what holds, what is not so, and what was taken as it is."""

from __future__ import annotations

from planner.report.documents.blocks import IN_JSON, Document, Note, Pairs, notes, section
from planner.report.messages import shown
from planner.report.words import plural
from planner.results.listings import Falsehood, Verification

MOST_LISTED = 40


def line_of(found: Verification) -> str:
    if found.falsehoods:
        return f"refuted: {_not_so(found)}: {found.summary}"
    return f"verified: {found.summary}"


def document(found: Verification) -> Document:
    """What holds, what is not so, and what was taken as it is."""
    line = line_of(found)
    wrong = [f"{shown(one.pointer)}  {shown(_why(one))}" for one in found.falsehoods[:MOST_LISTED]]
    n_more = len(found.falsehoods) - MOST_LISTED
    more = [f"and {n_more} more: {IN_JSON}"] if n_more > 0 else []
    return Document(
        title="verification of an answer",
        line=line,
        head=(Note(line),),
        sections=(
            section("", *notes([*wrong, *more], kind="item")),
            section("", Pairs(_rows(found)), is_bare=True),
        ),
    )


def _not_so(found: Verification) -> str:
    n = len(found.falsehoods)
    return f"{plural(n, 'figure')} {'is' if n == 1 else 'are'} not so"


def _why(one: Falsehood) -> str:
    return f"{one.says} {one.fact}" if one.fact else f"says {one.says}, and is {one.found}"


def _rows(found: Verification) -> list[tuple[str, str]]:
    written = "as it was written"
    if not found.is_as_written:
        written = "another than the one that was written"
        written += ", and a true one" if found.is_true else ""
    what = plural(found.n_taken, "figure")
    trusted = f"that nothing is better, and {what} until `--prove`: {', '.join(found.taken)}"
    if found.proofs:
        trusted = "; ".join(found.taken)
    unknown = f"{plural(found.n_unverified, 'figure')}: {', '.join(found.unverified)}"
    return [
        ("answer", f"{found.kind}, {written}"),
        ("recounted", plural(found.n_counted, "figure")),
        ("on trust", trusted if found.n_taken else ""),
        ("unverified", unknown if found.n_unverified else ""),
        *(("proved", proof) for proof in found.proofs),
        *(("note", shown(note)) for note in found.notes),
    ]
