"""Errors on all rows, by set, kind, engine and GPU, the peer's on the same rows beside.

Each row by constants and biases that were fitted without its fold.

python -m research.sets tpot         times per output token
python -m research.sets ttft         times to the first token, all loads, and few in flight
python -m research.sets saturated    throughput of TensorRT-LLM's page
python -m research.sets folds        how many rows there are, and why others are left out
python -m research.sets coverage     how often intervals hold what they say
python -m research.sets scalars      constants that are fitted from end to end
python -m research.sets typed        the command of each row that is compared
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.specs.records.model_errors import model_errors
from research.sets import folds, intervals, rooflines, scalars, typed
from research.sets.constants import out_of_fold
from research.sets.peer import peer_times
from research.sets.predicted import Compared, refused
from research.sets.rows import saturated as of_page
from research.sets.saturating import throughputs

FEW = 4
"""Requests in flight at most for a TTFT to be that of a request that hardly waits for others."""

AMD = frozenset({"mi300x", "mi325x", "mi355x"})

Group = tuple[str, list[Compared]]


def groups(found: Sequence[Compared]) -> Iterator[Group]:
    """Slices of the rows with their names: by set and kind, then by engine and GPU in each."""
    for name, chosen in (
        ("S dense", _of(found, "S", dense=True)),
        ("S mixtures", _of(found, "S", dense=False)),
        ("S, devices that nothing is fitted to", [one for one in found if _is_unseen(one)]),
        ("X NVIDIA", [one for one in _of(found, "X") if one.row.series.gpu not in AMD]),
        ("X AMD", [one for one in _of(found, "X") if one.row.series.gpu in AMD]),
    ):
        yield name, chosen
        for part in sorted({_part(one) for one in chosen}):
            yield f"  {' '.join(part)}", [one for one in chosen if _part(one) == part]
        if name == "S mixtures":
            for model in sorted({one.row.series.model for one in chosen}):
                of_model = [one for one in chosen if one.row.series.model == model]
                yield f"  {model}", of_model


def _of(found: Sequence[Compared], which: str, *, dense: bool | None = None) -> list[Compared]:
    of_set = [one for one in found if one.row.series.set_name == which]
    return [one for one in of_set if dense is None or one.row.series.is_dense is dense]


def _is_unseen(one: Compared) -> bool:
    series = one.row.series
    return series.set_name == "S" and series.gpu in folds.NEVER_FITTED


def _part(one: Compared) -> tuple[str, ...]:
    return (one.row.series.engine, one.row.series.gpu)


def summary(errors: Sequence[float]) -> str:
    size = np.abs(errors)
    return (
        f"{len(size):5d}  {100 * size.mean():6.1f}  {100 * np.median(size):6.1f}"
        f"  {100 * float(np.mean(errors)):+7.1f}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Absolute relative errors on the rows that the peer answers, of one quantity."""

    ours: np.ndarray
    theirs: np.ndarray


def both(some: Sequence[Compared], quantity: str) -> Both:
    """`quantity` is `tpot` or `ttft`."""
    times, place = peer_times(), ("ttft", "tpot").index(quantity)
    answered = [one for one in some if one.row.name in times]
    measured = np.array([getattr(one.row, f"{quantity}_ms") for one in answered])
    theirs = np.array([times[one.row.name][place] for one in answered])
    ours = np.array([getattr(one, f"{quantity}_error") for one in answered])
    return Both(ours=np.abs(ours), theirs=np.abs(theirs / measured - 1.0))


def beside(some: Sequence[Compared], quantity: str) -> str:
    """The peer's mean and median on the rows that it answers, and ours on the same."""
    shared = both(some, quantity)
    if not len(shared.ours):
        return ""
    return f"  {len(shared.ours):5d}  {_two(shared.theirs)}  {_two(shared.ours)}"


def _two(size: np.ndarray) -> str:
    return f"{100 * size.mean():6.1f}  {100 * np.median(size):6.1f}"


HEAD = f"{'%':40s} {'rows':>5s}    mean  median     bias"
PEER = "  peer: rows    mean  median  here: mean  median"


def table(name: str, found: Sequence[Compared], quantity: str) -> str:
    lines = [f"{name}\n{HEAD}{PEER}"]
    for group, some in groups(found):
        if some:
            errors = [getattr(one, f"{quantity}_error") for one in some]
            lines.append(f"{group:40s} {summary(errors)}{beside(some, quantity)}")
    return "\n".join(lines)


def tpot() -> str:
    """Prompts of others hold up decodes as often as they come: nobody knows how of some, apart."""
    found = out_of_fold()
    known, unknown = by_harness(found)
    return "\n\n".join(
        (
            table("TPOT, formats as options name them", found, "tpot"),
            table("TPOT, how requests are sent is published", known, "tpot"),
            table("TPOT, how requests are sent is not known", unknown, "tpot"),
            _left_out(found),
        )
    )


def by_harness(found: Sequence[Compared]) -> tuple[list[Compared], list[Compared]]:
    """Those of which it is published how requests are sent, and those of which it is not."""
    known = [one for one in found if one.row.series.harness]
    return known, [one for one in found if not one.row.series.harness]


def ttft() -> str:
    """Rows of harnesses that are not known send their requests nobody knows how: apart."""
    found = out_of_fold()
    known, unknown = by_harness(found)
    few = [one for one in found if one.row.in_flight <= FEW]
    return "\n\n".join(
        (
            table("TTFT, all loads", found, "ttft"),
            table("TTFT, all loads, how requests are sent is published", known, "ttft"),
            table("TTFT, all loads, how requests are sent is not known", unknown, "ttft"),
            table(f"TTFT, at most {FEW} in flight", few, "ttft"),
            _left_out(found),
        )
    )


def saturated() -> str:
    """No fit sees any of its rows."""
    rows = of_page()
    found = throughputs(rows)
    lines = [f"output tokens/s, all requests at once\n{HEAD}"]
    for is_dense, name in ((True, "T dense"), (False, "T mixtures")):
        some = [one for one in found if one.row.series.is_dense is is_dense]
        lines.append(f"{name:40s} {summary([one.error for one in some])}")
        for part in sorted({(one.row.series.model, one.row.series.gpu) for one in some}):
            of_part = [
                one.error for one in some if (one.row.series.model, one.row.series.gpu) == part
            ]
            lines.append(f"  {' '.join(part):38s} {summary(of_part)}")
    lines.append(f"said not to run, though they ran: {len(rows) - len(found)} of {len(rows)}")
    return "\n".join(lines)


def _left_out(found: Sequence[Compared]) -> str:
    rows = folds.rows()
    impossible = refused(rows, found)
    lines = [
        "rows in which nothing is predicted, because they are said not to run: "
        f"{len(impossible)} of {len(rows)}",
        *sorted(
            f"  {row.series.model} {row.series.gpu} {row.series.engine} {row.name}"
            for row in impossible
        ),
        folds.counts(),
    ]
    return "\n".join(lines)


def coverage() -> str:
    return "\n".join(
        (
            intervals.coverage(out_of_fold(), model_errors()),
            "layouts on a roofline:",
            rooflines.coverage(rooflines.judged(), model_errors()),
        )
    )


QUESTIONS: dict[str, Callable[[], str]] = {
    "tpot": tpot,
    "ttft": ttft,
    "saturated": saturated,
    "folds": folds.counts,
    "coverage": coverage,
    "scalars": scalars.text,
    "typed": lambda: "\n".join(typed.report(folds.rows())),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets", description=__doc__)
    asked = parser.add_argument("question", choices=QUESTIONS)
    asked.help = "what to print"
    print(QUESTIONS[parser.parse_args().question]())
