"""What users feel: time to first token, time per output token, tokens per second.

A deployment serves a steady number of requests: as one ends, another begins. While a request
decodes for OSL steps, each of the others on its attention rank reads its prompt once, so

    TPOT = D + (b − 1) P / OSL · share of time that requests spend decoding

with D a decode pass of b sequences and P what reading a prompt adds: all of a pass of its own,
or what a chunk adds to the decode pass that it rides on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.steps import Clock, PassTime, pass_time
from planner.specs.architecture import Architecture

Mixing = Literal["mixed", "alone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests as they come.

    Args:
        n_input_tokens: ISL.
        n_output_tokens: OSL.
        hit_fraction: share of the input that the prefix cache already has.
    """

    n_input_tokens: float
    n_output_tokens: float
    hit_fraction: float = 0.0

    @property
    def n_new_tokens(self) -> float:
        """Input that must be read: the last token at least."""
        return max(1.0, self.n_input_tokens * (1.0 - self.hit_fraction))

    @property
    def n_hit_tokens(self) -> float:
        return self.n_input_tokens - self.n_new_tokens

    @property
    def mean_context(self) -> float:
        """Cached tokens that a decode pass reads of a request, averaged over its steps."""
        return self.n_input_tokens + (self.n_output_tokens + 1.0) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What an engine spends besides kernels.

    Args:
        decode_s: of a decode pass.
        prefill_s: of a pass that reads prompts.
        mixes: chunks of prompts ride on decode passes, instead of passes of their own.
    """

    decode_s: float
    prefill_s: float
    mixes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTimes:
    """Per deployment, (N,).

    Args:
        ttft_s: of a request that finds no queue: its own prompt, on a busy deployment.
        tpot_s: mean over the steps of a request.
        itl_s: between two tokens while nothing else is read: one decode pass.
        decode: the decode pass.
        prefill: the pass of one chunk.
        n_chunks: passes that one prompt takes.
    """

    ttft_s: FloatArray
    tpot_s: FloatArray
    itl_s: FloatArray
    decode: PassTime
    prefill: PassTime
    n_chunks: FloatArray
    prompt_s: FloatArray
    added_s: FloatArray
