"""The replicas of a placement that stands, as a repair sees them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.placement_results import Placement
from planner.results import Deployment


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sharding:
    """What says which part of the weights each rank has; ranks of equal ones have equal parts."""

    model: str
    weights_format: str
    storage: str
    axes: tuple[int, int, int]
    n_stages: int
    copied_axes: str = ""
    sliced_axes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A replica that stands.

    Args:
        devices: by rank.
        shard_bytes: weights of the busiest rank.
    """

    name: str
    sharding: Sharding
    devices: tuple[str, ...]
    shard_bytes: float


def sharding_of(model: str, deployment: Deployment) -> Sharding:
    """How the ranks of a deployment share its weights."""
    return Sharding(
        model=model,
        weights_format=deployment.weights_format,
        storage=deployment.storage,
        axes=deployment.mesh.axes,
        n_stages=deployment.mesh.n_stages,
        copied_axes=deployment.copied_axes,
        sliced_axes=deployment.sliced_axes,
    )


def standing_of(placement: Placement) -> tuple[Standing, ...]:
    """The replicas of a placement as a repair sees them."""
    deployments = [recipe.deployment for recipe in placement.recipes]
    return tuple(
        Standing(
            name=one.name,
            sharding=sharding_of(one.model, deployments[one.recipe]),
            devices=tuple(rank.device for rank in one.ranks),
            shard_bytes=deployments[one.recipe].memory.weights_bytes,
        )
        for one in placement.replicas
    )
