"""A solved placement in the words of people: recipes, replicas, ranks, channels, certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.certificates import Certificate
from planner.certify import certified, screens_of
from planner.describe import describe
from planner.placement_results import KindUse, Placement, Rank, Recipe, Replica, Served
from planner.placing.channels import Channels
from planner.placing.columns import Way
from planner.placing.decoding import Located
from planner.placing.searching import Asked, Search
from planner.placing.tori import TorusWay
from planner.placing.totals import UNITS, in_si
from planner.results import Deployment
from planner.topology.costs import CostTable, GroupCosts, as_callable
from planner.topology.graph import DEVICE
from planner.verifier.fabrics import FabricStand


def placement_of(
    asked: Asked,
    search: Search,
    located: Sequence[Located],
    *,
    began_s: float,
    costs: GroupCosts | CostTable | None,
) -> Placement:
    """Describe and certify; who asked for it has it judged."""
    site = asked.site
    ways = list(dict.fromkeys(one.way for one in located))
    recipes = tuple(
        Recipe(
            model=asked.wanted[way.model].model.name,
            kind=way.kind.name,
            span=way.span,
            speed_fraction=way.need.speed_fraction,
            counted_bytes_per_s={
                "scale_up": way.need.scale_up_bytes_per_s,
                "nic": way.need.nic_bytes_per_s,
                "spine": way.need.spine_bytes_per_s,
            },
            deployment=deployment_of(way, sum(one.way is way for one in located)),
        )
        for way in ways
    )
    links = Channels(site.graph, as_callable(site.ground.inventory, costs))
    numbers = [0] * len(asked.wanted)
    replicas = []
    for one in located:
        model = one.way.model
        name = f"{asked.wanted[model].model.name}/{numbers[model]}"
        numbers[model] += 1
        replicas.append(_replica(asked, one, ways.index(one.way), (name, links)))
    served = _served(asked, recipes, replicas)
    return Placement(
        request=asked.request,
        pool=site.name,
        title=site.title,
        recipes=recipes,
        replicas=tuple(replicas),
        served=served,
        kinds=tuple(_kinds(asked, located)),
        certificate=_certificate(asked, search, began_s),
        provenance=_provenance(asked),
    )


def deployment_of(way: Way | TorusWay, n_alike: int) -> Deployment:
    """The deployment of a way that so many replicas have."""
    it = way.evaluated
    found = describe(it.table, it.posed, it.request, way.assignment)
    return replace(found, mesh=replace(found.mesh, n_positions=n_alike))


def _replica(asked: Asked, one: Located, recipe: int, named: tuple[str, Channels]) -> Replica:
    leaf_names, grid = asked.site.ground.inventory.leaf_names, one.grid
    home = {name: part.node for part in one.parts for name in part.devices}
    vertices = asked.site.graph.nodes
    places = [
        (name, stage, (inside, across))
        for stage, rows in enumerate(grid)
        for across, row in enumerate(rows)
        for inside, name in enumerate(row)
    ]
    ranks = tuple(
        Rank(
            rank=rank,
            device=name,
            node=home[name].name,
            leaf=leaf if vertices.get(leaf, {}).get("kind") != DEVICE else "",
            stage=stage,
            axes=axes,
        )
        for rank, (name, stage, axes) in enumerate(places)
        for leaf in (leaf_names[home[name].leaf],)
    )
    name, links = named
    return Replica(
        name=name,
        model=asked.wanted[one.way.model].model.name,
        recipe=recipe,
        nodes=tuple(dict.fromkeys(rank.node for rank in ranks)),
        leaves=tuple(dict.fromkeys(rank.leaf for rank in ranks if rank.leaf)),
        ranks=ranks,
        channels=links.of(one),
    )


def _served(
    asked: Asked, recipes: Sequence[Recipe], replicas: Sequence[Replica]
) -> tuple[Served, ...]:
    """What each model gets, added up from the deployments of its replicas."""
    found = []
    for wish in asked.wanted:
        mine = [recipes[one.recipe].deployment for one in replicas if one.model == wish.model.name]
        found.append(
            Served(
                model=wish.model.name,
                demand_tokens_per_s=wish.demand_tokens_per_s,
                output_tokens_per_s=math.fsum(one.output_tokens_per_s for one in mine),
                n_replicas=len(mine),
                n_devices=sum(one.n_devices for one in mine),
                usd_per_hour=math.fsum(one.usd_per_hour for one in mine),
            )
        )
    return tuple(found)


def _kinds(asked: Asked, located: Sequence[Located]) -> list[KindUse]:
    found = asked.site.ground.inventory
    used: dict[Any, int] = {}
    for one in located:
        used[one.way.kind] = used.get(one.way.kind, 0) + one.way.n_devices
    return [
        KindUse(
            kind=kind.name,
            device=kind.device,
            n_devices=sum(n.n_devices for n in found.nodes if n.kind == kind),
            n_free=sum(len(n.free) for n in found.nodes if n.kind == kind),
            n_used=used.get(kind, 0),
        )
        for kind in found.kinds
    ]


def _certificate(asked: Asked, search: Search, began_s: float) -> Certificate:
    """The proof in numbers, in SI units."""
    solution, name = search.solution, asked.objective
    evaluated = {id(way.evaluated): way.evaluated for way in search.ways}.values()
    n_layouts = sum(it.n_candidates for it in evaluated)
    rejected = {
        "layouts": n_layouts - len(search.ways),
        "ways": len(search.ways) - len(search.kept),
    }
    return certified(
        solution,
        objective_name=name,
        to_si=partial(in_si, name),
        dimension=UNITS[name][1],
        n_candidates=n_layouts,
        n_contexts=len(search.ways),
        screens=screens_of(rejected, _REASONS),
        n_solved=search.posed.program.n_columns,
        verified=FabricStand.checks,
        wall_s=time.perf_counter() - began_s,
    )


_REASONS = {
    "layouts": "others are better on the same devices",
    "ways": "others fit wherever they do and serve more",
}


def _provenance(asked: Asked) -> tuple[Any, ...]:
    bases = asked.site.ground.bases.values()
    lists = [
        *(base.provenance for base in bases),
        *(base.device.provenance for base in bases),
        *(one.model.provenance for one in asked.wanted),
    ]
    return tuple(dict.fromkeys(value for values in lists for value in values))
