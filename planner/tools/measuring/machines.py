"""Whether the machine at hand is the device that is asked for, and which formats it multiplies."""

import csv
import io
from collections.abc import Sequence

from planner.equations.kernels.constants import ANY
from planner.errors import Problem
from planner.specs.records.devices import DeviceSpec
from planner.tools.calibration.plain import NOTES, PEAK, WORDS
from planner.tools.measuring.programs import Bench
from planner.tools.measuring.timing import KernelTime, Measurements

FORMATS = ("bf16", "fp16", "fp8")
"""Of weights whose products can be timed."""

USUAL = ("bf16", "fp8")
"""Those that are timed without being asked for, where the device multiplies them."""

MEMORY_TOLERANCE = 0.15
"""Datasheets round, count in tens or in twos, and drivers keep some for themselves [1]."""


def unlike(device: DeviceSpec, bench: Bench, *, by_name: bool) -> list[Problem]:
    """What tells that the machine is another device; nothing if it may be this one.

    Args:
        device: as asked for.
        bench: the machine.
        by_name: the device's name begins with its maker's name of the chip.
    """
    chip = device.name.partition("-")[0]
    is_named = not by_name or chip in bench.machine.lower().replace(" ", "")
    is_as_large = abs(bench.memory_bytes / device.hbm_bytes - 1) <= MEMORY_TOLERANCE
    if is_named and is_as_large:
        return []
    fact = f"is not what is here: {bench.machine} with {bench.memory_bytes / 1e9:.4g} GB"
    remedy = "name its device, or write a device file of your own"
    return [Problem(where="--device", value=device.name, fact=fact, remedy=remedy)]


def formats_of(
    names: Sequence[str], device: DeviceSpec | None, bench: Bench
) -> tuple[tuple[str, ...], list[Problem]]:
    """Formats of weights to time, and what is wrong with those that were asked for.

    Args:
        names: by name; the usual ones if empty.
        device: whose peaks judge the rows; None where nobody describes it yet.
        bench: the machine.
    """
    peaks = USUAL if device is None else tuple(device.peak_flop_per_s)
    usual = [name for name in USUAL if name in peaks and bench.multiplies(name)]
    problems = []
    for name in names:
        if name not in peaks and device is not None:
            fact, remedy = f"{device.name} does not multiply it", f"it does {', '.join(peaks)}"
        elif not bench.multiplies(name):
            fact, remedy = f"{bench.software} has no product in it on {bench.machine}", ""
        else:
            continue
        problems.append(Problem(where="--weights", value=name, fact=fact, remedy=remedy))
    return tuple(names) or tuple(usual), problems


_MICRO = 1e-6
_WITHOUT_FORMAT = "bf16"
"""Whose peak bounds kernels that are of any format: they hardly multiply."""


def table_text(measurements: Measurements, bench: Bench, *, device: str) -> str:
    """The table: a header and a row for each kernel.

    Args:
        measurements: what was timed.
        bench: on which machine and with what.
        device: what that is called here.
    """
    sizes = dict.fromkeys(name for one in measurements.timed for name in one.kernel.dimensions)
    family, form, latency = WORDS
    header = (family, form, PEAK, *sizes, latency, *NOTES)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, header, restval="", lineterminator="\n")
    writer.writeheader()
    said = (device, bench.machine, bench.software)
    for one in measurements.timed:
        writer.writerow(dict(zip(header, _cells(one, tuple(sizes), said), strict=True)))
    return stream.getvalue()


def _cells(timing: KernelTime, sizes: tuple[str, ...], said: tuple[str, ...]) -> list[str]:
    kernel = timing.kernel
    return [
        kernel.family,
        kernel.format,
        _WITHOUT_FORMAT if kernel.format == ANY else "",
        *(f"{kernel.dimensions[name]:.10g}" if name in kernel.dimensions else "" for name in sizes),
        f"{timing.seconds / _MICRO:.5g}",
        *said,
        timing.program,
        f"{timing.spread:.3g}",
        str(timing.n_repeats),
    ]
