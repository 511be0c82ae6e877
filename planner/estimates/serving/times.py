"""Times of deployments under traffic, and how long a request has its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.steps import PassTime
from planner.estimates.serving.traffic import Traffic
from planner.specs.roles import DECODE, PREFILL


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTimes:
    """Of each deployment, (N,).

    Args:
        n_running: sequences that decode on each attention rank: the batch, or what fits. Of a
            prefill worker prompts that are read at once, as far as they share its passes.
        decode_s: a decode pass, its host time included; with drafts the one that checks them.
        prompt_s: from a free engine to a prompt's first token.
        added_s: what reading one prompt adds to the decodes beside it.
        itl_s: between two tokens, or bursts of drafted ones, while no prompt is read.
        tpot_s: mean over the tokens of a request; 0 where none are written.
        ttft_parts: what `ttft_s` is the sum of: `request`, the engine's constant; `step`, the rest
            of what a request finds under way; `others`, prompts before it; `reading`, its own
            passes; `decodes`, what decodes beside them add; `wave`, what the first wave of a
            closed loop adds to the mean of all.
        queue_s: wait for a free place, where more requests are in flight than fit.
        decode, prefill: the passes; empty where there are no such.
        n_chunks: passes that one prompt takes; 0 where none is read.
        n_waves: requests of each place of a closed loop; 0 where it is without end.
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
    n_waves: int = 0

    @property
    def ttft_s(self) -> FloatArray:
        """Time to first token of a request that finds a place, the mean of all (N,) [s]."""
        return np.asarray(sum(self.ttft_parts.values()))

    @property
    def later_waves_s(self) -> FloatArray:
        """Of requests after the first wave; of all where the loop is without end (N,) [s]."""
        return self.ttft_s - self.ttft_parts.get("wave", 0.0)

    @property
    def first_wave_s(self) -> FloatArray:
        """Of requests that begin together (N,) [s]."""
        return self.later_waves_s + self.n_waves * self.ttft_parts.get("wave", 0.0)

    @property
    def user_tokens_per_s(self) -> FloatArray:
        return 1.0 / self.tpot_s


def place_s(
    traffic: Traffic, *, ttft_s: FloatArray, tpot_s: FloatArray, prompt_s: FloatArray
) -> FloatArray:
    """How long a request has its place (N,) [s].

    As one ends the next begins, so that b places give b · OSL tokens in that time.

    Args:
        prompt_s: from a free engine to a prompt's first token.
    """
    if traffic.role == PREFILL:
        return prompt_s
    if traffic.role == DECODE:
        return np.asarray(traffic.n_output_tokens * tpot_s)
    return stay_s(ttft_s, tpot_s, traffic.n_output_tokens)


def stay_s(ttft_s: FloatArray, tpot_s: FloatArray, n_output_tokens: float) -> FloatArray:
    """From a request's prompt to its last token, where one replica does it all (N,) [s]."""
    return np.asarray(ttft_s + (n_output_tokens - 1.0) * tpot_s)
