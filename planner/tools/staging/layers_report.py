"""Layers on mixed machines for people: stages in a row, what each serves, and the bound on all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from planner.report.documents.blocks import Bar, Document, Drawing, Note, Pairs, Row, Table, section
from planner.report.proof import alone, gap_text, prover_rows, status_text
from planner.report.words import percent, plural
from planner.results.staging import LayerPlacement, MachineLine
from planner.specs.records.certificates import UNCONFIRMED
from planner.tools.staging.drawing import layers_drawing

_BAR = 16

_ALONE = "the bound takes each machine by itself, with all its links"
_EACH = "the bound knows every link"
_KNOWS = {
    "even": _ALONE,
    "layer": _ALONE,
    "sweep": "the bound knows the best link between two regions",
    "enumeration": _EACH,
    "highs": _EACH,
    "scip": _EACH,
}
"""What a prover of layers knows of links, by the first word of its name."""

_SAME = 1e-6
"""Share of a rate that published ones are rounded by."""


def line_of(one: LayerPlacement) -> str:
    return f"{one.request.layers.name}: {one.summary}, {one.tokens_per_s:.2f} token/s; {claim(one)}"


def claim(one: LayerPlacement) -> str:
    """What may be said of all other placements."""
    found = one.certificate
    most = f"no placement has more than {found.bound:.2f} token/s"
    if found.status == UNCONFIRMED:
        return f"{most}, says {alone(found)} alone"
    return f"{most} ({gap_text(found)})"


def document(one: LayerPlacement) -> Document:
    """Stages in a row, what each serves, and the bound on all."""
    line = line_of(one)
    drawing = Drawing(svg=partial(layers_drawing, one))
    return Document(
        title=one.request.layers.title,
        line=line,
        head=(Note(line),),
        sections=(
            section("stages", drawing, _stages(one)),
            section("proof", Pairs(_proof_rows(one))),
        ),
    )


def rows_of(one: LayerPlacement) -> list[list[MachineLine]]:
    """Machines that hold the same layers, along the model."""
    ordered = sorted(one.machines, key=lambda m: (m.first_layer, m.n_layers))
    grouped = groupby(ordered, key=lambda m: (m.first_layer, m.n_layers))
    return [list(group) for _, group in grouped]


def machines_text(row: Sequence[MachineLine]) -> str:
    """`A100 1, L4 3 4`: types with the numbers of their machines."""
    types: dict[str, list[str]] = {}
    for machine in row:
        types.setdefault(machine.type, []).append(machine.machine.removeprefix(machine.type + " "))
    return ", ".join(f"{kind} {' '.join(numbers)}" for kind, numbers in types.items())


def _stages(one: LayerPlacement) -> Table:
    found = rows_of(one)
    fastest = max(sum(m.tokens_per_s for m in row) for row in found)
    rows: list[Row] = []
    for row in found:
        total = sum(machine.tokens_per_s for machine in row)
        layers = plural(row[0].n_layers, "layer")
        shown = Bar(total / fastest, _BAR)
        rows.append((layers_span(row[0]), layers, f"{total:.1f}", shown, machines_text(row)))
    return Table(heads=("layers", "", "token/s", "", "machines"), rows=rows, align="<<><<")


def layers_span(one: MachineLine) -> str:
    """The first and the last layer that a machine holds, from 1."""
    first, last = one.first_layer + 1, one.first_layer + one.n_layers
    return f"{first} to {last}" if last > first else str(first)


def bound_knows(one: LayerPlacement) -> str:
    """Which links the bound that is vouched for takes into account."""
    found = one.certificate
    said = [p for p in found.proofs if p.is_accepted and p.prover in found.vouched_by]
    return _KNOWS.get(said[-1].lineage, "") if said else ""


def published(one: LayerPlacement) -> str:
    """The best that the source of the file found, beside it; empty if it says none."""
    best = one.request.layers.published_tokens_per_s
    if not best:
        return ""
    if abs(one.tokens_per_s / best - 1) < _SAME:
        return f"{best:.2f} token/s: the same"
    more = one.tokens_per_s / best - 1
    return f"{best:.2f} token/s; this is {percent(abs(more))} {'more' if more > 0 else 'less'}"


def _proof_rows(one: LayerPlacement) -> list[tuple[str, str]]:
    found = one.certificate
    return [
        ("rate", f"{found.objective:.2f} token/s, the maximum flow through the placement"),
        ("bound", f"{found.bound:.2f} token/s, {gap_text(found)}"),
        ("status", status_text(found) if found.status == UNCONFIRMED else ""),
        ("links", bound_knows(one)),
        *prover_rows(found),
        ("published", published(one)),
        ("idle", ", ".join(one.idle)),
        ("verified", "; ".join(found.verified)),
    ]
