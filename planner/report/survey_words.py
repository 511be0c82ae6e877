"""What the reports of several plans call things."""

from __future__ import annotations

from collections.abc import Sequence

from planner.quantities import axis_of, objective_of
from planner.report.engine_requests import engine_rows
from planner.report.lines import percent
from planner.report.outlines import speed_text
from planner.report.proof import alone, prover_name
from planner.report.words import PREFILL_WORDS, plural
from planner.results.surveys import OWN, Case, Frontier, FrontierPoint, FrontierProof
from planner.specs.engine_request import EngineRequest
from planner.specs.spans import span_text
from planner.units import show


def case_label(case: Case, cases: Sequence[Case]) -> str:
    """What tells a case from the others; of a single one, its model and pool."""
    parts = (
        (case.model, {one.model for one in cases}),
        (case.topology, {one.topology for one in cases}),
        (case.weights, {one.weights for one in cases}),
        (f"{case.kv} KV", {one.kv for one in cases}),
        (case.engine, {one.engine for one in cases}),
        (case.roles, {one.roles for one in cases}),
    )
    told = [text for text, seen in parts if len(seen) > 1]
    return ", ".join(told) or f"{case.model} on {case.topology}"


def cases_text(cases: Sequence[Case]) -> str:
    """All models and pools: `llama-3.1-70b on h100-nvl8-x4, h200-nvl8-x4`."""
    models = ", ".join(dict.fromkeys(case.model for case in cases))
    engines = ", ".join(dict.fromkeys(case.engine for case in cases if case.engine))
    under = f" under {engines}" if engines else ""
    return f"{models} on {', '.join(dict.fromkeys(case.topology for case in cases))}{under}"


def survey_title(cases: Sequence[Case], frontier: Frontier) -> str:
    """`palm-540b on tpu-v4-4x8x8: cost per token against speed per user`."""
    axes = f"{axis_of(frontier.y_name).words} against {axis_of(frontier.x_name).words}"
    return f"{cases_text(cases)}: {axes}"


ECONOMICS_WORDS = "of Erdil 2025, its degrees of parallelism as integers: decode only"
"""What the other cost model is."""


def shared_words(frontier: Frontier) -> list[str]:
    """What is the same for all cases, defaults included."""
    request, counted = frontier.request, frontier.cost_model
    workload = request.workload
    if isinstance(request, EngineRequest):
        return [
            "; ".join(
                f"{name} {text}" for name, text in engine_rows(request, frontier.other_requests)
            )
        ]
    if counted.name != OWN.name:
        return [
            f"cost model {ECONOMICS_WORDS}; memory {counted.memory}; "
            f"{workload.mean_decode_context:.0f} tokens of context; "
            f"batches {span_text(request.batches)}"
        ]
    return [
        f"{workload.n_input_tokens} tokens in, {workload.n_output_tokens} out; "
        f"prefill by {request.prefill}: {PREFILL_WORDS.get(request.prefill, '')}; "
        f"batches: decode {span_text(request.batches)}, "
        f"prefill {span_text(request.prefill_batches)}",
    ]


def preferred_text(frontier: Frontier) -> str:
    """Why a point is preferred."""
    speed = "speed" if frontier.x_name == "latency" else "(1/TTFT)"
    price = axis_of(frontier.y_name).price
    return f"preferred: the most {speed}^{frontier.alpha:g} / {price}"


def axis_targets(frontier: Frontier) -> list[tuple[bool, float, str]]:
    """Targets on the axes: whether on x, the value in SI, and its text."""
    asked = frontier.request.targets.limits()
    sides = ((True, objective_of(frontier.x_name)), (False, objective_of(frontier.y_name)))
    return [
        (is_x, asked[one.name], f"{one.label} {one.limit_text(asked[one.name])}")
        for is_x, one in sides
        if one.name in asked
    ]


def best_text(frontier: Frontier) -> str:
    """What is best of the points within the targets."""
    return "the most throughput" if objective_of(frontier.y_name).is_rate else "the cheapest"


def end_text(frontier: Frontier, point: FrontierPoint) -> str:
    """Both quantities of a point: `43.9 token/s at $234/Mtoken`."""
    is_speed = frontier.x_name == "latency"
    x = speed_text(point.deployment) if is_speed else f"TTFT {show(point.x, 's')}"
    return f"{x} at {show(point.y, frontier.y_dimension)}"


def at_target(frontier: Frontier) -> int | None:
    """Index of the cheapest point within targets on the axes; `None` without such targets too."""
    return frontier.at_target if axis_targets(frontier) else None


def proof_text(frontier: Frontier) -> str:
    """Why no point is missing and none is beaten, in a few sentences."""
    proof, gap = frontier.proof, max(point.gap for point in frontier.points)
    counted = (
        f"{plural(len(frontier.points), 'point')} from {proof.n_candidates:,} candidates in "
        f"{plural(proof.n_contexts, 'way')} to use the pool"
    )
    if proof.status != "optimal":
        return f"{counted}; time ended before the proof: a point may be {percent(gap)} off"
    recounted = "recounted by an independent scalar model"
    if isinstance(frontier.request, EngineRequest):
        recounted = "evaluated again by itself"
    return (
        f"{counted}; no deployment lies below the staircase, as {_by(proof)} on the "
        f"{plural(proof.n_solved, 'candidate')} that the screens left; every point {recounted}"
    )


def _by(proof: FrontierProof) -> str:
    """`HiGHS 1.13.1 and enumeration of 12 prove`; or who says so alone."""
    if not proof.vouched_by:
        return f"{alone(proof)} alone says"
    names = [prover_name(one) for one in proof.vouched_by]
    return f"{' and '.join(names)} {'prove' if len(names) > 1 else 'proves'}"
