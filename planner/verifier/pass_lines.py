"""A pass as lines for people: work, time and bound of each kernel and message, and its error."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.errors import Problem
from planner.results.predictions import Bound, OperationLine, PassLine
from planner.specs.records.kernels import Kernel
from planner.specs.validation.hints import from_fields
from planner.verifier.serving.kernels import Kernels, Run, has_form
from planner.verifier.serving.layers import Spent
from planner.verifier.serving.passes import OUTSIDE, Pass, interval
from planner.verifier.serving.ranks import COUNTED, MEASURED, Rank

LATENCY_SHARE = 0.5
"""Below this share of the peak and of the memory, a kernel may be bound by latency."""

_SOURCES = {MEASURED: "measured collectives", COUNTED: "links of the topology"}


def pass_line(name: str, timed: Pass, rank: Rank, host_s: float) -> PassLine:
    """A pass of a deployment, its kernels and messages in order; of those that run.

    Args:
        host_s: of the engine, beside its kernels.
    """
    kernels, parts = rank.kernels, float(timed.n_parts)
    lines = tuple(_line(*one, rank) for one in timed.spent if one[-1].seconds > 0)
    total = timed.seconds + host_s
    flop, n_bytes = (
        sum(
            getattr(line, work) * line.n_times * (1.0 if line.layer == OUTSIDE else parts)
            for line in lines
        )
        for work in ("flop", "hbm_bytes")
    )
    rows = (one.arguments.get("m", 0.0) for one in lines if one.layer != OUTSIDE)
    return PassLine(
        name=name,
        total_s=interval(total, timed.error(host_s)),
        host_s=host_s,
        hidden_s=timed.hidden_s,
        n_tokens=max(rows, default=0.0) * parts,
        n_microbatches=parts,
        mfu_fraction=flop / (total * kernels.peak_of(rank.formats.weights)),
        hbm_fraction=n_bytes / (total * kernels.device.hbm_bytes_per_s),
        operations=lines,
    )


def _line(layer: str, n_times: int, spent: Spent, rank: Rank) -> OperationLine:
    run, kernels = spent.run, rank.kernels
    peak, rate = kernels.peak(run), kernels.device.hbm_bytes_per_s
    mfu = run.flop / (spent.seconds * peak)
    hbm = run.hbm_bytes / (spent.seconds * rate)
    if spent.form in _SOURCES:
        constants, source = {}, _SOURCES[spent.form]
    elif spent.form == "roofline":
        shares = kernels.of_scores()
        names = ("floor_s", "compute_fraction", "memory_fraction")
        constants = {one: shares.constants[one] for one in names if one in shares.constants}
        source = f"shares of decode attention: {shares.fit.source}"
    else:
        constants, source = kernels.constants(run), kernels.source(run)
    floor = constants.get("floor_s", constants.get("kernel_s", 0.0)) / spent.seconds
    return from_fields(
        OperationLine,
        run,
        layer=layer,
        n_times=float(n_times),
        run_s=spent.seconds,
        flop_per_byte=run.flop / run.hbm_bytes if run.hbm_bytes else 0.0,
        bound=_bound(run, mfu=mfu, hbm=hbm, floor=floor),
        mfu_fraction=mfu,
        hbm_fraction=hbm,
        ridge_flop_per_byte=peak / rate,
        formula=spent.form,
        format="bf16" if run.format == "any" else run.format,
        arguments={key: float(value) for key, value in run.arguments.items()},
        constants=constants,
        source=source,
        error=spent.error,
    )


def _bound(run: Run, *, mfu: float, hbm: float, floor: float) -> Bound:
    """What most of a run's time is due to: far from either peak, its launch or its latency.

    Args:
        mfu, hbm: shares of the peak, and of the memory's bandwidth, that it attains.
        floor: share of the run that is there whatever the shape.
    """
    if run.sent_bytes or run.part in ("dispatch", "combine"):
        return "network"
    if max(mfu, hbm) < LATENCY_SHARE and floor > 0.5:
        return "latency"
    return "compute" if mfu >= hbm else "memory"


SLOW, FAST = 0.2, 0.5
"""Shares of the roofline below which a kernel is slow, and from which another's is fast [1]."""

Rivals = Mapping[str, Mapping[tuple[str, str], Kernel]]
"""Kernels of other engines on the device, by engine, then by family and format."""


def slow_kernels(during: str, timed: Pass, kernels: Kernels, rivals: Rivals) -> Iterator[Problem]:
    """What is to be said of the kernels of a pass: each family at most once.

    Tables were measured at one time, of one version: a family that runs at a tenth of what the
    device allows, where another engine has it run at most of it, says more of that version than of
    the device. What is planned with it is right for the version, and worth a second look.

    Args:
        during: the pass: `decode` or `prefill`.
    """
    slowest: dict[str, tuple[float, Run]] = {}
    for _, _, spent in timed.spent:
        run, is_message = spent.run, spent.run.part in ("dispatch", "combine")
        if has_form(run) and spent.seconds > 0 and not is_message:
            share = _share(run, kernels, spent.seconds)
            if share < slowest.get(run.family, (SLOW, run))[0]:
                slowest[run.family] = share, run
    for family, (share, run) in slowest.items():
        best, engine = max(_elsewhere(run, kernels, rivals), default=(0.0, ""))
        if best >= FAST:
            fact = (
                f"reaches {share:.0%} of its roofline in {during}, where the kernels of {engine} "
                f"reach {best:.0%}: its table is of version {kernels.table.version}"
            )
            where = f"{kernels.device.name} under {kernels.table.engine}"
            yield Problem(where=where, key=family, value=run.format, fact=fact)


def _share(run: Run, kernels: Kernels, run_s: float) -> float:
    """Time that the datasheet's rates allow, over the time that it takes [1]."""
    least = max(run.flop / kernels.peak(run), run.hbm_bytes / kernels.device.hbm_bytes_per_s)
    return least / run_s


def _elsewhere(run: Run, kernels: Kernels, rivals: Rivals) -> Iterator[tuple[float, str]]:
    """Shares of the roofline that other engines' kernels of the family and the format reach."""
    for engine, others in rivals.items():
        if (run.family, kernels.called(run.format)) not in others:
            continue
        table = replace(kernels.table, engine=engine, version="", kernels=others, n_sms=0)
        seconds = Kernels(kernels.device, table, kernels.engine).seconds(run)
        yield _share(run, kernels, seconds), engine
