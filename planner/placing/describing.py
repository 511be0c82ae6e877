"""A solved placement in the words of people: recipes, replicas, ranks, channels, certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from planner.certificates import Certificate
from planner.certify import certified, screens_of
from planner.placement_results import KindUse, Placement, Rank, Recipe, Replica, Served
from planner.placing.decoding import Located
from planner.placing.searching import Asked, Search
from planner.placing.totals import UNITS, check_totals, in_si
from planner.placing.verifying import Judge, check_devices, deployment_of
from planner.topology.costs import CostTable, GroupCosts, as_callable
from planner.topology.graph import DEVICE


def placement_of(
    asked: Asked,
    search: Search,
    located: Sequence[Located],
    *,
    began_s: float,
    costs: GroupCosts | CostTable | None,
) -> Placement:
    """Describe, verify, certify.

    Raises:
        SolverError: something is not what the program counts on.
    """
    site = asked.site
    check_devices(site.graph, located)
    ways = list(dict.fromkeys(one.way for one in located))
    read = {way: deployment_of(way) for way in ways}
    recipes = tuple(
        Recipe(
            model=asked.wanted[way.model].model.name,
            kind=way.kind.name,
            span=way.span,
            speed_fraction=way.need.speed_fraction,
            deployment=read[way][0],
        )
        for way in ways
    )
    judge = Judge(site.graph, as_callable(site.ground.inventory, costs))
    numbers = [0] * len(asked.wanted)
    replicas = []
    for one in located:
        model = one.way.model
        name = f"{asked.wanted[model].model.name}/{numbers[model]}"
        numbers[model] += 1
        replicas.append(_replica(asked, one, ways.index(one.way), (name, judge)))
    served = _served(asked, recipes, replicas)
    return Placement(
        pool=site.name,
        title=site.title,
        recipes=recipes,
        replicas=tuple(replicas),
        served=served,
        kinds=tuple(_kinds(asked, located)),
        certificate=_certificate(asked, search, served, began_s),
        provenance=_provenance(asked),
    )


def _replica(asked: Asked, one: Located, recipe: int, named: tuple[str, Judge]) -> Replica:
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
    name, judge = named
    return Replica(
        name=name,
        model=asked.wanted[one.way.model].model.name,
        recipe=recipe,
        nodes=tuple(dict.fromkeys(rank.node for rank in ranks)),
        leaves=tuple(dict.fromkeys(rank.leaf for rank in ranks if rank.leaf)),
        ranks=ranks,
        channels=judge.channels(one),
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


def _certificate(
    asked: Asked, search: Search, served: Sequence[Served], began_s: float
) -> Certificate:
    """The proof in numbers, in SI units.

    Raises:
        SolverError: what was optimised is not what the replicas come to.
    """
    solution, name = search.solution, asked.objective
    counts = solution.answer
    assert counts is not None
    n_given = len(search.posed.given) + len(search.posed.staged)
    chosen = [
        way
        for (way, _), n in zip(search.posed.taken, counts.copies[n_given:], strict=True)
        for _ in range(n)
    ]
    objective = in_si(name, solution.objective)
    check_totals(asked, served, [way.tpot_s for way in chosen], objective=objective)
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
        verified=(
            "every rank on a free device of its own",
            "every group's bandwidth read off the paths of the graph",
            "seconds and bytes of every layout recounted by an independent scalar model",
            "demands, replicas and limits added up from the replicas",
        ),
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
