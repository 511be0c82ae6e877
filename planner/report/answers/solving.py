"""A solver report: programs as stated and after presolve, bounds over time, and each verdict."""

import math
from collections.abc import Iterator
from functools import partial

from planner.quantities.units import show
from planner.report.documents.blocks import (
    Block,
    Document,
    Drawing,
    Note,
    Pairs,
    Row,
    Table,
    section,
)
from planner.report.drawings.bounds import events_drawing
from planner.report.proof import certificate_section, prover_name, prover_rows, screens_table
from planner.report.words import plural
from planner.results.listings import SolverReport
from planner.specs.records.solving import ProgramSize, SolvedProgram, SolverRun

MOST_SHOWN, MOST_LISTED = 40, 12
"""Programs that have a section of their own; events and multipliers of a run that text lists."""
_MORE = "a report to a file `.json` has all"
_NONE = "none: what proves the answer is arithmetic of the planner's own, as its certificate says"
_UNIT = "values and bounds are in each program's own unit, and are minimised"


def document(report: SolverReport) -> Document:
    """Certificates of the answer, programs in a table, and a section for each."""
    programs = report.programs
    n_runs, more = sum(len(program.runs) for program in programs), len(programs) - MOST_SHOWN
    line = f"{plural(len(programs), 'program')} solved, {plural(n_runs, 'run')} of solvers"
    sizes = [program.size for program in programs if program.size]
    if sizes:
        line += f"; the largest has {_size_text(max(sizes, key=lambda size: size.n_nonzeros or 0))}"
    heads = ("", "solved for", "program", "columns", "rows", "nonzeros", "best", "bound", "time")
    rows = [(str(i), *_program_row(program)) for i, program in enumerate(programs, start=1)]
    table = Table(heads=heads, rows=rows, align="><<>>>>>>")
    left = f"and {plural(more, 'program')} more: {_MORE}" if more > 0 else ""
    return Document(
        title="solver report",
        line=line,
        head=(Note(line),),
        sections=(
            *map(certificate_section, report.certificates),
            *(
                section("certificate", Pairs([("status", proof.status), *prover_rows(proof)]),
                        screens_table(proof))
                for proof in report.frontiers
            ),
            section("programs", Note(_UNIT if programs else _NONE), table),
            *(
                section(f"program {i}: {_title(program)}", *_program(program))
                for i, program in enumerate(programs[:MOST_SHOWN], start=1)
            ),
            section("", Note(left), is_bare=True),
        ),
    )  # fmt: skip


def _title(program: SolvedProgram) -> str:
    return ": ".join(filter(None, (program.purpose, program.name))) or "settled by arithmetic"


def _program_row(program: SolvedProgram) -> Row:
    size, spent_s = program.size, math.fsum(proof.wall_s for proof in program.proofs)
    counts = (size.n_columns, size.n_rows, size.n_nonzeros) if size else ("", "", "")
    ends = (_value(program.objective), _bound(program.bound), show(spent_s, "s"))
    return (program.purpose, program.name, *(f"{n:,}" if n else "" for n in counts), *ends)


def _program(program: SolvedProgram) -> Iterator[Block]:
    """Sizes, verdicts, and what each run took."""
    counts = [
        proof.prover.rpartition(" ")[2]
        for proof in program.proofs
        if proof.prover.startswith("enumeration")
    ]
    by = ", ".join(map(prover_name, program.vouched_by)) or "nobody"
    yield Pairs(
        [
            ("stated", _size_text(program.size) if program.size else "no rows"),
            ("rows", ", ".join(f"{n:,} {name}" for name, n in program.rows.items())),
            ("enumerated", f"all of {' and '.join(counts)} choices" if counts else ""),
            ("best", f"{_value(program.objective)}, bound {_bound(program.bound)}, proved by {by}"),
        ]
    )
    verdicts = [
        (prover_name(proof.prover), proof.outcome, _value(proof.value), _bound(proof.bound),
         show(proof.wall_s, "s"), proof.note)
        for proof in program.proofs
    ]  # fmt: skip
    heads = ("prover", "verdict", "value", "bound", "time", "note")
    yield Table(heads=heads, rows=verdicts, align="<<>>><", wraps=True)
    for run in program.runs:
        yield from _run(run, program.size)


def _run(run: SolverRun, stated: ProgramSize | None) -> Iterator[Block]:
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
        (
            show(event.elapsed_s, "s"),
            _value(event.incumbent),
            _value(event.bound),
            f"{event.n_nodes:,}",
        )
        for event in run.events
    ]
    if len(events) > 1:
        spaced = sorted({i * (len(events) - 1) // (MOST_LISTED - 1) for i in range(MOST_LISTED)})
        heads = ("time", "best", "bound", "nodes")
        yield Table(
            heads=heads,
            rows=events,
            align=">>>>",
            listed=spaced,
            more=_MORE,
            caption=f"{len(events)} incumbents and bounds",
        )
    priced = sorted(run.multipliers.items(), key=lambda item: -abs(item[1]))
    rows = [(name, f"{multiplier:.6g}") for name, multiplier in priced]
    yield Table(
        heads=("row", "multiplier"),
        rows=rows,
        align="<>",
        listed=range(len(rows))[:MOST_LISTED],
        more=_MORE,
        caption=f"{len(rows):,} rows whose multipliers prove the bound",
    )


def _size_text(size: ProgramSize) -> str:
    """`16 columns (14 binary, 2 whole), 17 rows, 40 nonzeros`."""
    kinds = {"binary": size.n_binary, "whole": size.n_integer, "continuous": size.n_continuous}
    columns = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n)
    sizes = [plural(size.n_columns, "column") + (f" ({columns})" if columns else "")]
    counts = (("row", size.n_rows), ("nonzero", size.n_nonzeros))
    return ", ".join([*sizes, *(plural(n, word) for word, n in counts if n is not None)])


def _value(value: float) -> str:
    return f"{value:.9g}" if math.isfinite(value) else "–"


def _bound(bound: float) -> str:
    return "infeasible" if bound == math.inf else _value(bound)
