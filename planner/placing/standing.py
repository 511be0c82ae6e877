"""The replicas of a placement that stands, as a repair sees them; from a record or its JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.placement_results import Placement
from planner.results import Deployment
from planner.specs.ledger import Use, enter
from planner.specs.tables import literal

SCHEMA = "planner.placement/1"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sharding:
    """What says which part of the weights each rank has; ranks of equal ones have equal parts."""

    model: str
    weights_format: str
    storage: str
    axes: tuple[int, int, int]
    n_stages: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """A placement that stands: its pool, what it was chosen for, and its replicas."""

    pool: str
    objective_name: str
    objective: float
    demands: tuple[tuple[str, float | None], ...]
    replicas: tuple[Standing, ...]


def sharding_of(model: str, deployment: Deployment) -> Sharding:
    """How the ranks of a deployment share its weights."""
    return Sharding(
        model=model,
        weights_format=deployment.weights_format,
        storage=deployment.storage,
        axes=deployment.mesh.axes,
        n_stages=deployment.mesh.n_stages,
    )


def standings_of(placement: Placement) -> Standings:
    """A placement as a repair sees it."""
    deployments = [recipe.deployment for recipe in placement.recipes]
    return Standings(
        pool=placement.pool,
        objective_name=placement.certificate.objective_name,
        objective=placement.certificate.objective,
        demands=tuple((one.model, one.demand_tokens_per_s) for one in placement.served),
        replicas=tuple(
            Standing(
                name=one.name,
                sharding=sharding_of(one.model, deployments[one.recipe]),
                devices=tuple(rank.device for rank in one.ranks),
                shard_bytes=deployments[one.recipe].memory.weights_bytes,
            )
            for one in placement.replicas
        ),
    )


def load_standings(path: str) -> Standings:
    """Read what `plan place --json` wrote.

    Raises:
        SpecError: no such file, or it is no placement.
    """
    where = "PLACEMENT"
    try:
        content = Path(path).read_bytes()
        found = json.loads(content.decode("utf-8"))
    except OSError as error:
        fact = "is a folder" if isinstance(error, IsADirectoryError) else "no such file"
        problem = Problem(where=where, value=literal(path), fact=fact)
        raise SpecError([problem]) from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        remedy = "write one with `plan place … --json`"
        problem = Problem(where=where, value=literal(path), fact="is no placement", remedy=remedy)
        raise SpecError([problem])
    try:
        before = _read(found)
    except KeyError as error:
        fact = f"is no whole placement: `{error.args[0]}` is missing"
        raise SpecError([Problem(where=where, value=literal(path), fact=fact)]) from None
    except (TypeError, ValueError, IndexError):
        fact = "is no whole placement: a value in it is not what `plan place` writes"
        raise SpecError([Problem(where=where, value=literal(path), fact=fact)]) from None
    enter(Use(kind="placement"), Path(path), content)
    names = Counter(name for one in before.replicas for name in one.devices)
    twice = [name for name, n in names.items() if n > 1]
    if twice:
        fact = f"has several ranks on `{twice[0]}`"
        raise SpecError([Problem(where=where, value=literal(path), fact=fact)])
    return before


def _read(found: Mapping[str, Any]) -> Standings:
    proof = found["certificate"]
    return Standings(
        pool=str(found["pool"]),
        objective_name=str(proof["objective_name"]),
        objective=float(proof["objective"]),
        demands=tuple((one["model"], one["demand_tokens_per_s"]) for one in found["served"]),
        replicas=tuple(_replica(one, found["recipes"]) for one in found["replicas"]),
    )


def _replica(one: Mapping[str, Any], recipes: list[Mapping[str, Any]]) -> Standing:
    deployment = recipes[one["recipe"]]["deployment"]
    mesh = deployment["mesh"]
    x, y, z = (int(n) for n in mesh["axes"])
    return Standing(
        name=str(one["name"]),
        sharding=Sharding(
            model=str(one["model"]),
            weights_format=str(deployment["weights_format"]),
            storage=str(deployment["storage"]),
            axes=(x, y, z),
            n_stages=int(mesh["n_stages"]),
        ),
        devices=tuple(str(rank["device"]) for rank in one["ranks"]),
        shard_bytes=float(deployment["memory"]["weights_bytes"]),
    )
