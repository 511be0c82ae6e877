"""Kernels of an engine that are far slower than another engine's on the same device.

Tables were measured at one time, of one version: a family that runs at a tenth of what the device
allows, where another engine has it run at most of it, says more of that version than of the
device. What is planned with it is right for the version, and worth a second look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from planner.equations.kernels import FAMILIES
from planner.errors import Problem
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.operations import Operation
from planner.estimates.serving.steps import Timed
from planner.specs.kernels import KernelTable
from planner.specs.ledger import recording

SLOW, FAST = 0.2, 0.5
"""Shares of the roofline below which a kernel is slow, and from which another's is fast [1]."""


def slow_kernels(
    operations: Iterable[Timed], clock: KernelClock, *, during: str
) -> Iterator[Problem]:
    """What is to be said of the operations of one deployment's pass: each family at most once.

    Args:
        operations: of the pass, as timed by the clock.
        clock: of the device under the engine.
        during: the pass: `decode` or `prefill`.
    """
    slowest: dict[str, tuple[float, Operation]] = {}
    for one in operations:
        family, run_s = one.operation.family, float(one.run_s[0])
        if family in FAMILIES and run_s > 0:
            share = _share(one.operation, clock, run_s)
            if share < SLOW and share < slowest.get(family, (SLOW, None))[0]:
                slowest[family] = share, one.operation
    for family, (share, operation) in slowest.items():
        best, engine = max(_elsewhere(operation, clock), default=(0.0, ""))
        if best >= FAST:
            fact = (
                f"{share:.0%} of its roofline in {during}, where the kernels of {engine} reach "
                f"{best:.0%}: its table is of version {clock.table.version}"
            )
            where = f"{clock.device.name} under {clock.table.engine}"
            yield Problem(where=where, key=family, value=operation.format, fact=f"reaches {fact}")


def _share(operation: Operation, clock: KernelClock, run_s: float) -> float:
    """Time that the datasheet's rates allow, over the time that it takes [1]."""
    flop, traffic = (
        float(np.broadcast_to(value, (1,))[0]) for value in (operation.flop, operation.hbm_bytes)
    )
    peak = clock.peak_flop_per_s(clock.multiplied_in(operation))
    return max(flop / peak, traffic / clock.device.hbm_bytes_per_s) / run_s


def _elsewhere(operation: Operation, clock: KernelClock) -> Iterator[tuple[float, str]]:
    """Shares of the roofline that other engines' kernels of the family and the format reach."""
    wanted = clock.kernel_format(operation.format)
    for engine, kernels in clock.table.rivals.items():
        if (operation.family, wanted) not in kernels:
            continue
        table = KernelTable(device=clock.table.device, engine=engine, version="", kernels=kernels)
        with recording():  # what it says of itself is said of no answer
            seconds = replace(clock, table=table).timing(operation).seconds
        yield _share(operation, clock, float(np.broadcast_to(seconds, (1,))[0])), engine
