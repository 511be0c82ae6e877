"""What a session of timing kernels found, and closed forms that were fitted to such times.

A fit is drawn too: predicted against measured time of kernels, one panel a family, as SVG.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.quantities.units import show
from planner.report.documents.blocks import Block, Command, Document, Note, Table, section
from planner.report.words import escape, percent, plural

if TYPE_CHECKING:
    from planner_workshop.calibration.calibrating import Calibration
    from planner_workshop.calibration.fitting import Errors, Fitted
    from planner_workshop.calibration.tables import RejectedRow
    from planner_workshop.measuring.kernel_cases import KernelCase
    from planner_workshop.measuring.programs import Bench
    from planner_workshop.measuring.timing import KernelTime, Measurements
_MOST_NAMED = 8


def measured_document(
    timed: Measurements, bench: Bench, *, device: str, models: Sequence[str], others: Sequence[str]
) -> Document:
    """The whole report.

    Args:
        timed: what was timed.
        bench: on which machine and with what.
        device: what that is called here.
        models: whose kernels they are.
        others: families of their kernels that nothing here times.
    """
    title = (
        f"{device}, {bench.machine}, {bench.software}: {plural(len(timed.timed), 'kernel')} "
        f"for {', '.join(models)} timed in {show(timed.elapsed_s, 's')}, "
        f"{len(timed.untimed)} left out"
    )
    return Document(
        title=f"kernels of {device}",
        line=title,
        sections=(
            section("times", _times(timed.timed)),
            section("clocks", Note(_clocks(timed))),
            section("unsteady", *_unsteady(timed)),
            section("left out", *_left_out(timed, others)),
        ),
    )


def _times(timed: Sequence[KernelTime]) -> Table:
    kinds: dict[tuple[str, str, str], list[KernelTime]] = {}
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


def _clocks(timed: Measurements) -> str:
    again = f"{plural(timed.n_again, 'kernel')} timed twice"
    if math.isinf(timed.warm_up_s):
        return f"never even: what was timed first may be slow, and all may change; {again}"
    return f"even after {show(timed.warm_up_s, 's')} of products; {again}"


def _unsteady(timed: Measurements) -> Iterator[Note]:
    """Kernels whose times spread too far, the worst by name."""
    for one in timed.unsteady[:_MOST_NAMED]:
        said = f"{one.kernel.name}: {show(one.seconds, 's')}, spread {percent(one.spread)}"
        yield Note(said, kind="item")
    if len(timed.unsteady) > _MOST_NAMED:
        yield Note(f"{len(timed.unsteady) - _MOST_NAMED} others; the table has the spread of each")


def _left_out(timed: Measurements, others: Sequence[str]) -> Iterator[Note]:
    """Each reason with the kernels that it holds for: one by name, several by their number."""
    reasons: dict[tuple[str, str, str], list[KernelCase]] = {}
    for one in timed.untimed:
        key = (one.kernel.family, one.kernel.format, one.reason)
        reasons.setdefault(key, []).append(one.kernel)
    for (family, form, reason), kernels in reasons.items():
        name = f"{family} {form}, {len(kernels)} rows" if len(kernels) > 1 else kernels[0].name
        yield Note(f"{name}: {reason}", kind="item")
    for family in others:
        yield Note(f"{family}: nothing here times it; predictions take it from other tables")


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


def fitted_document(answer: Calibration, *, names_refused: bool = False) -> Document:
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
        sections=(
            section("errors", _errors(answer)),
            section("constants", *_constants(answer)),
            section("refused", *_rejected(answer.refused, names_all=names_refused)),
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
    for fit in answer.fitted:
        values = ", ".join(f"{name} {_shown(name, v)}" for name, v in fit.constants.items())
        head = f"{fit.table.family} {fit.table.format}, {fit.form}: "
        yield Note(head + values, kind="item")


def _shown(name: str, value: float) -> str:
    return show(value, _UNITS[name]) if name in _UNITS and value else f"{value:.3g}"


def _rejected(refused: tuple[RejectedRow, ...], *, names_all: bool) -> list[Block]:
    """Every row refused, or a few and how many more there are of each kind."""
    if names_all or len(refused) <= _MOST_NAMED:
        return [Command(str(one)) for one in refused]
    rest = Counter(one.file for one in refused[_MOST_NAMED:])
    return [
        *(Command(str(one)) for one in refused[:_MOST_NAMED]),
        *(Command(f"{file}  {n} more") for file, n in rest.items()),
        Note("`--refused` names them all"),
    ]


PANEL, GAP, LEFT, TOP = 230, 56, 52, 56
N_COLUMNS = 3
BAND = 1.25
MOST_POINTS = 600
"""Points of one panel: more of them are a blot and a large file."""


def fits_svg(answer: Calibration) -> str:
    """A log-log panel for each kernel: measured across, predicted upwards, a band of ±25 %."""
    n_rows = math.ceil(len(answer.fitted) / N_COLUMNS)
    n_columns = min(N_COLUMNS, len(answer.fitted))
    wide = LEFT + n_columns * (PANEL + GAP)
    high = TOP + n_rows * (PANEL + GAP + 24)
    title = f"{answer.device.title} under {answer.table.engine}: predicted against measured time"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for place, fitted in enumerate(answer.fitted):
        row, column = divmod(place, N_COLUMNS)
        x, y = LEFT + column * (PANEL + GAP), TOP + row * (PANEL + GAP + 24)
        lines += _panel(fitted, x, y)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(fitted: Fitted, x: int, y: int) -> Iterator[str]:
    measured, predicted = fitted.table.measured_s, fitted.predicted_s
    low = math.log10(min(measured.min(), predicted.min())) - 0.1
    high = math.log10(max(measured.max(), predicted.max())) + 0.1

    def across(seconds: float) -> float:
        return x + PANEL * (math.log10(seconds) - low) / (high - low)

    def up(seconds: float) -> float:
        return y + PANEL * (1 - (math.log10(seconds) - low) / (high - low))

    first, last = 10**low, 10**high
    name = f"{fitted.table.family} {fitted.table.format}"
    errors = f"left out: {percent(fitted.outside.median)}, p90 {percent(fitted.outside.p90)}"
    yield f'<text x="{x}" y="{y - 18}" font-weight="bold">{escape(name)}</text>'
    yield f'<text x="{x}" y="{y - 5}" fill="#555">{escape(errors)}</text>'
    corners = (
        (first, first),
        (first, first * BAND),
        (last / BAND, last),
        (last, last),
        (last, last / BAND),
        (first * BAND, first),
    )
    outline = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in corners)
    yield f'<polygon points="{outline}" fill="#eee"/>'
    yield (
        f'<path d="M{across(first):.1f} {up(first):.1f}L{across(last):.1f} {up(last):.1f}" '
        'stroke="#999"/>'
    )
    yield f'<rect x="{x}" y="{y}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#333"/>'
    for power in range(math.ceil(low), math.floor(high) + 1):
        label = show(10.0**power, "s")
        at_x, at_y = across(10.0**power), up(10.0**power)
        yield f'<path d="M{at_x:.1f} {y + PANEL}v-5M{x} {at_y:.1f}h5" stroke="#333"/>'
        yield f'<text x="{at_x:.1f}" y="{y + PANEL + 14}" text-anchor="middle">{label}</text>'
        yield f'<text x="{x - 4}" y="{at_y + 4:.1f}" text-anchor="end">{label}</text>'
    step = max(1, math.ceil(len(measured) / MOST_POINTS))
    yield '<g fill="#1f6fb2" fill-opacity="0.45">'
    for seen, said in zip(measured[::step], predicted[::step], strict=True):
        yield f'<circle cx="{across(seen):.1f}" cy="{up(said):.1f}" r="2"/>'
    yield "</g>"
