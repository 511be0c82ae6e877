"""Points of frontiers as a table for machines: SI units, keys that name them; a row a point."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from planner.report.documents.blocks import Data
from planner.results.surveys import OWN, Curve, Frontier
from planner.specs.engine_request import EngineRequest


def _keys(text: str) -> dict[str, str]:
    """Keys of columns, and where in a deployment their values are, if not under their names."""
    pairs = (word.partition("=") for word in text.split())
    return {key: path or key for key, _, path in pairs}


_COSTS = "usd_per_token usd_per_hour output_tokens_per_s"
_OF_LAYOUTS = _keys(
    f"tpot_s user_tokens_per_s ttft_s {_COSTS} n_devices mesh=mesh.label weights_format kv_format "
    "storage prefill_batch=prefill.batch prefill_layout=prefill.layout "
    "prefill_attention=prefill.attention prefill_microbatches=prefill.n_microbatches "
    "decode_batch=decode.batch decode_layout=decode.layout decode_attention=decode.attention "
    "decode_microbatches=decode.n_microbatches n_drafted=draft.n_drafted "
    "used_bytes=memory.used_bytes"
)
_OF_ECONOMICS = _keys(
    f"tpot_s user_tokens_per_s {_COSTS} n_devices n_stages=layout.n_stages "
    "n_tensor=layout.n_tensor n_expert=layout.n_expert n_attention=layout.n_attention "
    "weights_format batch n_drafted=draft.n_drafted used_bytes"
)
_OF_ENGINES = _keys(
    f"tpot_s=planned_tpot_s user_tokens_per_s ttft_s=planned_ttft_s {_COSTS} device_tokens_per_s "
    "n_devices served_model=model n_tensor n_data n_stages n_expert_parallel weights_format "
    "kv_format batch chunk_tokens overlap n_drafted used_bytes"
)
_OF_POINTS = ("x", "y", "bound", "gap")


def points_data(curves: Sequence[Curve]) -> Data:
    """All points of all curves; a curve without points has no row."""
    found = [(curve, curve.frontier) for curve in curves if curve.frontier is not None]
    own = all(frontier.cost_model == OWN for _, frontier in found)
    served = any(isinstance(frontier.request, EngineRequest) for _, frontier in found)
    keys = _OF_ENGINES if served else _OF_LAYOUTS if own else _OF_ECONOMICS
    known = ("model", "topology", "weights", "x_name", "y_name", "status", "preferred")
    heads = ("engine",) * served + known + (*keys, *_OF_POINTS, "meets_targets")
    rows = (row for curve, frontier in found for row in _rows(curve, frontier, keys))
    return heads, rows


def _rows(curve: Curve, frontier: Frontier, keys: dict[str, str]) -> list[list[object]]:
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
            *(_value(point.deployment, keys, key) for key in keys),
            *(getattr(point, name) for name in _OF_POINTS),
            int(point.meets_targets),
        ]
        for i, point in enumerate(frontier.points)
    ]


def _value(best: Any, keys: dict[str, str], key: str) -> object:  # noqa: ANN401
    if key == "user_tokens_per_s":
        return 1 / attrgetter(keys["tpot_s"])(best)
    if key == "n_drafted" and getattr(best, "draft", True) is None:
        return 0
    return attrgetter(keys[key])(best)
