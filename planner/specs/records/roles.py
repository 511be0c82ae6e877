"""What a replica does of a request, and a replica as a station, as requests see it.

One that reads prompts hands the KV cache of each over to one that writes the answers. Both are of
one runtime and hold the cache in one format. Handing over takes the connector's floor, and the
bytes at the least of what the connector moves between a pair of workers and what the links of
either worker do.

A station says how long each pass takes and for whom there is room, and nothing of how that was
found. The planner of a fleet and its simulation read the same station, and share nothing else. A
pass decodes n sequences that have c tokens cached on average, and reads p tokens of prompts, each
of which attends to s tokens on average:

    T(n, c, p, s) = D(n, c) + R(n, p, s),    D(0, ·) = 0,  R(·, 0, ·) = 0

Both are tables, between whose points they are linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from planner.specs.files.tables import Provenance
from planner.specs.validation.hints import LATER
from planner.specs.validation.values import Duration, Share

TOGETHER, PREFILL, DECODE = "together", "prefill", "decode"
ROLES = (TOGETHER, PREFILL, DECODE)

POOLS = "decode with experts apart"
"""What regions call a decode whose experts lie on devices of their own."""

SCHEDULES_APART = {
    PREFILL: "apart: prompts are read and handed over; the KV cache is of those being read",
    DECODE: "apart: TPOT is the decode pass; the KV cache is of all requests in flight",
}
"""How devices are used where a replica does one phase of a request."""

APART, FREE = "apart", "free"
ASKED_ROLES = (TOGETHER, APART, FREE)
"""What may be asked: every replica does both phases, none does, or the program chooses."""

ANY = 0
"""Devices of their own that experts may have, where the program says how many, or none."""

MICROBATCHES = (1, 2, 3, 4)
"""Parts of a batch that go to and fro between attention and experts, to choose from. Three or four
hide links (MegaScale-Infer, arXiv 2504.02263, §4.1); fewer read the weights of experts less often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """What moves a KV cache from one worker to another.

    Args:
        name: of its file.
        title: for people.
        latency_s: that a hand-over takes however little it moves [s].
        bytes_per_s: that one pair of workers moves at most; None where links alone limit it.
        provenance: of both.
    """

    name: str
    title: str
    latency_s: Duration
    bytes_per_s: float | None = None
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who sends requests and takes times, as a benchmark does.

    Args:
        name: of its file.
        title: for people.
        request_s: of a request between the client and the server, both ways [s].
        request_token_s: the same of each token of its prompt [s].
        mean_length: of prompts and answers, over those that are named.
        n_waves: requests of each place, all sent at once; 0 without end.
        is_described: how it sends is known; else times err more by `client` of `specs/region`.
        provenance: of all.
    """

    name: str
    title: str
    request_s: Duration
    request_token_s: Duration
    mean_length: Share = 1.0
    n_waves: int = 0
    is_described: bool = field(default=True, metadata={LATER: True})
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOptions:
    """The roles that replicas may have, and what hands a cache over.

    Args:
        name: one of `ASKED_ROLES`.
        connector: that hands caches over; None where every replica does both phases.
        prefill_devices, decode_devices: of each replica of that role, exactly; None leaves it open.
        expert_devices: of those of each replica of a mixture that only decodes, those that hold
            experts alone, exactly; `ANY` leaves it open, and None lets it have none.

    >>> RoleOptions(name="apart").roles
    ('prefill', 'decode')
    """

    name: str = TOGETHER
    connector: Connector | None = None
    prefill_devices: int | None = None
    decode_devices: int | None = None
    expert_devices: int | None = field(default=None, metadata={LATER: True})

    @property
    def roles(self) -> tuple[str, ...]:
        return {TOGETHER: (TOGETHER,), APART: (PREFILL, DECODE)}.get(self.name, ROLES)

    def n_devices(self, role: str) -> int | None:
        """Devices that a replica of a role must have; None leaves it open."""
        return {PREFILL: self.prefill_devices, DECODE: self.decode_devices}.get(role)


def role_words(role: str) -> str:
    """What a replica of one phase is for, behind its devices; nothing of one that does both.

    >>> role_words("prefill"), role_words("together")
    (' to prefill', '')
    """
    return "" if role == TOGETHER else f" to {role}"


def pool_words(n_expert_devices: int | None, n_microbatches: int | None) -> str:
    """`experts on 16 of them, 3 micro-batches`; nothing where they have no devices of their own."""
    if not n_expert_devices or not n_microbatches:
        return ""
    parts = f"{n_microbatches} micro-batch{'es' * (n_microbatches > 1)}"
    return f"experts on {n_expert_devices} of them, {parts}"


ALL_TOGETHER = RoleOptions()
"""Every replica does both phases."""


def handover_s(handed_bytes: float, connector: Connector, *wires_bytes_per_s: float) -> float:
    """Seconds that the KV cache of one request takes from a worker to another.

    Args:
        handed_bytes: of the cache.
        wires_bytes_per_s: what all links of either worker carry, one way.
    """
    most = math.inf if connector.bytes_per_s is None else connector.bytes_per_s
    return connector.latency_s + handed_bytes / min(most, *wires_bytes_per_s)


LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM = "least", "round-robin", "random"
ROUTERS = (LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM)
"""The replica with the fewest requests, of those with as few the one that waited longest for one;
each in turn; any."""


Row = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeTimes:
    """D: passes that write a token for each of n sequences.

    Args:
        n_sequences: ascending, from 1, (N,).
        context_tokens: ascending, (C,).
        seconds: of each pair, N rows of C [s].
    """

    n_sequences: tuple[int, ...]
    context_tokens: Row
    seconds: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTimes:
    """R: what tokens of prompts add to a pass.

    Args:
        n_sequences: that decode in the same pass, ascending, from 0, (N,).
        prompt_tokens: that it reads, ascending, (P,).
        span_tokens: that each of them attends to on average, ascending, (S,).
        seconds: N tables of P rows of S [s].
    """

    n_sequences: tuple[int, ...]
    prompt_tokens: Row
    span_tokens: Row
    seconds: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One attention rank of a replica; the others are like it.

    Args:
        name: of the deployment, for people.
        role: of `planner.specs.records.roles`.
        n_ranks: of a replica; each has a queue of its own.
        n_lanes: passes under way at once, of the stages of a pipeline.
        most_running: sequences that are in service at once.
        chunk_tokens: most tokens of a pass.
        mixes_prefill: prompts are read in passes that decode too; without, alone and first.
        n_polled_rounds: decode passes between two looks for new requests, where prompts are read
            alone.
        composes_ahead: whether a pass is composed when the one before it begins, not when that
            ends: who comes meanwhile waits for one pass more.
        request_s, request_token_s: of a request before it stands in line, and of each token of
            its prompt besides.
        room_bytes: for caches.
        sequence_bytes, token_bytes: that a sequence has cached whatever its length, and for each
            of its tokens besides.
        block_tokens: of a block of caches: a sequence has whole ones.
        own_blocks: of the engine, which no sequence has.
        watermark_fraction: of all blocks, those that stay free when a request begins beside others.
        caches_prefixes: whether blocks that nobody holds are found again by what is in them.
        by_priority: whether priorities of requests say who goes first, and who loses its place.
        reserved_fraction: of what a sequence has yet to write, the share that has to find room
            before it is begun.
        retracts: whether who begins, who loses its place and what is cached go by SGLang's clauses:
            `planner.verifier.simulation.retracting`.
        decode: D; None of a replica that only reads prompts.
        reading: R; None of a replica that only decodes.
    """

    name: str
    role: str = TOGETHER
    n_ranks: int = 1
    n_lanes: int = 1
    most_running: int
    chunk_tokens: int
    mixes_prefill: bool = True
    n_polled_rounds: int = 1
    composes_ahead: bool = False
    request_s: float = 0.0
    request_token_s: float = 0.0
    room_bytes: float
    sequence_bytes: float = 0.0
    token_bytes: float
    block_tokens: int = 1
    own_blocks: int = 0
    watermark_fraction: float = 0.0
    caches_prefixes: bool = False
    by_priority: bool = False
    reserved_fraction: float = 0.0
    retracts: bool = False
    decode: DecodeTimes | None
    reading: ReadingTimes | None

    def slowed(self, *, decode: float, reading: float) -> Station:
        """With passes so many times as long: what decodes, and what reading adds."""
        if decode == reading == 1.0:
            return self
        slow = self.decode and replace(
            self.decode,
            seconds=_slower(self.decode.seconds, decode),
        )
        read = self.reading and replace(
            self.reading,
            seconds=tuple(_slower(plane, reading) for plane in self.reading.seconds),
        )
        return replace(self, decode=slow, reading=read)

    def held_bytes(self, n_tokens: float) -> float:
        """Of the cache of a sequence that is so long, at least: it has whole blocks."""
        return self.sequence_bytes + self.token_bytes * n_tokens

    def has_room_for(self, n_input_tokens: float, n_output_tokens: float) -> bool:
        """Whether such a request can be served at all, be it alone."""
        n_blocks = math.ceil((n_input_tokens + n_output_tokens) / self.block_tokens)
        blocks = self.token_bytes * self.block_tokens * (n_blocks + self.own_blocks)
        return self.sequence_bytes + blocks <= self.room_bytes


def _slower(seconds: tuple[Row, ...], times: float) -> tuple[Row, ...]:
    # of lists: generators take half as long again
    return tuple([tuple([times * s for s in row]) for row in seconds])
