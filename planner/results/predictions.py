"""What is predicted of one given deployment: times with intervals, where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.results.arrivals import Load, Offload, Waves
from planner.results.experts import ExpertPool, RedundantExperts
from planner.results.records import AnswerRecord
from planner.specs.ask.engine import PredictionRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.roles import PREFILL
from planner.specs.records.runtimes import ModelKind
from planner.specs.region import Outside
from planner.specs.validation.hints import LATER, computed

Bound = Literal["compute", "memory", "network", "latency", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A quantity, and the range that it is in two times out of three.

    Args:
        value: predicted.
        low, high: of the range.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationLine:
    """One kernel or message of a pass, on one device.

    Args:
        name, layer: what it is, and the class of layers that it is in.
        part: what of a layer it belongs to.
        n_times: how often a pass runs it.
        run_s: one run.
        flop, hbm_bytes, sent_bytes: of one run.
        flop_per_byte: arithmetic intensity; 0 without memory traffic.
        bound: what its time is due to, most of all.
        mfu_fraction: FLOP over what the peak of its format gives in that time.
        hbm_fraction: bytes over what the memory gives in that time.
        ridge_flop_per_byte: of its number format.
        formula: closed form that timed it.
        format: number format.
        arguments, constants: of the closed form.
        source: of the constants.
        error: relative, of the form on rows that it was not fitted to.
    """

    name: str
    layer: str
    part: str
    n_times: float
    run_s: float
    flop: float
    hbm_bytes: float
    sent_bytes: float
    flop_per_byte: float
    bound: Bound
    mfu_fraction: float
    hbm_fraction: float
    ridge_flop_per_byte: float
    formula: str
    format: str
    arguments: Mapping[str, float]
    constants: Mapping[str, float]
    source: str
    error: float

    @computed
    def total_s(self) -> float:
        return self.run_s * self.n_times


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLine:
    """One pass: `decode`, or `prefill` of one chunk.

    Args:
        total_s: of the pass, host time included.
        host_s: of it, what no kernel fills.
        hidden_s: what its operations add up to beyond `total_s − host_s`.
        n_tokens: of one attention rank.
        n_microbatches: passes through the layers.
        mfu_fraction, hbm_fraction: FLOP and bytes of memory over what the peaks give in that time.
        operations: of one micro-batch, in their order.
    """

    name: str
    total_s: Interval
    host_s: float
    hidden_s: float
    n_tokens: float
    n_microbatches: float
    mfu_fraction: float
    hbm_fraction: float
    operations: tuple[OperationLine, ...]

    @computed
    def hbm_bytes(self) -> float:
        """Read and written in the memory of the busiest device."""
        return sum(self.n_runs(one) * one.hbm_bytes for one in self.operations)

    @computed
    def sent_bytes(self) -> float:
        """Sent by the busiest device."""
        return sum(self.n_runs(one) * one.sent_bytes for one in self.operations)

    def spent_s(self, line: OperationLine) -> float:
        """Time of all runs of an operation."""
        return self.n_runs(line) * line.run_s

    def n_runs(self, line: OperationLine) -> float:
        """How often an operation runs in all: inside layers for each micro-batch."""
        return line.n_times * (1.0 if line.layer == "model" else self.n_microbatches)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenPart:
    """One part of TTFT; all together are its value.

    Args:
        name: what the time goes to.
        seconds: how long.
        source: of a constant that no pass explains; empty of times that passes give.
    """

    name: str
    seconds: float
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """Memory of the fullest device [bytes].

    Args:
        drafter_bytes: weights of what proposes tokens ahead; 0 without drafts.
        cache_bytes: of all sequences, the drafter's too, as long as they are on average.
        longest_cache_bytes, shared_bytes: of all of them at their longest; of all in common.
        largest_batch: sequences of an attention rank that fit while they grow, as the engine lets
            them begin.
        longest_context: tokens of each sequence that fit at this batch.
    """

    hbm_bytes: float
    limit_bytes: float
    weights_bytes: float
    drafter_bytes: float
    cache_bytes: float
    longest_cache_bytes: float
    activation_bytes: float
    workspace_bytes: float
    largest_batch: int
    longest_context: int
    shared_bytes: float = field(default=0.0, metadata={LATER: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an engine is started for a deployment.

    Args:
        command: one line of a shell; of a server of several nodes, for each of them.
        version: of the engine whose flags these are.
        n_nodes: that one server spans.
        n_servers: to start, each on as many devices, where no flag of the engine starts all.
        variables: what the shell's variables of the command stand for, by name.
        remarks: what differs from the plan.
    """

    command: str
    version: str
    n_nodes: int
    n_servers: int
    variables: Mapping[str, str]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceLine:
    """Where arithmetic and memory take equally long, and where this deployment is."""

    name: str
    balanced: float
    present: float | None
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(AnswerRecord):
    """A deployment, evaluated.

    Args:
        request: what was asked.
        model, title: of the model.
        model_kind: `dense`, or `mixture` of experts.
        device, engine, network: what it runs on, by name.
        degrees: devices by what they are used for: tensor, data, pipeline, expert.
        n_devices: all of them.
        n_copies: of the whole model: ranks of a model without experts share nothing.
        batch, n_running: sequences in flight on one attention rank; of them, decoding at once.
        formats: of weights, experts and cache.
        quality: what these lose against the formats that the model is published in, in words.
        n_input_tokens, n_output_tokens, hit_fraction: the traffic.
        tokens_per_step: that a sequence gets of a pass; above one with drafts.
        ttft_s, tpot_s: as users see them, the mean of all requests.
        itl_s: between two tokens, or with drafts two bursts of them, while no prompt is read.
        ttft_parts, queue_s: what `ttft_s` is the sum of; wait for a free place.
        user_tokens_per_s, device_tokens_per_s, total_tokens_per_s: output.
        peak_flop_per_s: by number format.
        ridge_flop_per_byte: of the format of most matrices.
        n_assumed: constants without a measurement behind them.
        launch, measured_by: how the engine is started, None of an engine that a user's file
            describes; engines and versions whose measured kernels times are made of.
        load, offload: at the rate that arrives, and of hits on the host; None where none is said.
        waves: first tokens by wave; None where the loop is without end.
        redundant_experts: by copies of experts; None without.
        outside, pool: what of it no measurement of the engine, the device and the kind of model
            has; of experts that have devices of their own, None where they have not.
    """

    request: PredictionRequest
    model: str
    title: str
    model_kind: ModelKind
    device: str
    engine: str
    network: str
    degrees: Mapping[str, int]
    n_devices: int
    n_copies: int
    batch: int
    n_running: int
    formats: Mapping[str, str]
    quality: str
    n_input_tokens: int
    n_output_tokens: int
    hit_fraction: float
    overlap: str
    tokens_per_step: float
    ttft_s: Interval
    tpot_s: Interval
    itl_s: Interval
    ttft_parts: tuple[FirstTokenPart, ...]
    queue_s: float
    user_tokens_per_s: float
    device_tokens_per_s: float
    total_tokens_per_s: float
    peak_flop_per_s: Mapping[str, float]
    hbm_bytes_per_s: float
    ridge_flop_per_byte: float
    memory: MemoryLine
    passes: tuple[PassLine, ...]
    balance: tuple[BalanceLine, ...]
    n_assumed: int
    provenance: tuple[Provenance, ...]
    launch: Launch | None
    measured_by: tuple[str, ...]
    load: Load | None = None
    waves: Waves | None = None
    redundant_experts: RedundantExperts | None = None
    outside: tuple[Outside, ...] = ()
    offload: Offload | None = field(default=None, metadata={LATER: True})
    pool: ExpertPool | None = field(default=None, metadata={LATER: True})

    @property
    def role(self) -> str:
        """What it does of each request."""
        return self.request.role

    @computed
    def prefill_device_tokens_per_s(self) -> float:
        """Tokens that a device reads while a prefill pass runs; 0 where none does."""
        return sum(self.pass_rate(one) for one in self.passes if one.name == "prefill")

    @computed
    def decode_device_tokens_per_s(self) -> float:
        """Sequences that a device decodes over the time of a pass; 0 where none runs."""
        return sum(self.pass_rate(one) for one in self.passes if one.name == "decode")

    def pass_rate(self, line: PassLine) -> float:
        """Tokens of a pass over its time, of a device [token/s]."""
        return self.degrees["data"] * line.n_tokens / self.n_devices / line.total_s.value

    @property
    def n_kept_tokens(self) -> int:
        """That a sequence holds at its end; of a prompt that is only read, one more than it."""
        return self.n_input_tokens + (1 if self.role == PREFILL else self.n_output_tokens)

    @property
    def requests_per_s(self) -> float:
        """That it is done with where it is never idle."""
        return self.total_tokens_per_s / (self.n_output_tokens * self.request.n_samples)
