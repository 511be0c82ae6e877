"""What a session of timing kernels found: how many, how steady, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.report.documents.blocks import Document, Note, Table, section
from planner.report.lines import percent
from planner.report.words import plural
from planner.units import show

if TYPE_CHECKING:
    from planner.estimates.measuring.bench import Bench
    from planner.estimates.measuring.timing import Measurements, Timed
    from planner.estimates.measuring.wanted import Wanted

_MOST_NAMED = 8


def document(
    found: Measurements,
    bench: Bench,
    *,
    device: str,
    models: Sequence[str],
    others: Sequence[str],
) -> Document:
    """The whole report.

    Args:
        found: what was timed.
        bench: on which machine and with what.
        device: what that is called here.
        models: whose kernels they are.
        others: families of their kernels that nothing here times.
    """
    title = (
        f"{device}, {bench.machine}, {bench.software}: {plural(len(found.timed), 'kernel')} "
        f"for {', '.join(models)} timed in {show(found.elapsed_s, 's')}, "
        f"{len(found.untimed)} left out"
    )
    return Document(
        title=f"kernels of {device}",
        line=title,
        head=(Note(title),),
        sections=(
            section("times", _times(found.timed)),
            section("clocks", Note(_clocks(found))),
            section("unsteady", *_unsteady(found)),
            section("left out", *_left_out(found, others)),
        ),
    )


def _times(timed: Sequence[Timed]) -> Table:
    kinds: dict[tuple[str, str, str], list[Timed]] = {}
    for one in timed:
        kinds.setdefault((one.kernel.family, one.kernel.format, one.program), []).append(one)
    heads = ("kernel", "format", "rows", "shortest", "longest", "spread", "program")
    rows = []
    for (family, form, program), members in kinds.items():
        seconds = sorted(one.seconds for one in members)
        spreads = sorted(one.spread for one in members)
        rows.append(
            (
                family,
                form,
                str(len(members)),
                show(seconds[0], "s"),
                show(seconds[-1], "s"),
                percent(spreads[len(spreads) // 2]),
                program,
            )
        )
    return Table(heads=heads, rows=rows, align="<<>>>><")


def _clocks(found: Measurements) -> str:
    again = f"{plural(found.n_again, 'kernel')} timed twice"
    if math.isinf(found.warm_up_s):
        return f"never even: what was timed first may be slow, and all may change; {again}"
    return f"even after {show(found.warm_up_s, 's')} of products; {again}"


def _unsteady(found: Measurements) -> Iterator[Note]:
    """Kernels whose times spread too far, the worst by name."""
    for one in found.unsteady[:_MOST_NAMED]:
        said = f"{one.kernel.name}: {show(one.seconds, 's')}, spread {percent(one.spread)}"
        yield Note(said, kind="item")
    if len(found.unsteady) > _MOST_NAMED:
        yield Note(f"{len(found.unsteady) - _MOST_NAMED} others; the table has the spread of each")


def _left_out(found: Measurements, others: Sequence[str]) -> Iterator[Note]:
    """Each reason with the kernels that it holds for: one by name, several by their number."""
    reasons: dict[tuple[str, str, str], list[Wanted]] = {}
    for one in found.untimed:
        key = (one.kernel.family, one.kernel.format, one.reason)
        reasons.setdefault(key, []).append(one.kernel)
    for (family, form, reason), kernels in reasons.items():
        name = f"{family} {form}, {len(kernels)} rows" if len(kernels) > 1 else kernels[0].name
        yield Note(f"{name}: {reason}", kind="item")
    for family in others:
        yield Note(f"{family}: nothing here times it; predictions take it from other tables")
