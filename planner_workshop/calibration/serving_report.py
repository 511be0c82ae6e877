"""What a user's own serving runs say of an engine, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from planner.quantities.units import show
from planner.report.documents.blocks import Block, Command, Document, Note, Table, section
from planner.report.words import off_words, percent, plural
from planner.specs.records.kernels import ENGINE_CONSTANTS
from planner_workshop.calibration.runs import TABLE
from planner_workshop.calibration.serving import CalibratedRuns
from planner_workshop.calibration.serving_fit import CONSTANTS, N_FACTORS

WORDS: Mapping[str, str] = TABLE["words"]

LITTLE = 0.25
"""Of what runs are off, below which no single constant explains it [1]."""

MOST_NAMED = 8


def runs_document(
    answers: Sequence[CalibratedRuns],
    refused: Sequence[str],
    *,
    output: str | None,
    names_refused: bool = False,
) -> Document:
    """The whole report.

    Args:
        answers: by engine, device and model.
        refused: runs that nothing is fitted to, and why.
        output: the file that has the constants; None where none is written.
        names_refused: whether every one of them is named.
    """
    lines = [_line(answer) for answer in answers]
    named = refused if names_refused else refused[:MOST_NAMED]
    more = len(refused) - len(named)
    rest = [Note(f"{more} more: `--refused` names them all")] if more else []
    use = f"`--calibration {output}` has other commands take them"
    if output is None:
        use = "`--output mine.toml` writes them, for `--calibration mine.toml` of other commands"
    return Document(
        title=f"calibration: {'; '.join(map(_who, answers))}",
        line="; ".join(lines),
        head=tuple(map(Note, lines)),
        sections=(
            *(
                section(f"{head}{f', {_who(answer)}' * (len(answers) > 1)}", *blocks)
                for answer in answers
                for head, blocks in _sections(answer)
            ),
            section("refused", *map(Command, named), *rest),
            section("", Note(use), is_bare=True),
        ),
    )


def _who(answer: CalibratedRuns) -> str:
    own = answer.calibration
    return f"{own.model} on {own.device} under {own.engine}"


def _line(answer: CalibratedRuns) -> str:
    own, n_runs = answer.calibration, len(answer.runs)
    few = {1: "; one run: no other judges its constants, so that they count half"}
    few |= {2: "; 2 runs: constants are mostly those of the files that ship"}
    return f"{_who(answer)}, {plural(n_runs, 'run')}: {off_words(own)}{few.get(n_runs, '')}"


def _sections(answer: CalibratedRuns) -> Iterator[tuple[str, list[Block]]]:
    said = "times are measured; beside them how far off predictions are by the files that ship, by "
    said += "the constants below, and by those that the other runs give"
    yield "runs", [_runs(answer), Note(said, kind="faint")]
    yield "each run is", [Command(f"{i}  {it.command}") for i, it in enumerate(answer.runs, 1)]
    yield "constants", [_constants(answer)]
    yield "what it looks like", [Note(_cause(answer))]
    commands = (text for run in answer.next_runs for text in (run.command, f"  {run.bench}"))
    yield "runs that would tell most", list(map(Command, commands))


def _runs(answer: CalibratedRuns) -> Table:
    each = ("before", "after", "left out")
    fit, rows = answer.fit, []
    left_out = np.full_like(fit.before, np.nan) if fit.left_out is None else fit.left_out
    for i, run in enumerate(it.run for it in answer.runs):
        cells = [str(i + 1), run.place, run.statistic + " at a rate" * run.is_rate]
        for j, seconds in enumerate((run.tpot_s, run.ttft_s)):
            cells.append(show(seconds, "s"))
            off = (np.expm1(it[i, j]) for it in (fit.before, fit.after, left_out))
            cells += ["" if np.isnan(it) else f"{100 * it:+.1f} %".replace("-", "−") for it in off]
        rows.append(cells)
    heads = ("run", "file", "of", "TPOT", *each, "TTFT", *each)
    return Table(heads=heads, rows=rows, align="><<>>>>>>>>", spare=("of",))


def _constants(answer: CalibratedRuns) -> Table:
    own, rows = answer.calibration, []
    for name in CONSTANTS:
        is_time = name in ENGINE_CONSTANTS
        ships = _time(getattr(answer.engine, name)) if is_time else "1"
        here = _time(getattr(own, name)) if is_time else f"{getattr(own, name):.3f}"
        label = name.removesuffix("_s").replace("_", " ")
        rows.append((label, ships, here, "× " * (not is_time) + WORDS[name]))
    for name, error in (("TPOT error", own.tpot_error), ("TTFT error", own.ttft_error)):
        rows.append((name, "", percent(error), "beyond its kernels'"))
    heads = ("constant", "ships", "here", "what it is")
    return Table(heads=heads, rows=rows, align="<>><")


def _time(seconds: float) -> str:
    return show(seconds, "s") if seconds else "0"


def _cause(answer: CalibratedRuns) -> str:
    name, value, share = answer.cause
    kept = f"{percent(answer.fit.share)} of what runs alone would say is kept"
    if share < LITTLE:
        return f"no single cause: {WORDS[name]} explain at most {percent(share)} of it; {kept}"
    size = f"{'+' if value >= 0 else '−'}{_time(abs(value))}"
    if name in CONSTANTS[:N_FACTORS]:
        size = f"× {np.exp(value):.3g}"
    return f"most like {WORDS[name]}: {size}, which alone explains {percent(share)}; {kept}"
