"""A verification for people: what holds, what is not so, and what was taken as it is."""

from planner.report.documents.blocks import IN_JSON, Document, Pairs, notes, section
from planner.report.messages import shown
from planner.report.words import HINTS, plural
from planner.results.listings import Falsehood, Verification

MOST_LISTED = 40


def line_of(verdict: Verification) -> str:
    if verdict.falsehoods:
        return f"refuted: {_not_so(verdict)}: {verdict.summary}"
    return f"verified: {verdict.summary}"


def document(verdict: Verification) -> Document:
    """What holds, what is not so, and what was taken as it is."""
    line = line_of(verdict)
    wrong = [
        f"{shown(one.pointer)}  {shown(_why(one))}" for one in verdict.falsehoods[:MOST_LISTED]
    ]
    n_more = len(verdict.falsehoods) - MOST_LISTED
    more = [f"and {n_more} more: {IN_JSON}"] if n_more > 0 else []
    return Document(
        title="verification of an answer",
        line=line,
        sections=(
            section("", *notes([*wrong, *more], kind="item")),
            section("", Pairs(_rows(verdict)), is_bare=True),
        ),
    )


def _not_so(verdict: Verification) -> str:
    n = len(verdict.falsehoods)
    return f"{plural(n, 'figure')} {'is' if n == 1 else 'are'} not so"


def _why(wrong: Falsehood) -> str:
    return (
        f"{wrong.says} {wrong.fact}" if wrong.fact else f"says {wrong.says}, and is {wrong.found}"
    )


def _rows(verdict: Verification) -> list[tuple[str, str]]:
    written = "as it was written"
    if not verdict.is_as_written:
        written = "another than the one that was written"
        written += ", and a true one" if verdict.is_true else ""
    what = plural(verdict.n_taken, "figure")
    trusted = HINTS["proof"].format(figures=what, taken=", ".join(verdict.taken))
    if verdict.proofs:
        trusted = "; ".join(verdict.taken)
    unknown = f"{plural(verdict.n_unverified, 'figure')}: {', '.join(verdict.unverified)}"
    return [
        ("answer", f"{verdict.kind}, {written}"),
        ("recounted", plural(verdict.n_counted, "figure")),
        ("on trust", trusted if verdict.n_taken else ""),
        ("unverified", unknown if verdict.n_unverified else ""),
        *(("proved", proof) for proof in verdict.proofs),
        *(("note", shown(note)) for note in verdict.notes),
    ]
