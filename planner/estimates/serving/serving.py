"""What users feel: time to first token, time per output token, tokens per second.

A rank serves b requests at a time; as one ends, the next begins. While a request decodes for
OSL steps, each of the others reads a prompt once, which holds it up:

    TPOT = D + h (b − 1) P / OSL

D is a decode pass of b sequences. With drafts a round is one pass that checks K drafted tokens, V,
and the drafter's passes before it; it yields y tokens at once, and nothing until the next round:

    ITL = V + n_passes · drafter      between two bursts of tokens, while no prompt is read
    D = ITL / y                       without drafts y = 1, ITL = D: a token from each pass

ITL is what a reader sees stutter, TPOT what a whole answer takes: with drafts TPOT may be below
ITL however often prompts hold it up. P is what one prompt adds: chunks that ride on decode passes
add what these take longer, prompts that are read alone add all of their passes. What a request
waits for before its own passes, the share h that comes while it decodes, and what changes where
all begin together, is in `arrivals`.

A worker of one phase is an engine like any other that is sent half of the work: a prefill worker
of vLLM is asked for one token (`max_tokens=1`), SGLang and TensorRT-LLM have it as a mode. So

    prefill   reads prompts and nothing beside them: a whole chunk is room. Prompts of the b
              requests in flight share passes. TTFT = the engine's constants + half of the prompts
              under way, of which one ends each R / n_micro + R, R its own passes; b / R are read
    decode    runs decode passes and nothing beside them: TPOT = D. A request has its place for
              OSL passes: vLLM reads the last token of the prompt again and writes all tokens,
              others have the first from the prefill worker and find half of a pass under way.
              Its first token is not its own: TTFT is 0

Blocks of a prompt that wait to be fetched, and places that wait for them, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.arrivals import (
    Loop,
    crowding_passes,
    first_wave_s,
    held_up_s,
    under_way_s,
    waiting_passes,
)
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.memory import cache_bytes
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.passes import equal_rows, hand_over
from planner.estimates.serving.steps import (
    Clock,
    PassTime,
    decode_gaps_s,
    no_pass,
    pass_time,
    prefill_gaps_s,
)
from planner.estimates.serving.times import ServingTimes
from planner.estimates.serving.traffic import (
    Bursts,
    Drafts,
    Parts,
    Traffic,
    bursts,
    parts_of,
    prompts_that_come,
    room_for_prompts,
    tokens_of_each,
)
from planner.specs.records.architecture import Architecture
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.served_formats import ServedFormats, as_run

NEAR = 1.05
"""Numbers of prompts that are taken for the same in a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """All that deployments of one model under one engine have in common.

    Args:
        formats: as they are asked for.
    """

    model: Architecture
    formats: ServedFormats
    engine: EngineSpec
    clock: Clock

    @property
    def run_formats(self) -> ServedFormats:
        """Formats of the checkpoint that is loaded."""
        return as_run(self.model, self.formats, self.engine)

    def decode_host_s(self, n_sequences: FloatArray) -> FloatArray:
        """Of decode passes of so many sequences each, beside their kernels (N,) [s]."""
        return decode_gaps_s(self.model, self.engine, n_sequences)

    @property
    def prefill_host_s(self) -> float:
        """Of a pass that reads prompts, beside its kernels [s]."""
        return prefill_gaps_s(self.model, self.engine)

    def received_s(self, traffic: Traffic) -> float:
        """Of a request before its first pass, its client's time left out [s]."""
        engine = self.engine
        return engine.request_s + engine.request_token_s * traffic.n_input_tokens

    def pass_time(self, table: DeploymentTable, work: PassShape) -> PassTime:
        return pass_time(self.model, table, work, self.run_formats, self.clock)


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
    running = np.maximum(1.0, np.minimum(table.batch, largest_batch))
    if traffic.role == PREFILL:
        return _prefill_times(serving, table, traffic, running)
    round_ = _round(serving, table, traffic, running, drafts)
    if traffic.role == DECODE:
        return _decode_times(table, traffic, running, round_)
    return _times_together(serving, table, traffic, running, round_)


def decode_s(
    serving: Serving, table: DeploymentTable, traffic: Traffic, drafts: Drafts | None
) -> FloatArray:
    """Time of a token while no prompt is read, of deployments that do it all (N,) [s]."""
    round_ = _round(serving, table, traffic, np.maximum(1.0, table.batch), drafts)
    return round_.itl_s / round_.yields


def least_times(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    drafts: Drafts | None,
    *,
    decode_s: FloatArray,
    last: FloatArray,
    last_decode_s: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """What TPOT and TTFT are at least with any batch from that of the table to the `last` (N,) [s].

    Nothing is found under way: both times grow with what a pass takes. Of the batches each
    quantity has the end at which it shortens them: a pass has room for fewer tokens of prompts
    beside more sequences, and what these take by themselves hides more of it.

    Args:
        decode_s: as the function of this name says, at the first batch; and `last_decode_s`.
    """
    engine, yields = serving.engine, drafts.yields if drafts else 1.0
    running, most = np.maximum(1.0, table.batch), np.maximum(1.0, last)
    few, many = (
        parts_of(room_for_prompts(engine, table, n, drafts), traffic) for n in (running, most)
    )
    asking, asking_most = traffic.requests(running), traffic.requests(most)
    steps = max(traffic.n_output_tokens, 1.0)
    n_rounds = steps / yields
    met, met_most = (
        1.0 + (n - 1.0) * engine.n_polled_rounds / n_rounds for n in (asking, asking_most)
    )
    n_prompts = np.clip(met, 1.0, many.most_prompts)
    reading = PassShape(
        n_prompts=n_prompts, prompt_tokens=many.prompt_tokens, past_tokens=few.past_tokens
    )
    if engine.mixes_prefill:
        decoding = PassShape(
            n_decoding=running / np.minimum(table.n_stages, running),
            n_positions=tokens_of_each(drafts),
            context=traffic.mean_context,
        )
        reading = _mixed(decoding, reading)
    pass_s = _least_pass_s(serving, table, reading) + serving.prefill_host_s
    hidden_s: FloatArray | float = 0.0
    if engine.mixes_prefill:
        last_host_s = serving.decode_host_s(most / np.minimum(table.n_stages, most))
        hidden_s = last_decode_s * yields - last_host_s
    shared = np.clip(met_most, 1.0, few.most_prompts) * table.n_stages
    least = Loop(
        running=asking,
        round_s=decode_s * yields,
        added_s=few.n_chunks * np.maximum(0.0, pass_s - hidden_s) / shared,
        pass_s=pass_s,
        n_passes=few.n_chunks,
        n_sharing=n_prompts,
        most_sharing=few.most_prompts,
        n_lanes=np.minimum(table.n_stages, most),
        n_rounds=n_rounds,
        n_polled=engine.n_polled_rounds,
    )
    longest = replace(
        least,
        running=asking_most,
        n_passes=many.n_chunks,
        most_sharing=many.most_prompts,
        n_lanes=np.minimum(table.n_stages, running),
    )
    tpot = decode_s + held_up_s(least, waiting_passes(longest, n_rounds)) / steps
    passes = waiting_passes(least, n_rounds) + crowding_passes(least, n_rounds) + few.n_chunks
    return tpot, serving.received_s(traffic) + passes * pass_s


def _least_pass_s(serving: Serving, table: DeploymentTable, work: PassShape) -> FloatArray:
    """What passes take at least (N,) [s].

    What lies between hand-overs of all deployments that have the same once, and of no more
    sequences than there are: numbers of them lie close together, and a pass of fewer takes no
    longer.
    """
    handed = serving.clock.timing(hand_over(serving.model, table, work)).seconds
    names = ("n_decoding", "n_prompts", "prompt_tokens", "past_tokens")
    parts = {name: np.broadcast_to(getattr(work, name), len(table)) for name in names}
    for name in names[:2]:
        steps = np.floor(np.log(np.maximum(1.0, parts[name])) / np.log(NEAR))
        parts[name] = np.minimum(parts[name], NEAR**steps)
    experts = (table.n_data, table.n_expert_parallel, table.n_redundant)
    first, row = equal_rows((table.n_tensor, *experts, table.overlaps, *parts.values()))
    some: dict[str, Any] = {name: one[first] for name, one in parts.items()}
    alone = replace(table.take(first), n_stages=np.ones(len(first), dtype=np.int64))
    work = replace(work, **some)
    timed = pass_time(serving.model, alone, work, serving.run_formats, serving.clock)
    return timed.total_s[row] + np.where(table.overlaps, 0.0, handed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """A decode pass and the drafter's passes before it, each (N,).

    Args:
        decoding, decode: what the pass has of tokens, and its time.
        checked_s: of the pass with its host.
        itl_s: of all of it.
        yields: tokens that each sequence has of it.
    """

    decoding: PassShape
    decode: PassTime
    checked_s: FloatArray
    itl_s: FloatArray
    yields: float
    drafts: Drafts | None

    def of(self, row: IntArray) -> _Round:
        """Of deployments whose rounds are the same as some of these (N,)."""
        return replace(
            self,
            decoding=replace(self.decoding, n_decoding=np.asarray(self.decoding.n_decoding)[row]),
            decode=self.decode.of(row),
            checked_s=self.checked_s[row],
            itl_s=self.itl_s[row],
        )


def _round(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    running: FloatArray,
    drafts: Drafts | None,
) -> _Round:
    heads, row = table.cut_runs(running)
    if len(heads) < len(table):
        once = _round(serving, table.take(heads), traffic, running[heads], drafts)
        return once.of(row)
    # stages work on micro-batches at the same time
    n_micro = np.minimum(table.n_stages, running)
    decoding = PassShape(
        n_decoding=running / n_micro,
        n_positions=tokens_of_each(drafts),
        context=traffic.mean_context,
    )
    decode = serving.pass_time(table, decoding)
    checked = decode.total_s + serving.decode_host_s(running / n_micro)
    itl = checked
    if drafts is not None:
        itl = checked + drafting_s(serving, table, decoding, drafts)
    yields = drafts.yields if drafts else 1.0
    return _Round(
        decoding=decoding, decode=decode, checked_s=checked, itl_s=itl, yields=yields, drafts=drafts
    )


def _times_together(
    serving: Serving, table: DeploymentTable, traffic: Traffic, running: FloatArray, round_: _Round
) -> ServingTimes:
    """Of deployments that read prompts and write answers."""
    engine, itl = serving.engine, round_.itl_s
    parts = parts_of(room_for_prompts(engine, table, running, round_.drafts), traffic)
    steps, requests = max(traffic.n_output_tokens, 1.0), traffic.requests(running)
    n_rounds = steps / round_.yields
    come = _bursts(serving, table, traffic, running, parts, n_rounds)
    prompts = prompts_that_come(requests, come, n_polled=engine.n_polled_rounds)
    prompts = requests if traffic.n_waves == 1 else prompts
    n_prompts = np.clip(prompts, 1.0, parts.most_prompts)
    reading, n_chunks = parts.shape(n_prompts), parts.n_chunks
    prefill = serving.pass_time(table, reading)
    alone = n_chunks * (prefill.total_s + serving.prefill_host_s)
    both_s = prefill.total_s
    if engine.mixes_prefill:  # never shorter for the decodes that ride along
        both = serving.pass_time(table, _mixed(round_.decoding, reading))
        both_s = np.maximum(both_s, both.total_s)
    added = _added_s(serving, n_chunks, round_.decode, both_s) / (n_prompts * table.n_stages)
    loop = Loop(
        running=requests,
        round_s=itl,
        added_s=added,
        pass_s=both_s + serving.prefill_host_s,
        n_passes=n_chunks,
        n_sharing=n_prompts,
        most_sharing=parts.most_prompts,
        n_lanes=np.minimum(table.n_stages, running),
        n_rounds=n_rounds,
        n_polled=engine.n_polled_rounds,
    )
    waiting = waiting_passes(loop, n_rounds)
    tpot = (
        itl / round_.yields
        + (1.0 - traffic.first_fraction / 2.0) * held_up_s(loop, waiting) / steps
    )
    first = {
        **_before(serving, table, traffic),
        "step": come.mean(lambda rounds: under_way_s(loop, rounds)),
        "others": come.mean(lambda rounds: _others_s(loop, rounds)),
        "reading": alone,
        "decodes": n_chunks * (both_s - prefill.total_s),
    }
    if traffic.n_waves:
        later = np.asarray(sum(first.values()))
        wave = _first_wave_s(serving, table, round_.decoding, parts, loop)
        begun = first["request"] + first["client"]
        first["wave"] = traffic.first_fraction * np.maximum(0.0, begun + wave - later)
    if traffic.is_fetching:
        first["fetch"] = _fetching_s(serving, table, traffic, requests, first, steps * tpot - tpot)
    excess = np.maximum(table.batch / running - 1.0, 0.0)
    return ServingTimes(
        n_running=running,
        decode_s=round_.checked_s,
        prompt_s=alone,
        added_s=added,
        itl_s=itl,
        tpot_s=tpot,
        ttft_parts=first,
        queue_s=excess * (steps * tpot + added),
        decode=round_.decode,
        prefill=prefill,
        n_chunks=n_chunks,
        n_waves=traffic.n_waves,
    )


def _before(serving: Serving, table: DeploymentTable, traffic: Traffic) -> dict[str, FloatArray]:
    """Parts of TTFT that a request has before it stands in line."""
    parts, client = {"request": serving.received_s(traffic), "client": 0.0}, traffic.client
    if client is not None:
        parts["client"] = client.request_s + client.request_token_s * traffic.n_input_tokens
    return {name: np.full(len(table), seconds) for name, seconds in parts.items()}


def _bursts(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    running: FloatArray,
    parts: Parts,
    n_rounds: float,
) -> Bursts:
    """How prompts come; all of a first wave begin at once where none is read beside decodes."""
    lanes = np.minimum(table.n_stages, running)
    passes = traffic.requests(running) * parts.n_chunks / (parts.most_prompts * lanes)
    begun = passes * float(serving.engine.mixes_prefill)
    return bursts(traffic.n_waves, n_rounds=n_rounds, begun_rounds=begun)


def _others_s(loop: Loop, rounds: FloatArray) -> FloatArray:
    """Wait for prompts of others where each comes once in so many rounds (N,) [s]."""
    passes = waiting_passes(loop, rounds) + crowding_passes(loop, rounds)
    return np.asarray(passes * loop.pass_s)


def _first_wave_s(
    serving: Serving, table: DeploymentTable, decoding: PassShape, parts: Parts, loop: Loop
) -> FloatArray:
    """Until prompts are read that all come at once, on average (N,) [s].

    Their prompts fill passes; where decodes ride along, half of the others do on average.
    """
    engine = serving.engine
    together = np.minimum(loop.running, parts.most_prompts)
    reading = parts.shape(together)
    if engine.mixes_prefill:
        begun = np.asarray(decoding.n_decoding) * loop.n_others / (2.0 * loop.running)
        reading = _mixed(replace(decoding, n_decoding=begun), reading)
    full = serving.pass_time(table, reading).total_s + serving.prefill_host_s
    return first_wave_s(
        loop.running, full, n_passes=parts.n_chunks, n_sharing=together, n_stages=table.n_stages
    )


def _prefill_times(
    serving: Serving, table: DeploymentTable, traffic: Traffic, running: FloatArray
) -> ServingTimes:
    """Of workers that read prompts and hand them over: each ends after its own passes.

    More requests than share the passes of all stages only wait.
    """
    engine, nothing = serving.engine, np.zeros(len(table))
    parts = parts_of(room_for_prompts(engine, table, running, None, PREFILL), traffic)
    running = np.minimum(running, table.n_stages * parts.most_prompts)
    n_micro = np.minimum(table.n_stages, running)
    prefill = serving.pass_time(table, parts.shape(running / n_micro))
    alone = parts.n_chunks * (prefill.total_s + serving.prefill_host_s)
    first = {
        **_before(serving, table, traffic),
        "step": alone / (2.0 * n_micro),
        "reading": alone,
    }
    return ServingTimes(
        n_running=running,
        decode_s=nothing,
        prompt_s=alone,
        added_s=nothing,
        itl_s=nothing,
        tpot_s=nothing,
        ttft_parts=first,
        queue_s=np.maximum(table.batch / running - 1.0, 0.0) * alone,
        decode=no_pass(table),
        prefill=prefill,
        n_chunks=parts.n_chunks,
    )


def _decode_times(
    table: DeploymentTable, traffic: Traffic, running: FloatArray, round_: _Round
) -> ServingTimes:
    """Of workers that prompts are handed over to."""
    nothing, tpot = np.zeros(len(table)), round_.itl_s / round_.yields
    excess = np.maximum(table.batch / running - 1.0, 0.0)
    return ServingTimes(
        n_running=running,
        decode_s=round_.checked_s,
        prompt_s=nothing,
        added_s=nothing,
        itl_s=round_.itl_s,
        tpot_s=tpot,
        ttft_parts={"request": nothing},
        queue_s=excess * traffic.n_output_tokens * tpot,
        decode=round_.decode,
        prefill=no_pass(table),
        n_chunks=nothing,
    )


def fetch_s(serving: Serving, table: DeploymentTable, traffic: Traffic) -> FloatArray:
    """Hits beyond what is shared, of one request, over the links of devices to their host (N,) [s].

    Each device reads its part of the cache, while passes of others go on. Source: vLLM, blog of
    2026-01-08: loads are asynchronous, and by DMA.
    """
    if not traffic.is_fetching:
        return np.zeros(len(table))
    assert traffic.host_bytes_per_s is not None  # or it is refused
    block, common = serving.engine.n_block_tokens, traffic.n_common_tokens
    n_hit, formats = traffic.n_hit_tokens, serving.run_formats
    fetched = cache_bytes(serving.model, table, formats, n_hit, block, n_before=common)
    return fetched / traffic.host_bytes_per_s


def _fetching_s(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    requests: FloatArray,
    first: dict[str, FloatArray],
    written_s: FloatArray,
) -> FloatArray:
    """Until the hits of a request are fetched (N,) [s].

    A closed loop of b requests is no faster than b fetches one after the other, whatever else
    each of them does: the asymptotic bound of a closed queue. Source: [Reiser1980].

    Args:
        first: parts of TTFT without it.
        written_s: from the first token to the last.
    """
    own_s = fetch_s(serving, table, traffic)
    stay_s = sum(first.values()) + own_s + written_s
    return own_s + np.maximum(0.0, requests * own_s - stay_s)


def _added_s(
    serving: Serving, n_chunks: FloatArray, decode: PassTime, both_s: FloatArray
) -> FloatArray:
    """What the prompts of one pass add to the decodes beside them, never below 0 (N,) [s]."""
    grown = both_s - decode.total_s if serving.engine.mixes_prefill else both_s
    return n_chunks * np.maximum(0.0, grown + serving.prefill_host_s)


def _mixed(decoding: PassShape, reading: PassShape) -> PassShape:
    return replace(
        decoding,
        n_prompts=reading.n_prompts,
        prompt_tokens=reading.prompt_tokens,
        past_tokens=reading.past_tokens,
    )


def drafting_s(
    serving: Serving, table: DeploymentTable, decoding: PassShape, drafts: Drafts
) -> FloatArray:
    """Passes of the drafter in one round (N,) [s]."""
    if not drafts.n_passes:
        return np.zeros(len(table))
    shape = PassShape(n_decoding=decoding.n_decoding, context=decoding.context)
    timed = pass_time(drafts.drafter, table, shape, serving.run_formats, serving.clock)
    return drafts.n_passes * timed.total_s
