"""What a user asks: a model, a pool, a workload, and what must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from planner.specs.ask.checking import request_problems
from planner.specs.ask.defaults import (
    DEFAULT_MODEL,
    DEFAULT_TOPOLOGY,
    DEFAULT_WORKLOAD,
    command_of,
    default_batches,
    default_prefill,
    default_prefill_batches,
)
from planner.specs.ask.quality import usual_formats
from planner.specs.ask.targets import (
    CONVENTIONS,
    OBJECTIVES,
    PREFILL_POLICIES,
    SOLVERS,
    USUAL_ACCEPTANCE,
    USUAL_LOOKAHEADS,
    Confidence,
    Degrees,
    Objective,
    PrefillPolicy,
    SolverOptions,
    Speculation,
    Targets,
)
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.devices import MOST_TOKENS, ClusterSpec, ModelSpec, Provenance, Workload
from planner.specs.validation.arguments import arguments_checked, heed
from planner.specs.validation.values import MOST_SEQUENCES, NOT_EMPTY, Sequences

__all__ = [
    "CONVENTIONS",
    "DEFAULT_BATCHES",
    "DEFAULT_MODEL",
    "DEFAULT_TOPOLOGY",
    "DEFAULT_WORKLOAD",
    "MOST_SEQUENCES",
    "MOST_TOKENS",
    "OBJECTIVES",
    "PREFILL_POLICIES",
    "SOLVERS",
    "USUAL_ACCEPTANCE",
    "USUAL_LOOKAHEADS",
    "Degrees",
    "Request",
    "SolverOptions",
    "Speculation",
    "Targets",
    "among_formats",
    "command_of",
    "default_batches",
    "default_prefill",
    "default_prefill_batches",
    "make_request",
    "repriced",
    "request_problems",
]


Batches = Annotated[Sequence[Sequences], NOT_EMPTY]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One planning request.

    Args:
        model: what to serve.
        cluster: the pool of devices; any part of it may be used.
        workload: tokens of a request.
        targets: what must hold.
        weights_formats: formats that the weights may take.
        batches: decode batches to choose from; the usual ones go on beyond `targets.min_batch`
            where they end before it.
        prefill_batches: prefill batches to choose from.
        prefill: `latency` prefills each request alone, for the least TTFT of its devices;
            `cost` lets prefill batch.
        objective: what to minimise (of throughput: to maximise), one of `OBJECTIVES`.
        options: how to solve.
        kv_formats: formats that the KV cache may take; the published one where left out.
        speculation: a draft model that decode may use.
        variants: models that may be served in the model's place.
        confidence: share of cases in which what is planned holds; 0 plans what is predicted, None
            what passes take on average where they were measured to be slower.
    """

    model: ModelSpec
    cluster: ClusterSpec
    workload: Workload
    targets: Targets
    weights_formats: tuple[str, ...]
    batches: tuple[int, ...]
    prefill_batches: tuple[int, ...]
    prefill: str
    objective: str
    options: SolverOptions
    kv_formats: tuple[str, ...] = ()
    speculation: Speculation | None = None
    variants: tuple[ModelSpec, ...] = ()
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not self.kv_formats:
            object.__setattr__(self, "kv_formats", (self.model.kv_format,))

    @property
    def prefill_batches_apart(self) -> tuple[int, ...]:
        """Prefill batches of replicas that do nothing else.

        Where phases take turns a latency target asks for prompts one by one, because those that
        are decoded wait for them. On devices of its own prefill keeps nobody waiting but its own
        batch: what bounds that is the target of the first token, so that any batch may keep it.
        """
        return self.prefill_batches if self.targets.ttft_s is None else self.batches


def repriced(cluster: ClusterSpec, usd_per_hour: float) -> ClusterSpec:
    """The pool at another rent per device; the price's source is then the user."""
    kept = tuple(value for value in cluster.provenance if not value.key.startswith("price"))
    asked = Provenance(key="price", source="--price")
    return replace(cluster, usd_per_hour=usd_per_hour, provenance=(*kept, asked))


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
def make_request(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    workload: Workload,
    targets: Targets,
    objective: Objective,
    options: SolverOptions,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Batches | None = None,
    prefill_batches: Batches | None = None,
    prefill: PrefillPolicy | None = None,
    speculation: Speculation | None = None,
    confidence: Confidence | None = None,
) -> Request:
    """A request with its defaults filled in.

    Raises:
        RequestError: with every problem of the request, not only the first.
    """
    chosen_prefill = prefill or default_prefill(targets)
    offered = DEFAULT_BATCHES if batches is None else tuple(batches)
    offered = default_batches(targets) if offered == DEFAULT_BATCHES else offered
    request = Request(
        model=model,
        cluster=cluster,
        workload=workload,
        targets=targets,
        weights_formats=tuple(dict.fromkeys(weights_formats or usual_formats(model, targets))),
        kv_formats=tuple(dict.fromkeys(kv_formats or (model.kv_format,))),
        batches=tuple(sorted({int(batch) for batch in offered})),
        prefill_batches=tuple(
            default_prefill_batches(chosen_prefill)
            if prefill_batches is None
            else sorted({int(batch) for batch in prefill_batches})
        ),
        prefill=chosen_prefill,
        objective=objective,
        options=options,
        speculation=speculation,
        confidence=confidence,
    )
    heed(request_problems(request))
    return request
