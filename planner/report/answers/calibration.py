"""A calibration as text: constants, errors on rows fitted and left out, rows refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.report.documents.blocks import Block, Command, Document, Note, Table, section
from planner.report.lines import percent
from planner.report.words import plural
from planner.units import show

if TYPE_CHECKING:
    from planner.estimates.calibration.calibrating import Calibration
    from planner.estimates.calibration.fitting import Errors, Fitted
    from planner.estimates.calibration.tables import Refused

_MOST_NAMED = 8
_UNITS = {
    "floor_s": "s",
    "kernel_s": "s",
    "sequence_head_s": "s",
    "scale_up_bytes_per_s": "B/s",
    "scale_out_bytes_per_s": "B/s",
    "short_latency_s": "s",
    "short_bytes_per_s": "B/s",
    "long_latency_s": "s",
    "long_bytes_per_s": "B/s",
}


def document(answer: Calibration, *, names_refused: bool = False) -> Document:
    """The whole report.

    Args:
        answer: what was fitted.
        names_refused: whether every refused row is named, or a few of each reason.
    """
    n_rows = sum(one.table.n_rows for one in answer.fitted)
    title = (
        f"{answer.device.title} under {answer.table.engine}: "
        f"{_what(answer)} fitted to {plural(n_rows, 'row')}, "
        f"{len(answer.refused)} refused"
    )
    return Document(
        title=f"{answer.device.title} under {answer.table.engine}",
        line=title,
        head=(Note(title),),
        sections=(
            section("errors", _errors(answer)),
            section("constants", *_constants(answer)),
            section("refused", *_refused(answer.refused, names_all=names_refused)),
        ),
    )


def _what(answer: Calibration) -> str:
    """`3 kernels`, `3 kernels and 2 collectives`."""
    n_kernels = len(answer.table.kernels)
    n_collectives = len(answer.fitted) - n_kernels
    said = [plural(n_kernels, "kernel")] if n_kernels or not n_collectives else []
    said += [plural(n_collectives, "collective")] if n_collectives else []
    return " and ".join(said)


def _errors(answer: Calibration) -> Table:
    heads = ("kernel", "format", "rows", "median", "p90", "left out", "median", "p90")
    return Table(heads=heads, rows=[_row(one) for one in answer.fitted], align="<<>>><>>")


def _row(fitted: Fitted) -> tuple[str, ...]:
    inside, outside = _pair(fitted.inside), _pair(fitted.outside)
    kind = (fitted.table.family, fitted.table.format, str(fitted.table.n_rows))
    return (*kind, *inside, fitted.left_out, *outside)


def _pair(errors: Errors) -> tuple[str, str]:
    return percent(errors.median), percent(errors.p90)


def _constants(answer: Calibration) -> Iterator[Note]:
    for one in answer.fitted:
        values = ", ".join(f"{name} {_shown(name, v)}" for name, v in one.constants.items())
        head = f"{one.table.family} {one.table.format}, {one.form}: "
        yield Note(head + values, kind="item")


def _shown(name: str, value: float) -> str:
    return show(value, _UNITS[name]) if name in _UNITS and value else f"{value:.3g}"


def _refused(refused: tuple[Refused, ...], *, names_all: bool) -> list[Block]:
    """Every row refused, or a few and how many more there are of each kind."""
    if names_all or len(refused) <= _MOST_NAMED:
        return [Command(str(one)) for one in refused]
    rest = Counter(one.file for one in refused[_MOST_NAMED:])
    return [
        *(Command(str(one)) for one in refused[:_MOST_NAMED]),
        *(Command(f"{file}  {n} more") for file, n in rest.items()),
        Note("`--refused` names them all"),
    ]
