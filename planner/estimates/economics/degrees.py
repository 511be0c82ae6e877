"""Which integers may be deployed: the rules of division.

    N   devices                P T, up to the pool
    T   devices of a stage     a divisor of a node's devices, or whole nodes
    P   stages                 any number that leaves none without a layer; each counts as long
                               as the fullest, of ⌈L/P⌉ layers
    e   ways to spread experts 1, a divisor of T that divides the experts, or all T devices;
                               each device counts as the fullest, of ⌈E/e⌉ experts
    T/e ranks of an expert     any; each counts as the fullest, of ⌈f e/T⌉ of f columns
    t   ranks of attention     divide T and the query heads; the other devices wait
    2D  a grid of ranks        rows × columns, as square as divisors of both dimensions allow,
                               on any grid of nodes that cuts it into equal blocks
    B   batch                  P micro-batches, each counts as the fullest, of ⌈B/P⌉ requests;
                               no more stages than requests

Where a KV head has more devices than one, and where requests do not divide over devices, the
reference model cuts caches by positions and counts no exchange for it; so it is here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import ceil

import numpy as np

from planner.equations.arrays import FloatArray, IntArray, divisors
from planner.equations.economics.collectives import ALL_REDUCE, collective_s
from planner.equations.economics.work import Degrees
from planner.specs.records.economics import DecodePass, EconomicsModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Ranks of a tensor-parallel product in two dimensions, and the nodes that they are on.

    A node holds a block of rows/node_rows × columns/node_columns ranks, so that the ranks
    of a row span `node_columns` nodes and those of a column `node_rows`.
    """

    rows: int
    columns: int
    node_rows: int
    node_columns: int


def tensor_degrees(most: int, n_devices_per_node: int) -> tuple[int, ...]:
    """T: divisors of a node, then whole nodes, up to `most` devices."""
    within = [t for t in divisors(n_devices_per_node) if t <= most]
    beyond = range(2 * n_devices_per_node, most + 1, n_devices_per_node)
    return (*within, *beyond)


def stage_counts(n_layers: int, most: int) -> tuple[int, ...]:
    """P ≤ `most`: of pipelines whose fullest stage has equally many layers, the shortest."""
    counts = {ceil(n_layers / n_in_fullest) for n_in_fullest in range(1, n_layers + 1)}
    return tuple(sorted(count for count in counts if count <= most))


def expert_degrees(model: EconomicsModel, n_tensor: int) -> tuple[int, ...]:
    """e for a stage of T devices; never more than there are experts."""
    n_experts = model.n_experts
    spread = [e for e in divisors(n_tensor) if e <= n_experts]
    return tuple(e for e in spread if n_experts % e == 0 or e == n_tensor)


def attention_degrees(model: EconomicsModel, n_tensor: int) -> tuple[int, ...]:
    """t for a stage of T devices."""
    return tuple(t for t in divisors(n_tensor) if model.n_heads % t == 0)


def ffn_padding(model: EconomicsModel, n_tensor: IntArray, n_expert: IntArray) -> FloatArray:
    """What the fullest device has of the FFN, over an even share: at least 1 [1]."""
    n_ranks = n_tensor // n_expert
    columns = np.ceil(model.d_ff / n_ranks) * n_ranks / model.d_ff
    slots = np.ceil(model.n_experts / n_expert) * n_expert / model.n_experts
    return np.asarray(columns * slots)


@cache
def grids(
    n_ranks: int, n_devices_per_node: int, *, d_rows: float, d_columns: float
) -> tuple[Grid, ...]:
    """The squarest grids that divide both dimensions of a weight, however nodes lie on them.

    Args:
        n_ranks: rows × columns.
        d_rows: the dimension that rows cut, of the residual stream.
        d_columns: the dimension that columns cut, of heads or of the FFN.
    """
    shapes = [
        (rows, n_ranks // rows)
        for rows in divisors(n_ranks)
        if d_rows % rows == 0 and d_columns % (n_ranks // rows) == 0
    ]
    longest = min((max(shape) for shape in shapes), default=0)
    n_nodes = ceil(n_ranks / n_devices_per_node)
    return tuple(
        Grid(rows=rows, columns=columns, node_rows=down, node_columns=n_nodes // down)
        for rows, columns in shapes
        if max(rows, columns) == longest
        for down in divisors(n_nodes)
        if rows % down == 0 and columns % (n_nodes // down) == 0
    )


Widths = tuple[float, float]
"""Numbers a token that the two products around a part of a layer put out [1]."""


def attention_grid_s(decode: DecodePass, degrees: Degrees, ranks: IntArray) -> FloatArray:
    """All-reduces around attention on the best grid of t ranks each (R, b); inf without [s].

    Columns cut the heads.
    """
    model, per_node = decode.model, decode.device.n_devices_per_node
    sizes = {"d_rows": model.d_model, "d_columns": model.n_heads}
    of_rows = [grids(int(t), per_node, **sizes) for t in ranks]
    return _best(decode, degrees.n_tokens, of_rows, ranks, (model.d_qkv, model.d_model))


def ffn_grid_s(decode: DecodePass, degrees: Degrees, experts: IntArray) -> FloatArray:
    """All-reduces around experts, rows by (T, e) as `experts` (2, R); inf without a grid [s].

    An expert is on T/e ranks, and columns cut its width.
    """
    model, per_node = decode.model, decode.device.n_devices_per_node
    sizes = [int(t // e) for t, e in experts.T]
    of_rows = [grids(n, per_node, d_rows=model.d_model, d_columns=n) for n in sizes]
    inner = model.n_active_experts * model.n_ffn_in * model.d_ff
    widths = inner, model.n_active_experts * model.n_ffn_out * model.d_model
    return _best(decode, degrees.n_tokens, of_rows, experts[0], widths)


def _best(
    decode: DecodePass,
    n_tokens: FloatArray,
    grids: Sequence[tuple[Grid, ...]],
    n_group: IntArray,
    widths: Widths,
) -> FloatArray:
    """The fastest grid of every row (R, b); inf for rows without one [s]."""
    best = np.full((len(grids), len(n_tokens)), np.inf)
    row = np.repeat(np.arange(len(grids)), [len(some) for some in grids])
    if row.size == 0:
        return best
    sides = np.array([(g.rows, g.columns, g.node_rows, g.node_columns) for g in chain(*grids)])
    times = grid_s(decode, sides.T[:, :, None], n_tokens, n_group[row, None], widths)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    best[row[first]] = np.minimum.reduceat(times, first)
    return best


def grid_s(
    decode: DecodePass, sides: IntArray, n_tokens: FloatArray, n_group: IntArray, widths: Widths
) -> FloatArray:
    """Both all-reduces of every layer on grids of ranks (G, b) [s].

    The product into the inner dimension is reduced over the rows of the grid, the one back over its
    columns. On a square grid of squarely many nodes this is Eqs. 39-44.

    Source: [Erdil2025] §3.3.

    Args:
        sides: rows, columns, and the nodes of each (4, G, 1).
        n_tokens: of a micro-batch (b,).
        n_group: devices that share the tokens' numbers (G, 1): of the stage for experts, of
            attention for its projections.
    """
    rows, columns, node_rows, node_columns = sides
    per_number = n_tokens * (decode.model.activation_bytes / n_group)
    within = widths[0] * rows * per_number, (rows, node_rows)
    across = widths[1] * columns * per_number, (columns, node_columns)
    times = [collective_s(ALL_REDUCE, *message, decode.device) for message in (within, across)]
    return np.asarray(decode.model.n_layers * (times[0] + times[1]))
