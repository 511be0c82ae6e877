"""What a repair moves, counted device by device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from planner.placing.standing import Sharding, Standing, sharding_of
from planner.results.placements import Placement, Replica
from planner.results.repairs import Change, Move


def changes_of(
    placed: Placement, standing: Sequence[Standing]
) -> tuple[tuple[Change, ...], tuple[Move, ...], tuple[str, ...]]:
    """What moves, counted device by device: a shard moves where its device does not have it."""
    owns = {
        name: (one.sharding, rank, one.name)
        for one in standing
        for rank, name in enumerate(one.devices)
    }
    changes, moves, met = [], [], set[str]()
    keeps: dict[tuple[Sharding, int], list[str]] = {}
    recipes = placed.recipes
    for one in placed.replicas:
        sharding = sharding_of(one.model, recipes[one.recipe])
        for rank in one.ranks:
            if owns.get(rank.device, ())[:2] == (sharding, rank.rank):
                keeps.setdefault((sharding, rank.rank), []).append(rank.device)
    for one in placed.replicas:
        recipe = recipes[one.recipe]
        sharding = sharding_of(one.model, recipe)
        stays = [
            owns[rank.device][2]
            for rank in one.ranks
            if owns.get(rank.device, ())[:2] == (sharding, rank.rank)
        ]
        mine = _moves(one, sharding, recipe.weights_bytes, (owns, keeps))
        fate = "kept" if not mine else "patched" if stays else "new"
        before = max(dict.fromkeys(stays), key=stays.count, default="")
        met |= set(stays)
        moves += mine
        changes.append(
            Change(
                replica=one.name,
                before=before,
                fate=fate,
                n_moved=len(mine),
                moved_bytes=sum(move.n_bytes for move in mine),
            )
        )
    dropped = tuple(one.name for one in standing if one.name not in met)
    return tuple(changes), tuple(moves), dropped


def _moves(
    one: Replica,
    sharding: Sharding,
    n_bytes: float,
    known: tuple[dict[str, tuple[Sharding, int, str]], dict[tuple[Sharding, int], list[str]]],
) -> list[Move]:
    """Shards that a replica loads, from devices that keep them in turn."""
    owns, keeps = known
    moves = []
    for rank in one.ranks:
        if owns.get(rank.device, ())[:2] == (sharding, rank.rank):
            continue
        sources = keeps.get((sharding, rank.rank), [])
        source = sources.pop(0) if sources else ""
        if source:
            sources.append(source)
        moves.append(
            Move(
                replica=one.name,
                rank=rank.rank,
                device=rank.device,
                source=source,
                n_bytes=n_bytes,
            )
        )
    return moves


def load_s(moves: Sequence[Move], width: Callable[[str], float]) -> float:
    """The longest time of a device that receives from, or sends to, other devices [s]."""
    busy: dict[tuple[str, str], float] = {}
    for move in moves:
        if move.source:
            for way, name in (("in", move.device), ("out", move.source)):
                rate = width(name)
                seconds = move.n_bytes / rate if rate > 0 else math.inf
                busy[way, name] = busy.get((way, name), 0.0) + seconds
    return max(busy.values(), default=0.0)
