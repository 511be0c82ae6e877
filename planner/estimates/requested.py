"""All candidates of a request."""

from __future__ import annotations

from planner.estimates.candidates import CandidateTable, candidate_table
from planner.estimates.margins import margins_of
from planner.estimates.phases import format_pairs
from planner.estimates.steps import Machine
from planner.specs.request import Request


def table_of(
    request: Request,
    machine: Machine,
    *,
    weights_within: tuple[float, float] = (0.0, 1.0),
) -> CandidateTable:
    """Every layout, format, batch and lookahead of a request.

    Args:
        request: what was asked.
        machine: the pool's meshes and network.
        weights_within: see `candidate_table`.
    """
    return candidate_table(
        request.model,
        machine,
        request.workload,
        formats=format_pairs(request.weights_formats, request.kv_formats),
        batches=request.batches,
        prefill_batches=request.prefill_batches,
        weights_within=weights_within,
        degrees=request.targets.degrees,
        layouts_asked=request.targets.layouts,
        speculation=request.speculation,
        margins=margins_of(request),
    )
