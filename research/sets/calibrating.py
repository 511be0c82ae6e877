"""What five runs of one's own are worth: public runs, calibrated as `plan calibrate` does.

    python -m research.sets.calibrating          figures of docs/calibration.md, a few minutes

A set is what one source has of one run: model, device, engine and day, in one format of weights.
Five of its rows are drawn as a user's own runs; constants that the product's `fit` finds of them
predict the others. Predictions without them are those of constants that the row's fold was not
seen by. Draws take times to be linear in the constants; `directly` fits and predicts by the
planner's own times, to say what that costs.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.kernels import KernelClock
from planner.specs.records.kernels import ENGINE_CONSTANTS, EngineTables
from planner_workshop.calibration.serving import changed
from planner_workshop.calibration.serving_fit import CONSTANTS, N_FACTORS, STEPS, fit, mean_off
from research.sets.constants import FOLDS, constants, tells
from research.sets.folds import fold_of, rows
from research.sets.predicted import Compared, compared
from research.sets.rows import Served

N_OWN = 5
"""Runs of a user's own."""

FEWEST = 15
"""Rows of a set that is judged."""

WORSE = 1.1
"""Of errors without calibration, beyond which one has made them worse by a tenth [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSet:
    """Rows of a set with what is predicted of them.

    Args:
        measured, predicted: logarithms of TPOT and TTFT, NaN of what tells nothing (N, 2).
        slopes: of what is predicted by constants (N, 2, 6).
    """

    name: tuple[str, ...]
    rows: tuple[Served, ...]
    measured: FloatArray
    predicted: FloatArray
    slopes: FloatArray

    @property
    def is_biased(self) -> bool:
        """Whether rows are off in common by more than they scatter."""
        off = self.predicted - self.measured
        off = off[:, ~np.isnan(off).all(axis=0)]  # nobody says how some requests were sent
        means, scatters = np.abs(np.nanmean(off, axis=0)), np.nanstd(off, axis=0)
        return bool(means.sum() > scatters.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Errors of other rows with constants over those without: both times, and TPOT alone [1]."""

    ratio: float
    of_tpot: float
    is_biased: bool


def predictions_with(added: FloatArray, chosen: Sequence[Served], fold: int) -> list[Compared]:
    """Predictions of rows by constants of a fold, changed by those of a calibration (6,)."""
    known = constants(fold)

    @cache
    def clocks(gpu: str, engine: str) -> KernelClock:
        clock = known.clock(gpu, engine)
        if not added.any():
            return clock
        tables = changed(EngineTables(engine=clock.engine, kernels=clock.table), added)
        is_slower = added[:N_FACTORS].any()  # else passes of the same kernels are remembered
        return replace(
            clock, engine=tables.engine, table=tables.kernels if is_slower else clock.table
        )

    return compared(chosen, clocks=clocks, sending=known.traffic)


def logs_of(found: Sequence[Compared]) -> Mapping[str, FloatArray]:
    """Logarithms of predicted times by names of rows, NaN of times that tell nothing (2,)."""
    return {
        one.row.name: np.log([one.tpot_ms, one.ttft_ms if tells(one, "TTFT") else np.nan])
        for one in found
    }


@cache
def run_sets() -> tuple[RunSet, ...]:
    """All of them; what runs as predicted only."""
    base: dict[str, FloatArray] = {}
    moved: list[dict[str, FloatArray]] = [{} for _ in CONSTANTS]
    by_name: dict[str, Served] = {row.name: row for row in rows()}
    for fold in FOLDS:
        own = [row for row in rows() if fold_of(row) == fold]
        base |= logs_of(predictions_with(np.zeros(len(CONSTANTS)), own, fold))
        for i, step in enumerate(np.diag(STEPS)):
            moved[i] |= logs_of(predictions_with(step, own, fold))
    sets: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in base:
        row = by_name[name]
        sets[row.series.run, row.series.source, row.series.weights].append(name)
    return tuple(
        RunSet(
            name=key,
            rows=tuple(by_name[name] for name in names),
            measured=np.array([_measured(by_name[name], base[name]) for name in names]),
            predicted=np.array([base[name] for name in names]),
            slopes=np.stack(
                [
                    [(one[name] - base[name]) / STEPS[i] for name in names]
                    for i, one in enumerate(moved)
                ],
                axis=-1,
            ),
        )
        for key, names in sorted(sets.items())
        if len(names) >= FEWEST
    )


def _measured(row: Served, like: FloatArray) -> FloatArray:
    return np.where(np.isnan(like), np.nan, np.log([row.tpot_ms, row.ttft_ms]))


def least(own: RunSet) -> FloatArray:
    """What constants are at least: no engine takes less than no time (6,)."""
    series = own.rows[0].series
    engine = constants(fold_of(own.rows[0])).clock(series.gpu, series.engine).engine
    return np.array([-np.inf] * N_FACTORS + [-getattr(engine, it) for it in ENGINE_CONSTANTS])


def drawn(own: RunSet, chance: np.random.Generator) -> Draw:
    """One draw, of times that are linear in the constants."""
    order = chance.permutation(len(own.rows))
    mine, others = order[:N_OWN], order[N_OWN:]
    slopes = own.slopes[mine]
    found = fit(own.measured[mine], lambda it: own.predicted[mine] + slopes @ it, least(own))
    before = (own.predicted - own.measured)[others]
    return _draw(before, before + own.slopes[others] @ found.constants, own)


def directly(own: RunSet, chance: np.random.Generator) -> Draw:
    """One draw, by the planner's own times."""
    order = chance.permutation(len(own.rows))
    mine, others = order[:N_OWN], order[N_OWN:]

    def predict(added: FloatArray, which: FloatArray = mine) -> FloatArray:
        chosen = [own.rows[i] for i in which]
        found = logs_of(predictions_with(added, chosen, fold_of(chosen[0])))
        return np.array([found[one.name] for one in chosen])

    best = fit(own.measured[mine], predict, least(own))
    before = (own.predicted - own.measured)[others]
    return _draw(before, predict(best.constants, others) - own.measured[others], own)


def _draw(before: FloatArray, after: FloatArray, own: RunSet) -> Draw:
    return Draw(
        ratio=mean_off(after) / mean_off(before),
        of_tpot=mean_off(after[:, 0]) / mean_off(before[:, 0]),
        is_biased=own.is_biased,
    )


def draws(n: int, *, seed: int = 0, sets: Sequence[RunSet] | None = None) -> list[Draw]:
    """So many of each set."""
    chance = np.random.default_rng(seed)
    return [drawn(own, chance) for own in sets or run_sets() for _ in range(n)]


def figures(said: Sequence[Draw]) -> dict[str, float]:
    """What draws come to."""
    ratios, tpots = (np.array([getattr(it, name) for it in said]) for name in ("ratio", "of_tpot"))
    biased = np.array([it.is_biased for it in said])
    return {
        "median": float(np.median(ratios)),
        "median of biased": float(np.median(ratios[biased])),
        "worse by a tenth": float(np.mean(ratios > WORSE)),
        "TPOT": float(np.median(tpots)),
        "TPOT of biased": float(np.median(tpots[biased])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.calibrating")
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--direct", type=int, default=20)
    said = parser.parse_args()
    sets = run_sets()
    print(f"{len(sets)} sets, {sum(len(it.rows) for it in sets)} rows, {said.draws} draws of each")
    for name, value in figures(draws(said.draws)).items():
        print(f"{name:<20}{value:.3f}")
    chance, linear = np.random.default_rng(1), np.random.default_rng(1)
    some = [sets[i] for i in np.random.default_rng(2).integers(len(sets), size=said.direct)]
    pairs = [(directly(own, chance).ratio, drawn(own, linear).ratio) for own in some]
    each, alike = np.array(pairs).T
    print(
        f"{said.direct} draws directly: median {np.median(each):.3f}, linear {np.median(alike):.3f}"
    )
    print(f"apart by {np.median(np.abs(each - alike)):.3f} in the median")


if __name__ == "__main__":
    main()
