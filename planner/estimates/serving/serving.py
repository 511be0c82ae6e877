"""What users feel: time to first token, time per output token, tokens per second.

A rank serves b requests at a time; as one ends, the next begins. While a request decodes for
OSL steps, each of the others reads a prompt once, which holds it up:

    TPOT = D + (1 − w/2) (b − 1) P / OSL

D is a decode pass of b sequences. With drafts a round is one pass that checks K drafted tokens, V,
and the drafter's passes before it; it yields y tokens at once, and nothing until the next round:

    ITL = V + n_passes · drafter      between two bursts of tokens, while no prompt is read
    D = ITL / y                       without drafts y = 1, ITL = D: a token from each pass

ITL is what a reader sees stutter, TPOT what a whole answer takes: with drafts TPOT may be below
ITL however often prompts hold it up. P is what one prompt adds: chunks that ride on decode passes
add what these take longer, prompts that are read alone add all of their passes. Requests that
come at random times find w = 0; if all begin together (w = 1), a request waits for half of the
others before its first token, and only the other half holds it up afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable, has_experts
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.steps import Clock, PassTime, pass_time
from planner.specs.architecture import Architecture
from planner.specs.kernels import EngineSpec
from planner.specs.served_formats import ServedFormats


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as they come.

    Args:
        n_input_tokens: ISL.
        n_output_tokens: OSL.
        hit_fraction: share of the input that the prefix cache already has.
        wave_fraction: w: 0 where requests come at random times, 1 where all begin together.
    """

    n_input_tokens: float
    n_output_tokens: float
    hit_fraction: float = 0.0
    wave_fraction: float = 0.0

    @property
    def n_new_tokens(self) -> float:
        """Input that must be read: the last token at least."""
        return max(1.0, self.n_input_tokens * (1.0 - self.hit_fraction))

    @property
    def n_hit_tokens(self) -> float:
        return self.n_input_tokens - self.n_new_tokens

    @property
    def n_tokens(self) -> float:
        """Tokens that a request holds at its end."""
        return self.n_input_tokens + self.n_output_tokens

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTimes:
    """Of each deployment, (N,).

    Args:
        n_running: sequences that decode on each attention rank: the batch, or what fits.
        decode_s: a decode pass, its host time included; with drafts the one that checks them.
        prompt_s: from a free engine to a prompt's first token.
        added_s: what reading one prompt adds to the decodes beside it.
        itl_s: between two tokens, or bursts of drafted ones, while no prompt is read.
        tpot_s: mean over the tokens of a request.
        ttft_parts: what `ttft_s` is the sum of: `request` and `experts`, the engine's constants;
            `step`, half of the round that a request finds under way; `reading`, its own passes;
            `decodes`, what decodes beside them add; `others`, prompts before it.
        queue_s: wait for a free place, where more requests are in flight than fit.
        decode, prefill: the passes.
        n_chunks: passes that one prompt takes.
    """

    n_running: FloatArray
    decode_s: FloatArray
    prompt_s: FloatArray
    added_s: FloatArray
    itl_s: FloatArray
    tpot_s: FloatArray
    ttft_parts: Mapping[str, FloatArray]
    queue_s: FloatArray
    decode: PassTime
    prefill: PassTime
    n_chunks: FloatArray

    @property
    def ttft_s(self) -> FloatArray:
        """Time to first token of a request that finds no queue (N,) [s]."""
        return np.asarray(sum(self.ttft_parts.values()))

    @property
    def user_tokens_per_s(self) -> FloatArray:
        return 1.0 / self.tpot_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """All that deployments of one model under one engine have in common."""

    model: Architecture
    formats: ServedFormats
    engine: EngineSpec
    clock: Clock

    @property
    def expert_request_s(self) -> float:
        """What a request for a mixture of experts waits besides `engine.request_s` [s]."""
        return self.engine.expert_request_s if has_experts(self.model) else 0.0

    def pass_time(self, table: DeploymentTable, work: PassShape) -> PassTime:
        return pass_time(self.model, table, work, self.formats, self.clock)


def serving_times(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    largest_batch: FloatArray | float = np.inf,
    drafts: Drafts | None = None,
) -> ServingTimes:
    """Times of every deployment; all have the formats of `serving`.

    Args:
        largest_batch: sequences that fit on a rank, (N,).
        drafts: speculative decoding; None without.
    """
    engine = serving.engine
    running = np.maximum(1.0, np.minimum(table.batch, largest_batch))
    # stages work on micro-batches at the same time
    n_micro = np.minimum(table.n_stages, running)
    decoding = PassShape(
        n_decoding=running / n_micro,
        n_positions=_tokens_of_each(drafts),
        context=traffic.mean_context,
    )
    decode = serving.pass_time(table, decoding)
    checked = decode.total_s + engine.decode_host_s
    itl = checked
    if drafts is not None:
        itl = checked + _drafting_s(serving, table, decoding, drafts)
    yields = drafts.yields if drafts else 1.0
    room = _room(engine, table, running, drafts)
    reading, n_chunks, n_prompts = _reading(room, traffic, running, yields=yields)
    prefill = serving.pass_time(table, reading)
    alone = n_chunks * (prefill.total_s + engine.prefill_host_s)
    both = prefill
    if engine.mixes_prefill:
        both = serving.pass_time(table, _mixed(decoding, reading))
    added = _added_s(engine, n_chunks, decode, both) / (n_prompts * table.n_stages)
    waves = traffic.wave_fraction
    steps = max(traffic.n_output_tokens, 1.0)
    tpot = itl / yields + (1.0 - waves / 2.0) * (running - 1.0) * added / steps
    parts = {
        "request": np.full(len(table), engine.request_s),
        "experts": np.full(len(table), serving.expert_request_s),
        "step": itl / 2.0,
        "reading": alone,
        "decodes": n_chunks * (both.total_s - prefill.total_s),
        "others": waves / 2.0 * (running - 1.0) * added,
    }
    excess = np.maximum(table.batch / running - 1.0, 0.0)
    return ServingTimes(
        n_running=running,
        decode_s=checked,
        prompt_s=alone,
        added_s=added,
        itl_s=itl,
        tpot_s=tpot,
        ttft_parts=parts,
        queue_s=excess * (steps * tpot + added),
        decode=decode,
        prefill=prefill,
        n_chunks=n_chunks,
    )


def stay_s(ttft_s: FloatArray, tpot_s: FloatArray, n_output_tokens: float) -> FloatArray:
    """How long a request has its place: from its prompt to its last token (N,) [s].

    As one ends the next begins, so that b places give b·OSL tokens in that time.
    """
    return np.asarray(ttft_s + (n_output_tokens - 1.0) * tpot_s)


def has_room(engine: EngineSpec, table: DeploymentTable, drafts: Drafts | None) -> BoolArray:
    """Whether a pass of each deployment has room for a token of a prompt (N,) [1]."""
    return _room(engine, table, table.batch, drafts) > 0.0


def _room(
    engine: EngineSpec,
    table: DeploymentTable,
    running: FloatArray | IntArray,
    drafts: Drafts | None,
) -> FloatArray:
    """Tokens of prompts that a pass reads at most (N,) [1].

    Where decodes ride along they come first, with what was drafted for them: vLLM's scheduler
    counts tokens "with spec" against `max_num_batched_tokens`.
    """
    decoded = running * _tokens_of_each(drafts) if engine.mixes_prefill else 0.0
    return table.chunk_tokens - decoded


def _tokens_of_each(drafts: Drafts | None) -> float:
    """Of a sequence in a decode pass: its next one, and those that were drafted [1]."""
    return 1.0 + (drafts.n_drafted if drafts else 0.0)


def _added_s(
    engine: EngineSpec, n_chunks: FloatArray, decode: PassTime, both: PassTime
) -> FloatArray:
    """What the prompts of one pass add to the decodes beside them (N,) [s]."""
    grown = both.total_s - decode.total_s if engine.mixes_prefill else both.total_s
    return n_chunks * (grown + engine.prefill_host_s)


def _reading(
    room: FloatArray,
    traffic: Traffic,
    running: FloatArray,
    *,
    yields: float,
) -> tuple[PassShape, FloatArray, FloatArray]:
    """The pass that reads prompts, how many of them one prompt takes, prompts of one pass.

    A prompt longer than a chunk is read in equal parts, on average with half of the others
    cached. Shorter ones share a pass where several come during one decode step, or all at once;
    a request takes OSL / `yields` steps.
    """
    new = traffic.n_new_tokens
    room = np.maximum(1.0, room)
    n_chunks = np.ceil(new / room)
    each = new / n_chunks
    past = traffic.n_hit_tokens + (n_chunks - 1.0) / 2.0 * each
    by_turns = running * yields / traffic.n_output_tokens
    come = np.where(traffic.wave_fraction > 0.5, running, by_turns)
    fits = np.maximum(1.0, np.floor(room / each))
    together = np.where(n_chunks > 1.0, 1.0, np.clip(come, 1.0, fits))
    shape = PassShape(n_prompts=together, prompt_tokens=each, past_tokens=past)
    return shape, n_chunks, together


def _mixed(decoding: PassShape, reading: PassShape) -> PassShape:
    return PassShape(
        n_decoding=decoding.n_decoding,
        n_positions=decoding.n_positions,
        context=decoding.context,
        n_prompts=reading.n_prompts,
        prompt_tokens=reading.prompt_tokens,
        past_tokens=reading.past_tokens,
    )


def _drafting_s(
    serving: Serving, table: DeploymentTable, decoding: PassShape, drafts: Drafts
) -> FloatArray:
    """Passes of the drafter in one round (N,) [s]."""
    if not drafts.n_passes:
        return np.zeros(len(table))
    one = PassShape(n_decoding=decoding.n_decoding, context=decoding.context)
    timed = pass_time(drafts.drafter, table, one, serving.formats, serving.clock)
    return drafts.n_passes * timed.total_s
