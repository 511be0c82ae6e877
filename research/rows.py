"""The rows of `papers/pope2022.csv`, and which of them constants are fitted on."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.specs.files.papers import NO_PLAN

FILE = Path(__file__).parents[1] / "papers" / "pope2022.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One printed number with its circumstances; `None` where the paper says nothing.

    `time_ms` is as printed, `judged_ms` as `papers/README.md`, anomaly 1, corrects it.
    """

    line: int
    table: str
    column: str
    model: str
    n_chips: int
    chip: str
    batch: int | None
    phase: str
    n_input: int | None
    n_output: int | None
    context: str
    ffn: str
    attention: str
    prefill_attention: str
    weights_format: str
    time_ms: float | None
    judged_ms: float | None
    mfu: float | None
    note: str
    cells: tuple[str, ...]

    @property
    def n_context(self) -> int:
        return int(self.context)

    @property
    def bytes_per_weight(self) -> float:
        return 1.0 if self.weights_format == "int8" else 2.0

    @property
    def is_tpu(self) -> bool:
        return self.chip == "TPUv4"

    @property
    def ran_out_of_memory(self) -> bool:
        return self.note == "OOM"

    def __str__(self) -> str:
        what = self.column or f"{self.model} {self.phase}"
        batch = f" B{self.batch}" if self.batch else ""
        extra = {"Text 4.4": f" {self.weights_format}", "Table 1": f" {self.attention}"}
        chips = f" {self.n_chips}" if self.table == "Table 3" else ""
        return f"{self.table} {what}{chips}{batch}{extra.get(self.table, '')}"


@cache
def all_rows() -> tuple[Row, ...]:
    """Every row of the file, in its order."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(_row(line, raw) for line, raw in enumerate(csv.DictReader(file), start=2))


def _row(line: int, raw: dict[str, str]) -> Row:
    return Row(
        line=line,
        table=raw["source_table"],
        column=raw["column"],
        model=raw["model"],
        n_chips=int(raw["chips"] or 0),
        chip=raw["chip_type"],
        batch=int(raw["batch"]) if raw["batch"].isdecimal() else None,
        phase=raw["phase"],
        n_input=int(raw["input_len"]) if raw["input_len"] else None,
        n_output=int(raw["output_len"]) if raw["output_len"] else None,
        context=raw["context_len"],
        ffn=raw["layout_ffn"],
        attention=raw["layout_attn"],
        prefill_attention=raw["prefill_attn"] or raw["layout_attn"],
        weights_format=raw["weights_format"],
        time_ms=_time(raw["time_ms"]),
        judged_ms=_time(raw["time_ms_corrected"]),
        mfu=float(raw["mfu"]) if raw["mfu"] else None,
        note=raw["note"],
        cells=tuple(raw.values()),
    )


def _time(text: str) -> float | None:
    return None if text in ("", NO_PLAN) else float(text)


def of_table(*tables: str) -> tuple[Row, ...]:
    """Rows of some tables."""
    return tuple(row for row in all_rows() if row.table in tables)


def timed_on_tpu() -> tuple[Row, ...]:
    """Rows that time one batch on TPU v4."""
    return tuple(row for row in all_rows() if row.is_tpu and row.judged_ms and row.batch)


def timed_on_a100() -> tuple[Row, ...]:
    """Rows that time FasterTransformer on A100."""
    return tuple(row for row in all_rows() if not row.is_tpu and row.judged_ms)


def out_of_memory() -> tuple[Row, ...]:
    """Rows whose only result is that memory ran out."""
    return tuple(row for row in all_rows() if row.ran_out_of_memory)


def tpu_calibration() -> tuple[Row, ...]:
    """The five rows that the TPU's constants are fitted on."""
    return (*of_table("Table 2"), *(row for row in of_table("Text 4.4") if row.time_ms == 36.9))


def tpu_repeated() -> tuple[Row, ...]:
    """28.5 ms is 1.82 s over 64 steps: a row of the fit once more, so neither fitted nor judged."""
    return tuple(row for row in of_table("Text 4.4") if row.time_ms == 28.5)


def tpu_held_out() -> tuple[Row, ...]:
    """Rows that no constant of the TPU has seen."""
    seen = (*tpu_calibration(), *tpu_repeated())
    return tuple(row for row in timed_on_tpu() if row not in seen)


def a100_calibration() -> tuple[Row, ...]:
    """The rows that the A100's constants are fitted on."""
    return tuple(row for row in timed_on_a100() if row.table == "D.2")


def a100_held_out() -> tuple[Row, ...]:
    """Rows that no constant of the A100 has seen."""
    return tuple(row for row in timed_on_a100() if row.table != "D.2")
