"""A small placement, and a conflict, for the tests of reports."""

from __future__ import annotations

from dataclasses import replace

from planner.results.conflicts import PlacementConflict, PlacementRelaxation, RelaxedLimit
from planner.results.obstacles import Obstacle
from planner.results.placements import (
    Channel,
    KindUse,
    Placement,
    Rank,
    Replica,
    RunConfig,
    ServedModel,
)
from planner.specs.ask.placement import PlacementRequest, Serve
from tests.report.examples import CLUSTER, DEPLOYMENT, MODEL, PLAN

PLACEMENT = Placement(
    request=PlacementRequest(
        site=CLUSTER,
        models=(Serve(model=replace(MODEL, name="mini"), demand_tokens_per_s=500.0),),
    ),
    pool="pair",
    title="a pair of nodes",
    recipes=(
        RunConfig(
            model="mini",
            engine="roofline",
            kind="h100-sxm",
            span="leaf",
            speed_fraction=0.8,
            counted_bytes_per_s={"scale_up": 450e9, "nic": 25e9, "spine": 0.0},
            pieces=(2,),
            deployment=DEPLOYMENT,
        ),
    ),
    replicas=(
        Replica(
            name="mini/0",
            model="mini",
            recipe=0,
            nodes=("node0", "node1", "node2", "node4"),
            leaves=("leaf0",),
            ranks=(
                Rank(rank=0, device="node0/gpu1", node="node0", leaf="leaf0", stage=0, axes=(0, 0)),
                Rank(rank=1, device="node1/gpu0", node="node1", leaf="leaf0", stage=0, axes=(0, 1)),
            ),
            channels=(
                Channel(
                    axis="across",
                    n_groups=1,
                    n_devices=2,
                    devices=("node0/gpu1", "node1/gpu0"),
                    link=("node0/gpu1", "leaf0"),
                    bytes_per_s=25e9,
                    counted_bytes_per_s=25e9,
                ),
            ),
        ),
    ),
    served=(
        ServedModel(
            model="mini",
            demand_tokens_per_s=500.0,
            output_tokens_per_s=1000.0,
            n_replicas=1,
            n_devices=2,
            usd_per_hour=6.0,
        ),
    ),
    kinds=(KindUse(kind="h100-sxm", device="h100-sxm", n_devices=16, n_free=3, n_used=2),),
    certificate=replace(PLAN.certificate, objective_name="rent"),
)

PLACEMENT_CONFLICT = PlacementConflict(
    pool="pair",
    n_free=3,
    n_devices=16,
    obstacles=(
        Obstacle(
            name="demand mini",
            asked=5000.0,
            reachable=1000.0,
            dimension="token/s",
            reason="with the others kept",
        ),
    ),
    verified=("two solvers find no placement: highs and cpsat",),
    relaxations=(
        PlacementRelaxation(
            changes=(
                RelaxedLimit(name="demand mini", requested=5000.0, needed=2500.0, limit=2500.0),
                RelaxedLimit(name="rent", requested=4.0, needed=6.0, limit=6.0),
            ),
            price_fraction=1.5,
            objective=6.0,
            n_replicas=1,
            n_devices=2,
            output_tokens_per_s=2500.0,
            usd_per_hour=6.0,
            command="plan place --model=mini --demand=2500tok/s '--max-rent=$6/h'",
        ),
    ),
)
