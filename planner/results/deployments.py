"""A deployment of layouts: devices, formats and both phases, as frozen records in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from planner.quantities.units import show
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.validation.hints import LATER, computed, from_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Where the time of one pass goes; the parts add up to the pass [s]."""

    compute_s: float
    weights_s: float
    attention_s: float
    network_s: float
    overhead_s: float

    @computed
    def total_s(self) -> float:
        return self.compute_s + self.weights_s + self.attention_s + self.network_s + self.overhead_s

    @property
    def largest(self) -> str:
        """Name of the largest part: `compute`, `weights`, `attention`, `network`, `overhead`."""
        return max(self.parts(), key=lambda part: part[1])[0]

    def parts(self) -> tuple[tuple[str, float], ...]:
        """(name, seconds) of each part, in the order of a layer."""
        return tuple((f.name.removesuffix("_s"), getattr(self, f.name)) for f in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """Whole things dealt out to parts that do not divide them.

    Args:
        things: what is dealt out: `query heads`, `KV heads`, `latents`, `experts`, `layers`.
        n_things: how many there are.
        n_parts: devices, groups of devices, or pipeline stages among which they are.
    """

    things: str
    n_things: int
    n_parts: int

    @computed
    def n_most(self) -> int:
        """Things of the fullest part; every part is given the time and memory of it."""
        return -(-self.n_things // self.n_parts)

    @computed
    def n_copies(self) -> int:
        """Most parts that have the same thing; 1 where no two do."""
        return -(-self.n_parts // self.n_things)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """One phase of a deployment.

    Args:
        phase: `prefill` or `decode`.
        batch: sequences of one pass.
        n_microbatches: parts that a pass is cut into for the pipeline.
        layout: how the FFN and projections are laid out: `WS 1D`, `WS 2D`, `WG XYZ`.
        attention: `heads` or `batch`.
        n_kv_ways: ways in which the KV cache is cut; the rest are copies.
        step: time of one pass.
        n_tokens: tokens that enter one pass.
        mfu_fraction: model FLOP (published parameters) over peak FLOP of the pass time.
        gathered_axes: of the mesh, over which weights are gathered before use: `xy`.
        divisions: heads, experts and layers that do not come out even, and copies.
    """

    phase: str
    batch: int
    n_microbatches: int
    layout: str
    attention: str
    n_kv_ways: int
    step: StepTime
    n_tokens: int
    mfu_fraction: float
    gathered_axes: str = ""
    divisions: tuple[Division, ...] = ()

    @computed
    def tokens_per_s(self) -> float:
        """Tokens through all devices while this phase runs."""
        return self.n_tokens / self.step.total_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of the busiest device at its fullest, in a prefill or in a decode pass.

    Phases take turns, and the sequences of a prefill become those of the decode batch: no sequence
    is held twice, so the KV cache held is the larger of both phases.

    Args:
        fullest: the phase whose pass needs most: `prefill` or `decode`.
        decode_kv_bytes: cache of the decode batch at its full context.
        prefill_kv_bytes: cache of the sequences of a prefill at their input.
        written_kv_bytes: of the cache of the decode batch, what decode writes. It comes on top of
            that of a prefill: where decode takes fewer sequences at once, the others wait.
        activation_bytes, gather_bytes: activations and gathered weights of the fullest pass.
        draft_bytes: weights, cache and activations of a draft.
    """

    fullest: str
    weights_bytes: float
    decode_kv_bytes: float
    prefill_kv_bytes: float
    written_kv_bytes: float
    activation_bytes: float
    gather_bytes: float
    reserve_bytes: float
    capacity_bytes: float
    draft_bytes: float = 0.0

    @computed
    def kv_bytes(self) -> float:
        """Cache held in the fullest pass; a decode pass has that of its batch alone."""
        if self.fullest == "decode":
            return self.decode_kv_bytes
        return max(self.decode_kv_bytes, self.prefill_kv_bytes + self.written_kv_bytes)

    @computed
    def used_bytes(self) -> float:
        return sum(size for _, size in self.parts())

    @computed
    def free_bytes(self) -> float:
        return self.capacity_bytes - self.used_bytes

    def parts(self) -> tuple[tuple[str, float], ...]:
        """(name, bytes) of each part of what is used."""
        return (
            ("weights", self.weights_bytes),
            ("KV cache", self.kv_bytes),
            ("activations", self.activation_bytes),
            ("gathered weights", self.gather_bytes),
            ("draft", self.draft_bytes),
            ("reserve", self.reserve_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """The devices of a deployment and how they are connected.

    Args:
        label: said after the number of devices: `4×4×4`, `in one group`, `in 3 stages of 8`.
        axes: devices along x, y, z of one tensor group.
        axes_wrap: whether each axis closes into a ring.
        is_torus: whether the axes are links of a torus, not switches.
        n_stages: pipeline stages.
        n_devices: in all.
        n_positions: places in the pool where it fits; of a placement, replicas on such a mesh.
    """

    label: str
    axes: tuple[int, int, int]
    axes_wrap: tuple[bool, bool, bool]
    is_torus: bool
    n_stages: int
    n_devices: int
    n_positions: int

    @property
    def text(self) -> str:
        """The mesh where its number of devices is not said beside it: `8 in one group`."""
        return self.label if self.is_torus else f"{self.n_devices} {self.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChoice:
    """What is chosen of a phase, as `PhasePlan` has it; all else of it follows."""

    batch: int
    n_microbatches: int
    attention: str
    gathered_axes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChoice:
    """What is chosen of a draft, as `DraftPlan` has it."""

    n_drafted: int
    attention: str
    storage: str
    gathered_axes: str
    copied_axes: str
    sliced_axes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChoice:
    """What is chosen of a deployment, or of a replica of one phase: all else of it follows.

    Args:
        phases: by role, `prefill` and `decode`.
        n_replicas: where a number of them or a demand is asked for.
        activation_format: as `Deployment` has it.
    """

    mesh: Mesh
    weights_format: str
    kv_format: str
    storage: str
    copied_axes: str
    sliced_axes: str
    phases: Mapping[str, PhaseChoice | PhasePlan]
    draft: DraftChoice | DraftPlan | None = None
    n_replicas: int = 1
    activation_format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """The draft model of a deployment.

    Args:
        model: its name.
        n_drafted: tokens that it proposes before each pass of the target.
        acceptance: probability that the target accepts a proposed token.
        n_yielded: tokens that one round yields on average.
        weights_format: number format of its weights.
        layout: how it is laid out, on the devices of the target.
        attention: `heads` or `batch`.
        storage: how its weights rest: `E_x F_yz`.
        gathered_axes, copied_axes, sliced_axes: of the mesh, as in `PhasePlan` and `Deployment`.
        step: time of one of its passes.
        held_bytes: its weights, cache and activations on the busiest device.
    """

    model: str
    n_drafted: int
    acceptance: float
    n_yielded: float
    weights_format: str
    layout: str
    attention: str
    storage: str
    step: StepTime
    held_bytes: float
    gathered_axes: str = ""
    copied_axes: str = ""
    sliced_axes: str = ""


class OfLayouts:
    """What deployments of layouts say alike, of both phases or of one: of its busiest device."""

    __slots__ = ()
    mesh: Mesh
    memory: Memory

    if TYPE_CHECKING:

        @property
        def tpot_s(self) -> float: ...
        @property
        def ttft_s(self) -> float: ...

    @property
    def label(self) -> str:
        """How the devices of a replica are cut."""
        return self.mesh.label

    @property
    def weights_bytes(self) -> float:
        """Of the busiest device."""
        return self.memory.weights_bytes

    @property
    def used_bytes(self) -> float:
        """Of the busiest device."""
        return self.memory.used_bytes

    @property
    def capacity_bytes(self) -> float:
        return self.memory.capacity_bytes

    @property
    def planned_tpot_s(self) -> float:
        """What is planned against: what is predicted."""
        return self.tpot_s

    @property
    def planned_ttft_s(self) -> float:
        """What is planned against: what is predicted."""
        return self.ttft_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(OfLayouts):
    """A way to serve the model: devices, formats, layouts, batches; what it does and costs.

    Args:
        mesh: the devices of one replica.
        weights_format: number format of the weights.
        kv_format: number format of the KV cache.
        storage: how weights rest, shared by both phases: `E_x F_yz`.
        prefill: prefill phase; its pass is the TTFT without a queue.
        decode: decode phase; its pass is the TPOT, unless there is a draft.
        memory: memory of the busiest device.
        usd_per_hour: rent of all devices.
        usd_per_token: rent over output tokens, prefill included; with a demand, over the
            tokens that are asked for.
        prefill_usd_per_token: the share of `usd_per_token` that prefill takes.
        request_s: device time that one request takes, both phases: all devices of its
            replica are busy with it for so long.
        n_output_tokens: tokens that a request writes.
        draft: the draft model, `None` where decode goes without one.
        n_replicas: copies of all this, each on a mesh of its own.
        demand_tokens_per_s: output tokens that are asked for; `None` where there is no end of
            them.
        variant: name of the model that is served, where it stands in for the one asked for.
        copied_axes: of the mesh, along which all weights but experts have copies.
        sliced_axes: of the mesh, which cut the FFN dimension of each expert.
        further: quantities that are limited and have no field of their own, by name, SI.
        activation_format: of activations between products, in products and on links; empty where
            they are sent as the model has them, and products take them in the weights' format.
    """

    mesh: Mesh
    weights_format: str
    kv_format: str
    storage: str
    prefill: PhasePlan
    decode: PhasePlan
    memory: Memory
    usd_per_hour: float
    usd_per_token: float
    prefill_usd_per_token: float
    request_s: float
    n_output_tokens: int
    draft: DraftPlan | None = None
    n_replicas: int = 1
    demand_tokens_per_s: float | None = None
    variant: str = ""
    copied_axes: str = ""
    sliced_axes: str = ""
    further: Mapping[str, float] = field(default_factory=dict, hash=False)
    activation_format: str = field(default="", metadata={LATER: True})

    @property
    def choice(self) -> LayoutChoice:
        return from_fields(LayoutChoice, self, phases={PREFILL: self.prefill, DECODE: self.decode})

    @computed
    def summary(self) -> str:
        """The plan in one line."""
        n_devices, n_replicas = self.mesh.n_devices, self.n_replicas
        return (
            (f"{self.variant}: " if self.variant else "")
            + (f"{n_replicas} replicas of " if n_replicas > 1 else "")
            + f"{n_devices} device{'s' * (n_devices > 1)} {self.mesh.label}, "
            f"{self.weights_format} weights, "
            + (f"{self.activation_format} activations, " if self.activation_format else "")
            + f"prefill {self.prefill.layout} batch {self.prefill.batch}, "
            f"decode {self.decode.layout} batch {self.decode.batch}"
            + (f", {self.draft.n_drafted} drafted by {self.draft.model}" if self.draft else "")
        )

    @computed
    def n_devices(self) -> int:
        return self.n_replicas * self.mesh.n_devices

    @property
    def where(self) -> str:
        """`2 replicas of 64 devices 4×4×4`."""
        where = f"{self.mesh.n_devices} device{'s' * (self.mesh.n_devices > 1)} {self.mesh.label}"
        return where if self.n_replicas == 1 else f"{self.n_replicas} replicas of {where}"

    def fastest(self, name: str, within: str) -> str:
        """The fact that this has the fastest pass of a phase within some limits."""
        phase = self.decode if name == "tpot" else self.prefill
        largest, seconds = max(phase.step.parts(), key=lambda part: part[1])
        return (
            f"the fastest {phase.phase} pass{within} takes "
            f"{show(phase.step.total_s, 's')} ({phase.layout}, batch {phase.batch}, on "
            f"{self.where}); {show(seconds, 's')} of it is {largest}"
        )

    @computed
    def ttft_s(self) -> float:
        return self.prefill.step.total_s

    @property
    def usd_per_decoded_token(self) -> float:
        """Rent of a token while decoding: nothing of prefill."""
        return self.usd_per_hour / 3600.0 * self.tpot_s / self.decode.batch

    @computed
    def tpot_s(self) -> float:
        """Mean time per output token; with a draft, a round over what it yields."""
        round_s = self.decode.step.total_s
        if self.draft is None:
            return round_s
        return (round_s + self.draft.n_drafted * self.draft.step.total_s) / self.draft.n_yielded

    @property
    def device_tokens_per_s(self) -> float:
        """Output tokens of one device."""
        return self.output_tokens_per_s / self.n_devices

    @property
    def n_sequences(self) -> int:
        """Sequences that one replica decodes together."""
        return self.decode.batch

    @computed
    def output_tokens_per_s(self) -> float:
        """Output tokens of all replicas, both phases taking turns, never idle."""
        return self.n_replicas * self.n_output_tokens / self.request_s

    @computed
    def served_tokens_per_s(self) -> float:
        """Output tokens that the plan is credited with: those, but no more than are asked for."""
        most = self.output_tokens_per_s
        return most if self.demand_tokens_per_s is None else min(most, self.demand_tokens_per_s)

    @computed
    def utilization_fraction(self) -> float:
        """Share of the time in which the devices have something to do."""
        return self.served_tokens_per_s / self.output_tokens_per_s
