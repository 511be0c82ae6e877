"""Every placement of machines whose links do not bind, as one mixed-integer program of arcs.

Rows of stages hold equal layers in parallel; a placement may be more: one machine beside two that
share its layers. Here machines of a class with the same layers are an arc from their first layer
to the layer after their last, and tokens flow along arcs. HiGHS closes it for small pools only,
and only because no arc is given more room than the bound that is known.
"""

from __future__ import annotations

import math

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.machines import Classes, Held, Placement

MOST_ARCS = 1_500
MOST_NODES = 20_000
"""Of HiGHS's tree: it ends by its work and not by a clock, so that the answer repeats."""


def n_arcs(pool: Classes) -> int:
    """Arcs of a pool: classes by layers held by first layers."""
    held = np.arange(1, pool.rates.shape[1] + 1)
    return int(((pool.rates > 0) * np.maximum(pool.n_layers - held + 1, 0)).sum())


def _arcs(pool: Classes) -> tuple[IntArray, IntArray, IntArray]:
    """Class, first layer and number of layers of each arc."""
    held = [
        (c, first, k)
        for c, rates in enumerate(pool.rates)
        for k in range(1, len(rates) + 1)
        if rates[k - 1] > 0
        for first in range(pool.n_layers - k + 1)
    ]
    columns = np.array(held, dtype=np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def best_arcs(
    pool: Classes, bound: float, *, gap: float, time_limit_s: float, seed: int
) -> tuple[Placement | None, float]:
    """The placement of the most flow, and a bound on all.

    max Σ f over arcs that begin at the first layer, where f ≤ min(rate, bound) n of each arc, as
    much leaves a layer boundary as comes to it, and no class has more machines than there are.

    Args:
        bound: known already; nothing is lost above it [tokens/s].

    Returns:
        The placement, None if HiGHS found none; and a bound [tokens/s].

    Raises:
        SolverError: HiGHS failed.
    """
    kind, first, k = _arcs(pool)
    model = _model(pool, bound, (kind, first, k))
    for name, value in (
        ("mip_rel_gap", gap),
        ("random_seed", seed),
        ("mip_max_nodes", MOST_NODES),
        ("time_limit", max(0.0, min(time_limit_s, 1e6))),
    ):
        if model.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"highs does not take {value!r} for its option `{name}`")
    highspy.Highs.resetGlobalScheduler(True)
    try:
        if model.run() == highspy.HighsStatus.kError:
            raise SolverError("highs failed on the program of arcs")
    finally:
        highspy.Highs.resetGlobalScheduler(True)
    info = model.getInfo()
    most = -float(info.mip_dual_bound) * bound  # the negative is minimised
    proven = min(bound, most * (1.0 + 1e-9)) if math.isfinite(most) else bound
    values = model.getSolution().col_value
    if info.primal_solution_status != 2 or not values:  # kSolutionStatusFeasible
        return None, proven
    counts = np.rint(np.array(values[: len(kind)])).astype(np.int64)
    return _placement(pool, (kind, first, k), counts), proven


def _model(pool: Classes, bound: float, arcs: tuple[IntArray, IntArray, IntArray]) -> highspy.Highs:
    """Flows in shares of the bound, so that tolerances are shares too."""
    kind, first, k = arcs
    n, n_layers, n_classes = len(kind), pool.n_layers, len(pool.members)
    room = np.minimum(pool.rates[kind, k - 1], bound) / bound
    here = np.arange(n)
    boundary = [(first + k - 1, 1.0), (first - 1, -1.0)]  # rows of inner boundaries 1 to L − 1
    row, column, value = [here, here], [n + here, here], [np.ones(n), -room]
    for at, sign in boundary:
        inner = (at >= 0) & (at < n_layers - 1)
        row.append(n + at[inner])
        column.append(n + here[inner])
        value.append(np.full(int(inner.sum()), sign))
    row.append(n + n_layers - 1 + kind)
    column.append(here)
    value.append(np.ones(n))
    low = np.concatenate([np.full(n, -np.inf), np.zeros(n_layers - 1), np.full(n_classes, -np.inf)])
    high = np.concatenate([np.zeros(n + n_layers - 1), pool.n_machines.astype(float)])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 2 * n, len(high)
    lp.col_cost_ = np.concatenate([np.zeros(n), np.where(first == 0, -1.0, 0.0)])
    lp.col_lower_ = np.zeros(2 * n)
    lp.col_upper_ = np.concatenate([pool.n_machines[kind].astype(float), np.full(n, np.inf)])
    lp.row_lower_, lp.row_upper_ = low, high
    _fill(lp, *(np.concatenate(part) for part in (row, column, value)))
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n + [highspy.HighsVarType.kContinuous] * n
    model = highspy.Highs()
    options = {"output_flag": False, "presolve": "off", "threads": 1, "mip_abs_gap": 0.0}
    tolerances = ("mip_feasibility_tolerance", "primal_feasibility_tolerance")
    for name, option in (options | dict.fromkeys(tolerances, 1e-9)).items():
        if model.setOptionValue(name, option) != highspy.HighsStatus.kOk:
            raise SolverError(f"highs does not take {option!r} for its option `{name}`")
    if model.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("highs does not take the program of arcs")
    return model


def _fill(lp: highspy.HighsLp, row: IntArray, column: IntArray, value: FloatArray) -> None:
    order = np.lexsort((row, column))
    starts = np.searchsorted(column[order], np.arange(lp.num_col_ + 1))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = starts.astype(np.int32)
    lp.a_matrix_.index_ = row[order].astype(np.int32)
    lp.a_matrix_.value_ = value[order]


def _placement(
    pool: Classes, arcs: tuple[IntArray, IntArray, IntArray], counts: IntArray
) -> Placement:
    """Machines, class by class in their order, to the arcs."""
    free = [list(members) for members in pool.members]
    placed = []
    for c, first, k, n in zip(*arcs, counts, strict=True):
        for _ in range(int(n)):
            machine = free[int(c)].pop(0)
            placed.append(Held(machine=machine, first=int(first), n_layers=int(k)))
    return tuple(placed)
