"""A placement of two replicas of two devices, on a fabric of two nodes and on a torus."""

from __future__ import annotations

from dataclasses import replace

from planner.results.floorplans import Box, FloorPlan, Spot
from planner.results.placements import (
    Channel,
    KindUse,
    Placement,
    Rank,
    Replica,
    RunConfig,
    ServedModel,
)
from planner.results.repairs import Change, Move, Repair, RepairPoint, RepairRequest
from planner.specs.ask.placement import PlacementRequest, Serve, inherited_and_changed
from planner.specs.ask.targets import Targets
from planner.specs.files.state import State
from planner.specs.records.certificates import Proof
from tests.report.examples import CERTIFICATE, CLUSTER, DEPLOYMENT, MODEL

PALM = replace(MODEL, name="palm-540b")
ASKED = PlacementRequest(site=CLUSTER, models=(Serve(model=PALM),), targets=Targets(tpot_s=0.05))


def _replica(number: int, devices: tuple[str, ...]) -> Replica:
    ends = (devices[0], devices[-1])
    return Replica(
        name=f"palm-540b/{number}",
        model="palm-540b",
        recipe=0,
        nodes=("node0",),
        leaves=("leaf0",),
        ranks=tuple(
            Rank(rank=i, device=name, node="node0", leaf="leaf0", stage=0, axes=(i, 0))
            for i, name in enumerate(devices)
        ),
        channels=(
            Channel(
                axis="inside",
                n_groups=1,
                n_devices=len(devices),
                devices=devices,
                link=ends,
                bytes_per_s=450e9,
                counted_bytes_per_s=450e9,
            ),
        ),
    )


def placement(*replicas: tuple[str, ...]) -> Placement:
    """One replica for each tuple of devices."""
    n_used = sum(map(len, replicas))
    return Placement(
        request=ASKED,
        pool="pool",
        title="a small pool",
        recipes=(
            RunConfig(
                model="palm-540b",
                engine="roofline",
                kind="h100",
                span="node",
                speed_fraction=1.0,
                counted_bytes_per_s={"scale_up": 450e9, "nic": 25e9, "spine": 0.0},
                pieces=(2,),
                deployment=DEPLOYMENT,
            ),
        ),
        replicas=tuple(_replica(i, names) for i, names in enumerate(replicas)),
        served=(
            ServedModel(
                model="palm-540b",
                demand_tokens_per_s=None,
                output_tokens_per_s=100.0,
                n_replicas=len(replicas),
                n_devices=n_used,
                usd_per_hour=10.0,
            ),
        ),
        kinds=(KindUse(kind="h100", device="h100", n_devices=8, n_free=6, n_used=n_used),),
        certificate=CERTIFICATE,
    )


def _node(number: int, states: str) -> Box:
    words = {".": "free", "#": "busy", "x": "failed", "r": "reserved"}
    name = f"node{number}"
    spots = tuple(
        Spot(name=f"{name}/gpu{i}", state=words[sign], speed_fraction=0.5 if i == 3 else 1.0)
        for i, sign in enumerate(states)
    )
    return Box(name=name, spots=spots)


FABRIC = FloorPlan(
    title="a small pool",
    leaves=(Box(name="leaf0", boxes=(_node(0, "...."), _node(1, "#xr."))),),
    lines=("node1/gpu0 – leaf0 down",),
)
ON_FABRIC = placement(("node0/gpu0", "node0/gpu1"), ("node0/gpu2", "node0/gpu3"))

TORUS = FloorPlan(
    title="a small torus",
    pool=(2, 2, 2),
    cube=4,
    spots=tuple(
        Spot(name=f"{x},{y},{z}", state="busy" if (x, y, z) == (1, 1, 1) else "free")
        for x in range(2)
        for y in range(2)
        for z in range(2)
    ),
)
ON_TORUS = placement(("0,0,0", "0,1,0"), ("1,0,0", "1,0,1"))

_FAILED = replace(ASKED, state=State(failed=("node0/gpu1",)), targets=Targets())
_INHERITED, _CHANGED = inherited_and_changed(ASKED, _FAILED)

REPAIR = Repair(
    request=RepairRequest(
        before=ON_FABRIC,
        wanted=_FAILED,
        loss_fraction=0.1,
        most_points=12,
        inherited=_INHERITED,
        changed=_CHANGED,
    ),
    placement=replace(ON_FABRIC, request=_FAILED),
    before=120.0,
    best=110.0,
    dimension="token/s",
    changes=(
        Change(
            replica="palm-540b/0", before="palm-540b/0", fate="kept", n_moved=0, moved_bytes=0.0
        ),
        Change(
            replica="palm-540b/1", before="palm-540b/2", fate="patched", n_moved=1, moved_bytes=4e9
        ),
    ),
    dropped=("palm-540b/1",),
    moves=(
        Move(replica="palm-540b/1", rank=1, device="node0/gpu3", source="node0/gpu1", n_bytes=4e9),
    ),
    frontier=(
        RepairPoint(moved_bytes=4e9, objective=100.0, loss_fraction=1 / 11, is_chosen=True),
        RepairPoint(moved_bytes=9e9, objective=110.0, loss_fraction=0.0),
    ),
    is_whole=True,
    moved_proofs=(
        Proof(prover="highs 1.13.1", outcome="optimal", value=4e9, bound=4e9, wall_s=0.01),
        Proof(prover="enumeration of 9", outcome="optimal", value=4e9, bound=4e9, wall_s=0.001),
    ),
    moved_vouched_by=("highs 1.13.1", "enumeration of 9"),
    load_s=0.08,
)
