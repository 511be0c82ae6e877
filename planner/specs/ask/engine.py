"""What `plan` is asked under any runtime, and what an engine is asked, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from planner.specs.ask.targets import (
    DEFAULT_WORKLOAD,
    Confidence,
    Lookahead,
    Objective,
    PrefillPolicy,
    SolverOptions,
    Speculation,
    Targets,
)
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import STORES, ClusterSpec, ModelSpec, Store, Workload
from planner.specs.records.economics import MEMORY_RULES
from planner.specs.records.kernels import EngineSpec, KernelTable
from planner.specs.records.roles import TOGETHER, Client
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import ActivationFormat, KnownFormat, ServedFormats
from planner.specs.validation.hints import LATER, computed
from planner.specs.validation.values import NOT_EMPTY, Sequences, one_of

PREFERENCES = SIMPLEST, BEST = "simplest", "objective"

SMALL_CHUNKS = (256, 512, 1024)
"""Most tokens of a pass where prompts hold answers up for too long; `assumed`."""

CHUNKS = (*SMALL_CHUNKS, 2048, 4096, 8192, 16384)
"""Most tokens of a pass; beside vLLM's defaults of 2048 and 8192 those around; `assumed`."""

OVERLAPS = ("none", "two-batch")
"""Whether two micro-batches hide each other's messages."""

LOOKAHEADS = (1, 2, 3, 4)
"""Tokens drafted at once to choose from; `assumed`."""
Overlap = Annotated[str, one_of("overlap", OVERLAPS)]
Preference = Annotated[str, one_of("preference", PREFERENCES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOption:
    """A model that may be served.

    Args:
        name, title: its names.
        weights_formats: of its weights to choose from.
        usual_formats: those that are offered where none is named.
        quality_loss_fraction: what it loses of the quality of the model that is asked for, if it
            is a variant of that.
        quality: where that is known from.
        kind: `dense`, or `mixture` of experts.
    """

    name: str
    title: str
    kind: ModelKind
    weights_formats: tuple[str, ...] = ()
    usual_formats: tuple[str, ...] = ()
    quality_loss_fraction: float = 0.0
    quality: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """Speculative decoding that a deployment may use, or leave.

    Args:
        kind: `mtp`, `eagle` or `medusa`.
        acceptance: probability that a drafted token is accepted, by position; the last holds for
            all further ones.
        lookaheads: tokens drafted at once to choose from.
    """

    kind: str
    acceptance: Annotated[tuple[float, ...], NOT_EMPTY]
    lookaheads: Annotated[tuple[Lookahead, ...], NOT_EMPTY]


Batches = Annotated[Sequence[Sequences], NOT_EMPTY]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What is asked of the best deployment, whichever runtime.

    Args:
        workload: tokens that a request reads and writes.
        targets: what must hold; of an engine `min_batch` counts the sequences of all attention
            ranks.
        weights_formats: formats that the weights may take; as published, or all that a limit on
            lost quality leaves.
        kv_formats, activation_formats: that cache and activations may take; as published.
        batches: decode batches to choose from; of an engine, of one attention rank.
        prefill_batches: prefill batches to choose from, of `roofline`.
        prefill: `latency` prefills each request alone, `cost` lets prefill batch; the
            former with a target on the time per output token and none on that to the first,
            else the latter.
        chunks: most tokens of a pass of an engine to choose from.
        overlaps: of an engine: `none`, `two-batch`: two micro-batches hide each other's messages.
        experts_backend: of several programs that an engine has for routed experts, in its own
            words; its own choice where empty.
        objective: `cost`, `rent`, `latency`, `ttft`, `throughput` or `devices`; of an engine
            `device-throughput` too.
        confidence: share of cases in which what is planned holds; 0 plans what is predicted. Where
            it is left out, what was measured is planned as predicted, and what was not so that it
            holds in 90 % of cases, see `specs.region`.
        prefer: `simplest`, or `objective`: of all plans that lose less of the objective than its
            error, the one with fewest devices, then stages, ranks and groups of experts.
        memory: the rule of `erdil2025` for what has to fit, of `MEMORY_RULES`.
        speculation: a draft model that decode may use; none without it.
        drafting: drafts that a deployment of an engine may use, or leave.
        variants: models that may be served in the model's place, as their files say; those that
            lose more quality than the targets allow are left out.
        options: backend, time limit, gap, threads, seed.
    """

    workload: Workload = DEFAULT_WORKLOAD
    targets: Targets = field(default_factory=Targets)
    weights_formats: Sequence[KnownFormat] | None = None
    kv_formats: Sequence[KnownFormat] | None = None
    activation_formats: Sequence[ActivationFormat] | None = None
    batches: Batches | None = None
    prefill_batches: Batches | None = None
    prefill: PrefillPolicy | None = None
    chunks: Sequence[int] | None = None
    overlaps: Sequence[Overlap] = OVERLAPS[:1]
    experts_backend: str = ""
    objective: Objective = "cost"
    confidence: Confidence | None = None
    prefer: Preference = PREFERENCES[0]
    memory: str = MEMORY_RULES[0]
    speculation: Speculation | None = None
    drafting: DraftOptions | None = None
    variants: Sequence[ModelSpec | Architecture] = ()
    options: SolverOptions = field(default_factory=SolverOptions)


class PlanKeywords(TypedDict, total=False):
    """`PlanOptions` as arguments by name."""

    workload: Workload
    targets: Targets
    weights_formats: Sequence[str] | None
    kv_formats: Sequence[str] | None
    activation_formats: Sequence[str] | None
    batches: Sequence[int] | None
    prefill_batches: Sequence[int] | None
    prefill: str | None
    chunks: Sequence[int] | None
    overlaps: Sequence[str]
    experts_backend: str
    objective: str
    confidence: float | None
    prefer: str
    memory: str
    speculation: Speculation | None
    drafting: DraftOptions | None
    variants: Sequence[ModelSpec | Architecture]
    options: SolverOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """A pool of devices; any number of them may be used, node after node.

    Args:
        name: of its topology.
        device: name of the device.
        n_devices_per_node: of them in a node.
        usd_per_hour: rent of one device.
        tdp_w: power of one device; None where nobody says.
    """

    name: str
    device: str
    n_devices: int
    n_devices_per_node: int
    usd_per_hour: float
    tdp_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """What is asked of the deployments of an engine.

    Args:
        formats: choices of formats for weights, experts and cache.
        batches: sequences on one attention rank to choose from.
        chunks: most tokens of one pass to choose from.
        objective: one of `OBJECTIVES`.
        confidence: share of cases in which what is planned holds; 0 plans what is predicted, and
            so does None inside the measured region, outside of which it holds in `CONFIDENCE`.
        prefer: one of `PREFERENCES`: the best objective, or the simplest of all that are no
            worse than it by more than the error.
        variants: models that may be served in the model's place.
        overlaps: of `OVERLAPS`, to choose from; two batches only where tokens are exchanged.
        drafting: what may be drafted, if anything.
        measured_by: engines and versions whose measured kernels times are made of.
        records: of all that is named.
    """

    model: ModelOption
    cluster: PoolOptions
    engine: str
    workload: Workload
    targets: Targets
    formats: tuple[ServedFormats, ...]
    batches: tuple[int, ...]
    chunks: tuple[int, ...]
    objective: str
    confidence: float | None
    prefer: str
    options: SolverOptions
    records: ServingRecords
    variants: tuple[ModelOption, ...] = ()
    overlaps: tuple[str, ...] = OVERLAPS[:1]
    drafting: DraftOptions | None = None
    measured_by: tuple[str, ...] = ()

    @computed
    def hit_fraction(self) -> float:
        return self.workload.hit_fraction

    @property
    def models(self) -> tuple[ModelOption, ...]:
        return (self.model, *self.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRecords:
    """What is served, and what serves it.

    Args:
        models: the one that is asked for, then its variants.
        cluster: devices and what connects them.
        kernels: of its device under the engine; those of other engines left out.
    """

    models: tuple[Architecture, ...]
    cluster: ClusterSpec
    engine: EngineSpec
    kernels: KernelTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest:
    """One given deployment and its traffic.

    Args:
        n_tensor, n_data, n_stages, n_expert_parallel, n_expert_tensor: devices by use.
        exchanges: tokens are sent to their experts.
        batch, chunk_tokens: requests in flight on one attention rank; most tokens of a pass.
        overlaps: two micro-batches hide each other's messages.
        hit_fraction: share of the input that the prefix cache has.
        n_shared_tokens: first tokens that all requests have in common.
        n_samples: answers that are drawn from each prompt; `batch` counts sequences.
        offload: where hits lie that are not shared: on the `device`, or its `host`.
        drafter, n_drafted: `mtp`, `eagle` or `medusa`, empty without; tokens of a round.
        acceptance: probability that one is accepted, by position; none without drafts.
        requests_per_s: that arrive at all ranks together; None where nothing is said of it.
        role: what the deployment does of each request.
        n_redundant_experts: copies of experts of a layer, beside the first of each.
        n_waves: of a place, the first of which all begin together; 0 without end.
        n_expert_devices, n_microbatches: that hold experts alone; parts of a batch that go there.
        client: who sends them, of lengths of its own; None of one that takes no time.
    """

    records: ServingRecords
    formats: ServedFormats
    n_tensor: int
    n_data: int
    n_stages: int
    n_expert_parallel: int
    n_expert_tensor: int
    exchanges: bool
    batch: int
    chunk_tokens: int
    overlaps: bool
    n_input_tokens: int
    n_output_tokens: int
    hit_fraction: float
    n_shared_tokens: int
    drafter: str
    n_drafted: int
    acceptance: tuple[float, ...]
    requests_per_s: float | None = None
    role: str = TOGETHER
    n_waves: int = 0
    n_redundant_experts: int = 0
    n_samples: int = field(default=1, metadata={LATER: True})
    offload: Store = field(default=STORES[0], metadata={LATER: True})
    n_expert_devices: int = field(default=0, metadata={LATER: True})
    n_microbatches: int = field(default=1, metadata={LATER: True})
    client: Client | None = field(default=None, metadata={LATER: True})
