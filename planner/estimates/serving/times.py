"""Times of deployments under traffic, and how long a request has its place.

Kernels of one family err together, families apart; the model that adds them up errs besides, by
what `specs/model_errors` says of the runtime and the kind of model. The account of a deployment
states the same interval with code of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.steps import OUTSIDE, PassTime, added
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.model_errors import QUANTITIES, engine_error
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.runtimes import ModelKind


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
        ttft_parts: what `ttft_s` is the sum of: `request`, the engine's constant; `client`, of
            who sends it; `step`, the rest of what a request finds under way; `others`, prompts
            before it; `reading`, its own passes; `decodes`, what decodes beside them add; `wave`,
            what the first wave of a closed loop adds to the mean of all; `fetch`, what hits take
            from the host.
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


SIGMAS_OF_A_MEDIAN = 1.4826
"""Standard deviations of a normal error in one of its medians."""

HOST_ERROR = 0.5
"""Relative error of what hosts are said to take; `assumed` [1]."""


def pass_error(timed: PassTime, host_s: FloatArray | float) -> FloatArray:
    """Relative standard deviation of a pass, host included (N,); 0 where there is no such pass."""
    shape = timed.n_microbatches.shape
    if not timed.operations:
        return np.zeros(shape)
    families: dict[str, FloatArray] = {"host": np.multiply(host_s, HOST_ERROR)}
    total: FloatArray = np.full(shape, host_s)
    for is_outside in (False, True):
        here = [one for one in timed.operations if (one.operation.layer == OUTSIDE) is is_outside]
        often = 1.0 if is_outside else timed.n_microbatches
        total = total + added(here) * often
        for formula in dict.fromkeys(one.timing.formula for one in here):
            mine = (one for one in here if one.timing.formula == formula)
            spent = added(mine, weighs_errors=True) * often
            families[formula] = families.get(formula, 0.0) + spent
    squares = sum(part**2 for part in families.values())
    return np.asarray(SIGMAS_OF_A_MEDIAN * np.sqrt(squares) / total)


def serving_errors(
    times: ServingTimes,
    engine: EngineSpec,
    *,
    kind: ModelKind,
    prefill_host_s: float,
    yields: float = 1.0,
    outside: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Relative standard deviations of TPOT and of TTFT (N,); 0 of times that are not.

    Args:
        kind: of the model.
        prefill_host_s: of a pass that reads prompts, beside its kernels.
        yields: tokens that a decode pass gives, more than one with drafts.
        outside: further deviations of what was not measured (N,).
    """
    tpot, ttft = kernel_errors(times, prefill_host_s, yields=yields)
    whole = (
        np.where(
            seconds > 0.0,
            np.hypot(error, np.hypot(engine_error(engine, kind, name), outside)),
            0.0,
        )
        for name, seconds, error in zip(
            QUANTITIES, (times.tpot_s, times.ttft_s), (tpot, ttft), strict=True
        )
    )
    return next(whole), next(whole)


def least_errors(
    engine: EngineSpec, kind: ModelKind, outside: FloatArray
) -> tuple[FloatArray, ...]:
    """What relative standard deviations of TPOT and of TTFT are at least, without kernels (N,)."""
    return tuple(np.hypot(engine_error(engine, kind, name), outside) for name in QUANTITIES)


def kernel_errors(
    times: ServingTimes, prefill_host_s: float, *, yields: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """The part of them that kernels and hosts are to blame for (N,)."""
    decode = pass_error(times.decode, times.decode_s - times.decode.total_s)
    prefill = pass_error(times.prefill, prefill_host_s)
    passed = times.itl_s / yields
    off = np.hypot(decode * passed, prefill * (times.tpot_s - passed))
    writes = times.tpot_s > 0.0
    return np.divide(off, times.tpot_s, out=np.zeros_like(off), where=writes), prefill
