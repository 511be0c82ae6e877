"""How far off times of an engine on a GPU are on average, as far as runs tell it apart from chance.

    python -m research.sets.biases    such biases, and errors with and without them

Of log(predicted / measured) each run has a mean y. Runs of one model on a GPU under an engine vary
by σ², models of a kind on a GPU under an engine by τ_m², GPUs of an engine by τ_g², engines (of a
kind of model) by τ_e² about no bias at all. The mean of a level weighs what is below it by its
precision,

    m = Σ w m_i / Σ w,   w = 1 / (τ² + V_i),   V = 1 / Σ w

and a bias is the engine's, drawn to 0, and from there the GPU's, drawn to the engine's:

    B_e = τ_e² / (τ_e² + V_e) · m_e,   B_g = B_e + τ_g² / (τ_g² + V_g) · (m_g − B_e)

Few runs have a large V and hardly move B. Variances are by the method of moments. Source: Morris,
Parametric Empirical Bayes Inference, JASA 78 (1983), 47-55; of the moments DerSimonian and Laird,
Controlled Clinical Trials 7 (1986), 177-188.

Engines and kinds with fewer than three runs have none. A quantity is corrected only if models on
GPUs that are left out in turn get closer by it; without each fold that is asked again. Neither is,
with all rows: the answer is no, and no bias is packaged (docs/decisions/0030-folds.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.specs.records.model_errors import ANY, QUANTITIES, Quantity
from research.sets.constants import FOLDS, name_of, out_of_fold, predictions, tells
from research.sets.folds import ALL, fold_of, stratum
from research.sets.predicted import Compared

LEAST_RUNS = 3

Group = tuple[str, str, str]
"""Engine, GPU, kind of model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Runs of one model on a GPU under an engine.

    Args:
        runs: the mean of log(predicted / measured) of each (N,).
    """

    group: Group
    model: str
    runs: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Of what is below a level, and its variance."""

    mean: float
    variance: float


def log_ratio(one: Compared, quantity: Quantity) -> float:
    name = f"{quantity.lower()}_ms"
    return float(np.log(getattr(one, name) / getattr(one.row, name)))


def cells(found: Sequence[Compared], quantity: Quantity) -> list[Cell]:
    runs: dict[tuple[Group, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        if tells(one, quantity):
            series = one.row.series
            runs[stratum(series), series.model][series.run].append(log_ratio(one, quantity))
    return [
        Cell(group=group, model=model, runs=np.array([np.mean(logs) for logs in each.values()]))
        for (group, model), each in runs.items()
    ]


def between(families: Sequence[Sequence[Mean]]) -> float:
    """Variance of true means within families, beyond what they vary by themselves."""
    squares = spread = 0.0
    freedom = 0
    for members in families:
        n = len(members)
        means = np.array([one.mean for one in members])
        squares += float(np.sum((means - means.mean()) ** 2))
        spread += sum(one.variance for one in members) * (1.0 - 1.0 / n)
        freedom += n - 1
    return max(0.0, (squares - spread) / freedom) if freedom else 0.0


def pooled(members: Sequence[Mean], variance: float) -> Mean:
    """The mean of a level, of members that vary by so much."""
    weights = np.array([1.0 / max(variance + one.variance, 1e-9) for one in members])
    means = np.array([one.mean for one in members])
    return Mean(mean=float(weights @ means / weights.sum()), variance=float(1.0 / weights.sum()))


def drawn(one: Mean, to: float, variance: float) -> float:
    """A mean drawn to the one above it, the more so the less it is known."""
    share = variance / (variance + one.variance) if variance else 0.0
    return to + share * (one.mean - to)


def _families(found: Mapping[Group, Mean] | Mapping[tuple[Group, str], Mean]) -> list[list[Mean]]:
    families: dict[Hashable, list[Mean]] = defaultdict(list)
    for key, one in found.items():
        above = key[0] if isinstance(key[0], tuple) else (key[0], key[2])
        families[above].append(one)
    return [*families.values()]


def shrunk(found: Sequence[Cell]) -> dict[Group, float]:
    """Biases of log(predicted / measured) by group; those of an engine where no GPU is: `any`."""
    freedom = sum(len(one.runs) - 1 for one in found)
    inside = sum(float(np.sum((one.runs - one.runs.mean()) ** 2)) for one in found)
    of_runs = inside / freedom if freedom else 0.0
    models = {
        (one.group, one.model): Mean(mean=float(one.runs.mean()), variance=of_runs / len(one.runs))
        for one in found
    }
    of_models = between(_families(models))
    gpus = {
        group: pooled([one for (own, _), one in models.items() if own == group], of_models)
        for group in dict.fromkeys(one.group for one in found)
    }
    of_gpus = between(_families(gpus))
    engines = {
        kind: pooled([one for own, one in gpus.items() if (own[0], own[2]) == kind], of_gpus)
        for kind in dict.fromkeys((group[0], group[2]) for group in gpus)
    }
    squares = np.mean([one.mean**2 - one.variance for one in engines.values()])
    of_engines = max(0.0, float(squares))
    n_runs = {
        kind: sum(len(c.runs) for c in found if (c.group[0], c.group[2]) == kind)
        for kind in engines
    }
    biases: dict[Group, float] = {}
    for (engine, kind), one in engines.items():
        if n_runs[engine, kind] >= LEAST_RUNS:
            own = biases[engine, ANY, kind] = drawn(one, 0.0, of_engines)
            for group, mean in gpus.items():
                if (group[0], group[2]) == (engine, kind):
                    biases[group] = drawn(mean, own, of_gpus)
    return biases


def of(biases: Mapping[Group, float], group: Group) -> float:
    return biases.get(group, biases.get((group[0], ANY, group[2]), 0.0))


def models_left_out(found: Sequence[Cell]) -> tuple[float, float]:
    """Mean absolute error of runs of models on GPUs, without biases and with those of others."""
    before, then = [], []
    for left in found:
        off = of(shrunk([one for one in found if one is not left]), left.group)
        before.extend(np.abs(left.runs))
        then.extend(np.abs(left.runs - off))
    return float(np.mean(before)), float(np.mean(then))


@cache
def known(left_out: int = ALL) -> dict[Quantity, dict[Group, float]]:
    """Biases by quantity, of rows without a fold; none where they do not help."""
    some = [one for one in predictions(left_out) if fold_of(one.row) not in (ALL, left_out)]
    found: dict[Quantity, dict[Group, float]] = {}
    for quantity in QUANTITIES:
        listed = cells(some, quantity)
        before, then = models_left_out(listed)
        found[quantity] = shrunk(listed) if then < before else {}
    return found


def corrected(one: Compared, biases: Mapping[Quantity, Mapping[Group, float]]) -> Compared:
    """A prediction with biases off."""
    group = stratum(one.row.series)
    tpot, ttft = (float(np.exp(of(biases[name], group))) for name in QUANTITIES)
    return replace(one, tpot_ms=one.tpot_ms / tpot, ttft_ms=one.ttft_ms / ttft)


def after() -> list[Compared]:
    """Every row that is compared, constants and biases without its fold."""
    return [corrected(one, known(fold_of(one.row))) for one in out_of_fold()]


def effect(quantity: Quantity, before: Sequence[Compared], then: Sequence[Compared]) -> str:
    """By engine, GPU and kind: absolute errors and biases of rows, and by how many runs."""
    lines = [f"{quantity + ' [%]':32s} rows runs   mean median    bias    then mean median    bias"]
    parts: list[tuple[str, Callable[[Compared], bool]]] = [("all", lambda _: True)]
    parts += [
        (" ".join(which), lambda one, which=which: stratum(one.row.series) == which)
        for which in sorted({stratum(one.row.series) for one in before})
    ]
    for name, is_of in parts:
        both = [
            [one for one in some if is_of(one) and tells(one, quantity)] for some in (before, then)
        ]
        if both[0]:
            n_runs = len({one.row.series.run for one in both[0]})
            cells_ = "     ".join(_summary(some, quantity) for some in both)
            lines.append(f"{name:32s} {len(both[0]):4d} {n_runs:4d} {cells_}")
    return "\n".join(lines)


def _summary(some: Sequence[Compared], quantity: Quantity) -> str:
    off = 100 * np.array([getattr(one, f"{quantity.lower()}_error") for one in some])
    return f"{np.abs(off).mean():6.1f} {np.median(np.abs(off)):6.1f} {off.mean():+7.1f}"


def main() -> None:
    for fold in FOLDS:
        some = [one for one in predictions(fold) if fold_of(one.row) not in (ALL, fold)]
        for quantity in QUANTITIES:
            before, then = models_left_out(cells(some, quantity))
            print(
                f"without fold {name_of(fold)}, {quantity} of models on GPUs left out: mean |log| "
                f"{before:.4f}, with biases {then:.4f}"
            )
            if fold == ALL:
                for group, value in sorted(shrunk(cells(some, quantity)).items()):
                    print(f"  {' '.join(group):32s} {100 * np.expm1(value):+6.1f} %")
    for quantity in QUANTITIES:
        print(effect(quantity, out_of_fold(), after()))


if __name__ == "__main__":
    main()
