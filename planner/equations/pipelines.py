"""Time of a pass through pipeline stages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


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
