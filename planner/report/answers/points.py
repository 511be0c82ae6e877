"""Points of frontiers as a table for machines: SI units, keys that name them; a row a point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from planner.results.surveys import OWN, Curve, Frontier
from planner.specs.engine_request import EngineRequest

_Columns = tuple[tuple[str, Callable[[Any], object]], ...]

_OF_LAYOUTS: _Columns = (
    ("tpot_s", lambda p: p.deployment.tpot_s),
    ("user_tokens_per_s", lambda p: 1 / p.deployment.tpot_s),
    ("ttft_s", lambda p: p.deployment.ttft_s),
    ("usd_per_token", lambda p: p.deployment.usd_per_token),
    ("usd_per_hour", lambda p: p.deployment.usd_per_hour),
    ("output_tokens_per_s", lambda p: p.deployment.output_tokens_per_s),
    ("n_devices", lambda p: p.deployment.n_devices),
    ("mesh", lambda p: p.deployment.mesh.label),
    ("weights_format", lambda p: p.deployment.weights_format),
    ("kv_format", lambda p: p.deployment.kv_format),
    ("storage", lambda p: p.deployment.storage),
    ("prefill_batch", lambda p: p.deployment.prefill.batch),
    ("prefill_layout", lambda p: p.deployment.prefill.layout),
    ("prefill_attention", lambda p: p.deployment.prefill.attention),
    ("prefill_microbatches", lambda p: p.deployment.prefill.n_microbatches),
    ("decode_batch", lambda p: p.deployment.decode.batch),
    ("decode_layout", lambda p: p.deployment.decode.layout),
    ("decode_attention", lambda p: p.deployment.decode.attention),
    ("decode_microbatches", lambda p: p.deployment.decode.n_microbatches),
    ("n_drafted", lambda p: p.deployment.draft.n_drafted if p.deployment.draft else 0),
    ("used_bytes", lambda p: p.deployment.memory.used_bytes),
)
_OF_ECONOMICS: _Columns = (
    ("tpot_s", lambda p: p.deployment.tpot_s),
    ("user_tokens_per_s", lambda p: 1 / p.deployment.tpot_s),
    ("usd_per_token", lambda p: p.deployment.usd_per_token),
    ("usd_per_hour", lambda p: p.deployment.usd_per_hour),
    ("output_tokens_per_s", lambda p: p.deployment.output_tokens_per_s),
    ("n_devices", lambda p: p.deployment.n_devices),
    ("n_stages", lambda p: p.deployment.layout.n_stages),
    ("n_tensor", lambda p: p.deployment.layout.n_tensor),
    ("n_expert", lambda p: p.deployment.layout.n_expert),
    ("n_attention", lambda p: p.deployment.layout.n_attention),
    ("weights_format", lambda p: p.deployment.weights_format),
    ("batch", lambda p: p.deployment.batch),
    ("n_drafted", lambda p: p.deployment.draft.n_drafted if p.deployment.draft else 0),
    ("used_bytes", lambda p: p.deployment.used_bytes),
)
_OF_ENGINES: _Columns = (
    ("tpot_s", lambda p: p.deployment.planned_tpot_s),
    ("user_tokens_per_s", lambda p: 1 / p.deployment.planned_tpot_s),
    ("ttft_s", lambda p: p.deployment.planned_ttft_s),
    ("usd_per_token", lambda p: p.deployment.usd_per_token),
    ("usd_per_hour", lambda p: p.deployment.usd_per_hour),
    ("output_tokens_per_s", lambda p: p.deployment.output_tokens_per_s),
    ("device_tokens_per_s", lambda p: p.deployment.device_tokens_per_s),
    ("n_devices", lambda p: p.deployment.n_devices),
    ("served_model", lambda p: p.deployment.model),
    ("n_tensor", lambda p: p.deployment.n_tensor),
    ("n_data", lambda p: p.deployment.n_data),
    ("n_stages", lambda p: p.deployment.n_stages),
    ("n_expert_parallel", lambda p: p.deployment.n_expert_parallel),
    ("weights_format", lambda p: p.deployment.weights_format),
    ("kv_format", lambda p: p.deployment.kv_format),
    ("batch", lambda p: p.deployment.batch),
    ("chunk_tokens", lambda p: p.deployment.chunk_tokens),
    ("overlap", lambda p: p.deployment.overlap),
    ("n_drafted", lambda p: p.deployment.n_drafted),
    ("used_bytes", lambda p: p.deployment.used_bytes),
)
_OF_POINTS: _Columns = (
    ("x", lambda p: p.x),
    ("y", lambda p: p.y),
    ("bound", lambda p: p.bound),
    ("gap", lambda p: p.gap),
    ("meets_targets", lambda p: int(p.meets_targets)),
)


def points_data(curves: Sequence[Curve]) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    """All points of all curves; a curve without points has no row."""
    heads: tuple[str, ...] = (
        "model",
        "topology",
        "weights",
        "x_name",
        "y_name",
        "status",
        "preferred",
    )
    found = [(curve, curve.frontier) for curve in curves if curve.frontier is not None]
    own = all(frontier.cost_model == OWN for _, frontier in found)
    served = any(isinstance(frontier.request, EngineRequest) for _, frontier in found)
    kind = _OF_ENGINES if served else _OF_LAYOUTS if own else _OF_ECONOMICS
    columns = (*kind, *_OF_POINTS)
    if served:
        heads = ("engine", *heads)
    rows = (row for curve, frontier in found for row in _rows(curve, frontier, columns))
    return [*heads, *(name for name, _ in columns)], rows


def _rows(curve: Curve, frontier: Frontier, columns: _Columns) -> list[list[object]]:
    case, request = curve.case, frontier.request
    engine = []
    if isinstance(request, EngineRequest):
        formats, engine = tuple(one.weights for one in request.formats), [case.engine]
    else:
        formats = request.weights_formats
    weights = case.weights or ",".join(dict.fromkeys(formats))
    known = [*engine, case.model, case.topology, weights, frontier.x_name, frontier.y_name]
    return [
        [
            *(*known, frontier.proof.status, int(i == frontier.preferred)),
            *(read(point) for _, read in columns),
        ]
        for i, point in enumerate(frontier.points)
    ]
