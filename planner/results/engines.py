"""What planning an engine's deployment answers, as frozen records in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.quantities.units import show
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.records import AnswerRecord
from planner.specs.ask.engine import OVERLAPS, EngineRequest, PredictionRequest
from planner.specs.records.architecture import Architecture
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.roles import TOGETHER, pool_words, role_words
from planner.specs.records.served_formats import ServedFormats
from planner.specs.region import Outside
from planner.specs.validation.hints import LATER, computed, from_fields

if TYPE_CHECKING:  # here and where else records are named only: `report.json_records`
    from planner.results.experts import RedundantExperts
    from planner.results.predictions import Interval, Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDeployment:
    """A deployment of an engine, and what it does and costs.

    Args:
        engine: that serves it.
        model: which is served, the one that was asked for or a variant of it.
        variant: its name where it is a variant; else empty.
        quality_loss_fraction: what that variant loses of the quality of the model asked for.
        formats: of weights, experts and cache.
        quality: what these lose against the formats that the model is published in, in words.
        n_tensor: devices that share the heads of one attention rank.
        n_data: attention ranks.
        n_stages: stages of the pipeline.
        n_expert_parallel: groups that experts are dealt to.
        n_expert_tensor: devices that each expert is cut over.
        batch: sequences on one attention rank.
        chunk_tokens: most tokens of one pass.
        overlap: `none` or `two-batch`.
        n_drafted: tokens drafted at once; 0 without drafts.
        drafter: what drafts them; empty without drafts.
        tpot_s, ttft_s: predicted, with the range that they are in two times out of three.
        planned_tpot_s, planned_ttft_s: what was planned against: the upper end of the interval
            that the confidence asks for, or what is predicted.
        usd_per_hour: rent of all devices.
        usd_per_token: rent over output tokens, at the planned times; with a demand, over the
            tokens that are asked for.
        output_tokens_per_s: of all sequences of all replicas, at the planned times; each has its
            place from its prompt to its last token.
        weights_bytes: of the fullest device, a drafter's too.
        used_bytes: all that the engine holds there.
        capacity_bytes: what the engine may take of it.
        command: evaluates this deployment, operation by operation.
        launch: how the engine is started; None of an engine that a user's file describes.
        n_replicas: copies of all this, each on devices of its own.
        demand_tokens_per_s: output tokens that are asked for; `None` where there is no end of
            them.
        further: quantities that are limited and have no field of their own, by name, SI.
        role: what it does of a request. Of one that reads prompts `output_tokens_per_s` are those
            that are written after them, and TPOT is 0; of one that decodes TTFT is.
        outside: what of it no measurement of the engine, the device and the kind of model has.
        redundant_experts: by copies of experts; None without.
        n_expert_devices: of their own that experts lie on; None where those of attention have them.
        n_microbatches: parts of the batch that go to and fro between both; None without.
    """

    engine: str
    model: str
    variant: str
    quality_loss_fraction: float
    formats: ServedFormats
    quality: str
    n_tensor: int
    n_data: int
    n_stages: int
    n_expert_parallel: int
    n_expert_tensor: int
    batch: int
    chunk_tokens: int
    overlap: str
    n_drafted: int
    drafter: str
    tpot_s: Interval
    ttft_s: Interval
    planned_tpot_s: float
    planned_ttft_s: float
    usd_per_hour: float
    usd_per_token: float
    output_tokens_per_s: float
    weights_bytes: float
    used_bytes: float
    capacity_bytes: float
    command: str
    launch: Launch | None
    n_replicas: int = 1
    demand_tokens_per_s: float | None = None
    further: Mapping[str, float] = field(default_factory=dict, hash=False)
    role: str = TOGETHER
    outside: tuple[Outside, ...] = ()
    redundant_experts: RedundantExperts | None = None
    n_expert_devices: int | None = field(default=None, metadata={LATER: True})
    n_microbatches: int | None = field(default=None, metadata={LATER: True})

    def alone(self, request: EngineRequest, model: Architecture) -> PredictionRequest:
        """One replica of it, with the traffic of the request, as a given deployment.

        Args:
            model: which it serves.
        """
        drafting = request.drafting
        return from_fields(
            PredictionRequest,
            self,
            records=replace(request.records, models=(model,)),
            exchanges=self.exchanges,
            n_expert_devices=self.n_expert_devices or 0,
            n_microbatches=self.n_microbatches or 1,
            overlaps=self.overlap != OVERLAPS[0],
            n_input_tokens=request.workload.n_input_tokens,
            n_output_tokens=request.workload.n_output_tokens,
            hit_fraction=request.workload.hit_fraction,
            n_shared_tokens=request.workload.n_shared_tokens,
            n_samples=request.workload.n_samples,
            offload=request.workload.offload,
            acceptance=drafting.acceptance if drafting and self.n_drafted else (),
        )

    @property
    def exchanges(self) -> bool:
        """Whether tokens are sent to their experts."""
        return bool(self.n_expert_devices) or min(self.n_data, self.n_expert_parallel) > 1

    @property
    def n_redundant_experts(self) -> int:
        """Copies of experts of a layer beside the first of each."""
        return self.redundant_experts.n_redundant if self.redundant_experts else 0

    @computed
    def summary(self) -> str:
        """The deployment in one line; a variant is named."""
        n_devices = self.n_replica_devices
        plural = "s" * (n_devices > 1)
        label = f" {self.label}" if self.label else ""
        ranks = " a rank" if self.n_data > 1 else ""
        variant = f"{self.variant}: " if self.variant else ""
        modes = f", {self.modes}" if self.modes else ""
        return (
            f"{variant}{self._copies}{n_devices} device{plural}{label}{role_words(self.role)}, "
            f"{self.formats.weights} weights, {self.formats.cache} KV cache, "
            f"batch {self.batch}{ranks}, chunks of {self.chunk_tokens}{modes}"
        )

    @property
    def n_replica_devices(self) -> int:
        return self.n_cache_devices + (self.n_expert_devices or 0)

    @property
    def n_cache_devices(self) -> int:
        """That hold the cache: those of attention."""
        return self.n_tensor * self.n_data * self.n_stages

    @property
    def _copies(self) -> str:
        """`3 replicas of `; nothing of one."""
        return f"{self.n_replicas} replicas of " if self.n_replicas > 1 else ""

    @property
    def served_tokens_per_s(self) -> float:
        """Output tokens that the plan is credited with: those, but no more than are asked for."""
        most = self.output_tokens_per_s
        return most if self.demand_tokens_per_s is None else min(most, self.demand_tokens_per_s)

    @property
    def utilization_fraction(self) -> float:
        """Share of the time in which the devices have something to do."""
        return self.served_tokens_per_s / self.output_tokens_per_s

    def fastest(self, name: str, within: str) -> str:
        """The fact that this is the fastest token, or first token, within some limits."""
        what = "token" if name == "tpot" else "first token"
        took = self.planned_tpot_s if name == "tpot" else self.planned_ttft_s
        return f"the fastest {what}{within} takes {show(took, 's')} on {self.where}"

    @property
    def where(self) -> str:
        """`8 devices TP 8 at batch 16`."""
        label = f" {self.label}" if self.label else ""
        n_devices = self.n_replica_devices
        plural = "s" * (n_devices > 1)
        alone = role_words(self.role)
        return f"{self._copies}{n_devices} device{plural}{label}{alone} at batch {self.batch}"

    @property
    def label(self) -> str:
        """`TP 4 DP 2 EP 8`: degrees above one."""
        degrees = (
            ("TP", self.n_tensor),
            ("DP", self.n_data),
            ("PP", self.n_stages),
            ("EP", self.n_expert_parallel),
        )
        return " ".join(f"{name} {n}" for name, n in degrees if n > 1)

    @property
    def weights_format(self) -> str:
        return self.formats.weights

    @property
    def kv_format(self) -> str:
        return self.formats.cache

    @computed
    def n_devices(self) -> int:
        return self.n_replicas * self.n_replica_devices

    @property
    def n_sequences(self) -> int:
        """Sequences of all attention ranks."""
        return self.batch * self.n_data

    @property
    def modes(self) -> str:
        """`two batches overlapped, 2 drafted by mtp`; empty where passes are plain."""
        overlapped = "two batches overlapped" if self.overlap != "none" else ""
        apart = pool_words(self.n_expert_devices, self.n_microbatches)
        drafted = f"{self.n_drafted} drafted by {self.drafter}" if self.n_drafted else ""
        copies = f"{self.n_redundant_experts} redundant experts" * (self.n_redundant_experts > 0)
        return ", ".join(filter(None, (apart, overlapped, drafted, copies)))

    @computed
    def device_tokens_per_s(self) -> float:
        """Output tokens of one device, at the planned times."""
        return self.output_tokens_per_s / self.n_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAudit(AnswerRecord):
    """How far what an engine runs is from its prediction, and that from what the pool could do.

    Args:
        request: of the best plans: the formats that run, any other choice; of the reference model
            of [Erdil2025], all is of decode only.
        observed_tpot_s: time per output token that a user sees.
        observed_usd_per_token: rent over output tokens.
        predicted: what runs, by its own evaluation.
        same_devices: the fastest for as many sequences on no more devices, `None` if none is.
        equal_speed: the cheapest that is as fast as observed, `None` if none is.
        equal_cost: the fastest that costs no more than observed, `None` if none does.
        command: the plan at the observed speed; empty where there is none.
    """

    request: EngineRequest | EconomicsRequest
    observed_tpot_s: float
    observed_usd_per_token: float
    predicted: EngineDeployment | EconomicsDeployment
    same_devices: EngineDeployment | EconomicsDeployment | None
    equal_speed: EngineDeployment | EconomicsDeployment | None
    equal_cost: EngineDeployment | EconomicsDeployment | None
    command: str

    @computed
    def prediction_factor(self) -> float:
        """Observed time of a token over the predicted one."""
        expected = self.predicted.tpot_s
        value = expected if isinstance(expected, float) else expected.value
        return self.observed_tpot_s / value

    @computed
    def errors_off(self) -> float | None:
        """By how many standard deviations of the prediction it is missed; above 0 it is slower.

        None of the reference model, whose error nobody knows.
        """
        expected = self.predicted.tpot_s
        if isinstance(expected, float):
            return None
        beyond = self.observed_tpot_s - expected.value
        return beyond / (expected.high - expected.value)

    @computed
    def cost_factor(self) -> float | None:
        """Observed cost over the least at its speed; below one, the estimates are beaten."""
        if self.equal_speed is None:
            return None
        return self.observed_usd_per_token / self.equal_speed.usd_per_token
