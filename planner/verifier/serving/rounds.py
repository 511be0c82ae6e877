"""What users of a deployment feel, and what it holds: TPOT, TTFT, their errors, bytes.

A rank serves b sequences at once; while one decodes, each of the others reads a prompt once. One
that reads prompts only, or writes answers only, runs passes of that kind and no others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import Client
from planner.specs.region import Outside
from planner.verifier.serving.drafts import Draft
from planner.verifier.serving.held import (
    Shared,
    activation_bytes,
    cached_bytes,
    draft_bytes,
    sequence_bytes,
    weights_bytes,
)
from planner.verifier.serving.layers import decode_beside_s, prefill_beside_s
from planner.verifier.serving.measured import (
    OUTSIDE_CONFIDENCE,
    deviations,
    engine_deviation,
    outside_of,
)
from planner.verifier.serving.mixers import Tokens
from planner.verifier.serving.passes import Pass, pass_of
from planner.verifier.serving.pools import held_bytes
from planner.verifier.serving.ranks import Rank, kind_of
from planner.verifier.serving.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a deployment is to serve.

    Args:
        overlaps: two micro-batches hide each other's messages.
        hit_fraction: of the input that is cached already.
        n_shared_tokens: first tokens that all requests have in common.
        n_samples: answers that are drawn from each prompt at once.
        host_bytes_per_s: of the link over which a device fetches what is found beyond what is
            shared; None where that lies on the device.
        role: what it does of each request.
        n_waves: requests that each place serves, the first of them all at once; 0 without end.
        client_s: between who sends a request and the server.
        client: who that is; None where nobody is named.
        named: lengths by which who sends them calls requests, where these have others.
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
    n_samples: int = 1
    host_bytes_per_s: float | None = None
    draft: Draft | None = None
    role: str = "together"
    n_waves: int = 0
    client_s: float = 0.0
    client: Client | None = None
    named: tuple[float, float] | None = None

    @property
    def n_new_tokens(self) -> float:
        """Of the input, behind what is found cached: at least the last one is read."""
        of_others = self.n_input_tokens - self.shared.of_all
        return max(1.0, min(of_others, self.n_input_tokens * (1 - self.hit_fraction)))

    @property
    def n_place_tokens(self) -> float:
        """Written for a sequence's stay in its place; for a prompt that is read by all samples."""
        return self.n_output_tokens * self.n_samples / self.n_together

    @property
    def n_together(self) -> int:
        """Sequences of a request, which begin and end together; one of a prompt that is read."""
        return 1 if self.role == "prefill" else self.n_samples

    def requests(self, running: float) -> float:
        """To which so many sequences belong."""
        return max(1.0, running / self.n_together)

    @property
    def shared(self) -> Shared:
        """Full blocks before the last token of a prompt: of all prompts, and of its samples."""
        block = self.engine.n_block_tokens
        prompt = (self.n_input_tokens - 1) // block * block
        of_all = min(self.n_shared_tokens // block * block, prompt)
        of_request = prompt if self.n_together > 1 else of_all
        return Shared(of_all=of_all, of_request=of_request, n_samples=self.n_together)

    @property
    def received_s(self) -> float:
        """Before its first pass, whatever of its prompt is cached."""
        return self.engine.request_s + self.n_input_tokens * self.engine.request_token_s

    @property
    def n_kept_tokens(self) -> float:
        """That a sequence has at its end; of a prompt that is only read, one more than it."""
        return self.n_input_tokens + (1 if self.role == "prefill" else self.n_output_tokens)

    @property
    def n_held_tokens(self) -> float:
        """That it has room for, the mean from its first pass to its last.

        Tokens are written one by one, and of those to come a part is kept free.
        """
        last = self.n_kept_tokens
        written = (self.n_input_tokens + last) / 2
        return written + (last - written) * self.engine.reserved_fraction

    @property
    def n_positions(self) -> float:
        """Of a sequence in a decode pass."""
        return 1.0 + (self.draft.n_checked if self.draft else 0)

    @property
    def n_yielded(self) -> float:
        return self.draft.n_yielded if self.draft else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes of one device of the fullest stage."""

    weights_bytes: float
    drafter_bytes: float
    activation_bytes: float
    workspace_bytes: float
    limit_bytes: float
    sequence_bytes: float
    held_bytes: float
    shared_bytes: float
    pool_weights_bytes: float
    pool_activation_bytes: float
    n_together: int = 1

    @property
    def pool_bytes(self) -> float:
        """Of a device of experts; none where they lie on those of attention."""
        held = self.pool_weights_bytes + self.pool_activation_bytes
        return held + self.workspace_bytes if held else 0.0

    @property
    def room_bytes(self) -> float:
        """Left for caches of sequences by themselves."""
        taken = self.weights_bytes + self.drafter_bytes + self.activation_bytes
        return self.limit_bytes - taken - self.workspace_bytes - self.shared_bytes

    @property
    def largest_batch(self) -> int:
        """That find room while they grow, in whole requests; each has to be able to end alone."""
        lacks = self.pool_bytes > self.limit_bytes
        if lacks or self.room_bytes < self.sequence_bytes * self.n_together:
            return 0
        most = self.room_bytes / max(self.held_bytes * self.n_together, 1.0)
        return max(1, math.floor(most)) * self.n_together


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTimes:
    """Times, in seconds, and their relative standard deviations; 0 of a phase that is not run.

    Args:
        parts: of TTFT, by what they go to.
        n_chunks: passes that a prompt takes.
        passes: decode and prefill, by name; the one of a role.
        place_s: that a request has its place at these times.
        prompt_s: by which a prompt of another holds an answer up.
        n_met: of those, that one answer meets.
        outside: what of the deployment was never measured.
    """

    tpot_s: float = 0.0
    ttft_s: float = 0.0
    itl_s: float = 0.0
    queue_s: float
    tpot_error: float = 0.0
    ttft_error: float = 0.0
    decode_error: float = 0.0
    n_running: float
    parts: Mapping[str, float] = field(default_factory=dict)
    n_chunks: int = 0
    passes: Mapping[str, Pass]
    place_s: float
    prompt_s: float = 0.0
    n_met: float = 0.0
    outside: tuple[Outside, ...] = ()


def memory_use(rank: Rank, served: Demand) -> MemoryUse:
    """Of a deployment, its sequences as long as they get and as long as they are on average."""
    engine = served.engine
    shared = served.shared
    # what is shared is held once: it does not grow with sequences, so either length says it
    (own, once), (mean, _) = (
        cached_bytes(rank, served.draft, engine, n_tokens, shared)
        for n_tokens in (served.n_kept_tokens, served.n_held_tokens)
    )
    pool_weights, pool_activations = held_bytes(rank, served.chunk_tokens)
    return MemoryUse(
        weights_bytes=weights_bytes(rank),
        drafter_bytes=draft_bytes(served.draft, rank) if served.draft else 0.0,
        activation_bytes=activation_bytes(rank, served.chunk_tokens, served.batch),
        workspace_bytes=engine.workspace_bytes,
        limit_bytes=served.hbm_bytes * engine.memory_fraction,
        sequence_bytes=own,
        held_bytes=mean,
        shared_bytes=once,
        pool_weights_bytes=pool_weights,
        pool_activation_bytes=pool_activations,
        n_together=served.n_together,
    )


def fetched_bytes(rank: Rank, served: Demand) -> float:
    """Blocks that one device reads of its host for a request: what is found, but not shared."""
    block, n_found = served.engine.n_block_tokens, served.n_input_tokens - served.n_new_tokens
    return sequence_bytes(rank, n_found, block, served.shared.of_all)


def user_times(rank: Rank, served: Demand, largest_batch: float) -> UserTimes:
    """Of requests that come at random times."""
    # who finds no room waits in line, and makes no pass longer
    running = max(1.0, min(served.batch, largest_batch))
    of_role = {"prefill": _felt_reading, "decode": _felt_writing}
    times = of_role.get(served.role, _felt_together)(rank, served, running)
    kind = kind_of(rank.model)
    name, tpot, ttft = served.engine.name, times.tpot_error, times.ttft_error
    draft = served.draft
    outside = outside_of(
        rank,
        engine=name,
        role=served.role,
        n_drafted=draft.n_checked if draft and draft.n_passes else 0,
        overlaps=served.overlaps,
        batch=served.batch,
        lengths=served.named or (served.n_input_tokens, served.n_output_tokens),
        client=served.client,
    )
    # kernels, engines and what was never measured err apart from each other: squares add up
    further = [one.deviation_fraction for one in outside]
    of_tpot, of_ttft = (
        math.hypot(engine_deviation(served.engine, kind, which), *further)
        for which in ("TPOT", "TTFT")
    )
    return replace(
        times,
        outside=outside,
        tpot_error=math.hypot(tpot, of_tpot) if times.tpot_s else 0.0,
        ttft_error=math.hypot(ttft, of_ttft) if times.ttft_s else 0.0,
        decode_error=math.hypot(times.decode_error, of_tpot) if times.itl_s else 0.0,
    )


def _decoding(rank: Rank, served: Demand, running: float) -> Tokens:
    """The decode pass of a rank, whose stages work on as many parts of the batch."""
    # with fewer sequences than stages some stages have no pass
    # of n tokens the i-th attends to i of the answer, itself too: (n + 1) / 2 on average
    return Tokens(
        decoding=running / min(rank.n_stages, running),
        positions=served.n_positions,
        context=served.n_input_tokens + (served.n_output_tokens + 1) / 2,
    )


def _felt_reading(rank: Rank, served: Demand, running: float) -> UserTimes:
    """Prompts only: as many at once as share the passes of all stages, each for its own passes.

    Of those that are in flight one ends after each of as many equal turns; who comes waits for
    half of a turn.
    """
    engine, new = served.engine, served.n_new_tokens
    n_chunks = math.ceil(new / served.chunk_tokens)
    each = new / n_chunks  # equal chunks: the i-th of n has i − 1 behind it, (n − 1) / 2 on average
    shared = served.chunk_tokens // new if n_chunks == 1 else 1
    running = min(running, rank.n_stages * shared)
    # those in flight are dealt to the stages; fewer than stages have a pass each
    turns = min(rank.n_stages, running)
    behind = served.n_input_tokens - new + each * (n_chunks - 1) / 2
    reads = _pass(rank, served, Tokens(prompts=running / turns, read=each, past=behind))
    own_s = n_chunks * (reads.seconds + prefill_beside_s(rank.model, engine))
    before = {"request": served.received_s, "client": served.client_s}
    parts = {**before, "step": own_s / turns / 2, "reading": own_s}
    return UserTimes(
        ttft_s=sum(parts.values()),
        queue_s=max(served.batch / running - 1, 0.0) * own_s,
        ttft_error=reads.error(prefill_beside_s(rank.model, engine)),
        n_running=running,
        parts=parts,
        n_chunks=n_chunks,
        passes={"prefill": reads},
        place_s=own_s,
    )


def _felt_writing(rank: Rank, served: Demand, running: float) -> UserTimes:
    """Answers only, of prompts that are handed over: a pass for each token, fewer with drafts."""
    engine, decoding = served.engine, _decoding(rank, served, running)
    decode = _pass(rank, served, decoding)
    beside_s = decode_beside_s(rank.model, engine, decoding.decoding)
    itl = decode.seconds + beside_s + _drafting_s(rank, served, decoding)
    error, place_s = decode.error(beside_s), served.n_output_tokens * itl
    return UserTimes(
        tpot_s=itl / served.n_yielded,
        itl_s=itl,
        queue_s=max(served.batch / running - 1, 0.0) * place_s / served.n_yielded,
        tpot_error=error,
        decode_error=error,
        n_running=running,
        passes={"decode": decode},
        place_s=place_s / served.n_yielded,
    )


def _felt_together(rank: Rank, served: Demand, running: float) -> UserTimes:
    engine, n_out = served.engine, max(served.n_output_tokens, 1.0)
    decoding = _decoding(rank, served, running)
    beside_s = decode_beside_s(rank.model, engine, decoding.decoding)
    launched_s = prefill_beside_s(rank.model, engine)
    reading, n_chunks, most = _reading(rank, served, running)
    decode, prefill = _pass(rank, served, decoding), _pass(rank, served, reading)
    both = _pass(rank, served, decoding.beside(reading)) if engine.mixes_prefill else prefill
    itl = decode.seconds + beside_s + _drafting_s(rank, served, decoding)
    both_s = max(both.seconds, prefill.seconds)  # decodes beside it make no pass shorter
    # an engine that mixes decodes in that pass too; any other decodes nothing meanwhile
    grown = both_s - (decode.seconds if engine.mixes_prefill else 0.0)
    # a pass that is longer by Δ holds each stage up by Δ / stages, and prompts that share it once
    added = n_chunks * max(0.0, grown + launched_s) / (reading.prompts * rank.n_stages)
    between = itl / served.n_yielded
    errors = (decode.error(beside_s), prefill.error(launched_s))
    requests = served.requests(running)
    turns = Turns(
        running=requests,
        steps=n_out / served.n_yielded,
        step_s=itl,
        prompt_s=added,
        pass_s=both_s + launched_s,
        n_chunks=n_chunks,
        lanes=min(rank.n_stages, running),
        waves=served.n_waves,
        begun=_begun(rank, served, running, n_chunks / most),
    )
    begun = 1 - 1 / (2 * served.n_waves) if served.n_waves else 1.0
    n_met = begun * turns.met(most)
    tpot = between + n_met * added / n_out
    parts = {
        "request": served.received_s,
        "client": served.client_s,
        "step": turns.rest_s(reading.prompts, engine.n_polled_rounds),
        "others": turns.queue_s(most, engine.n_polled_rounds),
        "reading": n_chunks * (prefill.seconds + launched_s),
        "decodes": n_chunks * (both_s - prefill.seconds),
    }
    if served.n_waves:
        sharing = min(requests, most)
        full = _full_s(rank, served, running, replace(reading, prompts=sharing))
        wave = served.received_s + served.client_s + turns.together_s(full, sharing, rank.n_stages)
        parts["wave"] = max(0.0, wave - sum(parts.values())) / served.n_waves
    if served.host_bytes_per_s is not None:
        own_s = fetched_bytes(rank, served) / served.host_bytes_per_s
        stay = stay_s(sum(parts.values()) + own_s, tpot, n_out)
        # the link is never done with the requests in flight before it has read for each of them
        parts["fetch"] = max(own_s, own_s + requests * own_s - stay)
    ttft = sum(parts.values())
    return UserTimes(
        tpot_s=tpot,
        ttft_s=ttft,
        itl_s=itl,
        queue_s=max(served.batch / running - 1, 0.0) * (n_out * tpot + added),
        # of decode passes and of prompts apart, each on what it has of the time
        tpot_error=math.hypot(errors[0] * between, errors[1] * (tpot - between)) / tpot,
        ttft_error=errors[1],
        decode_error=errors[0],
        n_running=running,
        parts=parts,
        n_chunks=int(n_chunks),
        passes={"decode": decode, "prefill": prefill},
        prompt_s=added,
        n_met=n_met,
        place_s=stay_s(ttft, tpot, served.n_output_tokens),
    )


def _full_s(rank: Rank, served: Demand, running: float, reading: Tokens) -> float:
    """A pass of the first wave: full of prompts, beside half of the others where they mix."""
    engine = served.engine
    if engine.mixes_prefill:
        all_ = _decoding(rank, served, running)
        begun = 1 - 1 / served.requests(running)
        half = running * begun / 2 / min(rank.n_stages, running)
        reading = replace(all_, decoding=half).beside(reading)
    return _pass(rank, served, reading).seconds + prefill_beside_s(rank.model, engine)


def deviations_planned(confidence: float | None, times: UserTimes) -> float:
    """Standard deviations beyond what is predicted that are planned, of one side of all cases."""
    if confidence is None:
        confidence = OUTSIDE_CONFIDENCE if times.outside else 0.0
    return deviations(2 * confidence - 1) if confidence > 0.5 else 0.0


def planned_place_s(times: UserTimes, served: Demand, beyond: float) -> float:
    """How long a request has its place where times are so many standard deviations longer."""
    tpot, ttft = (
        value * (1 + beyond * error)
        for value, error in ((times.tpot_s, times.tpot_error), (times.ttft_s, times.ttft_error))
    )
    if served.role == "prefill":
        return times.place_s * (1 + beyond * times.ttft_error)
    if served.role == "decode":
        return served.n_output_tokens * tpot
    return stay_s(ttft, tpot, served.n_output_tokens)


def stay_s(ttft_s: float, tpot_s: float, n_output_tokens: float) -> float:
    """How long a request has its place: until its last token."""
    return ttft_s + (n_output_tokens - 1) * tpot_s


def _pass(rank: Rank, served: Demand, tokens: Tokens) -> Pass:
    share = served.engine.message_share
    return pass_of(rank, tokens, overlaps=served.overlaps, message_share=share)


def _drafting_s(rank: Rank, served: Demand, decoding: Tokens) -> float:
    draft = served.draft
    if draft is None or not draft.n_passes:
        return 0.0
    small, tokens = replace(rank, model=draft.model), replace(decoding, positions=1.0)
    return draft.n_passes * _pass(small, served, tokens).seconds


def _begun(rank: Rank, served: Demand, running: float, passes: float) -> float:
    """Rounds over which a first wave begins to decode: none where its prompts are read first."""
    rides = served.engine.mixes_prefill
    return served.requests(running) * passes / min(rank.n_stages, running) if rides else 0.0


def _reading(rank: Rank, served: Demand, running: float) -> tuple[Tokens, float, float]:
    """The pass that reads prompts, how many of it a prompt takes, prompts that find room in one.

    What rides along is counted first against the chunk. A long prompt is read in equal parts, on
    average with half of the others behind; short ones share a pass where several come in a step.
    """
    new = served.n_new_tokens
    taken = running * served.n_positions if served.engine.mixes_prefill else 0.0
    room = max(1.0, served.chunk_tokens - taken)
    n_chunks = float(math.ceil(new / room))
    each = new / n_chunks
    most = max(1.0, math.floor(room / each)) if n_chunks == 1 else 1.0
    # a single wave comes all at once; else the others ask once each in the width of their wave
    together = requests = served.requests(running)
    if served.n_waves != 1:
        turns = Turns(
            running=requests,
            steps=max(served.n_output_tokens, 1.0) / served.n_yielded,
            step_s=0.0,
            prompt_s=0.0,
            pass_s=0.0,
            n_chunks=n_chunks,
            lanes=1.0,
            waves=served.n_waves,
            begun=_begun(rank, served, running, n_chunks / most),
        )
        others = (requests - 1) * served.engine.n_polled_rounds
        together = 1 + turns.of_waves(lambda width: others / width)
    together = min(together, most)
    past = served.n_input_tokens - new + (n_chunks - 1) / 2 * each
    return Tokens(prompts=together, read=each, past=past), n_chunks, most
