"""Times of kernels within a budget: clocks warm, medians of repeats, doubtful ones twice.

A kernel is run until one repeat lasts long enough to be timed, then several times; its time is
the median, its spread the distance between the quartiles over it. Kernels that spread too far,
and those that took half as long again as a larger one of their kind, are timed a second time at
the end, and the quicker of both stands: whatever disturbs a run makes it longer. One that a
larger one still contradicts is left out, and one that still spreads is named.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from planner.equations.collectives import KINDS
from planner_workshop.calibration.tables import slower_than_larger
from planner_workshop.measuring.kernel_cases import KernelCase
from planner_workshop.measuring.programs import Bench, Prepared, UntimedError

N_REPEATS, N_REPEATS_OF_LONG = 9, 5
REPEAT_S = 3e-3
"""One repeat lasts so long at least, unless it is of `MOST_RUNS` runs [s]."""

LONG_S = 5e-2
"""A repeat that lasts longer is repeated less often [s]."""

MOST_RUNS = 400
STEADY = 0.05
"""Spread above which a kernel is timed again, and named if that does not help [1]."""

LARGEST_SHARE = 0.05
"""Of the budget, that one kernel may be expected to take [1]."""

SECOND_SHARE = 0.15
"""Of the budget, kept for what is doubtful [1]."""

WARM_S, WARMEST_S = 0.5, 5.0
"""Clocks are warm when half a second's products take what the half before took, or so late [s]."""

EVEN = 0.01
"""Relative difference of two half seconds that are alike [1]."""

_GROWS: Mapping[str, tuple[str, ...]] = {
    "gemm": ("m",),
    "decode_attention": ("batch", "context"),
    "prefill_attention": ("batch", "tokens"),
    "experts": ("tokens",),
    "sampling": ("batch",),
    "elementwise": ("n_bytes",),
    **dict.fromkeys(KINDS, ("n_bytes",)),
}
"""Dimensions of which more cannot take less, all others the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """One kernel's time.

    Args:
        kernel: that was timed.
        program: that ran.
        seconds: median of the repeats [s].
        spread: distance between their quartiles over it [1].
        n_repeats: how many.
    """

    kernel: KernelCase
    program: str
    seconds: float
    spread: float
    n_repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Untimed:
    """One kernel without a time, and why."""

    kernel: KernelCase
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What a session has timed.

    Args:
        timed: in the order of families and sizes.
        untimed: kernels that were left out, each with its reason.
        n_again: kernels that were timed twice.
        warm_up_s: until the clocks were warm; infinite if they never were [s].
        elapsed_s: altogether [s].
    """

    timed: tuple[KernelTime, ...]
    untimed: tuple[Untimed, ...]
    n_again: int
    warm_up_s: float
    elapsed_s: float

    @property
    def unsteady(self) -> tuple[KernelTime, ...]:
        """Kernels whose times spread too far, the worst first."""
        timings = [one for one in self.timed if one.spread > STEADY]
        return tuple(sorted(timings, key=lambda timing: -timing.spread))


def joined(first: Measurements, second: Measurements) -> Measurements:
    """Two sessions as one; clocks are those of the first."""
    return Measurements(
        timed=first.timed + second.timed,
        untimed=first.untimed + second.untimed,
        n_again=first.n_again + second.n_again,
        warm_up_s=first.warm_up_s,
        elapsed_s=first.elapsed_s + second.elapsed_s,
    )


@dataclass(slots=True, kw_only=True)
class _Session:
    bench: Bench
    budget_s: float
    began_s: float
    timed: dict[str, KernelTime] = field(default_factory=dict)
    untimed: list[Untimed] = field(default_factory=list)
    rates: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        return self.budget_s - (self.bench.now_s() - self.began_s)

    def time(self, kernel: KernelCase) -> KernelTime | None:
        """A kernel's time; None, and why, of one that cannot be timed within the budget."""
        reason = self._too_long(kernel)
        if not reason:
            try:
                timing = timed(self.bench.prepare(kernel), kernel)
            except UntimedError as error:
                reason = str(error)
            else:
                self._learn(timing)
                return timing
        self.untimed.append(Untimed(kernel=kernel, reason=reason))
        return None

    def _learn(self, timing: KernelTime) -> None:
        best = self.rates.get(timing.kernel.family, (0.0, 0.0))
        flop, traffic = (amount / timing.seconds for amount in timing.kernel.work)
        self.rates[timing.kernel.family] = max(best[0], flop), max(best[1], traffic)

    def _too_long(self, kernel: KernelCase) -> str:
        """Why there is no time for a kernel, by the best rates that its family has shown."""
        if self.left_s <= SECOND_SHARE * self.budget_s:
            return "no time was left"
        best = self.rates.get(kernel.family, (0.0, 0.0))
        least_s = max(
            amount / rate if rate else 0.0 for amount, rate in zip(kernel.work, best, strict=True)
        )
        if least_s * (N_REPEATS_OF_LONG + 3) > LARGEST_SHARE * self.budget_s:
            return f"would take more than {LARGEST_SHARE:.0%} of the time"
        return ""


def measure(
    bench: Bench,
    kernels: Sequence[KernelCase],
    *,
    budget_s: float,
    on_kernel: Callable[[int, KernelCase], None] | None = None,
) -> Measurements:
    """Time kernels in their order, as far as the budget reaches.

    Args:
        bench: the machine.
        kernels: in an order that may end anywhere.
        budget_s: for everything, the warm-up too [s].
        on_kernel: called before each with how many are done.
    """
    session = _Session(bench=bench, budget_s=budget_s, began_s=bench.now_s())
    warm_up_s = _warm_up(session, kernels)
    for place, kernel in enumerate(kernels):
        if on_kernel is not None:
            on_kernel(place, kernel)
        timing = session.time(kernel)
        if timing is not None:
            session.timed[kernel.name] = timing
    n_again = _again(session)
    for doubtful in _contradicted(session.timed.values()):
        del session.timed[doubtful.kernel.name]
        reason = "took half as long again as a larger one, twice"
        session.untimed.append(Untimed(kernel=doubtful.kernel, reason=reason))
    return Measurements(
        timed=tuple(sorted(session.timed.values(), key=_place)),
        untimed=tuple(session.untimed),
        n_again=n_again,
        warm_up_s=warm_up_s,
        elapsed_s=bench.now_s() - session.began_s,
    )


def timed(prepared: Prepared, kernel: KernelCase) -> KernelTime:
    """Median and spread of repeats that last long enough to be timed.

    Raises:
        UntimedError: it cannot be run.
    """
    prepared.run_s(1)  # what is compiled, chosen and loaded once
    n_runs = _runs(prepared)
    once_s = prepared.run_s(n_runs)
    n_repeats = N_REPEATS if once_s < LONG_S else N_REPEATS_OF_LONG
    each = [prepared.run_s(n_runs) / n_runs for _ in range(n_repeats)]
    median = statistics.median(each)
    if not median > 0:
        raise UntimedError("took no time that a clock could tell")
    low, _, high = statistics.quantiles(each, n=4, method="inclusive")
    return KernelTime(
        kernel=kernel,
        program=prepared.program,
        seconds=median,
        spread=(high - low) / median,
        n_repeats=n_repeats,
    )


def _runs(prepared: Prepared) -> int:
    once_s = prepared.run_s(1)
    return min(MOST_RUNS, max(1, math.ceil(REPEAT_S / once_s))) if once_s > 0 else MOST_RUNS


def _warm_up(session: _Session, kernels: Sequence[KernelCase]) -> float:
    """Run products until they take the same time half a second on; how long that took [s].

    Where there are none, whatever else there is.
    """
    products = [one for one in kernels if one.family == "gemm"] or list(kernels)
    middle = sorted(products, key=lambda kernel: (kernel.work, kernel.name))[len(products) // 2]
    limit_s = min(WARMEST_S, session.budget_s / 4)
    try:
        prepared = session.bench.prepare(middle)
        prepared.run_s(1)
        n_runs, before_s = _runs(prepared), 0.0
        while session.bench.now_s() - session.began_s < limit_s:
            began_s, times = session.bench.now_s(), [prepared.run_s(n_runs)]
            while session.bench.now_s() - began_s < min(WARM_S, limit_s):
                times.append(prepared.run_s(n_runs))
            now_s = statistics.median(times)
            if abs(now_s - before_s) <= EVEN * now_s:
                return session.bench.now_s() - session.began_s
            before_s = now_s
    except UntimedError:
        return math.inf
    return math.inf


def _again(session: _Session) -> int:
    """Time doubtful kernels a second time; how many there were time for."""
    contradicted = {one.kernel.name for one in _contradicted(session.timed.values())}
    doubtful = [
        timing
        for timing in session.timed.values()
        if timing.spread > STEADY or timing.kernel.name in contradicted
    ]
    n_again = 0
    for timing in doubtful:
        if session.left_s <= 0:
            break
        with suppress(UntimedError):  # the first time stands where no second one can be had
            second = timed(session.bench.prepare(timing.kernel), timing.kernel)
            session.timed[timing.kernel.name] = min(timing, second, key=lambda each: each.seconds)
        n_again += 1
    return n_again


def _contradicted(timings: Iterable[KernelTime]) -> list[KernelTime]:
    """Those that took half as long again as some that only do more."""
    kinds: dict[object, list[KernelTime]] = {}
    for one in timings:
        key = (one.kernel.family, one.kernel.format, *sorted(one.kernel.dimensions))
        kinds.setdefault(key, []).append(one)
    return [one for members in kinds.values() for one in _against(members)]


def _against(members: Sequence[KernelTime]) -> list[KernelTime]:
    """The same of kernels that have the same dimensions."""
    seconds = np.array([one.seconds for one in members])
    first = members[0].kernel
    against = np.zeros(len(members), dtype=bool)
    columns = {name: [one.kernel.dimensions[name] for one in members] for name in first.dimensions}
    for grows in _GROWS[first.family]:
        same = [values for name, values in columns.items() if name != grows]
        alike = same or [[0.0] * len(members)]
        against |= slower_than_larger(alike, columns[grows], seconds)
    return [one for one, is_so in zip(members, against, strict=True) if is_so]


def _place(timing: KernelTime) -> tuple[object, ...]:
    return (timing.kernel.family, timing.kernel.format, *timing.kernel.dimensions.values())
