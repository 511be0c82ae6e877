"""What a request looks like: tokens read, tokens written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.specs.validation.values import between

MOST_TOKENS = 10**8
Tokens = Annotated[int, between(1, MOST_TOKENS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like: tokens read, tokens written."""

    n_input_tokens: Tokens
    n_output_tokens: Tokens

    @property
    def n_decode_steps(self) -> int:
        """Decode passes of one request: prefill yields the first output token."""
        return self.n_output_tokens - 1

    @property
    def n_cached_tokens(self) -> int:
        """Tokens whose keys and values must be held when the request ends."""
        return self.n_input_tokens + self.n_output_tokens

    @property
    def mean_decode_context(self) -> float:
        """Cached tokens that a decode step reads, averaged over the steps."""
        return self.n_input_tokens + (self.n_output_tokens + 1) / 2
