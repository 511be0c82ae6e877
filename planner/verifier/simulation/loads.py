"""What is sent to a fleet: requests as they come, a fixed number in flight, or conversations."""

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
class InFlight:
    """A closed loop: so many at once, the first all together; each that ends makes room for one.

    Args:
        n: in flight.
    """

    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Turns of one user: the next prompt comes a while after the answer, and holds all before it.

    What is before it is still cached where the rank that answered serves it, and so it does where
    that rank does both phases; elsewhere it is read again. Caches of who thinks are never dropped.

    Args:
        n_turns: of each conversation, its first among them.
        think_s: from an answer to the next prompt.
        n_shared_tokens: that open every prompt, besides those drawn, and are always cached.
    """

    n_turns: int = 1
    think_s: float = 0.0
    n_shared_tokens: int = 0


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
        source: of its requests; where `in_flight` or turns of a conversation say when they come,
            of their lengths alone. Lengths of a turn's prompt are those of what is new in it.
        routes: of which every prompt has one at least.
        in_flight: in place of the arrivals of the source; None keeps them.
        conversation: None where every request stands alone.
        goodput: limits that a share is to meet; None asks for none.
    """

    name: str
    source: Requests
    routes: tuple[Route, ...]
    in_flight: InFlight | None = None
    conversation: Conversation | None = None
    goodput: GoodputTarget | None = None
