"""What planning with the reference model answers, as frozen records in SI units."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.quantities.units import show
from planner.specs.validation.hints import computed, from_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A layout: stages P, devices of one T, ways of the experts e, ranks of attention t."""

    n_stages: int
    n_tensor: int
    n_expert: int
    n_attention: int

    @property
    def n_devices(self) -> int:
        return self.n_stages * self.n_tensor

    @property
    def label(self) -> str:
        """`TP 8 × PP 2`, with the ways of experts and the ranks of attention where they differ."""
        experts = f", EP {self.n_expert}" if self.n_expert > 1 else ""
        apart = self.n_attention != self.n_tensor
        attention = f", attention on {self.n_attention}" if apart else ""
        return f"TP {self.n_tensor} × PP {self.n_stages}{experts}{attention}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCount:
    """Where the time of a pass goes; memory and compute overlap, nothing else does [s].

    Shapes are how tensor parallelism cuts the weights of attention and of the FFN: `1D`, or
    ranks along both dimensions as `2D 4×8`.
    """

    launch_s: float
    attention_network_s: float
    ffn_network_s: float
    expert_network_s: float
    pipeline_network_s: float
    memory_s: float
    compute_s: float
    attention_shape: str
    ffn_shape: str

    @property
    def network_s(self) -> float:
        tensors = self.attention_network_s + self.ffn_network_s
        return tensors + self.expert_network_s + self.pipeline_network_s

    @property
    def total_s(self) -> float:
        return self.launch_s + self.network_s + max(self.memory_s, self.compute_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsDraft:
    """The draft model of a deployment, on the devices of its target.

    Args:
        model: its title.
        weights_format: number format of its weights.
        layout: stages and ranks of its own.
        step: one of its passes.
        n_drafted: tokens that it proposes before each pass of the target.
        n_yielded: tokens that a round yields on average.
        held_bytes: its weights and caches on the busiest device.
    """

    model: str
    weights_format: str
    layout: Split
    step: PassCount
    n_drafted: int
    n_yielded: float
    held_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsChoice:
    """What is chosen of a deployment, as `EconomicsDeployment` has it; all else of it follows.

    Args:
        n_drafted, draft_layout: of the draft; 0 and None without one.
    """

    weights_format: str
    layout: Split
    batch: int
    n_drafted: int = 0
    draft_layout: Split | None = None
    n_replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsDeployment:
    """A way to decode under the reference model, and what it does and costs.

    Args:
        weights_format: number format of the weights.
        layout: how the model is cut over the devices.
        batch: requests decoded together, P micro-batches of ⌈B/P⌉.
        step: one pass of the model; with a draft, over the tokens that it scores.
        tpot_s: mean time of a token of each request.
        usd_per_hour: rent of all devices.
        usd_per_token: rent over decoded tokens.
        weights_bytes, kv_bytes: of the model on the busiest device.
        used_bytes: what has to fit the busiest device, a draft included.
        capacity_bytes: memory of a device that may be filled.
        draft: the draft model, `None` without one.
        n_replicas: copies of all this, each on devices of its own.
        demand_tokens_per_s: output tokens that are asked for; `None` where there is no end of
            them.
        further: quantities that are limited and have no field of their own, by name, SI.
    """

    weights_format: str
    layout: Split
    batch: int
    step: PassCount
    tpot_s: float
    usd_per_hour: float
    usd_per_token: float
    weights_bytes: float
    kv_bytes: float
    used_bytes: float
    capacity_bytes: float
    draft: EconomicsDraft | None = None
    n_replicas: int = 1
    demand_tokens_per_s: float | None = None
    further: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def choice(self) -> EconomicsChoice:
        return from_fields(
            EconomicsChoice,
            self,
            n_drafted=self.draft.n_drafted if self.draft else 0,
            draft_layout=self.draft.layout if self.draft else None,
        )

    @computed
    def summary(self) -> str:
        """The deployment in one line."""
        words = [self.where, f"{self.weights_format} weights", f"batch {self.batch}"]
        if self.draft:
            words.append(f"{self.draft.n_drafted} drafted by {self.draft.model}")
        return ", ".join(words)

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

    @property
    def planned_tpot_s(self) -> float:
        """What is planned against: what is predicted."""
        return self.tpot_s

    @property
    def where(self) -> str:
        """`24 devices TP 24 × PP 1`."""
        n_devices = self.layout.n_devices
        plural = "s" * (n_devices > 1)
        return f"{self._copies}{n_devices} device{plural} {self.layout.label}"

    def fastest(self, name: str, within: str) -> str:
        """The fact that this is the fastest token within some limits."""
        return (
            f"the fastest token{within} takes {show(self.tpot_s, 's')} on {self.where}; "
            f"{show(self.step.network_s, 's')} of a pass is network"
        )

    @computed
    def n_devices(self) -> int:
        return self.n_replicas * self.layout.n_devices

    @property
    def device_tokens_per_s(self) -> float:
        """Output tokens of one device."""
        return self.output_tokens_per_s / self.n_devices

    @property
    def n_sequences(self) -> int:
        """Sequences decoded together."""
        return self.batch

    @computed
    def output_tokens_per_s(self) -> float:
        """Of all requests of all replicas together."""
        return self.n_replicas * self.batch / self.tpot_s
