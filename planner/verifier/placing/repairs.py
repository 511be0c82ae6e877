"""A repair counted anew: the new placement, and what moves to get there from the old one.

A rank's shard stays where its device had the same rank of the same sharding. Everything else
moves, from a device that keeps the same shard where there is one.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from planner.results.phase_deployments import LayoutDeployment, TableDeployment
from planner.results.placements import Placement, RunConfig
from planner.results.repairs import Change, Move, Repair, RepairPoint
from planner.specs.ask.placement import inherited_and_changed
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Path, with_differences
from planner.verifier.placing import placements

CLOSE = 1e-6
"""Relative, of bytes and objectives of points, which a program counted in larger units."""

Shard = tuple[object, ...]
"""What says which part of the weights a rank has: model, format, cutting of the mesh, rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A shard that a device has not got, and the devices that keep the same."""

    replica: str
    rank: int
    device: str
    n_bytes: float
    keepers: tuple[str, ...]


def judge_repair(repair: Repair) -> tuple[Repair, list[Finding]]:
    """The repair that is true of its placement, and everything in this one that is not so."""
    request, says = repair.request, repair.placement
    wrong: list[Finding] = []
    if says.request != request.wanted:
        fact = "is not what was wanted of the repair"
        wrong.append(Finding(path=("placement", "request"), says=says.pool, fact=fact))
    stand = placements.stand_of(says.request)
    placed, findings = placements.true_placement(says, stand, is_repaired=True)
    wrong += [replace(one, path=("placement", *one.path)) for one in findings]
    loads, changes, dropped = _moved(request.before, placed)
    moves = _moves(repair.moves, loads, wrong)
    inherited, changed = inherited_and_changed(request.before.request, request.wanted)
    objective, best = placed.certificate.objective, placed.certificate.bound
    name = request.wanted.objective
    truth = Repair(
        request=replace(request, inherited=inherited, changed=changed),
        placement=placed,
        before=request.before.certificate.objective,
        best=best,
        dimension=placements.DIMENSIONS[name],
        changes=changes,
        dropped=dropped,
        moves=moves,
        frontier=tuple(_point(point, best) for point in repair.frontier),
        is_whole=repair.is_whole,
        moved_proofs=repair.moved_proofs,
        moved_vouched_by=repair.moved_vouched_by,
        load_s=_load_s(moves, stand),
    )
    wrong += _wrong_frontier(truth, objective, is_rate=name in placements.RATES)
    return truth, with_differences(wrong, repair, truth)


def judge_repair_whole(repair: Repair) -> tuple[Repair, list[Finding]]:
    """The same, and the placement that stood before, which has its own request."""
    truth, wrong = judge_repair(repair)
    before, findings = placements.judge_placement(repair.request.before)
    inside = [replace(one, path=("request", "before", *one.path)) for one in findings]
    return replace(truth, request=replace(truth.request, before=before)), [*wrong, *inside]


def _sharding(model: str, recipe: RunConfig) -> Shard:
    layout = recipe.deployment
    if isinstance(layout, LayoutDeployment):
        cut = (layout.storage, layout.copied_axes, layout.sliced_axes)
        return (model, layout.weights_format, *cut, layout.mesh.axes, layout.mesh.n_stages)
    if isinstance(layout, TableDeployment):
        return (model, recipe.engine, layout.name, layout.weights_format, layout.n_devices)
    degrees = layout.n_tensor, layout.n_data, layout.n_stages, layout.n_expert_parallel
    return (model, recipe.engine, layout.formats.weights, layout.formats.experts, *degrees)


def _moved(
    before: Placement, placed: Placement
) -> tuple[list[Loaded], tuple[Change, ...], tuple[str, ...]]:
    """Shards that are loaded, what becomes of each replica, and which old ones leave nothing."""
    old, new = _shards(before), _shards(placed)
    keepers: dict[Shard, list[str]] = {}
    for device, (shard, _) in new.items():
        if device in old and old[device][0] == shard:
            keepers.setdefault(shard, []).append(device)
    loads, changes, met = [], [], set[str]()
    for replica in placed.replicas:
        n_bytes = placed.recipes[replica.recipe].weights_bytes
        stays, mine = [], []
        for rank in replica.ranks:
            kept_by = keepers.get(new[rank.device][0], [])
            if rank.device in kept_by:
                stays.append(old[rank.device][1])
                continue
            mine.append(
                Loaded(
                    replica=replica.name,
                    rank=rank.rank,
                    device=rank.device,
                    n_bytes=n_bytes,
                    keepers=tuple(kept_by),
                )
            )
        met |= {*stays}
        loads += mine
        changes.append(
            Change(
                replica=replica.name,
                before=max(dict.fromkeys(stays), key=stays.count, default=""),
                fate="kept" if not mine else "patched" if stays else "new",
                n_moved=len(mine),
                moved_bytes=len(mine) * n_bytes,
            )
        )
    dropped = tuple(replica.name for replica in before.replicas if replica.name not in met)
    return loads, tuple(changes), dropped


def _shards(placement: Placement) -> dict[str, tuple[Shard, str]]:
    """By device the shard of its rank, and the replica that the rank is of."""
    return {
        rank.device: ((*_sharding(it.model, placement.recipes[it.recipe]), rank.rank), it.name)
        for it in placement.replicas
        for rank in it.ranks
    }


def _moves(says: Sequence[Move], loads: Sequence[Loaded], wrong: list[Finding]) -> tuple[Move, ...]:
    """The moves that there are; of several devices that keep a shard any may send it.

    Who says nothing of a move has them send in turn.
    """
    claims = {(move.replica, move.rank): move for move in says}
    moves, met = [], Counter[tuple[str, ...]]()
    for i, load in enumerate(loads):
        claim = claims.get((load.replica, load.rank))
        allowed = load.keepers or ("",)
        in_turn = allowed[met[allowed] % len(allowed)]
        met[allowed] += 1
        source = claim.source if claim else in_turn
        if source not in allowed:
            names = " or ".join(load.keepers) or "none"
            fact = f"keeps no such shard: {names} does"
            wrong.append(Finding(path=("moves", str(i), "source"), says=source, fact=fact))
        moves.append(from_fields(Move, load, source=source if source in allowed else allowed[0]))
    return tuple(moves)


def _load_s(moves: Sequence[Move], stand: placements.Stand) -> float:
    """The longest time of a device that receives from others, or sends to them [s]."""
    busy: dict[tuple[bool, str], float] = {}
    for move in moves:
        for is_sender, name in ((False, move.device), (True, move.source)):
            if move.source:
                rate = stand.loads_bytes_per_s(name)
                seconds = move.n_bytes / rate if rate > 0 else math.inf
                busy[is_sender, name] = busy.get((is_sender, name), 0.0) + seconds
    return max(busy.values(), default=0.0)


def _point(says: RepairPoint, best: float) -> RepairPoint:
    """A point with the loss that follows from its objective."""
    lost = abs(best - says.objective) / abs(best) if best else 0.0
    return replace(says, loss_fraction=lost)


def _wrong_frontier(repair: Repair, objective: float, *, is_rate: bool) -> Iterator[Finding]:
    """Points out of order, and a choice that is not among them or loses more than was allowed."""
    points = repair.frontier
    chosen = [i for i, point in enumerate(points) if point.is_chosen]
    if len(chosen) != 1:
        fact = f"has {len(chosen)} points that are chosen"
        yield Finding(path=("frontier",), says=len(points), fact=fact)
    for i, (point, after) in enumerate(pairwise(points)):
        better = after.objective > point.objective
        if after.moved_bytes <= point.moved_bytes or better != is_rate:
            fact = "moves no more than the one before it, or is no better"
            at = ("frontier", str(i + 1), "objective")
            yield Finding(path=at, says=after.objective, fact=fact)
    for i in chosen:
        yield from _wrong_choice(repair, i, objective)
    if points and points[-1].loss_fraction > CLOSE:
        fact = "is a loss of the best point"
        last = ("frontier", str(len(points) - 1), "loss_fraction")
        yield Finding(path=last, says=points[-1].loss_fraction, fact=fact)


def _wrong_choice(repair: Repair, i: int, objective: float) -> Iterator[Finding]:
    """A point that is chosen, and is not the placement or loses more than was allowed."""
    point, allowed = repair.frontier[i], repair.request.loss_fraction
    path: Path = ("frontier", str(i))
    moved = math.fsum(move.n_bytes for move in repair.moves)
    if not math.isclose(point.moved_bytes, moved, rel_tol=CLOSE, abs_tol=1.0):
        yield Finding(path=(*path, "moved_bytes"), says=point.moved_bytes, found=moved)
    if not math.isclose(point.objective, objective, rel_tol=CLOSE):
        yield Finding(path=(*path, "objective"), says=point.objective, found=objective)
    if point.loss_fraction > allowed * (1 + TOLERANCE) + CLOSE:
        fact = f"is more than the {allowed!r} that were allowed"
        yield Finding(path=(*path, "loss_fraction"), says=point.loss_fraction, fact=fact)
