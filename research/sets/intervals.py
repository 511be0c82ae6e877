"""What intervals need beyond kernels' errors to hold what they say, of predictions out of fold.

    python -m research.sets.intervals            the table, and how often intervals hold
    python -m research.sets.intervals --write    writes planner/specs/model_errors.csv

A time is in its interval where measured over predicted, or predicted over measured, is at most
1 + z · √(k² + m²): k is the kernels' error, m the model's, z of the share that is asked for. m is
that for which shares of 80, 90 and 95 % hold best, by kind of model and quantity. Who asks has a
server that nobody measured, mostly of a version that nobody did: so cells, which are rows of one
source, version, model and device, weigh alike, and no engine has an m of its own, which does not
hold of other sources of it. A kind of fewer than three sources has the m of all kinds. These are of
rows whose client is described. Of the others, whose sources do not say how requests were sent, TPOT
alone is judged, and m is larger by c, `client` of `specs/region`: √(m² + c²) holds of them, kinds
together. Each row's constants are of other folds.

`left out` is how often intervals hold of folds, models on devices, devices, engines, versions and
sources that m was found without, each of at least ten rows counted alike, of the worst of them, how
many hold less than 60 % where 90 are said, and the mean interval score beside that of plain
quantiles of the others' errors. Source of the score: Gneiting and Raftery, Strictly Proper Scoring
Rules, JASA 102 (2007), 359-378, section 6.2; of logarithms, since errors are ratios.

`spreads` is what |log(predicted / measured)| is made of: the standard deviations of the effects of
a source, a version, a device, a model, a degree and a load, and of what is left: each is what the
means of its values vary by within the effect before it, beyond chance (`biases.between`).
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from planner.equations.tails import sigmas
from planner.specs.records.model_errors import ANY, QUANTITIES, ModelError, Quantity
from planner.specs.records.runtimes import ModelKind
from research.records import as_csv
from research.sets.biases import Mean, between, log_ratio, pooled
from research.sets.constants import out_of_fold
from research.sets.folds import fold_of
from research.sets.predicted import Compared
from research.sets.ranking import common, engines
from research.sets.rows import CLIENTS

FILE = Path(__file__).parents[2] / "planner" / "specs" / "model_errors.csv"
SOURCE = "fitted: aiconfigurator-core 0.12.0 and InferenceX, all folds: tests/data/serving"

SHARES = (0.8, 0.9, 0.95)
"""Of all cases, by which intervals are fitted: those that plans and reports state."""

STATED = 0.9

LEAST_SHARE = 0.6
"""Of rows of a value that an interval which says `STATED` shall hold."""

LEAST_SOURCES = 3
"""Of a kind of model, for its errors to say something of sources that nobody has seen."""

LEAST_ROWS = 10
"""Of a value of an axis for a share of its rows to say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """How far off times of rows were, each (N,).

    Args:
        off: the larger of measured over predicted and its inverse, less one.
        kernels: relative deviation that kernels' errors give.
        weights: of the rows, by which they are counted; all alike where left out.
    """

    off: np.ndarray
    kernels: np.ndarray
    weights: np.ndarray | None = None

    def held(self, model: np.ndarray, share: float) -> np.ndarray:
        """Share of the rows that are in an interval that says `share`, for each error of all, (T,).

        A row is in it from some error of the model on, so rows are sorted and not tried each.
        """
        least = np.sqrt(np.maximum((self.off / sigmas(share)) ** 2 - self.kernels**2, 0.0))
        order = np.argsort(least)
        weights = np.ones(len(least)) if self.weights is None else self.weights
        sums = np.concatenate([[0.0], np.cumsum(weights[order])])
        return np.asarray(sums[np.searchsorted(least[order], model, side="right")] / sums[-1])


def group(one: Compared) -> tuple[str, str]:
    return (one.row.series.model, one.row.series.gpu)


def told(found: Sequence[Compared], quantity: Quantity) -> list[Compared]:
    """Rows that say enough for an interval of a quantity."""
    return [one for one in found if quantity == "TPOT" or has_client(one)]


def has_client(one: Compared) -> bool:
    return one.row.series.harness in CLIENTS


def cell(one: Compared) -> Hashable:
    """Rows that are hardly independent: of one source, version, model and device."""
    return (source_of(one), version_of(one), *group(one))


def source_of(one: Compared) -> Hashable:
    series = one.row.series
    return (series.set_name, series.harness, series.source)


def version_of(one: Compared) -> Hashable:
    """Of the engine; the day of the measurement where nobody says which it was."""
    return (one.row.series.engine, one.row.series.version or one.row.series.date)


def missed(some: Sequence[Compared], quantity: Quantity) -> Missed:
    """How far off rows are, cells weighing alike."""
    name = quantity.lower()
    ratios = np.array([getattr(one, f"{name}_ms") / getattr(one.row, f"{name}_ms") for one in some])
    n_rows = Counter(map(cell, some))
    return Missed(
        off=np.maximum(ratios, 1.0 / ratios) - 1.0,
        kernels=np.array([getattr(one, f"{name}_deviation") for one in some]),
        weights=np.array([1.0 / n_rows[cell(one)] for one in some]),
    )


def deviation(found: Missed) -> float:
    """The model's error for which intervals hold nearest to what they say, over all shares."""
    tried = np.geomspace(0.005, 20.0, 400)
    gaps = sum((found.held(tried, share) - share) ** 2 for share in SHARES)
    return float(tried[int(np.argmin(gaps))])


Errors = Callable[[Compared, Quantity], float]
"""The model's error of a row."""


def table(found: Sequence[Compared]) -> list[ModelError]:
    """With what errors of two engines side by side have in common, where there are such pairs."""
    rows = list(_rows(found))
    pairs = engines(found, partial(errors_of(rows), quantity="TPOT"))
    for i, one in enumerate(rows):
        mine = [it for it in pairs if _kind(it[0].row) == one.kind]
        if mine and one.quantity == "TPOT":
            rows[i] = replace(one, common_fraction=round(common(mine), 2))
    return rows


def _rows(found: Sequence[Compared]) -> Iterator[ModelError]:
    known = [one for one in found if has_client(one)]
    kinds: tuple[ModelKind, ...] = ("dense", "mixture")
    for kind in kinds:
        of_kind = [one for one in known if _kind(one) == kind]
        is_enough = len({source_of(one) for one in of_kind}) >= LEAST_SOURCES
        rows = of_kind if is_enough else known
        for quantity in QUANTITIES if rows else ():
            yield ModelError(
                runtime=ANY,
                device=ANY,
                kind=kind,
                quantity=quantity,
                deviation_fraction=round(deviation(missed(rows, quantity)), 3),
                n_rows=len(rows),
                n_groups=len({group(one) for one in rows}),
                source=SOURCE,
            )


def client_error(found: Sequence[Compared], rows: Sequence[ModelError]) -> float:
    """How much further off TPOT is where nobody says how requests were sent, in quadrature."""
    others = [one for one in found if not has_client(one)]
    if not others:
        return 0.0
    errors = errors_of(rows)
    known = np.array([errors(one, "TPOT") for one in others])
    some = missed(others, "TPOT")
    tried, some = np.linspace(0.0, 2.0, 401), replace(some, kernels=np.hypot(some.kernels, known))
    gaps = sum((some.held(tried, share) - share) ** 2 for share in SHARES)
    return float(tried[int(np.argmin(gaps))])


def errors_of(rows: Sequence[ModelError], client: float = 0.0) -> Errors:
    """By a table.

    Args:
        client: what is added in quadrature of rows whose client nobody describes.
    """
    by_kind = {(one.kind, one.quantity): one.deviation_fraction for one in rows[::-1]}

    def error(one: Compared, quantity: Quantity) -> float:
        own = by_kind[_kind(one), quantity]
        return own if has_client(one) else float(np.hypot(own, client))

    return error


def held(some: Sequence[Compared], quantity: Quantity, error: Errors) -> list[float]:
    """Shares of rows, each counted alike, that intervals hold which say `SHARES`."""
    found = missed(some, quantity)
    model = np.array([error(one, quantity) for one in some])
    wide = np.hypot(found.kernels, model)
    return [float(np.mean(found.off <= sigmas(share) * wide)) for share in SHARES]


AXES: dict[str, Callable[[Compared], Hashable]] = {
    "folds of runs": lambda one: fold_of(one.row),
    "models on devices": group,
    "models": lambda one: one.row.series.model,
    "devices": lambda one: one.row.series.gpu,
    "engines": lambda one: one.row.series.engine,
    "versions": version_of,
    "sources": source_of,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Of one value of an axis, by intervals of all others.

    Args:
        shares: of its rows that intervals hold which say `SHARES`.
        score, plain_score: mean score of intervals that say 90 %, of log(measured / predicted):
            by the model's error, and by the plain quantile of the others' errors of a kind.
    """

    shares: list[float]
    score: float
    plain_score: float


def left_out(
    found: Sequence[Compared], quantity: Quantity, axis: Callable[[Compared], Hashable]
) -> dict[Hashable, LeftOut]:
    """How intervals do of each value of an axis, whose model's error is of the others."""
    found, parts = told(found, quantity), {}
    for value in dict.fromkeys(axis(one) for one in found):
        rest = [one for one in found if axis(one) != value]
        others = list(_rows(rest))
        error = errors_of(others, client_error(rest, others))
        own = [one for one in found if axis(one) == value]
        if len(own) >= LEAST_ROWS:
            parts[value] = LeftOut(
                shares=held(own, quantity, error),
                score=_score(own, quantity, error),
                plain_score=_plain_score(own, quantity, rest),
            )
    return parts


def _score(some: Sequence[Compared], quantity: Quantity, error: Errors) -> float:
    found = missed(some, quantity)
    wide = np.hypot(found.kernels, [error(one, quantity) for one in some])
    return interval_score(found.off, np.log1p(sigmas(STATED) * wide))


def _plain_score(some: Sequence[Compared], quantity: Quantity, others: Sequence[Compared]) -> float:
    """By the quantile of all other rows of a kind, or of all kinds, each counted alike."""
    reach = {}
    for kind in dict.fromkeys(map(_kind, some)):
        rows = [one for one in others if _kind(one) == kind] or others
        reach[kind] = np.quantile(np.log1p(missed(rows, quantity).off), STATED)
    return interval_score(missed(some, quantity).off, np.array([reach[_kind(o)] for o in some]))


def interval_score(off: np.ndarray, reach: np.ndarray) -> float:
    """Mean width of intervals that say `STATED`, and what the misses add.

    Args:
        off: of rows, the larger of measured over predicted and its inverse, less one (N,).
        reach: half of each interval, of logarithms (N,).
    """
    beyond = np.maximum(0.0, np.log1p(off) - reach)
    return float(np.mean(2.0 * reach + 2.0 / (1.0 - STATED) * beyond))


EFFECTS: dict[str, Callable[[Compared], Hashable]] = {
    "source": source_of,
    "version": version_of,
    "device": lambda one: one.row.series.gpu,
    "model": lambda one: one.row.series.model,
    "degree": lambda one: (one.row.tensor, one.row.data, one.row.expert),
    "load": lambda one: round(np.log2(one.row.in_flight)),
}
"""Each within those before it; what is left is of lengths, formats and repeats."""


def spreads(found: Sequence[Compared], quantity: Quantity) -> dict[str, float]:
    """Standard deviations of the effects on log(predicted / measured), the last first [1]."""
    logs: dict[tuple[Hashable, ...], list[float]] = defaultdict(list)
    for one in told(found, quantity):
        logs[tuple(of(one) for of in EFFECTS.values())].append(log_ratio(one, quantity))
    freedom = sum(len(some) - 1 for some in logs.values())
    rest = sum(float(np.sum((np.array(some) - np.mean(some)) ** 2)) for some in logs.values())
    variance = rest / max(1, freedom)
    spread = {"what is left": float(np.sqrt(variance))}
    means = {
        key: Mean(mean=float(np.mean(some)), variance=variance / len(some))
        for key, some in logs.items()
    }
    for depth, name in reversed([*enumerate(EFFECTS)]):
        families: dict[tuple[Hashable, ...], list[Mean]] = defaultdict(list)
        for key, mean in means.items():
            families[key[:depth]].append(mean)
        of_level = between([*families.values()])
        spread[name] = float(np.sqrt(of_level))
        means = {key: pooled(some, of_level) for key, some in families.items()}
    return spread


def _kind(one: Compared) -> ModelKind:
    return "dense" if one.row.series.is_dense else "mixture"


def coverage(found: Sequence[Compared], rows: Sequence[ModelError]) -> str:
    """By quantity and set: what intervals hold that say 80, 90 and 95 %."""
    lines = [
        f"{'intervals that say':32s} {'rows':>5s}" + "".join(f"{100 * s:7.0f}" for s in SHARES)
    ]
    error = errors_of(rows, client_error(found, rows))
    for quantity in QUANTITIES:
        known = told(found, quantity)
        for name, some in (
            ("S and X", known),
            ("S", [one for one in known if one.row.series.set_name == "S"]),
            ("X", [one for one in known if one.row.series.set_name == "X"]),
            ("dense", [one for one in known if one.row.series.is_dense]),
            ("mixtures", [one for one in known if not one.row.series.is_dense]),
            ("sent nobody knows how", [one for one in found if one not in known]),
        ):
            if some:
                cells = "".join(f"{100 * one:7.1f}" for one in held(some, quantity, error))
                lines.append(f"{f'{quantity}, {name}':32s} {len(some):5d}{cells}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.intervals")
    parser.add_argument("--write", action="store_true")
    from research.sets import rooflines  # which finds its own as this does

    asked = parser.parse_args()
    found = out_of_fold()
    rows = table(found)
    text = as_csv(ModelError, [*rows, *rooflines.model_errors(rooflines.judged())])
    if asked.write:
        FILE.write_text(text, encoding="utf-8")
    print(text)
    print(coverage(found, rows))
    for quantity in QUANTITIES:
        for name, axis in AXES.items():
            print(_left_out_text(f"{quantity}, {name} left out", left_out(found, quantity, axis)))
    for quantity in QUANTITIES:
        for kind in ("dense", "mixture"):
            parts = spreads([one for one in found if _kind(one) == kind], quantity)
            text = ", ".join(f"{name} {100 * value:.1f}" for name, value in parts.items())
            print(f"spreads of {quantity}, {kind} [%]: {text}")


def _left_out_text(name: str, parts: dict[Hashable, LeftOut]) -> str:
    mean = np.mean([part.shares for part in parts.values()], axis=0)
    least, of = min((part.shares[1], str(value)) for value, part in parts.items())
    n_below = sum(part.shares[1] < LEAST_SHARE for part in parts.values())
    score, plain = np.mean([(it.score, it.plain_score) for it in parts.values()], axis=0)
    return (
        f"{name:32s} {len(parts):5d}{''.join(f'{100 * share:7.1f}' for share in mean)}   "
        f"below 60: {n_below}, least {100 * least:.1f}, {of}; score {score:.3f}, plain {plain:.3f}"
    )


if __name__ == "__main__":
    main()
