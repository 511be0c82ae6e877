"""Whole records that the times and bytes of an engine's deployments follow from.

They stand in requests, so that an answer can be counted anew where nothing else is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.architecture import Architecture
from planner.specs.kernels import EngineSpec, KernelTable
from planner.specs.records import ClusterSpec
from planner.specs.roles import TOGETHER
from planner.specs.served_formats import ServedFormats


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRecords:
    """What is served, and what serves it.

    Args:
        models: the one that is asked for, then its variants.
        cluster: devices and what connects them.
        kernels: of its device under the engine; those of other engines left out.
    """

    models: tuple[Architecture, ...]
    cluster: ClusterSpec
    engine: EngineSpec
    kernels: KernelTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest:
    """One given deployment and its traffic.

    Args:
        n_tensor, n_data, n_stages, n_expert_parallel, n_expert_tensor: devices by use.
        exchanges: tokens are sent to their experts.
        batch: requests in flight on one attention rank.
        chunk_tokens: most tokens of a pass.
        overlaps: two micro-batches hide each other's messages.
        hit_fraction: share of the input that the prefix cache has.
        n_shared_tokens: first tokens that all requests have in common.
        drafter: `mtp`, `eagle` or `medusa`; empty without drafts.
        n_drafted: tokens of a round.
        acceptance: probability that one is accepted, by position; none without drafts.
        requests_per_s: that arrive at all ranks together; None where nothing is said of it.
        role: what the deployment does of each request.
        n_redundant_experts: copies of experts of a layer, beside the first of each.
        n_waves: requests of each place, the first of which all begin together; 0 without end.
    """

    records: ServingRecords
    formats: ServedFormats
    n_tensor: int
    n_data: int
    n_stages: int
    n_expert_parallel: int
    n_expert_tensor: int
    exchanges: bool
    batch: int
    chunk_tokens: int
    overlaps: bool
    n_input_tokens: int
    n_output_tokens: int
    hit_fraction: float
    n_shared_tokens: int
    drafter: str
    n_drafted: int
    acceptance: tuple[float, ...]
    requests_per_s: float | None = None
    role: str = TOGETHER
    n_waves: int = 0
    n_redundant_experts: int = 0
