"""A solver report: programs as stated and after presolve, bounds over time, and each verdict."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from planner.quantities.units import show
from planner.report.documents import blocks
from planner.report.documents.blocks import Document, Drawing, Note, Pairs, Section, Table, section
from planner.report.drawings.bounds import events_drawing
from planner.report.proof import (
    candidates_text,
    certificate_section,
    prover_name,
    prover_rows,
    screens_table,
    vouching,
)
from planner.report.words import plural
from planner.results.listings import SolverReport
from planner.results.surveys import FrontierProof
from planner.specs.records.certificates import Proof
from planner.specs.records.solving import ProgramSize, SolvedProgram, SolverRun

MOST_SHOWN, MOST_LISTED = 40, 12
"""Programs that have a section of their own; events and multipliers of a run that text lists."""
_MORE = "a report to a file `.json` has all"
_BY_ITSELF = "what proves the answer is arithmetic of the planner's own, as its certificate says"
_UNIT = "values and bounds are in each program's own unit, and are minimised"


def document(report: SolverReport) -> Document:
    """Certificates of the answer, programs in a table, and a section for each."""
    programs = report.programs
    line, more = _line(programs), len(programs) - MOST_SHOWN
    is_proved = report.certificates or report.frontiers
    none = f"none{f': {_BY_ITSELF}' if is_proved else ' was stated before the end'}"
    heads = ("", "columns", "rows", "nonzeros", "best", "bound", "time", "solved for")
    rows = [(str(i), *_program_row(program)) for i, program in enumerate(programs, start=1)]
    left = f"and {plural(more, 'program')} more: {_MORE}" if more > 0 else ""
    return Document(
        title="solver report",
        line=line,
        sections=(
            *map(certificate_section, report.certificates),
            *map(_frontier, report.frontiers),
            section(
                "programs",
                Note(_UNIT if programs else none),
                Table(heads=heads, rows=rows, align=">>>>>>><", wraps=True),
            ),
            *(
                Section(
                    title=f"program {i}: {_title(program)}",
                    blocks=(*_program(program),),
                    is_folded=True,
                )
                for i, program in enumerate(programs[:MOST_SHOWN], start=1)
            ),
            section("", Note(left), is_bare=True),
        ),
    )


def _line(programs: Sequence[SolvedProgram]) -> str:
    n_runs = sum(len(program.runs) for program in programs)
    line = f"{plural(len(programs), 'program')} solved, {plural(n_runs, 'run')} of solvers"
    sizes = [program.size for program in programs if program.size]
    if not sizes:
        return line
    largest = max(sizes, key=lambda size: size.n_nonzeros or 0)
    return f"{line}; the largest has {_size_text(largest)}"


def _frontier(proof: FrontierProof) -> Section:
    """The certificate of a frontier, which has no objective."""
    ends = ("candidates", candidates_text(proof))
    head = Pairs([("status", proof.status), *prover_rows(proof), ends])
    return section("certificate", head, screens_table(proof))


def _title(program: SolvedProgram) -> str:
    return ": ".join(filter(None, (program.purpose, program.name))) or "settled by arithmetic"


def _program_row(program: SolvedProgram) -> tuple[str, ...]:
    size, spent_s = program.size, math.fsum(proof.wall_s for proof in program.proofs)
    counts = (size.n_columns, size.n_rows, size.n_nonzeros) if size else (None, None, None)
    ends = (_value(program.objective), _bound(program.bound), show(spent_s, "s"), _title(program))
    return (*("" if n is None else f"{n:,}" for n in counts), *ends)


def _program(program: SolvedProgram) -> Iterator[blocks.Block]:
    """Sizes, verdicts, and what each run took."""
    by = vouching(program.proofs, program.vouched_by)
    names = ", ".join(prover_name(proof.prover) for proof in by)
    best = _value(program.objective, none="none")
    if program.bound == math.inf:
        best = f"none: infeasible, proved by {names}"
    elif by:
        best += f", bound {_bound(program.bound)}, proved by {names}"
    else:
        best += ", and no second prover vouches for a bound"
    rows = ", ".join(f"{n:,} {name}" for name, n in program.rows.items())
    stated = _size_text(program.size) if program.size else "no rows"
    yield Pairs([("stated", stated), ("rows", rows), ("best", best)])
    verdicts = [
        (prover_name(proof.prover), _verdict(proof), _value(proof.value), _bound(proof.bound),
         show(proof.wall_s, "s"), proof.note)
        for proof in program.proofs
    ]  # fmt: skip
    heads = ("prover", "verdict", "value", "bound", "time", "note")
    yield Table(heads=heads, rows=verdicts, align="<<>>><", wraps=True)
    for run in program.runs:
        yield from _run(run, program.size)


def _verdict(proof: Proof) -> str:
    """How a prover ended: what says nothing of better answers, or nothing else, did not stop."""
    if proof.outcome != "stopped" or math.isinf(proof.value) == math.isinf(proof.bound):
        return proof.outcome
    return "a bound" if math.isinf(proof.value) else "an answer"


def _run(run: SolverRun, stated: ProgramSize | None) -> Iterator[blocks.Block]:
    """What a solver was given, unless as stated, what presolve left, what it took, its bounds."""
    sizes = (
        (run.statement, run.size if run.size != stated else None),
        ("presolve leaves", run.presolved),
    )
    took = (
        (run.n_nodes, "node or branch", "nodes or branches"),
        (run.n_iterations, "iteration of linear programs", "iterations of linear programs"),
        (run.n_parts, "part given to other solvers", "parts given to other solvers"),
    )
    said = [f"{prover_name(run.proof.prover)} in {show(run.proof.wall_s, 's')}"]
    said += [f"{name} {_size_text(size)}" for name, size in sizes if size]
    said += [plural(n, word, many) for n, word, many in took if n]
    yield Note("; ".join(said), "item")
    yield Drawing(svg=partial(events_drawing, run.events))
    events = [
        (show(it.elapsed_s, "s"), _value(it.incumbent), _bound(it.bound), f"{it.n_nodes:,}")
        for it in run.events
    ]
    if last := max(0, len(events) - 1):
        yield Table(
            heads=("time", "best", "bound", "nodes"),
            rows=events,
            align=">>>>",
            listed=sorted({i * last // (MOST_LISTED - 1) for i in range(MOST_LISTED)}),
            more=_MORE,
            caption=f"{len(events)} incumbents and bounds",
        )
    priced = sorted(run.multipliers.items(), key=lambda item: -abs(item[1]))
    yield Table(
        heads=("row", "multiplier"),
        rows=[(name, f"{multiplier:.6g}") for name, multiplier in priced],
        align="<>",
        listed=range(len(priced))[:MOST_LISTED],
        more=_MORE,
        caption=f"{len(priced):,} rows whose multipliers prove the bound",
    )


def _size_text(size: ProgramSize) -> str:
    """`16 columns (14 binary, 2 whole), 17 rows, 40 nonzeros`."""
    kinds = {"binary": size.n_binary, "whole": size.n_integer, "continuous": size.n_continuous}
    columns = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n)
    sizes = [plural(size.n_columns, "column") + (f" ({columns})" if columns else "")]
    counts = (("row", size.n_rows), ("nonzero", size.n_nonzeros))
    return ", ".join([*sizes, *(plural(n, word) for word, n in counts if n is not None)])


def _value(value: float, *, none: str = "–") -> str:
    return f"{value:.9g}" if math.isfinite(value) else none


def _bound(bound: float) -> str:
    return _value(bound, none="infeasible" if bound > 0 else "–")
