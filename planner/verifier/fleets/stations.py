"""A station counted anew, point by point: each pass kernel by kernel, and the room for caches.

Between which points passes are timed is chosen; they have to reach as far as requests do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.results.engines import EngineDeployment
from planner.specs.kernels import EngineSpec
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import DecodeTimes, ReadingTimes, Station
from planner.verifier.findings import Finding, Path
from planner.verifier.serving.held import activation_bytes, cached_bytes, weights_bytes
from planner.verifier.serving.layers import decode_beside_s, prefill_beside_s
from planner.verifier.serving.passes import pass_of
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a station is of.

    Args:
        rank: one attention rank of the deployment.
        hbm_bytes: of one device.
        n_input_tokens: of a usual request.
        n_longest_tokens: of the longest one, or of a longer one up to which passes are timed.
    """

    rank: Rank
    engine: EngineSpec
    hbm_bytes: float
    n_input_tokens: float
    n_longest_tokens: float

    @property
    def middle_tokens(self) -> float:
        """Context beside which prompts are read."""
        return (self.n_input_tokens + self.n_longest_tokens) / 2.0


def counted_station(
    says: Station, ground: Ground, deployment: EngineDeployment
) -> tuple[Station, list[Finding]]:
    """The station that is true of a deployment, and points that do not reach far enough."""
    engine, role = ground.engine, deployment.role
    wrong = list(_short(says, ground, deployment))
    decodes, reads = role != PREFILL, role != DECODE
    if wrong or (says.decode is None) == decodes or (says.reading is None) == reads:
        fact = f"has not the passes of {role}"
        return says, wrong or [Finding(path=("role",), says=says.role, fact=fact)]
    ground = replace(ground, n_longest_tokens=_timed_upto(says))
    fixed, each = _cached(ground)
    found = replace(
        says,
        role=role,
        n_ranks=deployment.n_data,
        n_lanes=deployment.n_stages,
        most_running=deployment.batch,
        chunk_tokens=deployment.chunk_tokens,
        mixes_prefill=engine.mixes_prefill,
        n_polled_rounds=engine.n_polled_rounds,
        composes_ahead=False,
        request_s=engine.request_s if reads else 0.0,
        request_token_s=engine.request_token_s if reads else 0.0,
        room_bytes=_room_bytes(ground, deployment),
        sequence_bytes=fixed,
        token_bytes=each,
        reserved_fraction=engine.reserved_fraction,
        decode=None if says.decode is None else _decode(says.decode, ground, deployment),
        reading=None if says.reading is None else _reading(says.reading, ground, deployment),
    )
    return found, wrong


def _timed_upto(says: Station) -> float:
    """Tokens of the longest request that passes are timed for."""
    if says.decode is not None:
        return says.decode.context_tokens[-1]
    assert says.reading is not None
    return says.reading.span_tokens[-1]


def _short(says: Station, ground: Ground, deployment: EngineDeployment) -> Iterator[Finding]:
    """Grids that do not ascend, or end before the longest request or the fullest pass."""
    ends: list[tuple[Path, tuple[float, ...], float]] = []
    longest = float(ground.n_longest_tokens)
    if says.decode is not None:
        ends.append((("decode", "n_sequences"), says.decode.n_sequences, deployment.batch))
        ends.append((("decode", "context_tokens"), says.decode.context_tokens, longest))
    if says.reading is not None:
        chunk = float(deployment.chunk_tokens)
        ends.append((("reading", "prompt_tokens"), says.reading.prompt_tokens, chunk))
        ends.append((("reading", "span_tokens"), says.reading.span_tokens, longest))
    for path, points, last in ends:
        if list(points) != sorted({*points}) or not points or points[-1] < last * (1 - 1e-9):
            fact = f"do not ascend to {last!r}"
            yield Finding(path=path, says=len(points), fact=fact)


def _room_bytes(ground: Ground, deployment: EngineDeployment) -> float:
    """Of the fullest device, what weights, buffers and the largest pass leave to caches."""
    engine, rank = ground.engine, ground.rank
    held = weights_bytes(rank) + engine.workspace_bytes
    held += activation_bytes(rank, deployment.chunk_tokens, deployment.batch)
    return ground.hbm_bytes * engine.memory_fraction - held


def _cached(ground: Ground) -> tuple[float, float]:
    """Of a sequence, what it has cached whatever its length, and for each of its tokens.

    The line through a usual prompt and the longest request, with half of the last block empty.
    """
    block = ground.engine.n_block_tokens
    low = block * max(1, round(ground.n_input_tokens / block))
    n_blocks = max(2 + round(ground.n_input_tokens / block), round(ground.n_longest_tokens / block))
    first, last = (
        cached_bytes(ground.rank, None, ground.engine, float(n), 0.0)[0]
        for n in (low, block * n_blocks)
    )
    each = (last - first) / (block * n_blocks - low)
    return first - each * (low - block / 2.0), each


def _decode(says: DecodeTimes, ground: Ground, one: EngineDeployment) -> DecodeTimes:
    beside_s = decode_beside_s(ground.rank.model, ground.engine)
    slower = one.planned_tpot_s / one.tpot_s.value
    return replace(
        says,
        seconds=tuple(
            tuple(
                slower * (_pass_s(ground, _decoding(ground, n, c)) + beside_s)
                for c in says.context_tokens
            )
            for n in says.n_sequences
        ),
    )


def _reading(says: ReadingTimes, ground: Ground, one: EngineDeployment) -> ReadingTimes:
    later = one.planned_ttft_s / one.ttft_s.value
    return replace(
        says,
        seconds=tuple(
            tuple(
                tuple(later * _read_s(ground, beside, tokens, span) for span in says.span_tokens)
                for tokens in says.prompt_tokens
            )
            for beside in (_beside(ground, n) for n in says.n_sequences)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What decodes in a pass that reads prompts, and the seconds of it alone."""

    tokens: Tokens
    seconds: float


def _beside(ground: Ground, n: int) -> _Beside:
    tokens = _decoding(ground, n, ground.middle_tokens)
    return _Beside(tokens=tokens, seconds=_pass_s(ground, tokens) if n > 0 else 0.0)


def _read_s(ground: Ground, beside: _Beside, tokens: float, span: float) -> float:
    """What so many tokens of prompts, each attending to so many, add to a pass.

    The fewest prompts that have this span: one that has read so much before, or several short
    ones.
    """
    if tokens <= 0.0:
        return 0.0
    model, engine = ground.rank.model, ground.engine
    read = max(tokens, 1.0)
    each = max(2.0 * span, 1.0) if 2.0 * span < read else read
    reading = Tokens(prompts=read / each, read=each, past=max(0.0, span - each / 2.0))
    added = _pass_s(ground, beside.tokens.beside(reading)) + prefill_beside_s(model, engine)
    return max(0.0, added - beside.seconds)


def _decoding(ground: Ground, n: int, context: float) -> Tokens:
    """What decodes in one of the passes that are under way, of n sequences in all."""
    return Tokens(decoding=n / max(1, min(ground.rank.n_stages, n)), context=context)


def _pass_s(ground: Ground, tokens: Tokens) -> float:
    share = ground.engine.message_share
    return pass_of(ground.rank, tokens, overlaps=False, message_share=share).seconds
