"""Requests as they come, and the tokens that are drafted for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.operations import PassShape
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import STORES, Store
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER, Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as they come.

    Args:
        n_input_tokens: ISL.
        n_output_tokens: OSL.
        hit_fraction: share of the input that the prefix cache already has, of whichever tokens.
        n_shared_tokens: first tokens that the prompts of all requests have in common.
        n_samples: answers that are drawn from each prompt, all at once.
        offload: where hits lie that are not shared: on the `device`, or its `host`.
        n_block_tokens: of a block of the engine's cache; only whole blocks are shared.
        host_bytes_per_s: what a device reads of its host's memory; None where nobody says.
        n_waves: requests that each place of a closed loop serves, the first of which all begin
            together; 0 where the loop is without end, and requests come at random times.
        role: what the deployment does of each request.
        client: who sends them; None of one that takes no time.
    """

    n_input_tokens: float
    n_output_tokens: float
    hit_fraction: float = 0.0
    n_shared_tokens: float = 0.0
    n_samples: int = 1
    offload: Store = STORES[0]
    n_block_tokens: int = 1
    host_bytes_per_s: float | None = None
    n_waves: int = 0
    role: str = TOGETHER
    client: Client | None = None

    @property
    def n_common_tokens(self) -> float:
        """Of the shared prefix, those that each rank has once and that each request finds.

        Source: vLLM 0.33.0, `vllm/v1/core/kv_cache_manager.py`, `get_computed_blocks`: full blocks,
        and never the last token of a prompt, whose scores are needed.
        """
        return self._in_blocks(self.n_shared_tokens)

    @property
    def n_sequences(self) -> int:
        """Of a request: its samples; where a prompt is only read, itself."""
        return 1 if self.role == PREFILL else self.n_samples

    @property
    def n_forked_tokens(self) -> float:
        """Of a prompt, those that its samples have once: all full blocks before its last token."""
        return self._in_blocks(
            self.n_input_tokens if self.n_sequences > 1 else self.n_shared_tokens
        )

    @property
    def n_place_tokens(self) -> float:
        """Written for the stay of one sequence; where it is only read, those of all its samples."""
        return self.n_output_tokens * self.n_samples / self.n_sequences

    @property
    def is_fetching(self) -> bool:
        return self.offload != STORES[0]

    def _in_blocks(self, n_tokens: float) -> float:
        n_found = min(n_tokens, self.n_input_tokens - 1.0)
        return n_found // self.n_block_tokens * self.n_block_tokens

    def sharing(self) -> dict[str, Any]:
        """Arguments of `holding`: which tokens of sequences are held once."""
        return {
            "n_shared_tokens": self.n_common_tokens,
            "n_forked_tokens": self.n_forked_tokens,
            "n_samples": self.n_sequences,
        }

    def requests(self, n_sequences: FloatArray) -> FloatArray:
        """To which so many sequences belong (N,)."""
        return np.maximum(1.0, n_sequences / self.n_sequences)

    @property
    def first_fraction(self) -> float:
        """Share of all requests that begin together."""
        return 1.0 / self.n_waves if self.n_waves else 0.0

    @property
    def n_new_tokens(self) -> float:
        """Input that must be read: the last token at least."""
        own = self.n_input_tokens * (1.0 - self.hit_fraction)
        return max(1.0, min(own, self.n_input_tokens - self.n_common_tokens))

    @property
    def n_hit_tokens(self) -> float:
        return self.n_input_tokens - self.n_new_tokens

    @property
    def n_tokens(self) -> float:
        """Tokens that a request holds at its end; where it is only read, with its first."""
        n_written = 1.0 if self.role == PREFILL else self.n_output_tokens
        return self.n_input_tokens + n_written

    def held_tokens(self, reserved_fraction: float) -> float:
        """Tokens that a request has room for on average, from its prompt to its end.

        Half of the output is written; of what is not, an engine reserves a share beforehand.
        """
        n_written = self.n_tokens - self.n_input_tokens
        return self.n_input_tokens + n_written * (1.0 + reserved_fraction) / 2.0

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
class Parts:
    """What a pass reads of prompts, each (N,).

    A prompt longer than a chunk is read in equal parts, on average with half of the others
    cached; shorter ones may share a pass.

    Args:
        n_chunks: passes that one prompt takes.
        prompt_tokens, past_tokens: of a prompt that a pass reads, and that it finds cached.
        most_prompts: that a pass has room for.
    """

    n_chunks: FloatArray
    prompt_tokens: FloatArray
    past_tokens: FloatArray
    most_prompts: FloatArray

    def shape(self, n_prompts: FloatArray) -> PassShape:
        """The pass that reads so many prompts at once."""
        return PassShape(
            n_prompts=n_prompts, prompt_tokens=self.prompt_tokens, past_tokens=self.past_tokens
        )


def parts_of(room: FloatArray, traffic: Traffic) -> Parts:
    """Prompts cut into passes that have room for so many tokens of them."""
    new = traffic.n_new_tokens
    room = np.maximum(1.0, room)
    n_chunks = np.ceil(new / room)
    each = new / n_chunks
    fits = np.maximum(1.0, np.floor(room / each))
    return Parts(
        n_chunks=n_chunks,
        prompt_tokens=each,
        past_tokens=traffic.n_hit_tokens + (n_chunks - 1.0) / 2.0 * each,
        most_prompts=np.where(n_chunks > 1.0, 1.0, fits),
    )


def prompts_that_come(running: FloatArray, bursts: Bursts, *, n_polled: int) -> FloatArray:
    """Prompts that a look finds where it finds one: of the others, those of as many rounds (N,)."""
    return 1.0 + (running - 1.0) * bursts.mean(lambda rounds: n_polled / rounds)


def has_room(
    engine: EngineSpec, table: DeploymentTable, drafts: Drafts | None, role: str = TOGETHER
) -> BoolArray:
    """Whether a pass of each deployment has room for what it is to take (N,) [1].

    For a token of a prompt; where no prompt is read, for all that decodes.
    """
    if role == DECODE:
        has_parts = table.batch >= table.n_microbatches  # none of them is empty
        return np.asarray(has_parts & (table.batch * tokens_of_each(drafts) <= table.chunk_tokens))
    return room_for_prompts(engine, table, table.batch, drafts, role) > 0.0


def room_for_prompts(
    engine: EngineSpec,
    table: DeploymentTable,
    running: FloatArray | IntArray,
    drafts: Drafts | None,
    role: str = TOGETHER,
) -> FloatArray:
    """Tokens of prompts that a pass reads at most (N,) [1].

    Where decodes ride along they come first, with what was drafted for them: vLLM's scheduler
    counts tokens "with spec" against `max_num_batched_tokens`.
    """
    rides = engine.mixes_prefill and role != PREFILL
    decoded = running * tokens_of_each(drafts) if rides else 0.0
    return table.chunk_tokens - decoded


def tokens_of_each(drafts: Drafts | None) -> float:
    """Of a sequence in a decode pass: its next one, and those that were drafted [1]."""
    return 1.0 + (drafts.n_drafted if drafts else 0.0)


LENGTHS_VARY = 0.2 / math.sqrt(12.0) / 0.9
"""Standard deviation of a length over its mean, drawn evenly between 0.8 and 1 of what is named.

Source: SemiAnalysisAI/InferenceX, `--random-range-ratio 0.8`.
"""

WIDTH = 2.0 * math.sqrt(math.pi)
"""Of even arrivals that meet each other as often as normal ones, over their deviation."""

WAVES_APART = math.floor((WIDTH * LENGTHS_VARY) ** -2)
"""Waves after the first that have not run into each other yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Rounds in which the prompts of each wave after the first come, each (N,).

    Args:
        rounds: of waves that are still apart, in order; of the others last.
        shares: of all waves after the first; their sum is 1.
    """

    rounds: tuple[FloatArray, ...]
    shares: tuple[float, ...]

    def mean(self, of_a_wave: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Of what a request of one wave has, over all of them (N,)."""
        parts = [
            share * of_a_wave(rounds)
            for rounds, share in zip(self.rounds, self.shares, strict=True)
        ]
        return np.asarray(sum(parts))


def bursts(n_waves: int, *, n_rounds: FloatArray | float, begun_rounds: FloatArray) -> Bursts:
    """How prompts come after the first wave; evenly where there are no waves, or one.

    Requests that begin together end together but for what their lengths vary by. The k-th wave
    after the first begins when k lengths have been written, one after the other, so that its
    prompts come with a standard deviation of

        σ² = k (v Z)² + s² / 12      v: of a length, over its mean; Z rounds of a request

    rounds; s are those over which the first wave began, where prompts are read beside decodes. As
    many prompts as evenly come in 2 √π σ rounds (of a normal law: the inverse of ∫ f²) meet each
    other as often, until waves run into each other and what comes is even: in Z rounds.

    Args:
        n_rounds: of a request, Z.
        begun_rounds: over which the first wave began to decode, s.
    """
    even = np.broadcast_to(np.asarray(n_rounds, dtype=float), np.shape(begun_rounds))
    n_later = n_waves - 1
    if n_later < 1:
        return Bursts(rounds=(even,), shares=(1.0,))
    n_apart = min(n_later, WAVES_APART)
    apart = [
        np.minimum(even, WIDTH * np.sqrt(k * (LENGTHS_VARY * even) ** 2 + begun_rounds**2 / 12.0))
        for k in range(1, n_apart + 1)
    ]
    shares = [1.0 / n_later] * n_apart
    return Bursts(rounds=(*apart, even), shares=(*shares, 1.0 - n_apart / n_later))
