"""A station counted anew, point by point: each pass kernel by kernel, and the room for caches.

Between which points passes are timed is chosen; they have to reach as far as requests do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.specs.records.roles import DECODE, PREFILL, DecodeTimes, ReadingTimes, Row, Station
from planner.verifier.findings import Finding, Path
from planner.verifier.serving.held import (
    activation_bytes,
    cached_bytes,
    draft_bytes,
    weights_bytes,
)
from planner.verifier.serving.layers import decode_beside_s, prefill_beside_s
from planner.verifier.serving.mixers import Tokens
from planner.verifier.serving.passes import pass_of
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import Demand, fetched_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StationContext:
    """What a station is of.

    Args:
        rank: one attention rank of the deployment.
        served: what it serves; of requests that are not all alike nothing is cached or drafted.
        n_input_tokens: of a usual request, but for those that are cached.
        n_longest_tokens: of the longest one, or of a longer one up to which passes are timed; of
            an answer one for each pass.
        slower, later: how many times longer passes that decode, and prompts in them, are planned.
    """

    rank: Rank
    served: Demand
    n_input_tokens: float
    n_longest_tokens: float
    slower: float = 1.0
    later: float = 1.0

    @property
    def n_past_tokens(self) -> float:
        """Of each prompt that are cached."""
        it = self.served
        finds = it.n_new_tokens < it.n_input_tokens
        return it.n_input_tokens - self.n_input_tokens if finds else 0.0

    @property
    def fetched_s(self) -> float:
        """Until what a request finds on the host is there, if it is the only one to fetch."""
        link = self.served.host_bytes_per_s
        return 0.0 if link is None else fetched_bytes(self.rank, self.served) / link

    @property
    def prompt_room(self) -> int:
        """Tokens of a pass, but for all of a request that decodes beside prompts beyond its first.

        These are of its other samples, and drafted.
        """
        it = self.served
        rides = it.engine.mixes_prefill and it.role not in (PREFILL, DECODE)
        further = it.n_together * int(it.n_positions) - 1
        return max(1, it.chunk_tokens - self.n_requests * further * rides)

    @property
    def n_requests(self) -> int:
        """Of a full batch."""
        return self.served.batch // self.served.n_together

    def true_tokens(self, n: float) -> float:
        """What a sequence has that counts so many: of the answer one for each pass."""
        prompt = min(n, self.n_input_tokens)
        return self.n_past_tokens + prompt + self.served.n_yielded * (n - prompt)


def counted_station(says: Station, ground: StationContext) -> tuple[Station, list[Finding]]:
    """The station that is true of a deployment, and points that do not reach far enough."""
    engine, role = ground.served.engine, ground.served.role
    wrong = list(_short(says, ground))
    decodes, reads = role != PREFILL, role != DECODE
    if wrong or (says.decode is None) == decodes or (says.reading is None) == reads:
        fact = f"has not the passes of {role}"
        return says, wrong or [Finding(path=("role",), says=says.role, fact=fact)]
    ground = replace(ground, n_longest_tokens=_timed_upto(says))
    fixed, each = _cached(ground)
    received_s = engine.request_s + ground.n_past_tokens * engine.request_token_s
    received_s += ground.fetched_s
    station = replace(
        says,
        role=role,
        n_ranks=ground.rank.n_data,
        n_lanes=ground.rank.n_stages,
        most_running=ground.n_requests,
        chunk_tokens=ground.prompt_room,
        mixes_prefill=engine.mixes_prefill,
        n_polled_rounds=engine.n_polled_rounds,
        composes_ahead=engine.composes_ahead,
        request_s=received_s if reads else 0.0,
        request_token_s=engine.request_token_s if reads else 0.0,
        room_bytes=_room_bytes(ground),
        sequence_bytes=fixed,
        token_bytes=each,
        block_tokens=max(1, round(engine.n_block_tokens / ground.served.n_yielded)),
        own_blocks=engine.n_own_blocks,
        watermark_fraction=engine.watermark_fraction,
        caches_prefixes=engine.caches_prefixes,
        by_priority=False,
        reserved_fraction=engine.reserved_fraction,
        retracts=engine.retracts and not (engine.mixes_prefill or role in (PREFILL, DECODE)),
        decode=None if says.decode is None else _decode(says.decode, ground),
        reading=None if says.reading is None else _reading(says.reading, ground),
    )
    return station, wrong


def _timed_upto(says: Station) -> float:
    """Tokens of the longest request that passes are timed for."""
    if says.decode is not None:
        return says.decode.context_tokens[-1]
    assert says.reading is not None
    return says.reading.span_tokens[-1]


def _short(says: Station, ground: StationContext) -> Iterator[Finding]:
    """Grids that do not ascend, or end before the longest request or the fullest pass."""
    ends: list[tuple[Path, tuple[float, ...], float]] = []
    longest = float(ground.n_longest_tokens)
    if says.decode is not None:
        ends.append((("decode", "n_sequences"), says.decode.n_sequences, ground.n_requests))
        ends.append((("decode", "context_tokens"), says.decode.context_tokens, longest))
    if says.reading is not None:
        chunk = float(ground.prompt_room)
        ends.append((("reading", "prompt_tokens"), says.reading.prompt_tokens, chunk))
        ends.append((("reading", "span_tokens"), says.reading.span_tokens, longest))
    for path, points, last in ends:
        if list(points) != sorted({*points}) or not points or points[-1] < last * (1 - 1e-9):
            fact = f"do not ascend to {last!r}"
            yield Finding(path=path, says=len(points), fact=fact)


def _room_bytes(ground: StationContext) -> float:
    """Of the fullest device, what weights, buffers and the largest pass leave to caches."""
    rank, it = ground.rank, ground.served
    held = weights_bytes(rank) + it.engine.workspace_bytes
    held += activation_bytes(rank, it.chunk_tokens, it.batch)
    held += draft_bytes(it.draft, rank) if it.draft else 0.0
    _, longest = _whole_blocks(ground)
    held += cached_bytes(rank, it.draft, it.engine, longest, it.shared)[1]
    return it.hbm_bytes * it.engine.memory_fraction - held


def _whole_blocks(ground: StationContext) -> tuple[float, float]:
    """Tokens of a usual prompt and of the longest request, in whole blocks, two of them apart."""
    block = ground.served.engine.n_block_tokens
    usual, longest = (
        round(ground.true_tokens(n) / block)
        for n in (ground.n_input_tokens, ground.n_longest_tokens)
    )
    return float(block * max(1, usual)), float(block * max(2 + usual, longest))


def _cached(ground: StationContext) -> tuple[float, float]:
    """Of a sequence, what it has cached whatever its length, and for each of its tokens.

    The line through whole blocks of a usual prompt and of the longest request.
    """
    it, usual = ground.served, ground.true_tokens(ground.n_input_tokens)
    low, high = _whole_blocks(ground)
    first, last = (
        it.n_together * cached_bytes(ground.rank, it.draft, it.engine, n, it.shared)[0]
        for n in (low, high)
    )
    each = (last - first) / (high - low)
    of_none = usual - it.n_yielded * ground.n_input_tokens  # where its line begins
    return first + each * (of_none - low), each * it.n_yielded


def _decode(says: DecodeTimes, ground: StationContext) -> DecodeTimes:
    return replace(
        says,
        seconds=tuple(
            tuple(ground.slower * _round_s(ground, n, c) for c in says.context_tokens)
            for n in says.n_sequences
        ),
    )


def _round_s(ground: StationContext, n: int, context: float) -> float:
    """A pass that decodes, and those of what drafts before it."""
    tokens, draft, rank = _decoding(ground, n, context), ground.served.draft, ground.rank
    beside_s = decode_beside_s(rank.model, ground.served.engine, tokens.decoding)
    took = _pass_s(ground, tokens) + beside_s
    if draft is not None and draft.n_passes:
        small = replace(ground, rank=replace(rank, model=draft.model))
        took += draft.n_passes * _pass_s(small, replace(tokens, positions=1.0))
    return took


def _reading(says: ReadingTimes, ground: StationContext) -> ReadingTimes:
    return replace(says, seconds=tuple(_beside(says, ground, n) for n in says.n_sequences))


def _beside(says: ReadingTimes, ground: StationContext, n: int) -> tuple[Row, ...]:
    """What prompts add to passes that decode for so many, in the middle of their contexts."""
    decodes = _decoding(ground, n, (ground.n_input_tokens + ground.n_longest_tokens) / 2.0)
    alone_s = _pass_s(ground, decodes) if n > 0 else 0.0
    return tuple(
        tuple(
            ground.later * max(0.0, _read_s(ground, decodes, tokens, span) - alone_s)
            if tokens
            else 0.0
            for span in says.span_tokens
        )
        for tokens in says.prompt_tokens
    )


def _read_s(ground: StationContext, decodes: Tokens, tokens: float, span: float) -> float:
    """A pass with so many tokens of prompts, each attending to so many.

    The fewest prompts that have this span: one that has read so much before, or several short
    ones.
    """
    read = max(tokens, 1.0)
    each = max(2.0 * span, 1.0) if 2.0 * span < read else read
    past = ground.n_past_tokens + max(0.0, span - each / 2.0)
    reading = Tokens(prompts=read / each, read=each, past=past)
    beside_s = prefill_beside_s(ground.rank.model, ground.served.engine)
    return _pass_s(ground, decodes.beside(reading)) + beside_s


def _decoding(ground: StationContext, n: int, context: float) -> Tokens:
    """What decodes in one of the passes that are under way, of n requests in all."""
    n *= ground.served.n_together
    return Tokens(
        decoding=n / max(1, min(ground.rank.n_stages, n)),
        positions=ground.served.n_positions,
        context=ground.true_tokens(context),
    )


def _pass_s(ground: StationContext, tokens: Tokens) -> float:
    it = ground.served
    share = it.engine.message_share
    return pass_of(ground.rank, tokens, overlaps=it.overlaps, message_share=share).seconds
