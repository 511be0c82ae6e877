"""Tables in the format of alibaba/InferSim's `bench_data`, and what is wrong with some rows.

The folder says the family and the device, `mha/decode/h20/32-4-128.csv` the heads. Times are
in microseconds. Shares of the peak (`mfu`) are of fp8 for products, of bf16 for attention, and
tell what was truly run: how many tokens random routing gave, and rows whose time is a slip.

Source: [InferSim].
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.errors import SpecError
from planner.specs.files.texts import UnreadError, csv_of, is_number, read_text
from planner_workshop.calibration.tables import (
    MOST_BYTES,
    Measured,
    Reading,
    RejectedRow,
)
from research.published.folders import files_below
from research.published.silicon_rows import columns_of

FAMILIES = ("gemm", "grouped_gemm", "mha", "mla")
PADDED_COLUMNS = 128
"""DeepGEMM ran intermediate sizes padded to this; shares of the peak show it."""

INPUT_BYTES = 1.03125
"""An fp8 number and its part of a 4-byte scale for each 128 of them [B]."""

_TOLERANCE = 0.25
_SMALLEST_MFU = 0.02  # below this the share is rounded too far to check a time by it
_MICRO = 1e-6

Row = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: Path
    shown: str
    parts: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    lines: IntArray

    def column(self, name: str) -> FloatArray:
        return np.array([float(row[name]) for row in self.rows])


def is_infersim(path: Path) -> bool:
    """Whether a folder or a file lies as InferSim's do."""
    return bool(_relative(path)) or any((path / name).is_dir() for name in FAMILIES)


def read_infersim(path: Path, device: str, peaks: dict[str, float]) -> Reading:
    """Rows of one device in a folder, or of one file of it.

    Args:
        path: `bench_data`, a folder below it, or one file.
        device: name of the device, that of the folders.
        peaks: FLOP/s by format, to which the shares of the peak are.
    """
    paths = [path] if path.is_file() else files_below(path, ".csv")
    reading = Reading()
    seen: dict[tuple[str, bytes], str] = {}
    for file in paths:
        parts = _relative(file)
        if device not in parts:
            continue
        content = _content(file)
        digest = hashlib.sha256(content.encode()).digest()
        twin = seen.setdefault((parts[0], digest), str(file))
        if twin != str(file):
            same = RejectedRow(file=str(file), line=0, reason=f"byte for byte the same as {twin}")
            reading += Reading(refused=(same,))
        else:
            reading += _read(file, content, parts, peaks)
    return reading


def _relative(path: Path) -> tuple[str, ...]:
    """Folders and stem from the family on: ('mha', 'decode', 'h20', '32-4-128')."""
    parts = (*path.parts[:-1], path.stem) if path.suffix else path.parts
    for name in (*FAMILIES, "gdn", "dsa"):
        if name in parts:
            return parts[parts.index(name) :]
    return ()


def _content(path: Path) -> str:
    try:
        return read_text(path, most_bytes=MOST_BYTES)
    except UnreadError as error:
        raise SpecError([error.problem(str(path))]) from None


def _read(path: Path, content: str, parts: tuple[str, ...], peaks: dict[str, float]) -> Reading:
    shown = str(path)
    try:
        text = csv_of(content)
    except UnreadError as error:
        raise SpecError([error.problem(shown)]) from None
    if parts[0] not in FAMILIES:
        reason = f"`{parts[0]}` kernels have no closed form here"
        return Reading(refused=(RejectedRow(file=shown, line=0, reason=reason),))
    if not text or any(is_number(cell) for cell in text[0]):
        reason = "has no header: its first row would be lost, and its columns are a guess"
        return Reading(refused=(RejectedRow(file=shown, line=0, reason=reason),))
    header = tuple(map(str.strip, text[0]))
    body = [(line, row) for line, row in enumerate(text[1:], start=2) if any(row)]
    file = _File(
        path=path,
        shown=shown,
        parts=parts,
        header=header,
        rows=tuple(dict(zip(header, map(str.strip, row), strict=False)) for _, row in body),
        lines=np.array([line for line, _ in body], dtype=np.int64),
    )
    readers = {"gemm": _gemm, "grouped_gemm": _grouped, "mha": _attention, "mla": _latent}
    return readers[parts[0]](file, peaks)


def _gemm(file: _File, peaks: dict[str, float]) -> Reading:
    m, n, k = (file.column(name) for name in ("m", "n", "k"))
    seconds = file.column("latency_us") * _MICRO
    columns = columns_of(
        len(m), m=m, n=n, k=k, weight_bytes=1.0, input_bytes=INPUT_BYTES, output_bytes=2.0
    )
    table = _measured(file, "gemm", "fp8_block", columns, seconds)
    return _consistent(table, 2 * m * n * k / peaks["fp8"], file.column("mfu"))


def _grouped(file: _File, peaks: dict[str, float]) -> Reading:
    """Both products of the experts; the tokens that routing gave are those of the peak's share."""
    names = ("num_local_experts", "hidden_size", "intermediate_size", "tokens_per_expert")
    groups, hidden, intermediate, each = (file.column(name) for name in names)
    padded = np.ceil(intermediate / PADDED_COLUMNS) * PADDED_COLUMNS
    nominal = groups * each
    reading = Reading()
    kept = each > 1.5
    phase = "decode" if "decode" in file.parts else "prefill"
    reason = "one token an expert was drawn as none or one: half of the experts are empty"
    reading += _refusing(file, ~kept, reason)
    adds_up = file.column("num_gpus") * groups == file.column("num_experts")
    reading += _refusing(
        file, kept & ~adds_up, "its local experts of all devices are not all experts"
    )
    kept &= adds_up
    for part, k, n in (("up", hidden, 2 * padded), ("down", padded, hidden)):
        seconds = file.column(f"{part}_proj_us") * _MICRO
        run = file.column(f"{part}_mfu") * seconds * peaks["fp8"] / (2 * k * n)
        # A share rounded to three digits says less than the nominal count when it is small.
        tokens = np.where(file.column(f"{part}_mfu") < _SMALLEST_MFU, nominal, run)
        columns = columns_of(
            len(k),
            tokens=tokens,
            n_groups_hit=groups,
            n=n,
            k=k,
            weight_bytes=1.0,
            input_bytes=INPUT_BYTES,
            output_bytes=2.0,
        )
        table = _measured(file, f"grouped_gemm_{phase}", "fp8_block", columns, seconds)
        reading += Reading(tables=(table.taking(kept),))
    return reading


def _attention(file: _File, peaks: dict[str, float]) -> Reading:
    heads, kv_heads, d_head = (float(part) for part in file.parts[-1].split("-"))
    peak = peaks["bf16"]
    seconds, mfu = file.column("latency_us") * _MICRO, file.column("mfu")
    n_rows = len(seconds)
    shape = {"n_heads": heads, "n_kv_heads": kv_heads, "d_head": d_head}
    if "prefill" in file.parts:
        tokens = file.column("seq_len")
        columns = columns_of(n_rows, batch=1.0, tokens=tokens, **shape)
        table = _measured(file, "prefill_attention", "bf16", columns, seconds)
        return _consistent(table, 2 * heads * d_head * tokens**2 / peak, mfu)
    batch, context = file.column("batch_size"), file.column("kv_len")
    is_fp8 = np.array([row["kv_dtype"].startswith("fp8") for row in file.rows])
    ideal_s = 4 * batch * context * heads * d_head / peak
    columns = columns_of(
        n_rows, batch=batch, context=context, **shape, cache_bytes=np.where(is_fp8, 1.0, 2.0)
    )
    reading = Reading()
    for form, chosen in (("bf16", ~is_fp8), ("fp8", is_fp8)):
        if chosen.any():
            table = _measured(file, "decode_attention", form, columns, seconds).taking(chosen)
            reading += _consistent(table, ideal_s[chosen], mfu[chosen])
    return reading


def _latent(file: _File, peaks: dict[str, float]) -> Reading:
    heads, d_latent, d_rope = (float(part) for part in file.parts[-1].split("-"))
    seconds, mfu = file.column("latency_us") * _MICRO, file.column("mfu")
    if "prefill" in file.parts:
        tokens = file.column("seq_len")
        d_nope = d_value = d_latent  # without absorption the heads are whole: 128-128-64
        columns = columns_of(len(seconds), batch=1.0, tokens=tokens, n_heads=heads)
        flop = heads * tokens**2 * (d_nope + d_rope + d_value)
        table = _measured(file, "latent_prefill", "bf16", columns, seconds)
        return _consistent(table, flop / peaks["bf16"], mfu)
    batch, context = file.column("batch_size"), file.column("kv_len")
    columns = columns_of(
        len(seconds),
        batch=batch,
        context=context,
        n_heads=heads,
        d_latent=d_latent,
        d_rope=d_rope,
        cache_bytes=2.0,
    )
    flop = 2 * batch * context * heads * (2 * d_latent + d_rope)
    table = _measured(file, "latent_decode", "bf16", columns, seconds)
    return _consistent(table, flop / peaks["bf16"], mfu)


def _measured(
    file: _File, family: str, form: str, columns: dict[str, FloatArray], seconds: FloatArray
) -> Measured:
    attention = "attention" in family or "latent" in family
    return Measured(
        family=family,
        format=form,
        peak_format="bf16" if attention else "fp8",
        columns=columns,
        measured_s=seconds,
        file=file.shown,
        lines=file.lines,
    )


def _consistent(table: Measured, ideal_s: FloatArray, mfu: FloatArray) -> Reading:
    """Rows whose time is not what their share of the peak says are slips of the pen."""
    implied_s = ideal_s / np.maximum(mfu, 1e-9)
    off = np.abs(implied_s / table.measured_s - 1) > _TOLERANCE
    wrong = off & (mfu >= _SMALLEST_MFU)
    refused = tuple(
        RejectedRow(
            file=table.file,
            line=int(table.lines[row]),
            reason=f"{table.measured_s[row] * 1e6:.4g} us is not the {implied_s[row] * 1e6:.4g} us "
            f"that its own MFU of {mfu[row]:g} stands for",
        )
        for row in np.flatnonzero(wrong)
    )
    return Reading(tables=(table.taking(~wrong),), refused=refused)


def _refusing(file: _File, rows: BoolArray, reason: str) -> Reading:
    lines: Iterable[int] = (int(file.lines[row]) for row in np.flatnonzero(rows))
    return Reading(
        refused=tuple(RejectedRow(file=file.shown, line=line, reason=reason) for line in lines)
    )
