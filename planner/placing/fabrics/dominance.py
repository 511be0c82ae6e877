"""Configurations that are worth a column: those that no other stands for."""

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.placing.fabrics.patterns import LEAF, NODE, POOL, SPANS, STAGE, NodeConfiguration
from planner.placing.handing import may_hand_over
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling
from planner.specs.records.roles import ROLES, TOGETHER
from planner.topology.inventory import Kind

Dominators = dict[tuple[int, Kind], tuple[Sequence[NodeConfiguration], BoolArray]]
"""Configurations of a model and kind, and which of them stay."""

_NOBODY: tuple[Sequence[NodeConfiguration], BoolArray] = ((), np.zeros(0, np.bool_))


def undominated(
    configurations: Sequence[NodeConfiguration],
    *,
    several: BoolArray,
    by_latency: bool,
    loaded: Sequence[float] | None = None,
    known: Dominators | None = None,
) -> list[NodeConfiguration]:
    """Configurations that no other can stand for, in whatever place, without loss.

    Configuration b stands for a of the same model where the pieces of a hold k ≥ 1 copies of b
    that together serve as much; k is 1 where the number of replicas is limited, or latency counts.
    They take no more devices, no other places, and no better ones, are over no more nodes each, and
    cost no more. Of replicas
    that do one phase, b holds the cache in the same format under the same engine, and its caches
    arrive as soon wherever they go.

    Args:
        several: whether a model may have more replicas than asked for, by model.
        by_latency: whether the objective is of single replicas.
        loaded: bytes of the weights of each, where it is better to load few; no more are loaded.
        known: what was said of those of a model and kind last, and is said of the same again.
    """
    alike = _of_models_and_kinds(configurations)
    stays = np.ones(len(configurations), dtype=np.bool_)
    partners = np.zeros((len(configurations), 0), np.bool_)
    if any(one.pairing is not None for one in configurations):
        may = may_hand_over(configurations)
        partners = np.concatenate([may, may.T], axis=1)
    if known is None or partners.shape[1] or loaded is not None:
        known = {}
    for key, numbers in alike.items():  # pairs of different ones stand for nobody
        model, some = key[0], list(map(configurations.__getitem__, numbers))
        before, stay = known.get(key, _NOBODY)
        if list(map(id, before)) == list(map(id, some)):
            stays[numbers] = stay
            continue
        n_bytes = np.zeros(len(some)) if loaded is None else np.array(loaded)[numbers]
        keeps = _includes(partners[numbers])
        stays[numbers] = ~_beaten(
            some, n_bytes, keeps, several=bool(several[model]), by_latency=by_latency
        )
        known[key] = some, stays[numbers]
    return [one for one, kept in zip(configurations, stays.tolist(), strict=True) if kept]


def _of_models_and_kinds(
    configurations: Sequence[NodeConfiguration],
) -> dict[tuple[int, Kind], list[int]]:
    """Numbers of configurations of each model on each kind."""
    alike: dict[tuple[int, Kind], list[int]] = {}
    for number, one in enumerate(configurations):
        alike.setdefault((one.model, one.pattern.kind), []).append(number)
    return alike


def _includes(sets: BoolArray) -> BoolArray:
    """Whether set b has all that set a has, (a, b); of a few distinct sets, many times each."""
    distinct: dict[bytes, int] = {}
    packed = np.packbits(sets, axis=1)
    number = np.array([distinct.setdefault(one.tobytes(), len(distinct)) for one in packed])
    first = np.unique(number, return_index=True)[1]
    few = sets[first].astype(np.float32)
    return np.asarray((few @ (1.0 - few).T == 0)[np.ix_(number, number)])


def _beaten(
    configurations: Sequence[NodeConfiguration],
    loaded: FloatArray,
    keeps: BoolArray,
    *,
    several: bool,
    by_latency: bool,
) -> BoolArray:
    """Which configurations of one model and one kind others stand for, (N,).

    Args:
        loaded: bytes of the weights of each, (N,); no more copies are loaded than serve as much.
        keeps: whether the engine lets b hand over to all, and take from all, that a does, (a, b).
    """
    patterns = [one.pattern for one in configurations]
    rate = np.array([one.output_tokens_per_s for one in configurations])
    tpot = np.array([one.tpot_s for one in configurations])
    span = np.array([SPANS.index(one.span) for one in patterns])
    needs = np.array(
        [
            (n.speed_fraction, n.scale_up_bytes_per_s, n.nic_bytes_per_s, n.spine_bytes_per_s)
            for n in (one.need for one in patterns)
        ]
    )
    # [a, b]: b stands for a
    copies, alike = _copies(configurations)
    copies = copies if several else np.minimum(copies, 1)
    same = (copies >= 1) & _does_as_much(configurations)
    stage = SPANS.index(STAGE)  # of its stages each is in a leaf, as another's of its shape are
    both_staged = (span[:, None] == stage) & (span == stage) & alike
    same &= (
        (span == SPANS.index(NODE))
        | (span == SPANS.index(POOL))
        | both_staged
        | (span[:, None] <= SPANS.index(LEAF))
    )
    same &= (needs[:, None, :] >= needs[None, :, :]).all(axis=2)
    same &= (tpot[:, None] >= tpot) if by_latency else (copies * rate >= rate[:, None])
    same &= _is_no_dearer(configurations, copies)
    same &= keeps
    enough = np.clip(np.ceil(rate[:, None] / rate), 1, np.maximum(copies, 1))
    same &= (1 if by_latency else enough) * loaded <= loaded[:, None] * (1 + RELATIVE_TOLERANCE)
    n_pieces = np.array([len(one.pieces) for one in patterns])
    same &= n_pieces <= n_pieces[:, None]  # over more nodes it is no better
    np.fill_diagonal(same, val=False)
    index = np.arange(len(configurations))
    both = same & same.T  # of equals the first stays
    return np.asarray((same & (~both | (index < index[:, None]))).any(axis=1))


def _is_no_dearer(configurations: Sequence[NodeConfiguration], copies: IntArray) -> BoolArray:
    """Whether copies of b cost no more than a: replicas of a table may have rents of their own."""
    rent = np.array([one.usd_per_hour for one in configurations])
    most = np.array([ceiling(value) for value in rent.tolist()])
    return np.asarray(copies * rent <= most[:, None])


def _does_as_much(configurations: Sequence[NodeConfiguration]) -> BoolArray:
    """Whether b has the role of a, and whom a hands over to, or takes from, b can too, (a, b)."""
    roles = {role: i for i, role in enumerate(ROLES)}
    role = np.array([roles[one.role] for one in configurations])
    whom = [(one.engine, one.kv_format) if one.role != TOGETHER else () for one in configurations]
    numbers = {one: i for i, one in enumerate(dict.fromkeys(whom))}
    number = np.array([numbers[one] for one in whom])
    read_s = np.array([one.ttft_s for one in configurations])
    read_s[role == roles[TOGETHER]] = 0.0  # it hands nothing over
    handed_s = read_s + np.array([one.handover_s for one in configurations])
    alike = (role[:, None] == role) & (number[:, None] == number)
    return np.asarray(alike & (read_s[:, None] >= read_s) & (handed_s[:, None] >= handed_s))


def _copies(configurations: Sequence[NodeConfiguration]) -> tuple[IntArray, BoolArray]:
    """Copies of b that the pieces of a hold at least, and whether their stages are alike, (a, b).

    A copy is counted as if all its pieces were as large as its largest.
    """
    patterns = [one.pattern for one in configurations]
    largest = np.array([max(one.pieces) for one in patterns])
    n_pieces = np.array([len(one.pieces) for one in patterns])
    across = np.array([one.n_across for one in patterns])
    pieces, starts = np.concatenate([one.pieces for one in patterns]), n_pieces.cumsum() - n_pieces
    held = {size: np.add.reduceat(pieces // size, starts) for size in set(largest.tolist())}
    places = np.stack([held[size] for size in largest.tolist()], axis=1)
    alike = (largest[:, None] == largest) & (across[:, None] == across)
    return places // n_pieces, alike
