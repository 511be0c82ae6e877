"""What an audit answers, as frozen records in SI units."""

from __future__ import annotations

from dataclasses import dataclass

from planner.results import Deployment
from planner.specs.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A running deployment as its owner sees it.

    Args:
        n_devices: devices in use.
        weights_format, kv_format: number formats.
        batch: sequences decoded together.
        tpot_s: time per output token that a user sees.
        usd_per_token: rent over decoded tokens.
        mfu_fraction: model FLOP of decode over the peak of the devices.
    """

    n_devices: int
    weights_format: str
    kv_format: str
    batch: int
    tpot_s: float
    usd_per_token: float
    mfu_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChange:
    """One change to a running deployment, and the least cost at its speed that it allows."""

    name: str
    deployment: Deployment
    usd_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """How far a running deployment is from what its pool could do.

    Args:
        request: the model and the pool.
        observed: what runs.
        possible: the fastest decode on as many devices at the same batch and formats.
        equal_speed: the cheapest deployment that is as fast, `None` if none is.
        equal_cost: the fastest deployment that costs no more, `None` if none does.
        changes: single changes that keep the speed, the cheapest first.
    """

    request: Request
    observed: Observation
    possible: Deployment | None
    equal_speed: Deployment | None
    equal_cost: Deployment | None
    changes: tuple[AuditedChange, ...]

    @property
    def excess(self) -> tuple[tuple[str, float], ...]:
        """The observed time per token as parts of the possible one, and what none explains."""
        if self.possible is None:
            return ()
        parts = self.possible.decode.step.parts()
        return (*parts, ("unexplained", self.observed.tpot_s - self.possible.tpot_s))
