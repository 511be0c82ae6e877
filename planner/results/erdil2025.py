"""What planning with the reference model answers, as frozen records in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.estimates.economics.recount import PassCount, Way
from planner.units import show


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
    layout: Way
    step: PassCount
    n_drafted: int
    n_yielded: float
    held_bytes: float


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
        further: quantities that are limited and have no field of their own, by name, SI.
    """

    weights_format: str
    layout: Way
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
    further: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def n_devices(self) -> int:
        return self.layout.n_devices

    @property
    def served_tokens_per_s(self) -> float:
        """Output tokens that the plan is credited with."""
        return self.output_tokens_per_s

    @property
    def planned_tpot_s(self) -> float:
        """What is planned against: what is predicted."""
        return self.tpot_s

    @property
    def where(self) -> str:
        """`24 devices TP 24 × PP 1`."""
        return f"{self.n_devices} device{'s' * (self.n_devices > 1)} {self.layout.label}"

    def fastest(self, name: str, within: str) -> str:
        """The fact that this is the fastest token within some limits."""
        return (
            f"the fastest token{within} takes {show(self.tpot_s, 's')} on {self.where}; "
            f"{show(self.step.network_s, 's')} of a pass is network"
        )

    @property
    def output_tokens_per_s(self) -> float:
        """Of all requests together."""
        return self.batch / self.tpot_s

    @property
    def device_tokens_per_s(self) -> float:
        """Output tokens of one device."""
        return self.output_tokens_per_s / self.n_devices

    @property
    def n_sequences(self) -> int:
        """Sequences decoded together."""
        return self.batch

    @property
    def summary(self) -> str:
        """The deployment in one line."""
        words = [
            f"{self.n_devices} device{'s' * (self.n_devices > 1)} {self.layout.label}",
            f"{self.weights_format} weights",
            f"batch {self.batch}",
        ]
        if self.draft:
            words.append(f"{self.draft.n_drafted} drafted by {self.draft.model}")
        return ", ".join(words)
