"""Kernels of an engine that are far slower than another engine's on the same device.

Tables were measured at one time, of one version: a family that runs at a tenth of what the device
allows, where another engine has it run at most of it, says more of that version than of the
device. What is planned with it is right for the version, and worth a second look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.errors import Problem
from planner.specs.kernels import Kernel
from planner.verifier.serving.kernels import Kernels, Run, has_form
from planner.verifier.serving.passes import Pass

SLOW, FAST = 0.2, 0.5
"""Shares of the roofline below which a kernel is slow, and from which another's is fast [1]."""

Rivals = Mapping[str, Mapping[tuple[str, str], Kernel]]
"""Kernels of other engines on the device, by engine, then by family and format."""


def slow_kernels(during: str, timed: Pass, kernels: Kernels, rivals: Rivals) -> Iterator[Problem]:
    """What is to be said of the kernels of a pass: each family at most once.

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
