"""The tables of `docs/accuracy.md`, as Markdown; rounded so that any machine writes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from research import calibration, memory, rows
from research.ideal import papers_formula
from research.reproduced import reproduced
from research.rows import Row
from research.timing import DIFFERS, layout_choice, predicted_s, stated_s

GROUPS: Sequence[tuple[str, Sequence[Row], str]] = (
    ("TPU: Table 2 and 36.9 ms", rows.tpu_calibration(), "fitted"),
    *(
        (f"TPU: {name}", [r for r in rows.tpu_held_out() if r.column == column], "held out")
        for name, column in (
            ("PaLM 540B prefill", "PaLM-prefill"),
            ("PaLM 540B generate", "PaLM-generate"),
            ("PaLM 540B total (sums)", "PaLM-total"),
            ("MT-NLG 530B total", "MT-NLG-total"),
        )
    ),
    ("TPU: PaLM 62B, Table 3", rows.of_table("Table 3"), "held out"),
    ("**TPU: all held out**", rows.tpu_held_out(), "held out"),
    ("A100: Table D.2", rows.a100_calibration(), "fitted"),
    *(
        (f"A100: {name}", [r for r in rows.a100_held_out() if r.ffn == ffn], "held out")
        for name, ffn in (("TP 16", "TP16"), ("TP 32", "TP32"), ("TP 8 × PP 3", "PP3xTP8"))
    ),
    ("**A100: all held out**", rows.a100_held_out(), "held out"),
)


@cache
def predicted_ms(row: Row) -> float:
    """What the planner says [ms]."""
    return stated_s(row) * 1e3


@cache
def formula_ms(row: Row) -> float:
    """What the paper's formula says [ms]."""
    return predicted_s(row, papers_formula) * 1e3


def errors(
    chosen: Sequence[Row], measured_ms: Callable[[Row], float] = lambda row: row.judged_ms
) -> np.ndarray:
    """Predicted over measured, less one."""
    return np.array([predicted_ms(row) / measured_ms(row) - 1 for row in chosen])


def formula_errors(chosen: Sequence[Row]) -> np.ndarray:
    """The same of the paper's formula."""
    return np.array([formula_ms(row) / row.judged_ms - 1 for row in chosen])


def _table(head: Sequence[str], body: Iterator[Sequence[str]], align: str) -> str:
    """A Markdown table; `align` has one of `l` and `r` a column."""
    rule = [{"l": "---", "r": "---:"}[side] for side in align]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *body))


def percent(fraction: float, *, signed: bool = False) -> str:
    """One digit after the point; no sign before zero."""
    text = f"{100 * fraction:+.1f}" if signed else f"{100 * fraction:.1f}"
    return f"{'0.0' if text in ('-0.0', '+0.0') else text} %"


def _summary(found: np.ndarray) -> tuple[str, str, str]:
    size = np.abs(found)
    return percent(np.median(size)), percent(np.percentile(size, 90)), percent(size.max())


def summary_text(found: np.ndarray) -> str:
    """Median, ninetieth percentile and largest, in words."""
    median, ninetieth, largest = _summary(found)
    return f"median {median}, ninetieth percentile {ninetieth}, largest {largest}"


def groups_table() -> str:
    """Errors of each group, beside those of the paper's own formula."""

    def body() -> Iterator[Sequence[str]]:
        for name, chosen, role in GROUPS:
            found = errors(chosen)
            bias = percent(found.mean(), signed=True)
            formula = percent(np.median(np.abs(formula_errors(chosen))))
            yield name, str(len(chosen)), role, *_summary(found), bias, formula

    head = ("group", "rows", "role", "median", "90th", "largest", "bias", "formula, median")
    return _table(head, body(), "lrlrrrrr")


def scatter_text() -> str:
    """How far repeated measurements of PaLM's decode step are apart, in words."""
    steps: dict[int, list[float]] = {}
    for row in rows.of_table("D.2", "D.3", "D.4"):
        if row.column == "PaLM-generate":
            steps.setdefault(row.batch, []).append(row.time_ms / row.n_output)
    away = [abs(step / np.mean(three) - 1) for three in steps.values() for step in three]
    median, ninetieth, largest = _summary(np.array(away))
    return f"{median} (median), {ninetieth} (ninetieth percentile) and {largest} (largest) away"


def constants_table() -> str:
    """The constants of both device files, and how much one row moves them."""

    def body() -> Iterator[Sequence[str]]:
        for device, fitted, without in (
            (calibration.tpu_device(), calibration.fitted_tpu(), calibration.tpu_without_each()),
            (calibration.a100_device(), calibration.fitted_a100(), ()),
        ):
            source = {entry.key: entry.source for entry in device.provenance}
            for name in fitted.names:
                key = name.removesuffix("_s")
                values = sorted(other.constants()[name] for other in without)
                span = " to ".join(_constant(value, name) for value in values[:1] + values[-1:])
                in_file = _constant(getattr(device, name), name)
                yield f"`{device.name}`", f"`{key}`", in_file, span, source[f"attainable.{key}"]

    return _table(("device", "constant", "value", "range", "source"), body(), "llrrl")


def _constant(value: float, name: str) -> str:
    return f"{value * 1e6:.0f} µs" if name.endswith("_s") else f"{value:.3f}"


def layouts_table() -> str:
    """The choices of Tables 2 and 3."""

    def body() -> Iterator[Sequence[str]]:
        for row in rows.of_table("Table 2", "Table 3"):
            choice = layout_choice(row)
            yield (
                f"{row.table}: {row.model} {row.phase}, {row.n_chips} chips",
                str(row.batch),
                ", ".join(choice.stated),
                ", ".join(choice.fastest) + ("" if choice.agrees else " ✗"),
                "any" if "WG XYZ" in choice.fastest else choice.notation,
                percent(choice.ratio - 1),
            )

    head = (
        "row",
        "batch",
        "the paper's",
        "the fastest",
        "weights at rest",
        "the paper's slower by",
    )
    return _table(head, body(), "lrlllr")


def reproduced_table(name: str) -> str:
    """A table of `papers/`, a row each."""

    def body() -> Iterator[Sequence[str]]:
        for one in reproduced(name).rows:
            figures = (_figure(one.row.published), _figure(one.answered))
            yield one.row.series, one.row.label, *figures, percent(one.error, signed=True)

    return _table(("", "", "printed", "answered", "error"), body(), "llrrr")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e6 else f"{value:.3g}"


STATED_OTHERWISE = {
    "§4.2, attention's share at 128 sequences of 32768 tokens": "the cache is taken to stream as "
    "fast as weights. No other rate helps: both ends of the range hold the same bytes, and one "
    "that gives 31 % at this end gives 18 % at the other, where 8 % is stated",
    "Figure 1, the least step on up to 256 chips": "the fixed cost of a layer is measured on 64 "
    "chips, and is taken to be the same on 128 and 256",
}
"""Sentences that are more than a tenth off, and why."""


def failures() -> str:
    """What is not reproduced, and why."""
    found = {
        **{f"{name}, layout": reason for name, reason in DIFFERS.items()},
        **{f"{name}, out of memory": reason for name, reason in memory.FITS_BY_ACCOUNT.items()},
        **{f"{name}, memory": reason for name, reason in memory.TOO_LARGE_BY_ACCOUNT.items()},
        **STATED_OTHERWISE,
    }
    return "\n".join(f"* **{name}**: {reason}." for name, reason in found.items())


def rows_table(chosen: Sequence[Row]) -> str:
    """Every row with its prediction."""
    fitted = (*rows.tpu_calibration(), *rows.a100_calibration())
    repeated = rows.tpu_repeated()

    def body() -> Iterator[Sequence[str]]:
        for row in chosen:
            role = "fitted" if row in fitted else "repeats" if row in repeated else ""
            doubted = "*" if row.judged_ms != row.time_ms else ""
            yield (
                str(row),
                f"{row.n_chips}",
                f"{row.n_input} + {row.n_output}",
                f"{row.judged_ms:g}{doubted}",
                _milliseconds(predicted_ms(row)),
                percent(predicted_ms(row) / row.judged_ms - 1, signed=True),
                percent(formula_ms(row) / row.judged_ms - 1, signed=True),
                role,
            )

    head = ("row", "chips", "tokens", "measured ms", "predicted ms", "error", "formula", "")
    table = _table(head, body(), "lrrrrrrl")
    if all(row.judged_ms == row.time_ms for row in chosen):
        return table
    return f"{table}\n\n\\* printed in the other model's column, `papers/README.md` anomaly 1."


def _milliseconds(time_ms: float) -> str:
    return f"{time_ms:.3g}" if time_ms < 999.5 else f"{time_ms:.0f}"
