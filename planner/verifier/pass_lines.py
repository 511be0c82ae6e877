"""A pass as lines for people: work, time and bound of each kernel and message, and its error."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.errors import Problem
from planner.results.experts import ExpertPool, PoolLayer
from planner.results.predictions import Bound, OperationLine, PassLine
from planner.specs.records.kernels import Kernel
from planner.specs.validation.hints import from_fields
from planner.verifier.serving.kernels import Kernels, Run, has_form
from planner.verifier.serving.layers import Spent
from planner.verifier.serving.passes import OUTSIDE, Pass, interval
from planner.verifier.serving.pools import STATIONS, Rounds, is_of_experts as of_experts
from planner.verifier.serving.ranks import COUNTED, MEASURED, Rank
from planner.verifier.serving.rounds import MemoryUse

EXPERTS = "experts"
"""The pass of devices of experts, beside that of attention."""

LATENCY_SHARE = 0.5
"""Below this share of the peak and of the memory, a kernel may be bound by latency."""

_SOURCES = {MEASURED: "measured collectives", COUNTED: "links of the topology"}


def pass_lines(name: str, timed: Pass, rank: Rank, host_s: float) -> Iterator[PassLine]:
    """A pass as it is on a device; on one of attention and one of experts where these are apart."""
    whole = pass_line(name, timed, rank, host_s)
    if not timed.rounds:
        yield whole
        return
    for pool, is_of_experts in ((name, False), (EXPERTS, True)):
        here = [
            it
            for it in timed.spent
            if of_experts(timed.rounds, it[0], it[-1].run.part) == is_of_experts
        ]
        line = pass_line(pool, replace(timed, spent=here), rank, host_s)
        listed_s = sum(map(line.spent_s, line.operations))
        yield replace(line, n_tokens=whole.n_tokens, hidden_s=listed_s - timed.seconds)


def pass_line(name: str, timed: Pass, rank: Rank, host_s: float) -> PassLine:
    """Kernels and messages of a pass in order; of those that run.

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


def pool_of(rank: Rank, held: MemoryUse, timed: Pass | None, host_s: float) -> ExpertPool | None:
    """Both pools; None where experts lie on devices of attention.

    Args:
        timed: the decode pass.
        host_s: of the engine, beside its kernels.
    """
    if timed is None or not timed.rounds:
        return None
    total_s = timed.seconds + host_s
    busy = {name: _busy_s(timed, name) / total_s for name in ("attention", "experts")}
    outside = sum(times * it.seconds for name, times, it in timed.spent if name == OUTSIDE)
    return ExpertPool(
        n_attention_devices=rank.n_group,
        n_expert_devices=rank.n_expert_devices,
        n_microbatches=rank.n_microbatches,
        crosses_nodes=rank.n_devices > rank.links.n_per_node,
        layers=tuple(_layer(one, timed) for one in timed.rounds),
        attention_fraction=busy["attention"] + outside / total_s,
        experts_fraction=busy["experts"],
        weights_bytes=held.pool_weights_bytes,
        activation_bytes=held.pool_activation_bytes,
        workspace_bytes=held.workspace_bytes,
    )


def _busy_s(timed: Pass, station: str) -> float:
    """Of a station in all layers of a pass."""
    each = (one.n_layers * one.stations_s.get(station, 0.0) for one in timed.rounds)
    return timed.n_parts * sum(each)


def _layer(rounds: Rounds, timed: Pass) -> PoolLayer:
    sent = {
        it.run.part: it.run.sent_bytes
        for name, _, it in timed.spent
        if name == rounds.layer and it.run.family == "between"
    }
    return PoolLayer(
        name=rounds.layer,
        n_layers=rounds.n_layers,
        **{f"{name}_s": rounds.stations_s.get(name, 0.0) for name in STATIONS},
        out_bytes=sent.get("dispatch", 0.0),
        back_bytes=sent.get("combine", 0.0),
        period_s=rounds.period_s,
        busiest=rounds.busiest,
        is_filled=rounds.is_filled,
    )


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
