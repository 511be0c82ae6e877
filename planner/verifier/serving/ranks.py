"""An attention rank, and what it is one of: who shares which part of the work."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.architecture import Architecture
from planner.specs.served_formats import ServedFormats
from planner.specs.stages_request import StageGroup, StagesRequest
from planner.verifier.serving.checkpoints import loaded
from planner.verifier.serving.kernels import Kernels
from planner.verifier.serving.links import Links


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One of `n_data` ranks of each of `n_stages` stages.

    Args:
        n_tensor: devices that share its heads.
        n_expert_parallel: groups that experts are dealt to among the devices of a stage.
        n_expert_tensor: devices that each expert is cut over.
        exchanges: tokens are sent to their experts; else all ranks gather all tokens.
        n_small_kernels: of each layer.
    """

    model: Architecture
    formats: ServedFormats
    kernels: Kernels
    links: Links
    n_small_kernels: int
    n_tensor: int
    n_data: int = 1
    n_stages: int = 1
    n_expert_parallel: int = 1
    n_expert_tensor: int = 1
    exchanges: bool = False

    @property
    def n_group(self) -> int:
        """Devices of one stage."""
        return self.n_tensor * self.n_data


def rank_of(group: StageGroup, asked: StagesRequest) -> Rank:
    """The one rank of a group of devices that has a stage to itself."""
    return Rank(
        model=asked.model,
        formats=loaded(asked.model, asked.formats, asked.engine),
        kernels=Kernels(group.cluster.device, group.kernels, asked.engine),
        links=Links(group.cluster.fabric),
        n_small_kernels=asked.engine.n_small_kernels,
        n_tensor=group.n_tensor,
        n_expert_parallel=group.n_expert_parallel,
        n_expert_tensor=max(1, group.n_tensor // group.n_expert_parallel),
    )
