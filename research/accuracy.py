"""Write `docs/accuracy.md` and its plots from the rows and the model.

python -m research.accuracy --write      writes both
python -m research.accuracy --check      exits 1 if they say something else
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from research import calibration, rows, serving_tables, tables
from research.plot import Series, scatter
from research.rows import Row
from research.sets import intervals, ranking
from research.sets.constants import out_of_fold
from research.sets.rows import saturated, served
from research.tables import errors, formula_errors, percent, summary_text
from research.timing import layout_choice

DOCS = Path(__file__).parents[1] / "docs"

TEXT = """\
# Accuracy

What the planner predicts beside what was measured, row by row. The measurements are the {n_rows}
rows of [`papers/pope2022.csv`](../papers/README.md), all of [Pope2022]: TPU v4, and
FasterTransformer on A100. Written by `python -m research.accuracy --write`; the tests in
`research/` hold the bounds.

* **TPU v4**: three constants, fitted on five rows. The other {n_tpu} rows: {tpu}.
* **A100**: two constants, fitted on Table D.2. Tables D.3 and D.4, {n_a100} rows: {a100}.
* **Without constants**, by the paper's own formula (peaks, 270 GB/s for any collective,
  max(compute, memory) + network), the same rows have a median error of {formula_tpu} and
  {formula_a100}: it is always too fast.
* **Layouts**: {n_agree} of {n_layouts} choices of Tables 2 and 3 are exactly the fastest here.

![predicted against measured time](accuracy.svg)

Each time is what `plan reproduce` answers: it names the command line of each row. Not so are the
paper's formula, and rows that ran but do not fit by this account (below): these are timed pass by
pass.

An error is predicted / measured − 1; median, ninetieth percentile and largest are of its absolute
value, bias is its plain mean.

## By group

{groups}

"Sums" are PaLM's totals of Tables D.2-D.4: its prefill and generate, which have rows of their own,
added up. Leaving them out gives {without_sums}. Taking the totals of Table D.4 as they are printed,
which `papers/README.md` doubts, gives {as_printed}.

How well could any smooth model do? The same decode step is in Tables D.2, D.3 and D.4, at mean
contexts of 25 to 133 tokens, whose traffic hardly differs. Its three timings are {scatter_text}
from their mean.

## Constants

Fitted by least squares of log(predicted/measured), `research/calibration.py`, and rounded to
three digits. The range is that of five fits, each without one of the five rows: memory and overhead
stand in for each other, and only the int8 and bf16 steps of §4.4 tell them apart.

{constants}

Assumed, not fitted: the A100's share of HBM bandwidth ({a100_hbm}) and of network bandwidth (0.5 of
both tiers), latencies of links, reserves of memory. FasterTransformer halves micro-batches above
1024, 2048 or 8192 tokens, depending on its version; 2048 fits Table D.2 best and is taken.

Constants are blind to the rows they are judged on. The *form* of the model is not: the network
convention, the exponent of the roofline and one overhead a layer were chosen with all rows in
sight.

## Serving, kernel by kernel

`plan predict` times serving engines by kernels fitted to tables, nothing of which is fitted here.
[InferSim] publishes six measured throughputs, tokens a second and device, and its own predictions:

{infersim}

The mean error is {infersim_mean} (theirs 8.6 %), the largest {infersim_most} (15.2 %).

### Kernels that no fit has seen

Decode layers, products and attention and experts added up, of shapes left out of the fits: 44 cited
rows, `tests/data/infersim_rows.csv`. All of InferSim's rows that make up such layers, 242 of them,
are judged by `PLANNER_BENCH=bench_data python -m research.infersim_kernels`.

{layers}

The shipped files of `kernels/` say of each kernel how far it is off on shapes, models or degrees
that a fit on the others did not see. Medians here are over those fits, which each have their own
median and ninetieth percentile; an engine without a table has another's fit.
`python -m research.kernel_tables` makes the files from the measured tables, which are not part
of the project.

{kernels}

### Engines, from end to end

Public measurements of servers, {n_served} rows of two sets, in
[`tests/data/serving`](../tests/data/README.md): S comes with NVIDIA's aiconfigurator-core 0.12.0,
X is InferenceX's sweeps of DeepSeek-R1. Runs, model × GPU × engine × day, are dealt to folds by a
hash: each row is predicted by constants and biases that were fitted without its fold
([decision 30](decisions/0030-folds.md)). B300 and GB200 are in no fit. Formats are those of the
checkpoints; `python -m research.sets tpot` prints the same with what is left out and why. Each row
is what a command answers, with options that say what its source publishes: who sends requests, how
many are in flight, and what the server was told; nothing is inferred of a row. `python -m
research.sets typed` prints the command of each, and a test holds that command and table agree.
Beside it stands AIConfigurator 0.12.0 itself on the rows that it answers
(`python -m research.sets.peer`), by its current database, which is not always of the engine's
version in the row.

{tpot}

TTFT is that of every load, from one request in flight to hundreds, where it is published how
requests are sent; the others are apart:

{ttft}

`in its 90 %` is how often intervals hold that say so, `half width` what they reach up and down in
the median of the rows: by the errors that ship, which these rows made. A user's server is one that
nobody measured, so intervals are judged of devices, versions of engines and sources that their
errors were made without, each counted alike. Constants of engines are without the row's fold, not
without its source; and what errors are made of, cells that weigh alike and a client that is
described or not, was chosen with all rows in sight. `score` is the mean interval score of
logarithms, beside that of plain quantiles of the others' errors
(`python -m research.sets.intervals`):

{left_out}

Errors are nested: of a source, of a version in it, of a device, a model, degrees and a load. Each
effect's standard deviation is what means vary by within the effect before it, beyond chance:

{spreads}

![predicted against measured time of servers](serving.svg)

### Decisions

Where several layouts or engines were measured side by side, choosing the best prediction gives away
so much of the best measured throughput; a pair of engines is decided where the prediction is right
in two of three, or three of four cases by the law of both errors. `python -m research.sets.ranking
--pairs` lists each pair.

```text
{decisions}
```

Throughput where all requests are sent at once, TensorRT-LLM's page of v1.0, {n_saturated} rows that
no fit sees:

{saturated}

## Layouts

Every layout of the mesh is timed. Beside the paper's stands the fastest, and how much slower the
paper's is.

{layouts}

## Contexts that fit

Table 1: 30 % of the memory of 64 chips.

{contexts}

## Statements

{statements}

## Not reproduced

`plan reproduce` shows each beside the rest.

{failures}

Beyond these: another model or machine is less certain than another row of the same tables; sampling
and the host are in the overhead of a layer or nowhere; the paper's figures are not read off.

## TPU v4, every row

{tpu_rows}

## A100, every row

{a100_rows}
"""


def document() -> str:
    """The text of `docs/accuracy.md`."""
    return "\n\n".join(map(_wrapped, _filled().split("\n\n")))


def _filled() -> str:
    tpu, a100 = rows.tpu_held_out(), rows.a100_held_out()
    choices = [layout_choice(row) for row in rows.of_table("Table 2", "Table 3")]
    return TEXT.format(
        n_rows=len(rows.all_rows()),
        n_tpu=len(tpu),
        tpu=summary_text(errors(tpu)),
        n_a100=len(a100),
        a100=summary_text(errors(a100)),
        formula_tpu=percent(np.median(np.abs(formula_errors(tpu)))),
        formula_a100=percent(np.median(np.abs(formula_errors(a100)))),
        n_agree=sum(choice.agrees for choice in choices),
        n_layouts=len(choices),
        groups=tables.groups_table(),
        without_sums=summary_text(errors([r for r in tpu if r.column != "PaLM-total"])),
        as_printed=summary_text(errors(tpu, lambda row: row.time_ms)),
        scatter_text=tables.scatter_text(),
        constants=tables.constants_table(),
        a100_hbm=f"{calibration.a100_device().hbm_fraction:g}",
        infersim=serving_tables.infersim_table(),
        infersim_mean=percent(serving_tables.infersim_errors().mean()),
        infersim_most=percent(serving_tables.infersim_errors().max()),
        layers=serving_tables.layers_table(),
        kernels=serving_tables.kernels_table(),
        tpot=serving_tables.served_table("tpot"),
        ttft=serving_tables.served_table("ttft"),
        saturated=serving_tables.saturated_table(),
        left_out=serving_tables.left_out_table(),
        spreads=serving_tables.spreads_table(),
        decisions=ranking.report(out_of_fold()),
        n_served=len(served()),
        n_saturated=len(saturated()),
        layouts=tables.layouts_table(),
        contexts=tables.reproduced_table("pope2022-table-1"),
        statements=tables.reproduced_table("pope2022-statements"),
        failures=tables.failures(),
        tpu_rows=tables.rows_table(rows.timed_on_tpu()),
        a100_rows=tables.rows_table(rows.timed_on_a100()),
    )


def _wrapped(block: str) -> str:
    """A paragraph or a list at 100 columns; tables, headings, pictures and output as they are."""
    if block.startswith(("|", "#", "!", "`" * 3)):
        return block
    if not block.startswith("* "):
        return _filled_to_width(block)
    items = block.removeprefix("* ").split("\n* ")
    return "\n".join(_filled_to_width(item, first="* ", later="  ") for item in items)


def _filled_to_width(text: str, *, first: str = "", later: str = "") -> str:
    words = " ".join(text.split()).replace(" %", "\N{NO-BREAK SPACE}%")
    return textwrap.fill(
        words,
        100,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def plot() -> str:
    """The text of `docs/accuracy.svg`."""
    tpu, a100 = rows.tpu_held_out(), rows.a100_held_out()

    def series(
        label: str,
        colour: str,
        chosen: Sequence[Row],
        *,
        hollow: bool = False,
        predict: Callable[[Row], float] = tables.predicted_ms,
    ) -> Series:
        points = tuple((row.judged_ms, predict(row)) for row in chosen)
        return Series(label=label, colour=colour, points_ms=points, is_hollow=hollow)

    return scatter(
        (
            series("paper's formula", "#aaa", (*tpu, *a100), predict=tables.formula_ms),
            series("A100, fitted on", "#8d6a9f", rows.a100_calibration(), hollow=True),
            series("A100, total", "#8d6a9f", a100),
            series("TPU, prefill", "#1b6ca8", [r for r in tpu if r.phase == "prefill"]),
            series("TPU, generate", "#d1495b", [r for r in tpu if r.phase == "generate"]),
            series("TPU, total", "#66a182", [r for r in tpu if r.phase == "total"]),
            series("TPU, fitted on", "#111", rows.tpu_calibration(), hollow=True),
        )
    )


def serving_plot() -> str:
    """The text of `docs/serving.svg`: every row, by what it says of its client."""
    colours = {
        "TPOT, dense": "#1b6ca8",
        "TPOT, mixtures": "#66a182",
        "TTFT, dense": "#d1495b",
        "TTFT, mixtures": "#8d6a9f",
    }
    series = []
    for name, colour in colours.items():
        quantity, _, kind = name.partition(", ")
        chosen = [
            (getattr(one.row, f"{quantity.lower()}_ms"), getattr(one, f"{quantity.lower()}_ms"))
            for one in intervals.told(out_of_fold(), "TPOT" if quantity == "TPOT" else "TTFT")
            if one.row.series.is_dense is (kind == "dense")
        ]
        series.append(Series(label=name, colour=colour, points_ms=chosen))
    return scatter(series, low_ms=1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the document and the plot")
    action.add_argument("--check", action="store_true", help="exit 1 if they are stale")
    if parser.parse_args().write:
        for path, text in _texts().items():
            path.write_text(text, encoding="utf-8", newline="\n")
        return 0
    if names := stale():
        print(f"stale: {', '.join(names)}; run `python -m research.accuracy --write`")
        return 1
    return 0


def stale() -> list[str]:
    """Names of the files that do not say what would be written now."""
    return [path.name for path, text in _texts().items() if _read(path) != text]


def _texts() -> dict[Path, str]:
    return {
        DOCS / "accuracy.md": document(),
        DOCS / "accuracy.svg": plot(),
        DOCS / "serving.svg": serving_plot(),
    }


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    raise SystemExit(main())
