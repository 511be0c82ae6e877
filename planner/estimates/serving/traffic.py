"""Requests as they come, and the tokens that are drafted for them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.architecture import Architecture
from planner.specs.roles import PREFILL, TOGETHER


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as they come.

    Args:
        n_input_tokens: ISL.
        n_output_tokens: OSL.
        hit_fraction: share of the input that the prefix cache already has.
        n_waves: requests that each place of a closed loop serves, the first of which all begin
            together; 0 where the loop is without end, and requests come at random times.
        role: what the deployment does of each request.
    """

    n_input_tokens: float
    n_output_tokens: float
    hit_fraction: float = 0.0
    n_waves: int = 0
    role: str = TOGETHER

    @property
    def first_fraction(self) -> float:
        """Share of all requests that begin together."""
        return 1.0 / self.n_waves if self.n_waves else 0.0

    @property
    def n_new_tokens(self) -> float:
        """Input that must be read: the last token at least."""
        return max(1.0, self.n_input_tokens * (1.0 - self.hit_fraction))

    @property
    def n_hit_tokens(self) -> float:
        return self.n_input_tokens - self.n_new_tokens

    @property
    def n_tokens(self) -> float:
        """Tokens that a request holds at its end; where it is only read, with its first."""
        n_written = 1.0 if self.role == PREFILL else self.n_output_tokens
        return self.n_input_tokens + n_written

    def held_tokens(self, reserved_fraction: float) -> float:
        """Tokens that a request has room for on average, from its prompt to its end.

        Half of the output is written; of what is not, an engine reserves a share beforehand.
        """
        n_written = self.n_tokens - self.n_input_tokens
        return self.n_input_tokens + n_written * (1.0 + reserved_fraction) / 2.0

    @property
    def mean_context(self) -> float:
        """Cached tokens that a decode pass reads of a request, averaged over its steps."""
        return self.n_input_tokens + (self.n_output_tokens + 1.0) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Tokens proposed ahead, which one pass then checks.

    Args:
        n_drafted: proposed in a round.
        yields: tokens that a round gives on average.
        drafter: what proposes: one layer after the other, as multi-token prediction does.
        n_passes: passes of the drafter in a round; none of diffusion decoders.
        n_layers: of the drafter's layers that lie in memory, each with a cache of its own.
        n_heads: heads that are the drafter's own; 0 where it takes the model's.
        n_joined: times d_model, the width of a matrix before the drafter's layers; held whole.
        kind: `mtp`, `eagle` or `medusa`; empty of diffusion decoders.
    """

    n_drafted: int
    yields: float
    drafter: Architecture
    n_passes: int
    n_layers: int = 0
    n_heads: int = 0
    n_joined: int = 0
    kind: str = ""
