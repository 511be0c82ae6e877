"""A timed pass as lines for people: work, time and bound of each operation, and its error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from planner.estimates.serving.errors import HOST_ERROR, SIGMAS_OF_A_MEDIAN
from planner.estimates.serving.kernels import KernelClock, Timing
from planner.estimates.serving.networks import COLLECTIVES
from planner.estimates.serving.steps import OUTSIDE, PassTime, Timed
from planner.results.predictions import Bound, Interval, OperationLine, PassLine
from planner.specs.served_formats import ServedFormats

LATENCY_SHARE = 0.5
"""Below this share of the peak and of the memory, a kernel may be bound by latency."""


def pass_line(
    name: str, timed: PassTime, clock: KernelClock, *, host_s: float, formats: ServedFormats
) -> PassLine:
    """A pass of one deployment, its operations in order.

    Args:
        host_s: of the engine, beside what `timed` has.
    """
    lines: list[OperationLine] = []
    for one in timed.operations:
        if one.run_s[0] > 0:
            lines.append(_operation_line(one, clock.timing(one.operation), clock))
    parts = float(timed.n_microbatches[0])
    layers = [line for line in lines if line.layer != OUTSIDE]
    flop = sum(_often(line, parts) * line.flop for line in lines)
    traffic = sum(_often(line, parts) * line.hbm_bytes for line in lines)
    total = float(timed.total_s[0]) + host_s
    tokens = max((line.arguments.get("m", 0.0) for line in layers), default=0.0) * parts
    peak = clock.peak_flop_per_s(formats.weights)
    return PassLine(
        name=name,
        total_s=interval(total, _pass_error(lines, parts, host_s)),
        host_s=host_s,
        hidden_s=float(timed.hidden_s[0]),
        n_tokens=tokens,
        n_microbatches=parts,
        mfu_fraction=flop / (total * peak),
        hbm_fraction=traffic / (total * clock.device.hbm_bytes_per_s),
        operations=tuple(lines),
    )


def _often(line: OperationLine, parts: float) -> float:
    """Runs of a whole pass: of all micro-batches."""
    return line.n_times * (1.0 if line.layer == OUTSIDE else parts)


def _operation_line(one: Timed, timing: Timing, clock: KernelClock) -> OperationLine:
    operation, run = one.operation, float(one.run_s[0])
    flop, traffic, sent = (
        float(np.broadcast_to(value, (1,))[0])
        for value in (operation.flop, operation.hbm_bytes, operation.sent_bytes)
    )
    peak = clock.peak_flop_per_s(clock.multiplied_in(operation))
    bandwidth = clock.device.hbm_bytes_per_s
    mfu, share = flop / (run * peak), traffic / (run * bandwidth)
    return OperationLine(
        name=operation.name,
        layer=operation.layer,
        part=operation.part,
        n_times=operation.n_times,
        run_s=run,
        flop=flop,
        hbm_bytes=traffic,
        sent_bytes=sent,
        flop_per_byte=flop / traffic if traffic else 0.0,
        bound=_bound(operation.family, mfu, share, timing),
        mfu_fraction=mfu,
        hbm_fraction=share,
        ridge_flop_per_byte=peak / bandwidth,
        formula=timing.formula,
        format=operation.format,
        arguments={
            key: float(np.broadcast_to(np.asarray(value, dtype=float), (1,))[0])
            for key, value in operation.arguments.items()
        },
        constants=dict(timing.constants),
        source=timing.source,
        error=timing.error,
    )


def _bound(family: str, mfu: float, share: float, timing: Timing) -> Bound:
    """What most of a run's time is due to: under half of either peak, its launch or its latency."""
    if family in COLLECTIVES or family in ("send", "dispatch", "combine"):
        return "network"
    if max(mfu, share) < LATENCY_SHARE and _floor(timing) > 0.5:
        return "latency"
    return "compute" if mfu >= share else "memory"


def _floor(timing: Timing) -> float:
    """Share of a run that is there whatever the shape."""
    floor = timing.constants.get("floor_s", timing.constants.get("kernel_s", 0.0))
    return floor / float(np.broadcast_to(timing.seconds, (1,))[0])


def _pass_error(lines: Sequence[OperationLine], parts: float, host_s: float) -> float:
    """Relative error of a pass: kernels of one family err together, families apart [1]."""
    families: dict[str, float] = {"host": host_s * HOST_ERROR}
    total = host_s
    for line in lines:
        spent = _often(line, parts) * line.run_s
        families[line.formula] = families.get(line.formula, 0.0) + spent * line.error
        total += spent
    error = math.sqrt(sum(one**2 for one in families.values()))
    return SIGMAS_OF_A_MEDIAN * error / total if total else 0.0


def interval(value: float, error: float) -> Interval:
    """What is within a relative standard deviation of a value."""
    return Interval(value=value, low=value / (1.0 + error), high=value * (1.0 + error))


def relative_error(found: Interval) -> float:
    """The standard deviation that an interval was made of, as a share of its value."""
    return found.high / found.value - 1.0 if found.value else 0.0
