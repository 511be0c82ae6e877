"""Lines of a pass held against a second account of it: which forms, how long, how often."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.results.predictions import Interval, OperationLine, PassLine
from planner.verifier.findings import TOLERANCE, Finding
from planner.verifier.serving.kernels import Run
from planner.verifier.serving.layers import Spent
from planner.verifier.serving.links import COUNTED, MEASURED
from planner.verifier.serving.passes import Pass
from planner.verifier.serving.ranks import Rank

OUTSIDE = "model"

_SOURCES = {MEASURED: "measured collectives", COUNTED: "links of the topology"}


def counted_pass(
    says: PassLine, timed: Pass, rank: Rank, *, host_s: float, overlaps: bool
) -> tuple[PassLine, list[Finding]]:
    """The pass that is true of a second account, and lines that have no place in it."""
    parts = 2.0 if overlaps else 1.0
    pools = {name: [one for one in spent if one.seconds] for name, spent in timed.spent.items()}
    lines, wrong = [], []
    for i, line in enumerate(says.operations):
        found = _taken(pools.get(line.layer, []), line)
        if found is None:
            fact = "is not so long, or of no such form, or there are fewer of it"
            path = ("operations", str(i), "run_s")
            wrong.append(Finding(path=path, says=line.run_s, fact=fact))
            lines.append(line)
        else:
            lines.append(_counted(line, found, rank))
    missing = sum(map(len, pools.values()))
    if missing:
        fact = f"are {missing} fewer than there are"
        wrong.append(Finding(path=("operations",), says=len(says.operations), fact=fact))
    total = timed.seconds + host_s
    error = timed.error(host_s)
    flop, traffic = (
        sum(getattr(one, name) * _often(one, parts) for one in lines)
        for name in ("flop", "hbm_bytes")
    )
    tokens = max((one.arguments.get("m", 0.0) for one in lines if one.layer != OUTSIDE), default=0)
    peak = rank.kernels.peak(Run(family="gemm", format=rank.formats.weights))
    return PassLine(
        name=says.name,
        total_s=Interval(value=total, low=total / (1 + error), high=total * (1 + error)),
        host_s=host_s,
        hidden_s=_near(says.hidden_s, timed.listed_s - timed.seconds, total),
        n_tokens=tokens * parts,
        n_microbatches=parts,
        mfu_fraction=flop / (total * peak),
        hbm_fraction=traffic / (total * rank.kernels.device.hbm_bytes_per_s),
        operations=tuple(lines),
    ), wrong


def _near(says: float, found: float, of: float) -> float:
    """A difference of two sums: as it is said where it is so to the rounding of these."""
    return says if math.isclose(says, found, abs_tol=TOLERANCE * of) else found


def _often(line: OperationLine, parts: float) -> float:
    return line.n_times * (1.0 if line.layer == OUTSIDE else parts)


def _taken(pool: list[Spent], line: OperationLine) -> Spent | None:
    """The account's entry that a line stands for, taken out of what is left."""
    for i, one in enumerate(pool):
        is_it = (one.part, one.form, one.format) == (line.part, line.formula, line.format)
        if is_it and math.isclose(one.seconds, line.run_s, rel_tol=TOLERANCE):
            return pool.pop(i)
    return None


def _counted(line: OperationLine, found: Spent, rank: Rank) -> OperationLine:
    """A line as its form has it, beside what it says of its work."""
    kernels, model = rank.kernels, rank.model
    is_plain = line.formula == "roofline"
    run = Run(family="scores" if is_plain else line.formula, format=line.format)
    peak, rate = kernels.peak(run), kernels.device.hbm_bytes_per_s
    constants: dict[str, float] = {}
    if line.formula in _SOURCES:
        source = _SOURCES[line.formula]
    elif is_plain:
        shares = kernels.of_scores()
        names = ("floor_s", "compute_fraction", "memory_fraction")
        constants = {name: shares.constants[name] for name in names if name in shares.constants}
        source = f"shares of decode attention: {shares.fit.source}"
    else:
        known = replace(run, format="any") if line.part in ("dispatch", "combine") else run
        constants, source = kernels.constants(known), kernels.source(known)
    often = {one.name: one.n_layers for one in model.layers}
    return replace(
        line,
        n_times=float(often.get(line.layer, 1)),
        flop_per_byte=line.flop / line.hbm_bytes if line.hbm_bytes else 0.0,
        mfu_fraction=line.flop / (line.run_s * peak),
        hbm_fraction=line.hbm_bytes / (line.run_s * rate),
        ridge_flop_per_byte=peak / rate,
        constants=constants,
        source=source,
        error=found.error,
        sent_bytes=found.sent_bytes,
    )
