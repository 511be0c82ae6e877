"""Layers on mixed machines for people: stages in a row, what each serves, and the bound on all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from planner.report.lines import bar, columns, labelled, percent, section, wrapped
from planner.report.proof import prover_rows
from planner.report.stages import gap_text
from planner.report.words import plural
from planner.staging_results import LayerPlacement, MachineLine

_BAR = 16


def layers_line(one: LayerPlacement) -> str:
    """The verdict in one line."""
    found, name = one.certificate, one.request.layers.name
    return (
        f"{name}: {one.summary}, {one.tokens_per_s:.2f} token/s; no placement has more than "
        f"{found.bound:.2f} token/s ({gap_text(found)})"
    )


def layers_text(one: LayerPlacement, width: int) -> str:
    """The whole report."""
    parts = [
        "\n".join(wrapped(layers_line(one), width)),
        section("stages", _stage_lines(one)),
        section("proof", _proof_lines(one, width)),
    ]
    return "\n\n".join(parts)


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


def _stage_lines(one: LayerPlacement) -> list[str]:
    found = rows_of(one)
    fastest = max(sum(m.tokens_per_s for m in row) for row in found)
    rows: list[tuple[str, ...]] = [("layers", "", "token/s", "", "machines")]
    for row in found:
        total = sum(machine.tokens_per_s for machine in row)
        layers = plural(row[0].n_layers, "layer")
        shown = bar(total / fastest, _BAR)
        rows.append((layers_span(row[0]), layers, f"{total:.1f}", shown, machines_text(row)))
    return columns(rows, "<<><<")


def layers_span(one: MachineLine) -> str:
    """The first and the last layer that a machine holds, from 1."""
    first, last = one.first_layer + 1, one.first_layer + one.n_layers
    return f"{first} to {last}" if last > first else str(first)


def _proof_lines(one: LayerPlacement, width: int) -> list[str]:
    found, published = one.certificate, one.request.layers.published_tokens_per_s
    beyond = ""
    if published:
        beyond = (
            f"{published:.2f} token/s; this is {percent(one.tokens_per_s / published - 1)} more"
        )
        if abs(one.tokens_per_s / published - 1) < 1e-6:
            beyond = f"{published:.2f} token/s: the same"
    n_regions = found.n_contexts
    slow = f"; slow links divide the machines into {n_regions} regions, which the bound ignores"
    rows = (
        ("rate", f"{found.objective:.2f} token/s, the maximum flow through the placement"),
        (
            "bound",
            f"{found.bound:.2f} token/s, {gap_text(found)}, by {found.proofs[0].prover}"
            f"{slow if n_regions > 1 else ''}",
        ),
        ("published", beyond),
        ("idle", ", ".join(one.idle)),
        ("verified", "; ".join(found.verified)),
        *prover_rows(found),
    )
    return labelled(rows, width - 2)
