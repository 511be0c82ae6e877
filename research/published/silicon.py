"""Tables of the package `aiconfigurator-core`: Parquet, one file an operation, engine and version.

Times are in milliseconds, heads are those of one device, one layer. The products of fp8 include
the quantisation of their inputs. Source: [AIConfigurator2026].
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.errors import Problem, RequestError
from planner.specs.files.texts import UnreadError, read_bytes
from planner_workshop.calibration.tables import (
    MOST_BYTES,
    Measured,
    Reading,
    RejectedRow,
)
from research.published.folders import files_below
from research.published.silicon_blocks import READERS
from research.published.silicon_rows import Origin, columns_of

Table = dict[str, np.ndarray]

NO_PEAKS: Mapping[str, float] = MappingProxyType({})

ENGINES = ("trtllm", "sglang", "vllm")
LEAST_SIDE = 256
"""Products with a shorter side are left out: no layer of a served model has them."""

D_HEAD = 128
"""Attention of other head sizes runs other kernels in the same tables."""

MOST_SHARING = 16
"""Query heads of a KV head up to which decode runs the grouped program; one alone, or more than
these, run others: on H100 under TensorRT-LLM those of 48 and more are five times slower."""

_FORMATS: dict[str, tuple[str, float, float]] = {
    # name in the tables: name here, bytes of a weight and of an input, scales included
    "bfloat16": ("bf16", 2.0, 2.0),
    "fp8": ("fp8", 1.0, 1.0),
    "fp8_block": ("fp8_block", 1.0, 1.03125),
    "nvfp4": ("nvfp4", 0.5625, 0.5625),
}
MOST_ROWS = 10**7
_MILLI = 1e-3


def is_silicon(path: Path) -> bool:
    """Whether it is a Parquet file, or a folder that holds some."""
    return path.suffix == ".parquet" or bool(files_below(path, ".parquet"))


def read_silicon(
    path: Path,
    engine: str,
    peaks: Mapping[str, float] = NO_PEAKS,
    *,
    programs: frozenset[str] = frozenset(),
) -> Reading:
    """Rows of a Parquet file, or of all those in a folder that are of an engine.

    Args:
        path: file or folder.
        engine: whose kernels are read.
        peaks: of the device, by number format; blocks hold products of several formats.
        programs: names of kernels to read of tables of experts that hold several.

    Raises:
        RequestError: the package that reads Parquet is not installed.
    """
    reading = Reading()
    for file in [path] if path.is_file() else files_below(path, ".parquet"):
        named = [part for part in file.parts if part in ENGINES]
        if named and named[-1] != engine:
            continue
        try:
            reading += _read(file, engine, peaks, programs)
        except KeyError as error:
            reason = f"has no column {error}, so it is no table of `{file.stem}`"
            reading += Reading(refused=(RejectedRow(file=str(file), line=0, reason=reason),))
    return reading


def _read(path: Path, engine: str, peaks: Mapping[str, float], programs: frozenset[str]) -> Reading:
    """Rows of one file; of an operation without a reader, the reason why there are none."""
    reader, blocks = _READERS.get(path.stem), READERS.get(path.stem)
    if reader is not None:
        return Reading(tables=tuple(reader(_columns(path), str(path))))
    if blocks is None:
        reason = f"`{path.stem}` is of no operation that is fitted from these tables"
        return Reading(refused=(RejectedRow(file=str(path), line=0, reason=reason),))
    origin = Origin(file=str(path), engine=engine, peaks=peaks, programs=programs)
    parts = tuple(blocks(_columns(path), origin))
    return Reading(
        tables=tuple(part for part in parts if isinstance(part, Measured)),
        refused=tuple(part for part in parts if isinstance(part, RejectedRow)),
    )


def _columns(path: Path) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        remedy = "`pip install 'llm-serving-planner[calibrate]'`"
        fact = "needs the package pyarrow to be read"
        raise RequestError([Problem(where=str(path), fact=fact, remedy=remedy)]) from None
    try:
        content = read_bytes(path, most_bytes=MOST_BYTES)
    except UnreadError as error:
        raise RequestError([error.problem(str(path))]) from None
    try:
        rows = parquet.ParquetFile(pyarrow.BufferReader(content))
        table = rows.read() if rows.metadata.num_rows <= MOST_ROWS else None
    except (pyarrow.ArrowException, OSError) as error:
        fact = f"is not Parquet: {str(error).splitlines()[0][:200]}"
        raise RequestError([Problem(where=str(path), fact=fact)]) from None
    if table is None:
        fact = f"has more than {MOST_ROWS:,} rows"
        raise RequestError([Problem(where=str(path), fact=fact)])
    return {name: table[name].to_numpy() for name in table.column_names}


def _gemm(table: Table, file: str) -> Iterator[Measured]:
    large = (table["n"] >= LEAST_SIDE) & (table["k"] >= LEAST_SIDE)
    for name, (form, weight_bytes, input_bytes) in _FORMATS.items():
        rows = np.flatnonzero((table["gemm_dtype"] == name) & large)
        columns = columns_of(
            len(rows),
            **{side: table[side][rows] for side in ("m", "n", "k")},
            weight_bytes=weight_bytes,
            input_bytes=input_bytes,
            output_bytes=2.0,
        )
        yield from _rows(table, rows, file, ("gemm", form, form.partition("_")[0]), columns)


def _decode(table: Table, file: str) -> Iterator[Measured]:
    for name, form, cache_bytes in (("bfloat16", "bf16", 2.0), ("fp8", "fp8", 1.0)):
        chosen = (table["kv_cache_dtype"] == name) & _usual(table) & _shared(table)
        rows = np.flatnonzero(chosen)
        columns = columns_of(
            len(rows),
            batch=table["batch_size"][rows],
            context=(table["isl"] + table["step"])[rows],
            **_heads(table, rows),
            cache_bytes=cache_bytes,
        )
        yield from _rows(table, rows, file, ("decode_attention", form, "bf16"), columns)


def _prefill(table: Table, file: str) -> Iterator[Measured]:
    for arithmetic, cache, form, cache_bytes in (
        ("bfloat16", "bfloat16", "bf16", 2.0),
        ("bfloat16", "fp8", "fp8", 1.0),
        ("fp8", "fp8", "fp8_fp8", 1.0),
    ):
        chosen = (table["attn_dtype"] == arithmetic) & (table["kv_cache_dtype"] == cache)
        rows = np.flatnonzero(chosen & _usual(table) & (table["isl"] > 1))
        columns = columns_of(
            len(rows),
            batch=table["batch_size"][rows],
            tokens=table["isl"][rows],
            past_tokens=table["step"][rows],
            **_heads(table, rows),
            cache_bytes=cache_bytes,
        )
        peak = "fp8" if arithmetic == "fp8" else "bf16"
        yield from _rows(table, rows, file, ("prefill_attention", form, peak), columns)


def _usual(table: Table) -> BoolArray:
    """Whole contexts, and heads of the usual size."""
    usual: BoolArray = table["head_dim"] == D_HEAD
    if "window_size" in table:
        usual = usual & (table["window_size"] == 0)
    return usual


def _shared(table: Table) -> BoolArray:
    """Rows whose query heads share KV heads, as the models of today do."""
    kv_heads = np.maximum(table["num_key_value_heads"], 1)
    sharing = np.where(table["num_key_value_heads"] == 0, 1, table["num_heads"] / kv_heads)
    return np.asarray((sharing > 1) & (sharing <= MOST_SHARING))


def _heads(table: Table, rows: IntArray) -> dict[str, FloatArray]:
    kv_heads = table["num_key_value_heads"][rows]
    heads = table["num_heads"][rows]
    return {
        "n_heads": heads,
        "n_kv_heads": np.where(kv_heads == 0, heads, kv_heads),
        "d_head": table["head_dim"][rows],
    }


def _rows(
    table: Table,
    rows: IntArray,
    file: str,
    named: tuple[str, str, str],
    columns: dict[str, FloatArray],
) -> Iterator[Measured]:
    family, form, peak = named
    if len(rows):
        yield Measured(
            family=family,
            format=form,
            peak_format=peak,
            columns=columns,
            measured_s=table["latency"][rows].astype(float) * _MILLI,
            file=file,
            lines=rows + 1,
        )


_READERS: dict[str, Callable[[Table, str], Iterator[Measured]]] = {
    "gemm_perf": _gemm,
    "generation_attention_perf": _decode,
    "context_attention_perf": _prefill,
}
