"""What a user's own serving runs say of an engine, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.quantities.units import show
from planner.report.documents.blocks import Block, Command, Document, Note, Table, section
from planner.report.words import percent, plural
from planner.specs.records.kernels import ENGINE_CONSTANTS
from planner.tools.calibration.report import rejected_rows
from planner.tools.calibration.serving import CalibratedRuns
from planner.tools.calibration.serving_fit import N_FACTORS
from planner.tools.calibration.tables import RejectedRow

COMMENT = """\
Constants of engines by serving runs, written by `plan calibrate`, read by `--calibration`.
Launches and bytes of kernels take `bytes_slowness` times as long, arithmetic `flop_slowness`;
decode_host, decode_sequence, prefill_host and request are what the engine's constants become.
`_off` is mean |predicted / measured - 1| without them, `_left_out` by those of the other runs."""

FEW_RUNS = 3
LITTLE = 0.25
"""Of what runs are off, below which no single constant explains it [1]."""

WORDS = {
    "bytes_slowness": "launches and bytes of kernels that take longer",
    "flop_slowness": "arithmetic of kernels that takes longer",
    "decode_host_s": "a time of each decode pass",
    "decode_sequence_s": "a time of each sequence of a decode pass",
    "prefill_host_s": "a time of each pass that reads prompts",
    "request_s": "a time of each request before its first pass",
}


def runs_document(
    answers: Sequence[CalibratedRuns],
    refused: Sequence[RejectedRow],
    *,
    output: str | None,
    names_refused: bool = False,
) -> Document:
    """The whole report.

    Args:
        answers: by engine, device and model.
        refused: runs that nothing is fitted to.
        output: the file that has the constants; None where none is written.
        names_refused: whether every one of them is named.
    """
    lines = [_line(one) for one in answers]
    several = len(answers) > 1
    n_runs = sum(len(one.runs) for one in answers)
    title = f"{plural(n_runs, 'run')}, {len(refused)} refused"
    return Document(
        title=f"calibration by {title}",
        line="; ".join(lines),
        head=tuple(Note(one) for one in lines),
        sections=(
            *(
                section(f"{head}{f', {_who(one)}' * several}", *blocks)
                for one in answers
                for head, blocks in _sections(one)
            ),
            section("refused", *rejected_rows(tuple(refused), names_all=names_refused)),
            section("", Note(_use(output)), is_bare=True),
        ),
    )


def _who(answer: CalibratedRuns) -> str:
    own = answer.calibration
    return f"{own.model} on {own.device} under {own.engine}"


def _line(answer: CalibratedRuns) -> str:
    own, n_runs = answer.calibration, len(answer.runs)
    parts = []
    for name in ("tpot", "ttft"):
        after = getattr(own, f"{name}_left_out")
        left_out = "" if after is None else f", {percent(after)} by constants of the other runs"
        parts.append(f"{name.upper()} was {percent(getattr(own, f'{name}_off'))} off{left_out}")
    few = ""
    if n_runs == 1:
        few = "; one run: no other judges its constants, so that they count half"
    elif n_runs < FEW_RUNS:
        few = f"; {n_runs} runs: constants are mostly those of the files that ship"
    return f"{_who(answer)}, {plural(n_runs, 'run')}: {'; '.join(parts)}{few}"


def _sections(answer: CalibratedRuns) -> Iterator[tuple[str, list[Block]]]:
    said = "times are measured; beside them how far off predictions are by the files that ship, by "
    said += "the constants below, and by those that the other runs give"
    yield "runs", [_runs(answer), Note(said, kind="faint")]
    yield "each run is", [Command(f"{i}  {it.command}") for i, it in enumerate(answer.runs, 1)]
    yield "constants", [_constants(answer)]
    yield "what it looks like", [Note(_cause(answer))]
    blocks: list[Block] = []
    for one in answer.next_runs:
        blocks += [Command(one.command), Command(f"  {one.bench}")]
    yield "runs that would tell most", blocks


def _runs(answer: CalibratedRuns) -> Table:
    each = ("before", "after", "left out")
    heads = ("run", "file", "of", "TPOT", *each, "TTFT", *each)
    fit, rows = answer.fit, []
    left_out = np.full_like(fit.before, np.nan) if fit.left_out is None else fit.left_out
    for i, one in enumerate(answer.runs):
        cells = [str(i + 1), one.run.place, one.run.statistic + " at a rate" * one.run.rate]
        for j, seconds in enumerate((one.run.tpot_s, one.run.ttft_s)):
            cells.append(show(seconds, "s"))
            cells += [_off(residuals[i, j]) for residuals in (fit.before, fit.after, left_out)]
        rows.append(tuple(cells))
    return Table(heads=heads, rows=rows, align="><<>>>>>>>>", spare=("of",))


def _off(residual: float) -> str:
    """`+4.1 %` of what is predicted too long."""
    return "" if np.isnan(residual) else f"{100 * np.expm1(residual):+.1f} %".replace("-", "−")


def _constants(answer: CalibratedRuns) -> Table:
    own, engine = answer.calibration, answer.engine
    rows = [
        (name.replace("_", " "), "1", f"{getattr(own, name):.3f}", f"× {WORDS[name]}")
        for name in ("bytes_slowness", "flop_slowness")
    ]
    rows += [
        (
            name.removesuffix("_s").replace("_", " "),
            show(getattr(engine, name), "s") if getattr(engine, name) else "0",
            show(getattr(own, name), "s") if getattr(own, name) else "0",
            WORDS[name],
        )
        for name in ENGINE_CONSTANTS
    ]
    rows += [
        (f"{name} error", "", percent(getattr(own, f"{name.lower()}_error")), "beyond its kernels'")
        for name in ("TPOT", "TTFT")
    ]
    heads = ("constant", "ships", "here", "what it is")
    return Table(heads=heads, rows=rows, align="<>><")


def _cause(answer: CalibratedRuns) -> str:
    name, value, share = answer.cause
    kept = f"{percent(answer.fit.share)} of what runs alone would say is kept"
    if share < LITTLE:
        return f"no single cause: {WORDS[name]} explain at most {percent(share)} of it; {kept}"
    is_factor = name in tuple(WORDS)[:N_FACTORS]
    size = f"× {np.exp(value):.3g}" if is_factor else _signed(value)
    return f"most like {WORDS[name]}: {size}, which alone explains {percent(share)}; {kept}"


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '−'}{show(abs(seconds), 's')}"


def _use(output: str | None) -> str:
    if output is None:
        return "`--output mine.toml` writes them, for `--calibration mine.toml` of other commands"
    return f"`--calibration {output}` has other commands take them"
