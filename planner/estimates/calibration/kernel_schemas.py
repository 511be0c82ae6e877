"""What kernel files may say: their text, their shape, and what no single value of it shows.

Families, formats and constants are those of the closed forms; what a fit says of itself has to
agree. Each check reads the raw table and speaks only of values that are sound, so that a file with
a fault elsewhere is still checked in full.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from planner.equations.collectives import KINDS
from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import kernel_faults
from planner.estimates.calibration.fitting import Fitted
from planner.specs.kernels import Kernel, KernelTable
from planner.specs.tables import ASSUMED
from planner.specs.validation.layouts import Section, lay_out
from planner.specs.validation.problems import Finding
from planner.specs.validation.values import NOT_EMPTY, one_of

EXPERTS = "experts"
"""The family of which engines have several programs, by a name of their own: `backend`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry(Kernel):
    """A kernel as a file has it.

    Args:
        backend: of several programs for experts, in the engine's own words.
    """

    family: Annotated[str, one_of("family", FAMILIES)]
    backend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """The kernels of one device under one engine, as a file has them."""

    name: str
    device: str
    engine: str
    version: str
    n_sms: int = 0
    description: str = ""
    kernel: Annotated[tuple[KernelEntry, ...], NOT_EMPTY]


lay_out(
    KernelFile,
    Section("table", "name device engine version description", sourced=False),
    Section("table", "n_sms"),
    Section("", "kernel", sourced=False),
)


def file_faults(said: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with kernels beyond their shape; of values that are sound."""
    seen: set[tuple[str, str, str]] = set()
    for place, one in enumerate(said.get("kernel", ())):
        field = f"kernel[{place}]"
        for inside, fact, remedy in (*_kernel_faults(one, said), *_fit_faults(one.fit)):
            yield Finding(f"{field}.{inside}", fact, remedy)
        key = (one.family, one.format, one.backend)
        if one.family and one.format and key in seen:
            fact, remedy = "has this format already", "keep one of the two"
            yield Finding(field, fact, remedy, value=one.family)
        seen.add(key)


_Faults = Iterator[tuple[str, str, str]]
"""Key, fact, remedy."""


def _kernel_faults(entry: Any, said: Mapping[str, Any]) -> _Faults:  # noqa: ANN401
    family = entry.family
    if entry.backend and family in FAMILIES.keys() - {EXPERTS}:
        yield "backend", f"is of `{EXPERTS}` alone", "leave it out"
    if family and entry.format and entry.constants:
        n_sms = said.get("n_sms") or 0
        found = kernel_faults(FAMILIES[family], entry.format, entry.constants, n_sms=n_sms)
        yield from ((inside, fact, remedy) for inside, _, fact, remedy in found)


def _fit_faults(fit: Any) -> _Faults:  # noqa: ANN401
    """Errors that contradict each other; half of a pair; rows of what is assumed."""
    if not fit:
        return
    for before in ("", "left_out_"):
        median, p90 = (getattr(fit, f"{before}{which}_error") for which in ("median", "p90"))
        if _is_number(median) and _is_number(p90) and p90 < median:
            fact = f"is below the median, {median:g}"
            yield f"fit.{before}p90_error", fact, "nine rows in ten are within it"
        for one, value, other in (("median", median, p90), ("p90", p90, median)):
            if before and value is None and other is not None:
                fact, remedy = "is missing", "write both errors of what was left out, or none"
                yield f"fit.{before}{one}_error", fact, remedy
    if fit.left_out != "shapes" and fit.left_out_median_error is None:
        remedy = "write the errors of what was left out, or leave it out"
        yield "fit.left_out", "says what no error is of", remedy
    if fit.source == ASSUMED and fit.n_rows:
        fact, remedy = "are rows of what was not measured", "name their source, or write `0`"
        yield "fit.n_rows", fact, remedy


def _is_number(value: object) -> bool:
    return isinstance(value, float)


def kernel_file(table: KernelTable, *, name: str, n_sms_source: str, comment: str = "") -> str:
    """The text of a file, in TOML.

    Args:
        table: what it says.
        name: of the file, without its ending.
        n_sms_source: where the number of multiprocessors comes from.
        comment: its first line.
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += ["[table]", f"name = {json.dumps(name)}", f"device = {json.dumps(table.device)}"]
    lines += [f"engine = {json.dumps(table.engine)}", f"version = {json.dumps(table.version)}"]
    if table.n_sms:
        lines.append(f"n_sms = {{ value = {table.n_sms}, source = {json.dumps(n_sms_source)} }}")
    for one in table.kernels.values():
        lines += ["", *_entry(one)]
    return "\n".join(lines) + "\n"


def network_sections(fitted: Sequence[Fitted], *, source: str) -> str:
    """Collectives as the sections of a topology file that say what was measured inside a node.

    Args:
        fitted: kernels among them are left out.
        source: where the rows come from.
    """
    lines = []
    for kind in KINDS:
        of_kind = [one for one in fitted if one.table.family == kind]
        sizes = {int(one.table.columns["n_devices"][0]): one for one in of_kind}
        if not sizes:
            continue
        found = [_ordered(one) for _, one in sorted(sizes.items())]
        names = ("short_latency", "short_bandwidth", "long_latency", "long_bandwidth")
        lines += ["", f"[nodes.scale_up.measured.{kind}]", f"source = {json.dumps(source)}"]
        lines.append(f"n_devices = {sorted(sizes)}")
        for name, values in zip(names, zip(*found, strict=True), strict=True):
            unit = "s" if name.endswith("latency") else "B/s"
            lines.append(f"{name} = {json.dumps([f'{value:.4g} {unit}' for value in values])}")
    return "\n".join(lines[1:]) + "\n" if lines else ""


def _ordered(one: Fitted) -> tuple[float, ...]:
    """Latency and bandwidth of both forms, that of short messages first."""
    forms = [
        (one.constants[f"{form}_latency_s"], one.constants[f"{form}_bytes_per_s"])
        for form in ("short", "long")
    ]
    short, long = sorted(forms)
    return (*short, *long)


def _entry(kernel: Kernel) -> Iterator[str]:
    yield "[[kernel]]"
    yield f"family = {json.dumps(kernel.family)}"
    yield f"format = {json.dumps(kernel.format)}"
    yield "[kernel.constants]"
    for name, value in kernel.constants.items():
        yield f"{name} = {_number(value)}"
    fit = kernel.fit
    yield "[kernel.fit]"
    yield f"source = {json.dumps(fit.source, ensure_ascii=False)}"
    yield f"n_rows = {fit.n_rows}"
    yield f"median_error = {fit.median_error:.4f}"
    yield f"p90_error = {fit.p90_error:.4f}"
    if fit.left_out_median_error is not None and fit.left_out_p90_error is not None:
        yield f"left_out_median_error = {fit.left_out_median_error:.4f}"
        yield f"left_out_p90_error = {fit.left_out_p90_error:.4f}"
        yield f"left_out = {json.dumps(fit.left_out)}"


def _number(value: float) -> str:
    """As TOML writes it: `1e-06` and `3.5e-06` are floats, `78` an integer."""
    return f"{value:.6g}"
