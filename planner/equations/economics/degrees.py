"""How N devices are split between pipeline stages, experts and tensor parallelism.

Every degree is a real number: nothing has to divide anything. Source: [Erdil2025] §3.5;
the published program decides the details.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray

ROUNDING = 1e-12
"""Relative slack where a real-valued degree meets a bound: 8 × (1 + an ulp) fills one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Degrees of parallelism, one entry a point.

    `n_per_stage` is T = N/P, `n_microbatch` the requests b = B/P of one of P micro-batches,
    `n_tokens` what a micro-batch scores, `n_expert` and `n_ffn` how the T devices are
    split in the FFN.
    """

    n_devices: FloatArray
    n_requests: FloatArray
    n_stages: FloatArray
    n_per_stage: FloatArray
    n_microbatch: FloatArray
    n_tokens: FloatArray
    n_expert: FloatArray
    n_ffn: FloatArray


def n_nodes(n_devices: ArrayLike, n_devices_per_node: int) -> FloatArray:
    """Nodes that hold the devices [1]. Source: [Erdil2025] §3.3."""
    return np.ceil(np.multiply(n_devices, (1.0 - ROUNDING) / n_devices_per_node))


def tensor_group(
    n_devices: FloatArray, n_devices_per_node: int, *, is_2d: bool
) -> tuple[FloatArray, FloatArray]:
    """Ranks and nodes of one collective of a tensor-parallel product [1].

    Sharded in two dimensions, t devices form √t groups of √t ranks on √nodes nodes; in
    one dimension all of them are one group.

    Source: [Erdil2025] §3.3 for two dimensions, footnote 3 for one.
    """
    nodes = n_nodes(n_devices, n_devices_per_node)
    return (np.sqrt(n_devices), np.sqrt(nodes)) if is_2d else (n_devices, nodes)
