"""The ways to run one replica of one model on one kind of devices, each at its best.

A way is a mesh (t devices in each of m places, p stages), where its parts may lie, and what
its devices must at least be able to do:

    span    node   all in one node
            leaf   parts of t devices in any nodes of one leaf
            stage  those of each stage in any nodes of one leaf, stages anywhere
            pool   parts anywhere
    need    least speed and bandwidths of its devices: a group runs at its slowest member

Within a way devices and rent are fixed, and targets hold for each replica by itself. So the
best layout of the way, by the layout program over its contexts, is all that a placement can
want of it, whatever else is placed: `optima` computes it for all contexts at once, exactly.

The estimates are those of `planning.plan`, on a cluster that is as wide as the need says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.deadlines import is_over
from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.candidates import CandidateTable, machine_of
from planner.estimates.networks import network_table
from planner.estimates.requested import table_of
from planner.estimates.steps import Machine
from planner.placing.clusters import LEAF, NODE, POOL, SPANS, STAGE, Ground, cluster_for
from planner.programs.contexts import BestOfContexts, best_of_contexts
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.programs.posed import PosedProgram
from planner.specs.records import NodesFabric
from planner.specs.request import Request
from planner.topology.inventory import Ability, Inventory, Kind
from planner.topology.meshes import MeshTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """The layouts of one need, as `planning.plan` would see them.

    Args:
        posed: the best of each context, see `best_of_contexts`.
        n_candidates: what they were chosen from.
    """

    request: Request
    table: CandidateTable
    posed: PosedProgram
    n_candidates: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Way:
    """One way to run a replica, at its best.

    Args:
        model: number of the model among those asked for.
        kind: of the devices.
        span: one of `SPANS`.
        need: what each device must at least be able to do.
        n_inside: devices of a group that share a node, t.
        n_across: nodes that a group spans, m.
        n_stages: stages, p.
        piece: devices that lie in one node together; the replica has `n_pieces` of them.
        output_tokens_per_s: of the replica.
        tpot_s: of a decode pass.
        evaluated, assignment: the layout, in its own program.
    """

    model: int
    kind: Kind
    span: str
    need: Ability
    n_inside: int
    n_across: int
    n_stages: int
    piece: int
    n_pieces: int
    output_tokens_per_s: float
    tpot_s: float
    usd_per_hour: float
    evaluated: Evaluated
    assignment: Assignment

    @property
    def n_devices(self) -> int:
        return self.piece * self.n_pieces


Shape = tuple[int, int, int]
"""Devices of a group in a node, nodes of a group, stages."""

Sort = tuple[int, Kind, str, Ability]
"""Model, kind, span and need of ways that are evaluated together."""


def ways_of(
    request: Request, model: int, kind: Kind, ground: Ground, *, several: bool = False
) -> Iterator[Way]:
    """Every way to run a replica of one model on one kind, that fits what is free, in time.

    Ways over several leaves are no faster than the same within one leaf. Where several replicas
    may take the place of one, shapes that ways inside nodes beat even so are left out, since
    those lie anywhere too.

    Args:
        request: the model and its targets; its cluster is not looked at.
        model: number of the model.
        several: whether the objective would take k replicas for one that serves no more.
    """
    found: list[Way] = []
    for span, need in needs(ground.inventory, kind):
        if is_over():
            return
        beaten = _beaten(found, need, ground) if several and span in (STAGE, POOL) else set()
        new = list(_of_need(request, (model, kind, span, need), ground, beaten))
        found += new
        yield from new


def _of_need(request: Request, sort: Sort, ground: Ground, beaten: set[Shape]) -> Iterator[Way]:
    _, kind, span, need = sort
    sizes = piece_sizes(ground.inventory, kind)
    for per_node in sizes[-1:] if span == NODE else sizes:
        if is_over():
            return
        n_nodes = 1
        if span != NODE:
            n_places = _n_places(ground, kind, (span, need), per_node)
            n_nodes = min(n_places, ground.most_devices // per_node)
            if n_nodes < 2:
                continue
        cluster = cluster_for(ground, kind, (span, need), (n_nodes, per_node))
        yield from _ways(replace(request, cluster=cluster), sort, ground, beaten)


def _beaten(found: list[Way], need: Ability, ground: Ground) -> set[Shape]:
    """Shapes that copies of ways inside nodes outdo, at their speed within one leaf."""
    inside = [way for way in found if way.span == NODE and need.meets(way.need)]
    most: dict[Shape, float] = {}
    for way in found:
        if way.span == LEAF:
            shape = (way.n_inside, way.n_across, way.n_stages)
            most[shape] = max(most.get(shape, 0.0), way.output_tokens_per_s)
    return {
        (t, m, p)
        for (t, m, p), rate in most.items()
        if any(t // way.piece * m * p * way.output_tokens_per_s >= rate for way in inside)
    }


def piece_sizes(inventory: Inventory, kind: Kind) -> list[int]:
    """Devices that may lie in one node together: powers of two, and whole nodes."""
    whole = max(node.n_devices for node in inventory.nodes if node.kind == kind)
    return sorted({*(1 << k for k in range(whole.bit_length())), whole})


def needs(inventory: Inventory, kind: Kind) -> Iterator[tuple[str, Ability]]:
    """What replicas of each span may ask of their devices, each set of devices once.

    A need is the tightest that its devices meet, so no two needs are met by the same ones.
    """
    found = {ability for node in inventory.nodes if node.kind == kind for _, ability in node.free}
    several = len({node.leaf for node in inventory.nodes if node.kind == kind and node.free}) > 1
    for span in SPANS if several else (NODE, LEAF):
        seen: set[frozenset[Ability]] = set()
        cut = {ability: _asked_by(span, ability) for ability in found}
        axes = [sorted({getattr(one, axis) for one in cut.values()}) for axis in _AXES]
        for values in product(*axes):
            least = Ability(**dict(zip(_AXES, values, strict=True)))
            meeting = frozenset(ability for ability in found if ability.meets(least))
            if not meeting or meeting in seen or not _reaches(span, least):
                continue
            seen.add(meeting)
            tight = {axis: min(getattr(cut[one], axis) for one in meeting) for axis in _AXES}
            yield span, Ability(**tight)


_AXES = ("speed_fraction", "scale_up_bytes_per_s", "nic_bytes_per_s", "spine_bytes_per_s")


def _asked_by(span: str, ability: Ability) -> Ability:
    """An ability without what a span does not use."""
    return replace(
        ability,
        nic_bytes_per_s=ability.nic_bytes_per_s if span in (LEAF, STAGE) else 0.0,
        spine_bytes_per_s=ability.spine_bytes_per_s if span in (STAGE, POOL) else 0.0,
    )


def _reaches(span: str, least: Ability) -> bool:
    """Whether devices of an ability can talk over a span at all."""
    nic, spine = least.nic_bytes_per_s, least.spine_bytes_per_s
    return {NODE: 1.0, LEAF: nic, STAGE: min(nic, spine), POOL: spine}[span] > 0


def _n_places(ground: Ground, kind: Kind, need: tuple[str, Ability], per_node: int) -> int:
    """Pieces of a size that a replica of a span may have at most."""
    span, least = need
    of_leaf: Counter[int] = Counter()
    for node in ground.inventory.nodes:
        if node.kind == kind:
            of_leaf[node.leaf] += sum(one.meets(least) for _, one in node.free) // per_node
    whole = span in (STAGE, POOL)
    return sum(of_leaf.values()) if whole else max(of_leaf.values(), default=0)


def _ways(request: Request, sort: Sort, ground: Ground, beaten: set[Shape]) -> Iterator[Way]:
    """The ways of one need: of each shape, its best layout."""
    machine = machine_of(request.cluster, request.model)
    shape = _shapes(machine.meshes)
    wanted = [tuple(one) not in beaten for one in shape.tolist()]
    rows = np.flatnonzero(_offered(shape, sort, ground) & np.array(wanted, dtype=np.bool_))
    if not len(rows):
        return
    shape, meshes = shape[rows], _handing(machine.meshes.take(rows), request, sort, ground)
    network = network_table(meshes, request.cluster.fabric)
    table = table_of(request, Machine(device=machine.device, meshes=meshes, network=network))
    if not len(table.contexts):
        return
    evaluated, best = evaluate(request, table)
    of_context = shape[table.contexts.mesh[best.posed.number]]
    for key in np.unique(of_context, axis=0):
        here = np.flatnonzero((of_context == key).all(axis=1))
        k = int(here[np.argmin(best.value[here])])
        t, m, p = (int(n) for n in key)
        yield _way(evaluated, best.assignment(k), sort, (t, m, p))


def evaluate(request: Request, table: CandidateTable) -> tuple[Evaluated, BestOfContexts]:
    """The best of each context of a table."""
    best = best_of_contexts(Posing(table, request, objective=request.objective))
    evaluated = Evaluated(
        request=request, table=table, posed=best.posed, n_candidates=best.n_candidates
    )
    return evaluated, best


def _way(evaluated: Evaluated, best: Assignment, sort: Sort, shape: tuple[int, int, int]) -> Way:
    (model, kind, span, need), (t, m, p) = sort, shape
    quantities, columns = evaluated.posed.quantities, list(best.columns)
    token_ms = float(quantities["throughput"][1][columns].sum())
    together = span == NODE
    return Way(
        model=model,
        kind=kind,
        span=span,
        need=need,
        n_inside=t,
        n_across=m,
        n_stages=p,
        piece=t * p if together else t,
        n_pieces=1 if together else m * p,
        output_tokens_per_s=1e3 / token_ms,
        tpot_s=float(quantities["latency"][1][columns].sum()) / 1e3,
        usd_per_hour=t * m * p * evaluated.request.cluster.usd_per_hour,
        evaluated=evaluated,
        assignment=best,
    )


def _shapes(meshes: MeshTable) -> IntArray:
    """Devices in a node, nodes of a group and stages of each mesh, (M, 3)."""
    is_inside = meshes.axis_tier == 0
    inside = np.where(is_inside, meshes.axis_size, 1).prod(axis=1)
    across = np.where(is_inside, 1, meshes.axis_size).prod(axis=1)
    return np.stack([inside, across, meshes.n_stages], axis=1)


def _offered(shape: IntArray, sort: Sort, ground: Ground) -> BoolArray:
    """Meshes that are ways of a span, (M,): pieces are powers of two or whole nodes.

    A pipeline inside a node is one piece; other pipelines have a piece for each stage, and are
    costed as if each lay in a node of its own: where two share one, nothing gets slower.
    """
    (_, kind, span, _), (t, m, p) = sort, shape.T
    n_devices = t * m * p
    fits = n_devices <= ground.most_devices
    if span == NODE:
        return np.asarray(fits & (m == 1) & np.isin(n_devices, piece_sizes(ground.inventory, kind)))
    apart = (m > 1) & (p > 1) if span == STAGE else n_devices > t
    return np.asarray(fits & apart & (t == t.max()))


def _handing(meshes: MeshTable, request: Request, sort: Sort, ground: Ground) -> MeshTable:
    """The meshes, with what stages hand over led through the spine where the span says so."""
    _, kind, span, need = sort
    if span != STAGE:
        return meshes
    assert isinstance(request.cluster.fabric, NodesFabric)
    attained = need.spine_bytes_per_s * request.cluster.fabric.scale_out_fraction
    return replace(
        meshes,
        stage_bytes_per_s=np.full(len(meshes), attained),
        stage_hop_s=np.full(len(meshes), ground.inventory.spine_s[kind]),
    )
