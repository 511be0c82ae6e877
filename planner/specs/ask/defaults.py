"""What a request is where the user leaves something out, and the command line of a request."""

import shlex
from collections.abc import Mapping, Sequence

from planner.quantities.table import limited
from planner.specs.ask.checking import request_problems
from planner.specs.ask.engine import EngineRequest, PlanOptions
from planner.specs.ask.quality import usual_formats
from planner.specs.ask.request import Request
from planner.specs.ask.targets import (
    DEFAULT_WORKLOAD,
    DEGREE_OPTIONS,
    Speculation,
    Targets,
)
from planner.specs.files.what_if import text_of
from planner.specs.options.counts import DEFAULT_BATCHES, N_LARGER_BATCHES, batches_text, span_text
from planner.specs.options.table import HEADINGS, usual
from planner.specs.records.devices import STORES, ClusterSpec, ModelSpec, Workload
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.hints import from_fields

DEFAULT_MODEL, DEFAULT_TOPOLOGY = usual("--model"), usual("--topology")
USUAL_UTILISATION = 0.85
"""Share of their capacity that replicas serve of requests that come at a rate; `assumed`."""

NEAR_SHARE = 0.005
"""Of its objective that a placement gives up at most for replicas over fewer nodes and leaves, and
for compact slices."""

RULE_SHARE = 0.05
"""Of its objective that a plan has to gain without a rule of the engine for an answer to say so."""

N_SIMULATED = int(usual("--simulated"))
"""Requests that a fleet is tried on: of 20 batches of 880, each p99 has 8 above it."""


def default_prefill(targets: Targets) -> str:
    """With a latency target requests are prefilled at once, without one for least cost.

    Where the first token has a target of its own, that says how long prompts may take together.
    """
    is_bounded = targets.ttft_s is not None
    return "latency" if targets.tpot_s is not None and not is_bounded else "cost"


def default_prefill_batches(prefill: str) -> Sequence[int]:
    """For least latency each request alone, for least cost any batch."""
    return (1,) if prefill == "latency" else DEFAULT_BATCHES


def default_batches(targets: Targets) -> tuple[int, ...]:
    """The usual decode batches, and those from `min_batch` to twice as many beyond them.

    >>> from planner.specs.ask.targets import Targets
    >>> default_batches(Targets(min_batch=2000))[-3:]
    (3952, 3984, 4000)
    """
    least, most = targets.min_batch, DEFAULT_BATCHES[-1]
    if least is None or least <= most:
        return DEFAULT_BATCHES
    step = max(1, -(-least // N_LARGER_BATCHES))
    larger = range(least, 2 * least + 1, step)
    return tuple(sorted({*DEFAULT_BATCHES, *larger, 2 * least}))


def command_of(request: Request, changes: Mapping[str, str], runtime: str = "") -> str:
    """The command line of a request, with some options changed; defaults are left out.

    Args:
        request: what was asked.
        changes: value by option, as text.
        runtime: under which, where another one would plan it.
    """
    targets = request.targets
    options = {
        **served_options(request),
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
        "--prefill": (request.prefill, default_prefill(targets)),
        **plain_options(request),
        **{DEGREE_OPTIONS[name]: (n, None) for name, n in targets.degrees.fixed().items()},
        "--layout": (targets.layouts.text, ""),
        **_speculation_options(request.speculation),
    }
    return command_line(options, {**changes, **({"--engine": runtime} if runtime else {})})


def command_line(options: Mapping[str, tuple[object, object]], changes: Mapping[str, str]) -> str:
    """A command line of options, each with what it is asked to be and what is usual."""
    said = {name: str(value) for name, (value, default) in options.items() if value != default}
    said.update(changes)
    return shlex.join(["plan", *(word for pair in said.items() for word in pair)])


def served_options(request: Request | EngineRequest) -> dict[str, tuple[object, object]]:
    """What is served, where, and the tokens of a request, as they would be written."""
    workload = request.workload
    pool = request.cluster if isinstance(request, Request) else request.records.cluster
    return {
        "--model": (request.model.name, DEFAULT_MODEL),
        "--topology": (request.cluster.name, DEFAULT_TOPOLOGY),
        "--input": (workload.n_input_tokens, DEFAULT_WORKLOAD.n_input_tokens),
        "--output": (workload.n_output_tokens, DEFAULT_WORKLOAD.n_output_tokens),
        **{name: (value, None) for name, value in reuse_options(workload).items()},
        "--price": (_price_text(pool), ""),
        "--what-if": (text_of(pool.device.what_if), ""),
    }


def _price_text(cluster: ClusterSpec) -> str:
    """The rent of a device, where the user says it in place of the pool's file."""
    is_said = any(value.source == "--price" for value in cluster.provenance)
    return f"${cluster.usd_per_hour:.12g}/h" if is_said else ""


def reuse_options(workload: Workload) -> dict[str, str]:
    """What is said of tokens that a cache has already, as it would be written."""
    values = {
        "--hit-rate": (workload.hit_fraction, 0),
        "--shared": (workload.n_shared_tokens, 0),
        "--samples": (workload.n_samples, 1),
    }
    said = {name: f"{value:.12g}" for name, (value, usual) in values.items() if value != usual}
    offload = {"--kv-offload": workload.offload}
    return said | {name: store for name, store in offload.items() if store != STORES[0]}


def plain_options(request: Request | EngineRequest) -> dict[str, tuple[object, object]]:
    """Options whose rows say how they are written, and what is usual; nothing of None."""
    options: dict[str, tuple[object, object]] = {}
    for row in (row for rows in HEADINGS.values() for row in rows):
        if row.writes and hasattr(request, row.sets):
            both = getattr(request, row.sets), getattr(PlanOptions(), row.sets)
            written, left_out = ("" if value is None else row.writes(value) for value in both)
            options[row.name] = written, left_out
    return options


def limit_options(targets: Targets) -> dict[str, tuple[object, object]]:
    """The option of each limit, as it would be written, and what is usual."""
    limits, loss = targets.limits(), targets.quality_loss_fraction
    known = [one for one in limited() if one.name in limits]
    return {
        **{one.option: (one.written(limits[one.name]), None) for one in known},
        "--max-utilisation": (_percent(targets.max_utilisation), "100%"),
        "--max-quality-loss": (None if loss is None else _percent(loss), None),
    }


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


def _percent(share: float) -> str:
    return f"{share * 100.0:.12g}%"


def among_formats(
    model: ModelSpec, allowed: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of a model's formats for weights, and for the cache, those that are allowed.

    A cache whose usual format is not among them may still have no other: it keeps that one.
    """
    weights = tuple(name for name in model.weights_formats if name in allowed)
    caches = tuple(name for name in model.kv_formats if name in allowed)
    return weights or tuple(allowed), caches or (model.kv_format,)


@arguments_checked(ranges="heeded")
def make_request(model: ModelSpec, cluster: ClusterSpec, choices: PlanOptions) -> Request:
    """A request of layouts with its defaults filled in; no variants yet.

    Raises:
        RequestError: with every problem of the request, not only the first.
    """
    targets, read = choices.targets, choices.prefill_batches
    prefill = choices.prefill or default_prefill(targets)
    offered = DEFAULT_BATCHES if choices.batches is None else tuple(choices.batches)
    offered = default_batches(targets) if offered == DEFAULT_BATCHES else offered
    weights = choices.weights_formats or usual_formats(model, targets)
    request = from_fields(
        Request,
        choices,
        model=model,
        cluster=cluster,
        weights_formats=tuple(dict.fromkeys(weights)),
        kv_formats=tuple(dict.fromkeys(choices.kv_formats or (model.kv_format,))),
        activation_formats=tuple(dict.fromkeys(choices.activation_formats or ())),
        batches=tuple(sorted({*offered})),
        prefill_batches=tuple(
            default_prefill_batches(prefill) if read is None else sorted({*read})
        ),
        prefill=prefill,
        variants=(),
    )
    raise_if_any(request_problems(request))
    return request
