"""The best hand-over of given copies, by HiGHS: flows that are checked, multipliers that prove.

Only pairs of which both columns have copies are stated. What HiGHS says is believed of nothing:
flows are cut back until their sums are within what there is, and count as what they then come to;
multipliers are raised until they prove a row (`programs.handover.lifted`).

One matrix, over the flows and t, with the rows of `programs.handover`. Either t is maximised, or
it is held, and all that is served is.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.handover import (
    SHARE,
    THROUGHPUT,
    Handover,
    Multipliers,
    served_together,
    served_with_flows,
    share_of,
)
from planner.programs.mixed import MixedProgram
from planner.programs.placement import PlacementProgram
from planner.solvers.mixed.highs import linear
from planner.solvers.solution import Effort

ENOUGH = 1.0 - 2e-9
"""Of a demand: what a row of it may be short of (1e-9), and rounding of the sums besides."""

_KEPT = 1.0 - 1e-12
"""Of a share that is reached, that is held: all of it may not be feasible to HiGHS."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow:
    """The best hand-over of some copies.

    Args:
        rates: of the pairs, (E,).
        value: what they come to, t of `programs.handover`; inf where nothing is asked.
        is_short: whether a demand that has to be met is not; `value` is the share of it.
        multipliers: of a row that these copies reach, and exceed by nothing.
    """

    rates: FloatArray
    value: float
    is_short: bool
    multipliers: Multipliers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stated:
    """The rows over the flows of some pairs and, last, the share.

    Args:
        program: its rows are of models that ask, of columns and of links.
        pairs: numbers of the pairs.
        models, columns, links: which those are.
    """

    program: MixedProgram
    pairs: IntArray
    models: IntArray
    columns: IntArray
    links: IntArray


def best_flow(program: PlacementProgram, network: Handover, copies: FloatArray) -> Flow:
    """The flow of which t is the largest, for copies of each column, (J,).

    Raises:
        SolverError: HiGHS failed.
    """
    rows = _stated(program, network, copies)
    is_sum = network.aim == THROUGHPUT
    held = 0.0
    if len(rows.models):
        rates, multipliers = _solved(program, network, rows, None)
        share = share_of(network, served_with_flows(program, network, copies, rates))
        is_short = network.aim != SHARE and share < ENOUGH
        if is_short or not is_sum:
            return Flow(rates=rates, value=share, is_short=is_short, multipliers=multipliers)
        held = min(1.0, share * _KEPT)
    rates, multipliers = _solved(program, network, rows, held)
    value = float(served_with_flows(program, network, copies, rates).sum()) if is_sum else math.inf
    return Flow(rates=rates, value=value, is_short=False, multipliers=multipliers)


def fullest(
    program: PlacementProgram, network: Handover, copies: FloatArray, flow: Flow
) -> FloatArray:
    """Rates of the pairs, (E,), that serve the most, and what a flow serves of what is asked.

    Raises:
        SolverError: HiGHS failed.
    """
    if network.aim == THROUGHPUT or math.isinf(flow.value):
        return flow.rates
    held = flow.value * _KEPT if network.aim == SHARE else min(1.0, flow.value * _KEPT)
    rows = _stated(program, network, copies)
    rates, _ = _solved(program, network, rows, held)
    is_kept = share_of(network, served_with_flows(program, network, copies, rates)) >= held * _KEPT
    return rates if is_kept else flow.rates


def _stated(program: PlacementProgram, network: Handover, copies: FloatArray) -> _Stated:
    most = program.rate * copies
    pairs = np.flatnonzero((most[network.prefill] > 0) & (most[network.decode] > 0))
    sides = np.concatenate([network.prefill[pairs], network.decode[pairs]])
    columns, row_of_side = np.unique(sides, return_inverse=True)
    models = np.flatnonzero(network.demand > 0)
    links = np.flatnonzero(np.isfinite(network.capacity))
    n_models, n_columns, n_pairs = len(models), len(columns), len(pairs)
    row_of_model = _numbered(models, len(program.models))[
        program.column_model[network.prefill[pairs]]
    ]
    row_of_link = _numbered(links, len(network.links))[network.use_link]
    pair_of_use = _numbered(pairs, network.n_pairs)[network.use_pair]
    used = (row_of_link >= 0) & (pair_of_use >= 0)
    asks, here = row_of_model >= 0, np.arange(n_pairs)
    together = served_together(program, network, copies)
    right = np.concatenate([together[models], most[columns], network.capacity[links]])
    # no bound of a column may hold in place of a row, whose multiplier would not tell
    reach = 2.0 * float(together.sum() + most.sum())
    largest = reach / float(network.demand[models].min(initial=1.0)) + 1.0
    program_of_flows = MixedProgram(
        name="hand-over",
        row=np.concatenate(
            [
                row_of_model[asks],
                np.arange(n_models),
                n_models + row_of_side,
                n_models + n_columns + row_of_link[used],
            ]
        ),
        column=np.concatenate(
            [here[asks], np.full(n_models, n_pairs), here, here, pair_of_use[used]]
        ),
        value=np.concatenate(
            [
                -np.ones(np.count_nonzero(asks)),
                network.demand[models],
                np.ones(2 * n_pairs),
                network.gbytes[network.use_pair[used]],
            ]
        ),
        low=np.full(len(right), -math.inf),
        high=right,
        cost=np.zeros(n_pairs + 1),
        lower=np.zeros(n_pairs + 1),
        upper=np.append(np.full(n_pairs, reach), largest),
        is_whole=np.zeros(n_pairs + 1, np.bool_),
        hints={"highs": {"time_limit": math.inf}},  # what is in hand is judged
    )
    return _Stated(
        program=program_of_flows, pairs=pairs, models=models, columns=columns, links=links
    )


def _numbered(some: IntArray, n_all: int) -> IntArray:
    """The place of each among some; -1 of others."""
    number = np.full(n_all, -1)
    number[some] = np.arange(len(some))
    return number


def _solved(
    program: PlacementProgram, network: Handover, rows: _Stated, held: float | None
) -> tuple[FloatArray, Multipliers]:
    """Rates of all pairs that break nothing, and multipliers.

    Args:
        held: the share; None where it is maximised.
    """
    posed, n_pairs = rows.program, len(rows.pairs)
    of_flow, of_share = (0.0, -1.0) if held is None else (-1.0, 0.0)
    posed = replace(posed, cost=np.append(np.full(n_pairs, of_flow), of_share))
    if held is not None:
        at = np.append(np.zeros(n_pairs), held)
        posed = replace(posed, lower=at, upper=np.append(posed.upper[:-1], held))
    vertex = linear(posed, Effort())
    if not vertex.is_optimal:
        raise SolverError(f"highs has no best hand-over: {vertex.status}")
    stated, duals = np.maximum(vertex.values[:n_pairs], 0.0), np.maximum(-vertex.multipliers, 0.0)
    rates = np.zeros(network.n_pairs)
    rates[rows.pairs] = stated * _within(rows, stated)
    model, column = np.zeros(len(program.models)), np.zeros(program.n_columns)
    link = np.zeros(len(network.links))
    ends = np.cumsum([len(rows.models), len(rows.columns)])
    model[rows.models], column[rows.columns], link[rows.links] = np.split(duals, ends)
    of_sum = held is not None
    return rates, Multipliers(model=model + of_sum, column=column, link=link, of_sum=of_sum)


def _within(rows: _Stated, stated: FloatArray) -> FloatArray:
    """By how much each flow is cut back, so that no sum of a column or a link is too large."""
    posed, right = rows.program, rows.program.high
    is_flow = (posed.column < len(stated)) & (posed.row >= len(rows.models))
    row, pair = posed.row[is_flow], posed.column[is_flow]
    sums = np.bincount(row, posed.value[is_flow] * stated[pair], minlength=len(right))
    fits = np.where(sums > right, right / np.where(sums > 0, sums, 1.0), 1.0)
    kept = np.ones(len(stated))
    np.minimum.at(kept, pair, fits[row])
    return kept
