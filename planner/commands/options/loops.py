"""Options of a closed loop: how many requests are in flight, and how many follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.commands.options.written_predictions import WrittenPrediction
from planner.errors import Problem


def loop_problems(written: WrittenPrediction) -> Iterator[Problem]:
    """Ways to say what comes that exclude each other, or that say nothing by themselves."""
    if written.in_flight and written.batch:
        fact, remedy = "says what `--batch` says of each rank", "write one of the two"
        yield Problem(where="--in-flight", value=written.in_flight, fact=fact, remedy=remedy)
    if written.in_flight and written.rate:
        fact, remedy = "is of a closed loop, and `--rate` is of none", "write one of the two"
        yield Problem(where="--in-flight", value=written.in_flight, fact=fact, remedy=remedy)
    if written.waves and not written.in_flight:
        fact, remedy = "means nothing without `--in-flight`", "say how many begin together"
        yield Problem(where="--waves", value=written.waves, fact=fact, remedy=remedy)


def batch_of(numbers: Mapping[str, float], n_ranks: int, found: list[Problem]) -> int:
    """Requests in flight on each rank; a closed loop is dealt to all of them alike."""
    in_flight = int(numbers["--in-flight"])
    if not in_flight:
        return int(numbers["--batch"])
    if in_flight % n_ranks:
        below = in_flight - in_flight % n_ranks
        nearest = [f"`--in-flight {n}`" for n in (below, below + n_ranks) if n]
        fact = f"cannot be dealt to {n_ranks} ranks alike"
        found.append(
            Problem(
                where="--in-flight",
                value=str(in_flight),
                fact=fact,
                remedy=f"write {' or '.join(nearest)}",
            )
        )
    return max(1, in_flight // n_ranks)
