"""What is sent to a fleet: requests as they come, and where they go."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.specs.traffic.percentiles import GoodputTarget
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.pools import Handover


class Requests(Protocol):
    """Requests in the order of arrival, with or without an end; a class of traffic is one."""

    def requests(self, seed: int) -> Iterator[Arriving]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRequests:
    """These and no others."""

    listed: Sequence[Arriving]

    def requests(self, seed: int) -> Iterator[Arriving]:
        return iter(self.listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where requests of a class go.

    Args:
        pool: that serves them, or reads their prompts.
        then: the pool that decodes them; None where the first does.
        handover: between the two.
        share: of those with such prompts, relative to that of other routes.
        above_tokens, upto_tokens: of the prompts.
    """

    pool: str
    then: str | None = None
    handover: Handover | None = None
    share: float = 1.0
    above_tokens: float = 0.0
    upto_tokens: float = math.inf

    def takes(self, n_input: int) -> bool:
        """Whether a prompt may go there."""
        return self.above_tokens < n_input <= self.upto_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoad:
    """One class: its requests, its ways, and what is judged of it.

    Args:
        name: each once.
        source: of its requests.
        routes: of which every prompt has one at least.
        n_cached_tokens: that open every prompt, besides those drawn, and are always cached.
        goodput: limits that a share is to meet; None asks for none.
    """

    name: str
    source: Requests
    routes: tuple[Route, ...]
    n_cached_tokens: int = 0
    goodput: GoodputTarget | None = None
