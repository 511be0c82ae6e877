"""Ways that are worth a column: those that no other stands for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.placing.clusters import LEAF, NODE, POOL, SPANS, STAGE
from planner.placing.columns import Way


def undominated(ways: Sequence[Way], *, several: BoolArray, by_latency: bool) -> list[Way]:
    """Ways that no other can stand for, in whatever place, without loss.

    Way b stands for way a of the same model where the pieces of a hold k ≥ 1 copies of b that
    together serve as much; k is 1 where the number of replicas is limited, or latency counts.
    They take no more devices, no other places, and no better ones.

    Args:
        several: whether a model may have more replicas than asked for, by model.
        by_latency: whether the objective is of single replicas.
    """
    if not ways:
        return []
    model, piece, n_pieces, rate, tpot = _arrays(ways)
    kinds = {kind: i for i, kind in enumerate(dict.fromkeys(way.kind for way in ways))}
    kind = np.array([kinds[way.kind] for way in ways])
    span = np.array([SPANS.index(way.span) for way in ways])
    across = np.array([way.n_across for way in ways])
    alike = (piece[:, None] == piece) & (across[:, None] == across)
    needs = np.array(
        [
            (n.speed_fraction, n.scale_up_bytes_per_s, n.nic_bytes_per_s, n.spine_bytes_per_s)
            for n in (way.need for way in ways)
        ]
    )
    # [a, b]: b stands for a
    copies = (piece[:, None] // piece) * n_pieces[:, None] // n_pieces
    many = several[model][:, None]
    copies = np.where(many, copies, np.minimum(copies, 1))
    same = (model[:, None] == model) & (kind[:, None] == kind) & (copies >= 1)
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
    np.fill_diagonal(same, val=False)
    index = np.arange(len(ways))
    both = same & same.T  # of equals the first stays
    beaten = (same & (~both | (index < index[:, None]))).any(axis=1)
    return [way for way, out in zip(ways, beaten.tolist(), strict=True) if not out]


def _arrays(ways: Sequence[Way]) -> tuple[FloatArray, ...]:
    return (
        np.array([way.model for way in ways]),
        np.array([way.piece for way in ways]),
        np.array([way.n_pieces for way in ways]),
        np.array([way.output_tokens_per_s for way in ways]),
        np.array([way.tpot_s for way in ways]),
    )
