"""How good choices are that predictions make among what was measured side by side.

    python -m research.sets.ranking            what choices give away
    python -m research.sets.ranking --pairs    each pair of engines

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

Errors of two engines at one configuration are correlated, as kernels of one device and lengths of
one load are: by so much that of differences of errors as many are within what hypot(a, b) without
that part says as of all times, in shares of `SHARES`. The correlation by which a pair is decided is
that of pairs of its kind without its model on its device.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.equations.tails import DECIDED, sigmas
from planner.specs.records.model_errors import model_error
from planner.specs.records.runtimes import ModelKind
from research.sets.constants import out_of_fold
from research.sets.folds import formats_of
from research.sets.peer import peer_times
from research.sets.predicted import Compared

SHARES = (0.67, 0.9, 0.95)
"""Of all cases, by which intervals are fitted."""


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


def own_error(one: Compared) -> float:
    """The model's error of a row's TPOT, by the packaged table."""
    return model_error(one.row.series.engine, _kind(one), "TPOT")


def _kind(one: Compared) -> ModelKind:
    return "dense" if one.row.series.is_dense else "mixture"


Pair = tuple[Timed, Timed]


def timed(one: Compared, error: Callable[[Compared], float] = own_error) -> Timed:
    row, theirs = one.row, peer_times().get(one.row.name)
    return Timed(
        row=one,
        measured_s=_request_s(one, row.ttft_ms, row.tpot_ms),
        predicted_s=_request_s(one, one.ttft_ms, one.tpot_ms),
        peer_s=_request_s(one, *theirs) if theirs else None,
        error=float(np.hypot(one.tpot_deviation, error(one))),
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


def engines(
    found: Iterable[Compared], error: Callable[[Compared], float] = own_error
) -> list[Pair]:
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
        groups[(*what, *at, *_degrees(one))][series.engine].append(timed(one, error))
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


def joint_errors(pairs: Sequence[Pair], common: float) -> np.ndarray:
    """Of the difference of two errors, one relative standard deviation (N,)."""
    first, second = np.array([[it.error for it in pair] for pair in pairs]).T
    return np.sqrt(first**2 + second**2 - 2.0 * common * first * second)


def common(pairs: Sequence[Pair]) -> float:
    """The correlation of errors by which differences are nearest to what they say; 0 of none."""
    if not pairs:
        return 0.0
    logs = np.log([[it.predicted_s / it.measured_s for it in pair] for pair in pairs])
    off = np.expm1(np.abs(logs[:, 0] - logs[:, 1]))
    tried = np.linspace(0.0, 0.95, 96)
    gaps = [
        sum((np.mean(off <= sigmas(share) * wide) - share) ** 2 for share in SHARES)
        for wide in (joint_errors(pairs, it) for it in tried)
    ]
    return float(tried[int(np.argmin(gaps))])


def common_without(pairs: Sequence[Pair]) -> list[float]:
    """Of each pair the correlation of those of its kind, but for its model on its device."""
    cells = [(_kind(it.row), it.row.row.series.model, it.row.row.series.gpu) for it, _ in pairs]
    found = {
        cell: common([p for p, of in zip(pairs, cells, strict=True) if _is_beside(of, cell)])
        for cell in dict.fromkeys(cells)
    }
    return [found[cell] for cell in cells]


def _is_beside(cell: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return cell[0] == other[0] and cell != other


def is_decided(pair: Pair, right: float, common: float) -> bool:
    """Whether the lower prediction is the lower time in more than a share of all cases."""
    ratio = pair[0].predicted_s / pair[1].predicted_s
    joint = sigmas(2.0 * right - 1.0) * joint_errors([pair], common)[0]
    return bool(max(ratio, 1.0 / ratio) - 1.0 > joint)


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
    alike = dict(zip(map(id, every), common_without(every), strict=True))
    head = f"engines [%], {100 * right:.0f} % sure"
    lines = [f"{head:34s} pairs  decided  right   ties: right  lost: mean  90th"]
    named = defaultdict(list)
    for pair in every:
        named[" ".join(one.row.row.series.engine for one in pair)].append(pair)
    for name, pairs in {"all": every, **named}.items():
        known = [is_decided(pair, right, alike[id(pair)]) for pair in pairs]
        decided = [pair for pair, is_so in zip(pairs, known, strict=True) if is_so]
        ties = [pair for pair, is_so in zip(pairs, known, strict=True) if not is_so]
        held = np.mean([lost(*pair) == 0.0 for pair in decided]) if decided else np.nan
        losses = np.array([lost(*pair) for pair in ties] or [0.0])
        lines.append(
            f"{name:34s} {len(pairs):5d} {100 * len(decided) / len(pairs):8.1f} "
            f"{100 * held:6.1f} {100 * np.mean(losses == 0.0):12.1f} "
            f"{100 * losses.mean():11.1f} {100 * np.quantile(losses, 0.9):5.1f}"
        )
    return "\n".join(lines)


def report(found: Sequence[Compared]) -> str:
    """Layouts and engines, and what choosing by predictions gives away."""
    parts = [layouts_text(found), *(engines_text(found, right) for right in (DECIDED, 0.75))]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines())


def pairs_text(found: Sequence[Compared]) -> Iterator[str]:
    """Each pair of engines, by what a request takes of each, and whether it is decided."""
    every = engines(found)
    for pair, common in zip(every, common_without(every), strict=True):
        row = pair[0].row.row
        known = "decided" if is_decided(pair, DECIDED, common) else "tie"
        right = "right" if lost(*pair) == 0.0 else "wrong"
        times = ", ".join(
            f"{it.row.row.series.engine} {it.predicted_s:.3g} s predicted, {it.measured_s:.3g} s"
            for it in pair
        )
        what = (row.series.model, row.series.gpu, row.n_input, row.n_output, row.in_flight)
        yield f"{' '.join(map(str, what))} TP {row.tensor}: {times}: {known}, {right}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.ranking")
    parser.add_argument("--pairs", action="store_true", help="each pair of engines")
    found = out_of_fold()
    if parser.parse_args().pairs:
        print("\n".join(pairs_text(found)))
    else:
        print(report(found))


if __name__ == "__main__":
    main()
