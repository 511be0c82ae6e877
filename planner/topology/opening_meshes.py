"""The meshes that openings of a torus are: which of them layouts cannot tell apart.

Openings of the same dimensions, rings and link speeds are one mesh, wherever they lie and
however they are turned.
"""

from __future__ import annotations

import numpy as np

from planner.specs.records import TorusFabric
from planner.topology.meshes import MeshTable
from planner.topology.openings import IntArray, Openings


def opening_meshes(fabric: TorusFabric, openings: Openings) -> tuple[MeshTable, IntArray]:
    """The distinct meshes of openings, by devices, then dimensions; and which each is, int[C]."""
    order = openings.axis_order()
    size = np.take_along_axis(openings.orientation, order, axis=1)
    closes = np.take_along_axis(openings.closes, order, axis=1)
    fraction = np.take_along_axis(openings.link_fraction, order, axis=1)
    keys = np.column_stack([openings.n_devices, size, ~closes, -fraction])
    kinds, mesh = np.unique(keys, axis=0, return_inverse=True)
    sizes = kinds[:, 1:4].astype(np.int64)
    wraps, shares = kinds[:, 4:7] == 0, -kinds[:, 7:10]
    links = fabric.link_bytes_per_s * shares
    table = MeshTable(
        label=tuple(map(_label, sizes.tolist(), wraps.tolist(), shares.tolist())),
        axis_size=sizes,
        axis_wraps=wraps,
        axis_is_switch=np.zeros(sizes.shape, np.bool_),
        axis_bytes_per_s=links,
        axis_hop_s=np.full(sizes.shape, fabric.hop_s),
        n_stages=np.ones(len(kinds), np.int64),
        stage_bytes_per_s=links.min(axis=1, initial=np.inf),
        stage_hop_s=np.full(len(kinds), fabric.hop_s),
        n_devices=sizes.prod(axis=1),
        n_positions=np.bincount(mesh.reshape(-1), minlength=len(kinds)),
    )
    return table, mesh.reshape(-1)


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
