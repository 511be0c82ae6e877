"""Devices: all of them in a table, or one with its numbers and where they come from.

devices
           memory  bandwidth  16 bits  fp8  int8  fp4   price  assumed
  h20       96 GB     4 TB/s      148  296   296       $1.1/h  4 of 12  NVIDIA H20 SXM 96 GB
"""

from collections.abc import Mapping, Sequence

from planner.quantities.units import show
from planner.report.catalogue.figures import assumed_text, described, figures
from planner.report.catalogue.topologies import device_figures
from planner.report.documents.blocks import Document, Note, Table, hint, section
from planner.report.words import HINTS, plural
from planner.results.listings import Devices
from planner.specs.records.devices import DeviceSpec

_PEAKS = {"16 bits": ("bf16", "fp16"), "fp8": ("fp8",), "int8": ("int8",), "fp4": ("fp4", "nvfp4")}
"""Columns of peaks, and the formats that fill them; others are in the text of one device."""

_HEAD = ("", "memory", "bandwidth", *_PEAKS, "price", "assumed", "")
_TERA = 1e12


def document(devices: Devices, *, is_one: bool = False) -> Document:
    """A row a device: memory, bandwidth, peaks, price, how many values nobody published.

    Args:
        is_one: a single one was asked for, which has its sources then.
    """
    if is_one:
        (device,) = devices.devices
        dated = f"price {device.price_date or 'undated'}"
        said = figures("device", device_figures(device), device.provenance)
        closing = [f"{assumed_text(device.provenance)}; {dated}"]
        return described(device.name, device.title, [said], closing)
    rows = [_row(device) for device in devices.devices]
    align = "<" + ">" * (len(_HEAD) - 2) + "<"
    table = Table(heads=_HEAD, rows=rows, align=align, sorts=True)
    note = "peaks in TFLOP/s, of dense products; prices an hour, as dated in the files"
    sources = hint(HINTS["devices"])
    sections = (section("devices", table), section("", Note(note), is_bare=True), sources)
    return Document(title="devices", line=plural(len(rows), "device"), head=(), sections=sections)


def _row(device: DeviceSpec) -> tuple[str, ...]:
    n_assumed = sum(value.is_assumed for value in device.provenance)
    peaks = device.peak_flop_per_s
    return (
        device.name,
        show(device.hbm_bytes, "B"),
        show(device.hbm_bytes_per_s, "B/s"),
        *(_peak(peaks, names) for names in _PEAKS.values()),
        show(device.usd_per_hour, "USD/h"),
        f"{n_assumed} of {len(device.provenance)}",
        device.title,
    )


def _peak(peaks: Mapping[str, float], names: Sequence[str]) -> str:
    return next((f"{peaks[name] / _TERA:.6g}" for name in names if name in peaks), "")
