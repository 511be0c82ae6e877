"""Time of arithmetic and of the memory traffic that feeds it, and of passes through a pipeline.

Three rivals say how far the two overlap: not at all (c + m), fully
(`sharp_roofline_s`), or fully except near the ridge (`smooth_roofline_s`).
"""

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


def compute_s(flop: ArrayLike, *, peak_flop_per_s: ArrayLike, fraction: ArrayLike) -> FloatArray:
    """Time of arithmetic at an attainable fraction of the peak [s].

    Args, broadcast together:
        flop: work of one device, a multiply-add counts two [FLOP].
        peak_flop_per_s: datasheet peak of the number format [FLOP/s].
        fraction: attainable share of the peak, in (0, 1] [1].

    Source: [Pope2022] §2, [Williams2009].
    """
    return np.divide(flop, np.multiply(peak_flop_per_s, fraction))


def transfer_s(n_bytes: ArrayLike, *, bytes_per_s: ArrayLike, fraction: ArrayLike) -> FloatArray:
    """Time to stream bytes at an attainable fraction of a bandwidth [s].

    Source: [Pope2022] §2.
    """
    return np.divide(n_bytes, np.multiply(bytes_per_s, fraction))


def sharp_roofline_s(compute: ArrayLike, memory: ArrayLike) -> FloatArray:
    """T = max(c, m): the shorter hides behind the longer [s].

    Source: [Williams2009].
    """
    return np.maximum(compute, memory)


def smooth_roofline_s(compute: ArrayLike, memory: ArrayLike, *, exponent: float) -> FloatArray:
    """T = (cᵖ + mᵖ)^(1/p): near the ridge the two contend [s].

    p = 1 is c + m, where nothing hides; p → ∞ is `sharp_roofline_s`.

    Args, broadcast together:
        compute: c, time of the arithmetic alone [s].
        memory: m, time of the traffic alone [s].
        exponent: p ≥ 1 [1].

    Raises:
        ValueError: the exponent is below one.

    Source: fitted form, `docs/decisions/0003-time-model.md`.
    """
    if exponent < 1:
        raise ValueError(f"the exponent of a smooth roofline is at least 1, not {exponent:g}")
    if np.isinf(exponent):
        return sharp_roofline_s(compute, memory)
    if exponent == 3.0:  # `cbrt` is several times faster than a general power
        return np.asarray(np.cbrt(np.power(compute, 3) + np.power(memory, 3)))
    powers = np.power(compute, exponent) + np.power(memory, exponent)
    return np.asarray(np.power(powers, 1.0 / exponent))


def flushed_pipeline_s(
    stage_s: ArrayLike, *, n_stages: ArrayLike, n_microbatches: ArrayLike
) -> FloatArray:
    """(M + S − 1) stage times: the pipeline fills and drains once a pass [s].

    Args, broadcast together:
        stage_s: time of the slowest stage for one micro-batch [s].
        n_stages: S, stages [1].
        n_microbatches: M, micro-batches that a pass is cut into [1].

    Source: [Huang2019] (GPipe); [FasterTransformer] decodes so.
    """
    return np.multiply(stage_s, np.add(n_microbatches, n_stages) - 1.0)
