"""A verification for people: what holds, what is not so, and what was taken as it is."""

from __future__ import annotations

from planner.report.lines import labelled, wrapped
from planner.report.problems import shown
from planner.report.words import plural
from planner.results.verifications import Falsehood, Verification

MOST_LISTED = 40


def verification_line(found: Verification) -> str:
    """The verdict in one line."""
    if found.falsehoods:
        return f"refuted: {_not_so(found)}: {found.summary}"
    return f"verified: {found.summary}"


def verification_text(found: Verification, width: int) -> str:
    """The whole report, in lines of at most `width` columns."""
    parts = ["\n".join(wrapped(verification_line(found), width))]
    if found.falsehoods:
        parts.append("\n".join(_falsehood_lines(found, width)))
    parts.append("\n".join(labelled(_rows(found), width)))
    return "\n\n".join(parts)


def _not_so(found: Verification) -> str:
    n = len(found.falsehoods)
    return f"{plural(n, 'figure')} {'is' if n == 1 else 'are'} not so"


def _falsehood_lines(found: Verification, width: int) -> list[str]:
    lines = []
    for one in found.falsehoods[:MOST_LISTED]:
        first, *rest = wrapped(f"{shown(one.pointer)}  {shown(_why(one))}", width - 2)
        lines += [f"  {first}", *(f"    {line}" for line in rest)]
    n_more = len(found.falsehoods) - MOST_LISTED
    return [*lines, *([f"  and {n_more} more: `--json` lists them all"] if n_more > 0 else [])]


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
