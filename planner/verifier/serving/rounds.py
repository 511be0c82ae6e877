"""What users of a deployment feel, and what it holds: TPOT, TTFT, their errors, bytes.

A rank serves b sequences at once; while one decodes, each of the others reads a prompt once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.specs.kernels import EngineSpec
from planner.verifier.serving.drafts import Draft
from planner.verifier.serving.held import (
    activation_bytes,
    cached_bytes,
    draft_bytes,
    weights_bytes,
)
from planner.verifier.serving.passes import Pass, pass_of
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a deployment is to serve.

    Args:
        overlaps: two micro-batches hide each other's messages.
        hit_fraction: of the input that is cached already.
        n_shared_tokens: first tokens that all requests have in common.
    """

    engine: EngineSpec
    hbm_bytes: float
    batch: int
    chunk_tokens: int
    overlaps: bool
    n_input_tokens: float
    n_output_tokens: float
    hit_fraction: float
    n_shared_tokens: float = 0.0
    draft: Draft | None = None

    @property
    def n_new_tokens(self) -> float:
        """Of the input: at least the last one is read."""
        return max(1.0, self.n_input_tokens * (1 - self.hit_fraction))

    @property
    def n_positions(self) -> float:
        """Of a sequence in a decode pass."""
        return 1.0 + (self.draft.n_checked if self.draft else 0)

    @property
    def n_yielded(self) -> float:
        return self.draft.n_yielded if self.draft else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes of one device of the fullest stage."""

    weights_bytes: float
    drafter_bytes: float
    activation_bytes: float
    workspace_bytes: float
    limit_bytes: float
    sequence_bytes: float
    shared_bytes: float

    @property
    def room_bytes(self) -> float:
        """Left for caches of sequences by themselves."""
        taken = self.weights_bytes + self.drafter_bytes + self.activation_bytes
        return self.limit_bytes - taken - self.workspace_bytes - self.shared_bytes

    @property
    def largest_batch(self) -> int:
        return max(0, math.floor(self.room_bytes / max(self.sequence_bytes, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """Times, in seconds, and their relative standard deviations.

    Args:
        parts: of TTFT, by what they go to.
        n_chunks: passes that a prompt takes.
        passes: decode, then prefill.
    """

    tpot_s: float
    ttft_s: float
    itl_s: float
    queue_s: float
    tpot_error: float
    ttft_error: float
    decode_error: float
    n_running: float
    parts: Mapping[str, float]
    n_chunks: int
    passes: tuple[Pass, Pass]


def held_by(rank: Rank, served: Served) -> Held:
    """Of a deployment whose sequences are as long as they get."""
    engine, n_tokens = served.engine, served.n_input_tokens + served.n_output_tokens
    own, once = cached_bytes(rank, served.draft, engine, n_tokens, served.n_shared_tokens)
    return Held(
        weights_bytes=weights_bytes(rank),
        drafter_bytes=draft_bytes(served.draft, rank) if served.draft else 0.0,
        activation_bytes=activation_bytes(rank, served.chunk_tokens, served.batch),
        workspace_bytes=engine.workspace_bytes,
        limit_bytes=served.hbm_bytes * engine.memory_fraction,
        sequence_bytes=own,
        shared_bytes=once,
    )


def felt(rank: Rank, served: Served, largest_batch: float) -> Felt:
    """Of requests that come at random times."""
    engine, n_out = served.engine, served.n_output_tokens
    running = max(1.0, min(served.batch, largest_batch))
    decoding = Tokens(
        decoding=running / min(rank.n_stages, running),
        positions=served.n_positions,
        context=served.n_input_tokens + (n_out + 1) / 2,
    )
    reading, n_chunks, together = _reading(served, running)
    decode, prefill = _pass(rank, served, decoding), _pass(rank, served, reading)
    both = _pass(rank, served, decoding.beside(reading)) if engine.mixes_prefill else prefill
    itl = decode.seconds + engine.decode_host_s + _drafting_s(rank, served, decoding)
    grown = both.seconds - (decode.seconds if engine.mixes_prefill else 0.0)
    added = n_chunks * (grown + engine.prefill_host_s) / (together * rank.n_stages)
    between = itl / served.n_yielded
    tpot = between + (running - 1) * added / max(n_out, 1.0)
    errors = decode.error(engine.decode_host_s), prefill.error(engine.prefill_host_s)
    has_experts = any(hasattr(one.ffn, "n_experts") for one in rank.model.layers)
    parts = {
        "request": engine.request_s,
        "experts": engine.expert_request_s if has_experts else 0.0,
        "step": itl / 2,
        "reading": n_chunks * (prefill.seconds + engine.prefill_host_s),
        "decodes": n_chunks * (both.seconds - prefill.seconds),
    }
    return Felt(
        tpot_s=tpot,
        ttft_s=sum(parts.values()),
        itl_s=itl,
        queue_s=max(served.batch / running - 1, 0.0) * (max(n_out, 1.0) * tpot + added),
        tpot_error=math.hypot(errors[0] * between, errors[1] * (tpot - between)) / tpot,
        ttft_error=errors[1],
        decode_error=errors[0],
        n_running=running,
        parts=parts,
        n_chunks=int(n_chunks),
        passes=(decode, prefill),
    )


def stay_s(ttft_s: float, tpot_s: float, n_output_tokens: float) -> float:
    """How long a request has its place: until its last token."""
    return ttft_s + (n_output_tokens - 1) * tpot_s


def _pass(rank: Rank, served: Served, tokens: Tokens) -> Pass:
    share = served.engine.message_share
    return pass_of(rank, tokens, overlaps=served.overlaps, message_share=share)


def _drafting_s(rank: Rank, served: Served, decoding: Tokens) -> float:
    draft = served.draft
    if draft is None or not draft.n_passes:
        return 0.0
    small, one = replace(rank, model=draft.model), replace(decoding, positions=1.0)
    return draft.n_passes * _pass(small, served, one).seconds


def _reading(served: Served, running: float) -> tuple[Tokens, float, float]:
    """The pass that reads prompts, how many of it a prompt takes, prompts that share one.

    What rides along is counted first against the chunk. A long prompt is read in equal parts, on
    average with half of the others behind; short ones share a pass where several come in a step.
    """
    new = served.n_new_tokens
    taken = running * served.n_positions if served.engine.mixes_prefill else 0.0
    room = max(1.0, served.chunk_tokens - taken)
    n_chunks = float(math.ceil(new / room))
    each = new / n_chunks
    together = 1.0
    if n_chunks == 1:
        come = running * served.n_yielded / served.n_output_tokens
        together = min(max(come, 1.0), max(1.0, math.floor(room / each)))
    past = served.n_input_tokens - new + (n_chunks - 1) / 2 * each
    return Tokens(prompts=together, read=each, past=past), n_chunks, together
