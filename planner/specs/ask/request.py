"""What a user asks: a model, a pool, a workload, and what must hold."""

from dataclasses import dataclass, field, replace

from planner.specs.ask.targets import (
    SolverOptions,
    Speculation,
    Targets,
)
from planner.specs.records.devices import ClusterSpec, ModelSpec, Provenance, Workload
from planner.specs.validation.hints import LATER


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
        activation_formats: formats that activations are sent, held and multiplied in, to choose
            from; where left out, they are sent as the model has them, and products take them in
            the format of weights.
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
    activation_formats: tuple[str, ...] = field(default=(), metadata={LATER: True})

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
    provenance = Provenance(key="price", source="--price")
    return replace(cluster, usd_per_hour=usd_per_hour, provenance=(*kept, provenance))
