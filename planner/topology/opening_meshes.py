"""The meshes that openings of a torus are: which of them layouts cannot tell apart.

Openings of the same dimensions, rings and link speeds are one mesh, wherever they lie and
however they are turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.specs.records import TorusFabric
from planner.topology.meshes import MeshTable
from planner.topology.openings import IntArray, Openings

MOST_RANKS = 1 << 31
"""Ranks whose product with those of the next key is surely a number of 64 bits."""


def opening_meshes(fabric: TorusFabric, openings: Openings) -> tuple[MeshTable, IntArray]:
    """The distinct meshes of openings, by devices, then dimensions; and which each is, int[C]."""
    order = openings.axis_order()
    size = np.take_along_axis(openings.orientation, order, axis=1)
    closes = np.take_along_axis(openings.closes, order, axis=1)
    fraction = np.take_along_axis(openings.link_fraction, order, axis=1)
    keys = [openings.n_devices, *size.T, *(~closes).T, *-fraction.T]
    first, mesh = distinct(keys)
    sizes = size[first].astype(np.int64)
    wraps, shares = closes[first], fraction[first]
    links = fabric.link_bytes_per_s * shares
    table = MeshTable(
        label=tuple(map(_label, sizes.tolist(), wraps.tolist(), shares.tolist())),
        axis_size=sizes,
        axis_wraps=wraps,
        axis_is_switch=np.zeros(sizes.shape, np.bool_),
        axis_bytes_per_s=links,
        axis_hop_s=np.full(sizes.shape, fabric.hop_s),
        n_stages=np.ones(len(first), np.int64),
        stage_bytes_per_s=links.min(axis=1, initial=np.inf),
        stage_hop_s=np.full(len(first), fabric.hop_s),
        n_devices=sizes.prod(axis=1),
        n_positions=np.bincount(mesh, minlength=len(first)),
    )
    return table, mesh


def distinct(keys: Sequence[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """The first of each different row of keys, in ascending order, and which of them each row is.

    One key after the other, by rank: to sort whole rows takes ten times as long.

    Args:
        keys: the columns of the rows, (C,) each; the first decides first.
    """
    rank, n_ranks = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        known, code = np.unique(key, return_inverse=True)
        rank, n_ranks = rank * len(known) + code, n_ranks * len(known)
        if n_ranks >= MOST_RANKS:
            rank = np.unique(rank, return_inverse=True)[1]
            n_ranks = int(rank.max(initial=0)) + 1
    _, first, same = np.unique(rank, return_index=True, return_inverse=True)
    return first, same


def _label(size: list[int], wraps: list[bool], shares: list[float]) -> str:
    """`4×4×8`; `4×4×8 open`, with lines for rings; `4×8×16 closed along 16`; slow links too.

    >>> _label([4, 4, 8], [True] * 3, [1.0] * 3), _label([2, 4, 4], [False] * 3, [1.0] * 3)
    ('4×4×8', '2×4×4 open')
    >>> _label([4, 8, 16], [False, False, True], [1.0, 0.5, 1.0])
    '4×8×16 closed along 16, links along 8 at 50 %'
    """
    label = "×".join(map(str, size))
    rings = [(d, closed) for d, closed in zip(size, wraps, strict=True) if d > 2]
    closed_dims = [str(d) for d, closed in rings if closed]
    if rings and not closed_dims:
        label += " open"
    elif len(closed_dims) < len(rings):
        label += f" closed along {', '.join(closed_dims)}"
    slow = [
        f"{d} at {100 * share:.3g} %" for d, share in zip(size, shares, strict=True) if share < 1.0
    ]
    return label + (f", links along {', '.join(slow)}" if slow else "")
