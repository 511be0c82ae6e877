"""How good choices are that predictions make among what was measured side by side.

    python -m tests.papers.sets.ranking

Layouts: rows of one run, so of one model, device, engine and day, with the same formats, lengths
and requests in flight for each GPU, differ in degrees. As many tokens come of a GPU as requests
are in flight over what a request takes, TTFT + (OSL − 1) TPOT (OSL · TPOT where nobody says how
requests were sent). The layout that is predicted to give most is chosen; regret is what it gives
less, as measured, than the best one there. The smallest degree of TP, and the peer where it
answers all layouts, choose beside it.

Engines: rows of one model, device, formats, lengths, degrees and load under two engines, over all
days, of harnesses that say how they send requests. A pair is decided where times differ so much
that the lower prediction is right in two of three cases by the law of both errors, as in answers,
and in three of four. Else it is a tie, and what choosing the lower prediction loses is printed.
Predictions are out of fold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.equations.tails import DECIDED, sigmas
from planner.specs.model_errors import model_error
from tests.papers.sets.constants import out_of_fold
from tests.papers.sets.folds import formats_of
from tests.papers.sets.peer import peer_times
from tests.papers.sets.predicted import Compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One layout or engine, by what a request takes.

    Args:
        measured_s, predicted_s: of a request.
        peer_s: as the peer predicts it; None where it does not.
        error: of the prediction, one relative standard deviation.
    """

    row: Compared
    measured_s: float
    predicted_s: float
    peer_s: float | None
    error: float


def timed(one: Compared) -> Timed:
    row, kind = one.row, "dense" if one.row.series.is_dense else "mixture"
    theirs = peer_times().get(row.name)
    tpot_error = model_error(row.series.engine, kind, "TPOT")
    return Timed(
        row=one,
        measured_s=_request_s(one, row.ttft_ms, row.tpot_ms),
        predicted_s=_request_s(one, one.ttft_ms, one.tpot_ms),
        peer_s=_request_s(one, *theirs) if theirs else None,
        error=float(np.hypot(one.tpot_deviation, tpot_error)),
    )


def _request_s(one: Compared, ttft_ms: float, tpot_ms: float) -> float:
    n_output = one.row.n_output
    if not one.row.series.harness:
        return n_output * tpot_ms / 1e3
    return (ttft_ms + (n_output - 1) * tpot_ms) / 1e3


def layouts(found: Iterable[Compared]) -> list[list[Timed]]:
    """Groups in which layouts compete, each layout once."""
    groups: dict[tuple[object, ...], dict[tuple[int, ...], Timed]] = defaultdict(dict)
    for one in found:
        row = one.row
        load = row.in_flight / row.n_devices
        what = (row.series.run, formats_of(row.series), row.n_input, row.n_output, load)
        groups[what][_degrees(one)] = timed(one)
    return [[*each.values()] for each in groups.values() if len(each) > 1]


def _degrees(one: Compared) -> tuple[int, ...]:
    row = one.row
    return (row.tensor, row.data, row.expert_tensor, row.expert)


def regrets(
    groups: Iterable[Sequence[Timed]], choice: Callable[[Timed], float | None]
) -> np.ndarray:
    """Share of the best measured throughput that each choice gives away."""
    lost = []
    for some in groups:
        by = [choice(one) for one in some]
        if None not in by:
            chosen = some[int(np.argmin(np.array(by, dtype=float)))]
            lost.append(1.0 - min(one.measured_s for one in some) / chosen.measured_s)
    return np.array(lost)


def engines(found: Iterable[Compared]) -> list[tuple[Timed, Timed]]:
    """Two engines at one configuration, each by the geometric mean of its days."""
    groups: dict[tuple[object, ...], dict[str, list[Timed]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in found:
        row, series = one.row, one.row.series
        if not series.harness:
            continue
        what = (series.model, series.gpu, formats_of(series), series.harness)
        at = (row.n_input, row.n_output, row.in_flight)
        groups[(*what, *at, *_degrees(one))][series.engine].append(timed(one))
    return [
        pair
        for by_engine in groups.values()
        for pair in combinations([_mean(by_engine[name]) for name in sorted(by_engine)], 2)
    ]


def _mean(some: Sequence[Timed]) -> Timed:
    measured, predicted = (
        float(np.exp(np.mean([np.log(getattr(one, name)) for one in some])))
        for name in ("measured_s", "predicted_s")
    )
    first = some[0]
    return Timed(
        row=first.row,
        measured_s=measured,
        predicted_s=predicted,
        peer_s=None,
        error=first.error,
    )


def is_decided(one: Timed, other: Timed, right: float) -> bool:
    """Whether the lower prediction is the lower time in more than a share of all cases."""
    ratio = one.predicted_s / other.predicted_s
    joint = sigmas(2.0 * right - 1.0) * float(np.hypot(one.error, other.error))
    return max(ratio, 1.0 / ratio) - 1.0 > joint


def lost(one: Timed, other: Timed) -> float:
    """Share of the better throughput that the lower prediction gives away."""
    chosen = min(one, other, key=lambda each: each.predicted_s)
    return 1.0 - min(one.measured_s, other.measured_s) / chosen.measured_s


def layouts_text(found: Sequence[Compared]) -> str:
    groups = layouts(found)
    answered = [some for some in groups if all(one.peer_s is not None for one in some)]
    lines = [f"{'layouts [%]':34s} decisions  right   regret: mean  90th"]
    for name, some, choice in (
        ("as predicted", groups, lambda one: one.predicted_s),
        ("least TP", groups, lambda one: one.row.row.tensor),
        ("as predicted, where the peer answers", answered, lambda one: one.predicted_s),
        ("peer", answered, lambda one: one.peer_s),
    ):
        lines.append(f"{name:36s} {_regret_text(regrets(some, choice))}")
    for engine in sorted({some[0].row.row.series.engine for some in groups}):
        own = [some for some in groups if some[0].row.row.series.engine == engine]
        lines.append(f"  {engine:34s} {_regret_text(regrets(own, lambda one: one.predicted_s))}")
    return "\n".join(lines)


def _regret_text(lost: np.ndarray) -> str:
    right, ninth = np.mean(lost == 0.0), np.quantile(lost, 0.9)
    return f"{len(lost):7d} {100 * right:6.1f} {100 * lost.mean():12.1f} {100 * ninth:6.1f}"


def engines_text(found: Sequence[Compared], right: float) -> str:
    every = engines(found)
    head = f"engines [%], {100 * right:.0f} % sure"
    lines = [f"{head:34s} pairs  decided  right   ties: right  lost: mean  90th"]
    named = defaultdict(list)
    for pair in every:
        named[" ".join(one.row.row.series.engine for one in pair)].append(pair)
    for name, pairs in {"all": every, **named}.items():
        decided = [pair for pair in pairs if is_decided(*pair, right)]
        ties = [pair for pair in pairs if not is_decided(*pair, right)]
        held = np.mean([lost(*pair) == 0.0 for pair in decided]) if decided else np.nan
        losses = np.array([lost(*pair) for pair in ties] or [0.0])
        lines.append(
            f"{name:34s} {len(pairs):5d} {100 * len(decided) / len(pairs):8.1f} "
            f"{100 * held:6.1f} {100 * np.mean(losses == 0.0):12.1f} "
            f"{100 * losses.mean():11.1f} {100 * np.quantile(losses, 0.9):5.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    found = out_of_fold()
    print(layouts_text(found))
    for right in (DECIDED, 0.75):
        print(engines_text(found, right))


if __name__ == "__main__":
    main()
