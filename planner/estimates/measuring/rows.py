"""Measured kernels as a table that `plan calibrate` reads."""

from __future__ import annotations

import csv
import io

from planner.equations.kernels.constants import ANY
from planner.estimates.calibration.plain import NOTES, PEAK, WORDS
from planner.estimates.measuring.bench import Bench
from planner.estimates.measuring.timing import Measurements, Timed

_MICRO = 1e-6
_WITHOUT_FORMAT = "bf16"
"""Whose peak bounds kernels that are of any format: they hardly multiply."""


def table_text(found: Measurements, bench: Bench, *, device: str) -> str:
    """The table: a header and a row for each kernel.

    Args:
        found: what was timed.
        bench: on which machine and with what.
        device: what that is called here.
    """
    sizes = dict.fromkeys(name for one in found.timed for name in one.kernel.dimensions)
    family, form, latency = WORDS
    header = (family, form, PEAK, *sizes, latency, *NOTES)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, header, restval="", lineterminator="\n")
    writer.writeheader()
    said = (device, bench.machine, bench.software)
    for one in found.timed:
        writer.writerow(dict(zip(header, _cells(one, tuple(sizes), said), strict=True)))
    return stream.getvalue()


def _cells(one: Timed, sizes: tuple[str, ...], said: tuple[str, ...]) -> list[str]:
    kernel = one.kernel
    return [
        kernel.family,
        kernel.format,
        _WITHOUT_FORMAT if kernel.format == ANY else "",
        *(_number(kernel.dimensions[name]) if name in kernel.dimensions else "" for name in sizes),
        f"{one.seconds / _MICRO:.5g}",
        *said,
        one.program,
        f"{one.spread:.3g}",
        str(one.n_repeats),
    ]


def _number(value: float) -> str:
    return f"{value:.10g}"
