"""Layers on mixed machines for people: stages in a row, what each serves, and the bound on all."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from planner.quantities.tables import packaged_table
from planner.report.documents.blocks import Bar, Document, Drawing, Note, Pairs, Row, Table, section
from planner.report.proof import alone, gap_text, prover_rows, status_text
from planner.report.words import percent, plural
from planner.results.staging import LayerPlacement, MachineLine
from planner.specs.records.certificates import UNCONFIRMED
from planner.tools.drawings import layers_drawing

_BAR = 16

_KNOWS: Mapping[str, str] = packaged_table("report/words.toml")["links"]
"""What a prover of layers knows of links, by the first word of its name."""

_SAME = 1e-6
"""Share of a rate that published ones are rounded by."""


def line_of(placement: LayerPlacement) -> str:
    name, rate = placement.request.layers.name, placement.tokens_per_s
    return f"{name}: {placement.summary}, {rate:.2f} token/s; {claim(placement)}"


def claim(placement: LayerPlacement) -> str:
    """What may be said of all other placements."""
    certificate = placement.certificate
    most = f"no placement has more than {certificate.bound:.2f} token/s"
    if certificate.status == UNCONFIRMED:
        return f"{most}, says {alone(certificate)} alone"
    return f"{most} ({gap_text(certificate)})"


def document(placement: LayerPlacement) -> Document:
    """Stages in a row, what each serves, and the bound on all."""
    line = line_of(placement)
    drawing = Drawing(svg=partial(layers_drawing, placement))
    return Document(
        title=placement.request.layers.title,
        line=line,
        head=(Note(line),),
        sections=(
            section("stages", drawing, _stages(placement)),
            section("proof", Pairs(_proof_rows(placement))),
        ),
    )


def rows_of(placement: LayerPlacement) -> list[list[MachineLine]]:
    """Machines that hold the same layers, along the model."""
    ordered = sorted(placement.machines, key=lambda m: (m.first_layer, m.n_layers))
    grouped = groupby(ordered, key=lambda m: (m.first_layer, m.n_layers))
    return [list(group) for _, group in grouped]


def machines_text(row: Sequence[MachineLine]) -> str:
    """`A100 1, L4 3 4`: types with the numbers of their machines."""
    types: dict[str, list[str]] = {}
    for machine in row:
        types.setdefault(machine.type, []).append(machine.machine.removeprefix(machine.type + " "))
    return ", ".join(f"{kind} {' '.join(numbers)}" for kind, numbers in types.items())


def _stages(placement: LayerPlacement) -> Table:
    machines = rows_of(placement)
    fastest = max(sum(m.tokens_per_s for m in row) for row in machines)
    rows: list[Row] = []
    for row in machines:
        total = sum(machine.tokens_per_s for machine in row)
        layers = plural(row[0].n_layers, "layer")
        shown = Bar(total / fastest, _BAR)
        rows.append((layers_span(row[0]), layers, f"{total:.1f}", shown, machines_text(row)))
    return Table(heads=("layers", "", "token/s", "", "machines"), rows=rows, align="<<><<")


def layers_span(machine: MachineLine) -> str:
    """The first and the last layer that a machine holds, from 1."""
    first, last = machine.first_layer + 1, machine.first_layer + machine.n_layers
    return f"{first} to {last}" if last > first else str(first)


def bound_knows(placement: LayerPlacement) -> str:
    """Which links the bound that is vouched for takes into account."""
    certificate = placement.certificate
    said = [p for p in certificate.proofs if p.is_accepted and p.prover in certificate.vouched_by]
    return _KNOWS.get(said[-1].lineage, "") if said else ""


def published(placement: LayerPlacement) -> str:
    """The best that the source of the file found, beside it; empty if it says none."""
    best = placement.request.layers.published_tokens_per_s
    if not best:
        return ""
    if abs(placement.tokens_per_s / best - 1) < _SAME:
        return f"{best:.2f} token/s: the same"
    more = placement.tokens_per_s / best - 1
    return f"{best:.2f} token/s; this is {percent(abs(more))} {'more' if more > 0 else 'less'}"


def _proof_rows(placement: LayerPlacement) -> list[tuple[str, str]]:
    proved = placement.certificate
    return [
        ("rate", f"{proved.objective:.2f} token/s, the maximum flow through the placement"),
        ("bound", f"{proved.bound:.2f} token/s, {gap_text(proved)}"),
        ("status", status_text(proved) if proved.status == UNCONFIRMED else ""),
        ("links", bound_knows(placement)),
        *prover_rows(proved),
        ("published", published(placement)),
        ("idle", ", ".join(placement.idle)),
        ("verified", "; ".join(proved.verified)),
    ]
