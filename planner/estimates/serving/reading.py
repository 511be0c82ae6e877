"""How prompts are read: in passes of so many tokens, a long one in parts, short ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.bursts import Bursts
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.specs.kernels import EngineSpec
from planner.specs.roles import DECODE, PREFILL, TOGETHER


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
        return np.asarray(table.batch * tokens_of_each(drafts) <= table.chunk_tokens)
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
