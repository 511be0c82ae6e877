"""How far off times may be: errors of kernels, added up over passes of every deployment.

Kernels of one family err together, families apart; the model that adds them up errs besides, by
what `specs/model_errors` says of the runtime and the kind of model. The account of a deployment
states the same interval with code of its own.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.steps import OUTSIDE, PassTime, added
from planner.estimates.serving.times import ServingTimes
from planner.specs.judged import ModelKind
from planner.specs.kernels import EngineSpec
from planner.specs.model_errors import QUANTITIES, model_error

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
            np.hypot(error, np.hypot(model_error(engine.name, kind, name), outside)),
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
    return tuple(np.hypot(model_error(engine.name, kind, name), outside) for name in QUANTITIES)


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
