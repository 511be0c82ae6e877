"""The whole path of a calibration: read, admit, fit, judge; and what was fitted, as files."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.equations.collectives import COLLECTIVES, KINDS
from planner.equations.kernels.constants import kernel_faults
from planner.errors import Problem, RequestError
from planner.specs.files.places import exists
from planner.specs.files.tables import literal
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import MOST_ERROR, Fit, Kernel, KernelTable
from planner.specs.validation.problems import Problems
from planner.specs.validation.values import MOST_TEXT
from planner_workshop.calibration.fitting import Fitted, admit, fewest_rows, fit, peak_of
from planner_workshop.calibration.plain import read_plain
from planner_workshop.calibration.tables import FITTED, Measured, Reading, RejectedRow

MOST_NAMED = 8
"""Tables that a kernel file names as the source of its rows; others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants of a device under an engine, the rows behind them, and those refused.

    Args:
        device: that was measured.
        table: what a kernel file says.
        fitted: one entry a family and format, in the order of the table; collectives too.
        source: where the rows come from.
        refused: rows and files that no constant is fitted to.
    """

    device: DeviceSpec
    table: KernelTable
    fitted: tuple[Fitted, ...]
    source: str
    refused: tuple[RejectedRow, ...]


def calibrate(
    paths: Sequence[Path],
    device: DeviceSpec,
    *,
    engine: str,
    version: str = "",
    n_sms: int = 0,
    source: str = "",
    read: Callable[[Path], Reading] | None = None,
    on_fit: Callable[[str, int], None] | None = None,
) -> Calibration:
    """Fit the closed forms to tables of measured kernels.

    Args:
        paths: CSV as `plan measure` writes it, or folders of such.
        device: that was measured.
        engine: whose kernels they are.
        version: of the engine.
        n_sms: multiprocessors of the device; 0 leaves out the forms that count tiles.
        source: where the rows come from, as the file shall say; the names of the files if empty.
        read: rows of one path, where it is of another format.
        on_fit: called before each fit with the family and the number of its rows.

    Raises:
        RequestError: a file cannot be read, nothing is left to fit, or a package is missing.
    """
    unwritable = _unwritable(engine=engine, engine_version=version, source=source)
    wrong = Problems(problems=list(unwritable))
    parts = wrong.each(read or (lambda path: _read(path, device)), paths)
    wrong.settle(RequestError)
    admitted = admit(sum(parts, start=Reading()), device.peak_flop_per_s, device.hbm_bytes_per_s)
    tables, few = joined(admitted.tables)
    if not tables:
        raise RequestError(_nothing(paths, (*admitted.refused, *few), device, engine))
    fitted = []
    for table in tables:
        if on_fit is not None:
            on_fit(f"{table.family} {table.format}", table.n_rows)
        peak = peak_of(table, device.peak_flop_per_s)
        assert peak is not None
        rates = {"peak_flop_per_s": peak, "hbm_bytes_per_s": device.hbm_bytes_per_s}
        fitted.append(fit(table, rates, n_sms=n_sms))
    RequestError.raise_if_any(_unsound(fitted, device, n_sms))
    known_as = source or _names(paths, admitted.timed_on)
    return Calibration(
        device=device,
        table=KernelTable(
            device=device.name,
            engine=engine,
            version=version or "unknown",
            n_sms=n_sms,
            kernels=_kernels(fitted, known_as),
        ),
        fitted=tuple(fitted),
        source=known_as,
        refused=(*admitted.refused, *few),
    )


def _read(path: Path, device: DeviceSpec) -> Reading:
    if not exists(path):
        raise RequestError([Problem(where=str(path), fact="no such file or folder")])
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    return sum((read_plain(one, device.name) for one in files), start=Reading())


def joined(tables: Sequence[Measured]) -> tuple[list[Measured], list[RejectedRow]]:
    """One table for each family and format, whatever files they came from."""
    kinds: dict[tuple[str, str], list[Measured]] = {}
    for one in tables:
        kinds.setdefault((one.family, one.format), []).append(one)
    joined, few = [], []
    for (family, form), parts in kinds.items():
        names = set.intersection(*(set(one.columns) for one in parts))
        whole = replace(
            parts[0],
            columns={name: np.concatenate([one.columns[name] for one in parts]) for name in names},
            measured_s=np.concatenate([one.measured_s for one in parts]),
            lines=np.concatenate([one.lines for one in parts]),
        )
        fewest = fewest_rows(FITTED[family])
        if whole.n_rows < fewest:
            reason = f"{family} {form}: {whole.n_rows} rows are too few, {fewest} are needed"
            few.append(RejectedRow(file=whole.file, line=0, reason=reason))
        else:
            joined.append(whole)
    return joined, few


def _unwritable(**said: str) -> Iterator[Problem]:
    """Texts that no kernel file may hold."""
    for name, text in said.items():
        if len(text) > MOST_TEXT or not text.isprintable():
            fact = f"is not one line of at most {MOST_TEXT} characters"
            yield Problem(where=f"--{name.replace('_', '-')}", value=literal(text), fact=fact)


def _unsound(fitted: Sequence[Fitted], device: DeviceSpec, n_sms: int) -> Iterator[Problem]:
    """Fits that no kernel file may hold: of rows that are not of the kernel that they name."""
    for constants in fitted:
        family, form = constants.table.family, constants.table.format
        where = f"{family} {form}"
        faults = (
            ()
            if family in COLLECTIVES
            else kernel_faults(FITTED[family], form, constants.constants, n_sms=n_sms)
        )
        for fault in faults:
            fact = f"the fit's {fault.key.removeprefix('constants.')} {fault.fact}"
            value = literal(fault.value)
            yield Problem(where=where, value=value, fact=fact, remedy=fault.remedy)
        worst = max(constants.inside.p90, constants.outside.p90)
        if not worst <= MOST_ERROR:
            fact = f"no form describes these rows: one in ten is off by {worst:.3g} times its time"
            remedy = f"are they all of this kernel, on {device.name}?"
            yield Problem(where=where, fact=fact, remedy=remedy)


def _names(paths: Sequence[Path], timed_on: Sequence[str] = ()) -> str:
    """The tables that rows come from and what timed them, as one line that a file may hold."""
    names = [path.name or str(path) for path in paths]
    n_others = len(names) - MOST_NAMED
    more = f" and {n_others} others" if n_others > 0 else ""
    more += literal("".join(f", {one}" for one in timed_on), longest=MOST_TEXT // 2)
    return literal(", ".join(names[:MOST_NAMED]), longest=MOST_TEXT - len(more)) + more


def _nothing(
    paths: Sequence[Path], refused: Sequence[RejectedRow], device: DeviceSpec, engine: str
) -> list[Problem]:
    what = ", ".join(map(str, paths))
    fact = f"no row of {device.name} under {engine} is left to fit"
    reasons = [Problem(where=one.file, fact=one.reason) for one in refused[:5]]
    return [Problem(where="plan calibrate", value=what, fact=fact), *reasons]


def _kernels(fitted: Sequence[Fitted], source: str) -> dict[tuple[str, str], Kernel]:
    """What a kernel file holds: all but the collectives."""
    return {
        (fit.table.family, fit.table.format): _kernel(fit, source)
        for fit in fitted
        if fit.table.family not in COLLECTIVES
    }


def _kernel(fitted: Fitted, source: str) -> Kernel:
    return Kernel(
        family=fitted.table.family,
        format=fitted.table.format,
        constants=dict(fitted.constants),
        fit=Fit(
            source=source,
            n_rows=fitted.table.n_rows,
            median_error=fitted.inside.median,
            p90_error=fitted.inside.p90,
            left_out_median_error=fitted.outside.median,
            left_out_p90_error=fitted.outside.p90,
            left_out=fitted.left_out,
        ),
    )


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
        sections = [_ordered(one) for _, one in sorted(sizes.items())]
        names = ("short_latency", "short_bandwidth", "long_latency", "long_bandwidth")
        lines += ["", f"[nodes.scale_up.measured.{kind}]", f"source = {json.dumps(source)}"]
        lines.append(f"n_devices = {sorted(sizes)}")
        for name, values in zip(names, zip(*sections, strict=True), strict=True):
            unit = "s" if name.endswith("latency") else "B/s"
            lines.append(f"{name} = {json.dumps([f'{value:.4g} {unit}' for value in values])}")
    return "\n".join(lines[1:]) + "\n" if lines else ""


def _ordered(fit: Fitted) -> tuple[float, ...]:
    """Latency and bandwidth of both forms, that of short messages first."""
    forms = [
        (fit.constants[f"{form}_latency_s"], fit.constants[f"{form}_bytes_per_s"])
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
        yield f"{name} = {value:.6g}"  # `1e-06` and `3.5e-06` are floats of TOML, `78` an integer
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
