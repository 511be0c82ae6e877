"""What is asked of the reference model, in its own records."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.specs.economics.records import DecodePass, EconomicsDevice
from planner.specs.request import CONVENTIONS, SolverOptions, Targets
from planner.specs.tables import Provenance

MEMORY_RULES = ("in-flight", "one-microbatch")
"""What a device has to hold.

`in-flight`: its weights as it is the fullest of its stage, the caches of all requests in
flight, and a draft model with its caches beside them. `one-microbatch`: as [Erdil2025]
§3.6 has it, an even share of all weights and the caches of one micro-batch; a draft model
meets the memory by itself.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model in one number format, with a draft model or without.

    Args:
        weights_format: name of the format of the target's weights.
        quality: what it loses against the format that the model is published in, in words.
        target: its pass over one token of each request.
        draft: the pass of a draft model on the same devices.
        draft_format: name of the format of the draft's weights.
    """

    weights_format: str
    quality: str = ""
    target: DecodePass
    draft: DecodePass | None = None
    draft_format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """How a draft model is used, where there is one.

    Args:
        acceptance: probability that a proposed token is accepted, in [0, 1).
        lookaheads: numbers of tokens proposed at once to choose from.
        convention: how yielded tokens are counted, see `equations.speculation`.
    """

    acceptance: float = 0.8
    lookaheads: tuple[int, ...] = (2, 3, 4, 5)
    convention: str = CONVENTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsRequest:
    """One request for a decode deployment under the reference model.

    Args:
        served: the number formats to choose from; one device for all of them.
        n_devices: devices of the pool; any part of it may be used.
        batches: requests decoded together to choose from.
        n_cached_tokens: tokens of each request to hold, at least the context that is read.
        drafting: how drafts are used, where `served` has them.
        targets: what must hold; a time to first token cannot be asked for.
        objective: a quantity of its programs.
        memory: one of `MEMORY_RULES`.
        options: how to solve.
        notes: what the reference model cannot say of the model or the pool.
        provenance: where the constants of all this come from.
    """

    served: tuple[Served, ...]
    n_devices: int
    batches: tuple[int, ...]
    n_cached_tokens: float = 0.0
    drafting: Drafting = field(default_factory=Drafting)
    targets: Targets = field(default_factory=Targets)
    objective: str = "cost"
    memory: str = MEMORY_RULES[0]
    options: SolverOptions = field(default_factory=SolverOptions)
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()

    @property
    def device(self) -> EconomicsDevice:
        return self.served[0].target.device

    @property
    def usd_per_hour(self) -> float:
        """Rent of one device."""
        return self.device.usd_per_hour

    @property
    def hbm_bytes(self) -> float:
        """Memory of one device that a plan may fill."""
        return self.device.hbm_bytes
