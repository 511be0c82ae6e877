"""The replicas of a placement that stands, as a repair sees them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.results.phase_deployments import LayoutDeployment
from planner.results.placements import Placement, Recipe
from planner.results.table_deployments import TableDeployment
from planner.specs.served_formats import ServedFormats


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sharding:
    """What says which part of the weights each rank has; ranks of equal ones have equal parts.

    Args:
        storage: how weights rest: along which axes they are cut, or as which engine does it.
        axes: of the mesh, or degrees of an engine.
    """

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


def sharding_of(model: str, recipe: Recipe) -> Sharding:
    """How the ranks of a recipe share its weights."""
    one = recipe.deployment
    if isinstance(one, LayoutDeployment):
        return layout_sharding(model, one)
    if isinstance(one, TableDeployment):
        return row_sharding(model, one.engine, one.name, one.weights_format, one.n_devices)
    degrees = one.n_tensor, one.n_data, one.n_expert_parallel
    return engine_sharding(
        recipe.engine, model, one.formats, degrees=degrees, n_stages=one.n_stages
    )


def layout_sharding(model: str, deployment: LayoutDeployment) -> Sharding:
    """How the ranks of a layout share its weights."""
    return Sharding(
        model=model,
        weights_format=deployment.weights_format,
        storage=deployment.storage,
        axes=deployment.mesh.axes,
        n_stages=deployment.mesh.n_stages,
        copied_axes=deployment.copied_axes,
        sliced_axes=deployment.sliced_axes,
    )


def engine_sharding(
    engine: str, model: str, formats: ServedFormats, *, degrees: tuple[int, int, int], n_stages: int
) -> Sharding:
    """How the ranks of an engine share the weights: each engine cuts and packs them as its own.

    Args:
        degrees: tensor, data and expert parallel.
    """
    return Sharding(
        model=model,
        weights_format=f"{formats.weights}, experts {formats.experts}",
        storage=engine,
        axes=degrees,
        n_stages=n_stages,
    )


def row_sharding(
    model: str, engine: str, name: str, weights_format: str, n_devices: int
) -> Sharding:
    """How the ranks of a row of a table share the weights: as others of its name, one of each."""
    return Sharding(
        model=model,
        weights_format=weights_format,
        storage=f"{engine}: {name}",
        axes=(n_devices, 1, 1),
        n_stages=1,
    )


def standing_of(placement: Placement) -> tuple[Standing, ...]:
    """The replicas of a placement as a repair sees them."""
    recipes = placement.recipes
    return tuple(
        Standing(
            name=one.name,
            sharding=sharding_of(one.model, recipes[one.recipe]),
            devices=tuple(rank.device for rank in one.ranks),
            shard_bytes=recipes[one.recipe].weights_bytes,
        )
        for one in placement.replicas
    )
