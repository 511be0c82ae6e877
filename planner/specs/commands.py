"""The command line that a request comes from, or a request like it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.quantities import QUANTITIES, limited
from planner.specs.defaults import (
    DEFAULT_MODEL,
    DEFAULT_TOPOLOGY,
    DEFAULT_WORKLOAD,
    batches_text,
    default_batches,
    default_prefill,
    default_prefill_batches,
)
from planner.specs.quality import usual_formats
from planner.specs.spans import span_text
from planner.specs.targets import DEGREE_OPTIONS, Speculation, Targets

if TYPE_CHECKING:
    from planner.specs.request import Request


def command_of(request: Request, changes: Mapping[str, str]) -> str:
    """The command line of a request, with some options changed; defaults are left out.

    Args:
        request: what was asked.
        changes: value by option, as text.
    """
    targets, workload = request.targets, request.workload
    options = {
        "--model": (request.model.name, DEFAULT_MODEL),
        "--topology": (request.cluster.name, DEFAULT_TOPOLOGY),
        "--input": (workload.n_input_tokens, DEFAULT_WORKLOAD.n_input_tokens),
        "--output": (workload.n_output_tokens, DEFAULT_WORKLOAD.n_output_tokens),
        "--weights": (
            ",".join(request.weights_formats),
            ",".join(usual_formats(request.model, targets)),
        ),
        "--kv": (",".join(request.kv_formats), request.model.kv_format),
        "--batch": (batches_text(request.batches), batches_text(default_batches(targets))),
        "--prefill-batch": (
            batches_text(request.prefill_batches),
            batches_text(default_prefill_batches(request.prefill)),
        ),
        **limit_options(targets),
        "--max-utilisation": (_scaled(targets.max_utilisation, 100.0, "%"), "100%"),
        "--max-quality-loss": (_scaled(targets.quality_loss_fraction, 100.0, "%"), None),
        "--prefill": (request.prefill, default_prefill(targets)),
        "--objective": (request.objective, "cost"),
        **{DEGREE_OPTIONS[name]: (n, None) for name, n in targets.degrees.fixed().items()},
        "--layout": (targets.layouts.text, ""),
        "--confidence": (confidence_text(request.confidence), ""),
        **_speculation_options(request.speculation),
    }
    said = {name: str(value) for name, (value, default) in options.items() if value != default}
    said.update(changes)
    return shlex.join(["plan", *(word for pair in said.items() for word in pair)])


def confidence_text(share: float | None) -> str:
    """As it would be written; nothing where it is not asked for."""
    return "" if share is None else f"{share:.12g}"


def limit_options(targets: Targets) -> dict[str, tuple[object, object]]:
    """The option of each limit, as it would be written, and nothing as its default."""
    asked = targets.limits()
    return {
        one.option: (one.written(asked[one.name]), None) for one in limited() if one.name in asked
    }


def reached_options(reached: Mapping[str, float]) -> dict[str, str]:
    """Options with which there is a plan.

    Args:
        reached: values of limits that a plan keeps, SI; they are rounded to the side that has one.
    """
    return {QUANTITIES[name].option: QUANTITIES[name].reached(v) for name, v in reached.items()}


def _speculation_options(speculation: Speculation | None) -> dict[str, tuple[object, object]]:
    if speculation is None:
        return {}
    usual = Speculation(draft=speculation.draft)
    return {
        "--draft": (speculation.draft.name, None),
        "--acceptance": (speculation.acceptance, usual.acceptance),
        "--lookahead": (span_text(speculation.lookaheads), span_text(usual.lookaheads)),
        "--speculation": (speculation.convention, usual.convention),
    }


def _scaled(value: float | None, factor: float, unit: str) -> str | None:
    return None if value is None else f"{value * factor:.12g}{unit}"
