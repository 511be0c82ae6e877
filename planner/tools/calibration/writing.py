"""Constants that were fitted, as files: kernels of an engine on a device, collectives in a node."""

import json
from collections.abc import Iterator, Sequence

from planner.equations.collectives import KINDS
from planner.specs.records.kernels import Kernel, KernelTable
from planner.tools.calibration.fitting import Fitted


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
