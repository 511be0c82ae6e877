"""What the planner answers, as frozen records in SI units.

A `Plan` holds one `Deployment`, the next best ones, and the `Certificate` that proves it.
A request without a plan ends in a `Conflict`. Reports read these records and compute
nothing that is not in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from planner.certificates import Certificate
from planner.specs.quality import with_variants
from planner.specs.records import Provenance
from planner.specs.request import Request
from planner.units import show


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Where the time of one pass goes; the parts add up to the pass [s]."""

    compute_s: float
    weights_s: float
    attention_s: float
    network_s: float
    overhead_s: float

    @property
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

    @property
    def n_most(self) -> int:
        """Things of the fullest part; every part is given the time and memory of it."""
        return -(-self.n_things // self.n_parts)

    @property
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

    @property
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

    @property
    def kv_bytes(self) -> float:
        """Cache held in the fullest pass; a decode pass has that of its batch alone."""
        if self.fullest == "decode":
            return self.decode_kv_bytes
        return max(self.decode_kv_bytes, self.prefill_kv_bytes + self.written_kv_bytes)

    @property
    def used_bytes(self) -> float:
        return sum(size for _, size in self.parts())

    @property
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
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

    @property
    def n_devices(self) -> int:
        """Devices of all replicas."""
        return self.n_replicas * self.mesh.n_devices

    @property
    def ttft_s(self) -> float:
        return self.prefill.step.total_s

    @property
    def tpot_s(self) -> float:
        """Mean time per output token; with a draft, a round over what it yields."""
        round_s = self.decode.step.total_s
        if self.draft is None:
            return round_s
        return (round_s + self.draft.n_drafted * self.draft.step.total_s) / self.draft.n_yielded

    @property
    def usd_per_decoded_token(self) -> float:
        """Rent of a token while decoding: nothing of prefill."""
        return self.usd_per_hour / 3600.0 * self.tpot_s / self.decode.batch

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens of all replicas, both phases taking turns, never idle."""
        return self.n_replicas * self.n_output_tokens / self.request_s

    @property
    def device_tokens_per_s(self) -> float:
        """Output tokens of one device."""
        return self.output_tokens_per_s / self.n_devices

    @property
    def n_sequences(self) -> int:
        """Sequences that one replica decodes together."""
        return self.decode.batch

    @property
    def served_tokens_per_s(self) -> float:
        """Output tokens that the plan is credited with: those, but no more than are asked for."""
        most = self.output_tokens_per_s
        return most if self.demand_tokens_per_s is None else min(most, self.demand_tokens_per_s)

    @property
    def utilization_fraction(self) -> float:
        """Share of the time in which the devices have something to do."""
        return self.served_tokens_per_s / self.output_tokens_per_s

    @property
    def summary(self) -> str:
        """The plan in one line."""
        n_devices, n_replicas = self.mesh.n_devices, self.n_replicas
        return (
            (f"{self.variant}: " if self.variant else "")
            + (f"{n_replicas} replicas of " if n_replicas > 1 else "")
            + f"{n_devices} device{'s' * (n_devices > 1)} {self.mesh.label}, "
            f"{self.weights_format} weights, "
            f"prefill {self.prefill.layout} batch {self.prefill.batch}, "
            f"decode {self.decode.layout} batch {self.decode.batch}"
            + (f", {self.draft.n_drafted} drafted by {self.draft.model}" if self.draft else "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A plan that loses, and by how much of the objective."""

    deployment: Deployment
    objective: float
    loss_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """A limit of the request and what the plan uses of it, in the limit's own unit.

    Args:
        name: the constraint's name: `tpot`, `ttft`, `cost`, `devices`, `batch`, `demand`, `hbm`.
        used: what the plan uses or reaches, SI.
        limit: what was asked, SI.
        dimension: of both, as `units.show` takes it.
        relief: factor by which the limit was loosened to see what it costs.
        gain_fraction: share of the objective that the loosened limit would gain, exactly;
            `None` where the search was cut short, and of the demand.
    """

    name: str
    used: float
    limit: float
    dimension: str
    relief: float
    gain_fraction: float | None

    @property
    def binds(self) -> bool:
        """Whether the plan would be better if this limit were looser."""
        return self.gain_fraction is not None and self.gain_fraction > 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A variant that could have been served in the model's place.

    Args:
        name, title: its names.
        quality_loss_fraction: what it loses of the model's quality; None where nobody says [1].
        quality: where that is known from.
    """

    name: str
    title: str
    quality_loss_fraction: float | None
    quality: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to a request.

    Args:
        request: what was asked, variants of the model that may take its place among it.
        deployment: the plan.
        alternatives: the best of other ways to use the pool, the nearest first.
        limits: what the plan uses of each.
        certificate: the proof.
        provenance: where the constants come from.
        variants: models that could have been served in the model's place.
    """

    request: Request
    deployment: Deployment
    alternatives: tuple[Alternative, ...]
    limits: tuple[LimitUse, ...]
    certificate: Certificate
    provenance: tuple[Provenance, ...]
    variants: tuple[Considered, ...] = ()

    @property
    def served(self) -> Request:
        """The request of the model that the plan serves: the one asked for, or a variant."""
        return served_by(self.request, self.deployment)

    @property
    def n_assumed(self) -> int:
        """Constants of the inputs that have no published source."""
        return sum(value.is_assumed for value in self.provenance)

    def __str__(self) -> str:
        best, proof = self.deployment, self.certificate
        return "\n".join(
            (
                best.summary,
                f"TPOT {show(best.tpot_s, 's')}, TTFT {show(best.ttft_s, 's')}, "
                f"{show(best.usd_per_token, 'USD/token')}, {show(best.usd_per_hour, 'USD/h')}",
                f"{proof.status}, gap {proof.gap:.3g}, {proof.n_candidates} candidates, "
                f"{proof.solver}, verified",
            )
        )


def served_by(request: Request, deployment: Deployment) -> Request:
    """The request of the model that a deployment serves.

    Raises:
        KeyError: it serves none that was asked for.
    """
    requests = with_variants(request)
    named = {"": requests[0], **{one.model.name: one for one in requests[1:]}}
    return named[deployment.variant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One limit of a conflict: what was asked, and what is reachable when only it yields.

    Args:
        name: the constraint's name.
        asked: the limit, SI.
        reachable: the best value with the other limits kept, or with those of its conflict
            where all others conflict too.
        dimension: of both, as `units.show` takes it.
        reason: the fact that stands in the way, one sentence for people.
    """

    name: str
    asked: float
    reachable: float
    dimension: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why no plan exists: limits that cannot hold together, none of which can be left out.

    Args:
        request: what was asked.
        obstacles: the irreducible set of limits.
        closest: the deployment that yields the first obstacle by the least, if any does.
        command: a command that would work, empty when none was found.
        n_candidates: candidates that were considered.
        verified: how the absence of a plan was confirmed.
    """

    request: Request
    obstacles: tuple[Obstacle, ...]
    closest: Deployment | None
    command: str
    n_candidates: int
    verified: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(obstacle.name for obstacle in self.obstacles)
        return f"no plan exists: {names} cannot hold together"
