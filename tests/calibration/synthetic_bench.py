"""A machine whose kernels take what closed forms say, with the faults that real ones have.

Clocks rise for the first second, repeats scatter by a percent, some kernels are disturbed.
Time passes only while a kernel runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from planner.equations.collectives import KINDS
from planner_workshop.calibration.tables import FITTED
from planner_workshop.measuring.programs import UntimedError

RATES = {"peak_flop_per_s": 989.5e12, "hbm_bytes_per_s": 4.8e12}
COLLECTIVE: Mapping[str, float] = {
    "short_latency_s": 6e-6,
    "short_bytes_per_s": 4e10,
    "long_latency_s": 15e-6,
    "long_bytes_per_s": 3e11,
}
TRUE: Mapping[str, Mapping[str, float]] = {
    "gemm": {
        "floor_s": 4e-6,
        "compute_fraction": 0.61,
        "memory_fraction": 0.72,
        "exponent": 4.0,
    },
    "decode_attention": {"floor_s": 7e-6, "memory_fraction": 0.55},
    "prefill_attention": {"floor_s": 9e-6, "compute_fraction": 0.42, "ramp_tokens": 900.0},
    "sampling": {"floor_s": 2e-5, "n_passes": 6.0, "memory_fraction": 1.0},
    "elementwise": {"kernel_s": 2e-6, "memory_fraction": 0.78},
    **dict.fromkeys(KINDS, COLLECTIVE),
}
"""What a calibration has to find again."""

COLD_S, COLD = 1.0, 1.6
SCATTER = 0.01


@dataclass
class SyntheticBench:
    """An H200 of closed forms.

    Args:
        slow_once: kernels, by name, that take three times as long when they are first prepared.
        slow: kernels that take twice as long whenever they run.
        shaky: kernels whose repeats differ by half.
        memory_bytes: of it.
    """

    slow_once: frozenset[str] = frozenset()
    slow: frozenset[str] = frozenset()
    shaky: frozenset[str] = frozenset()
    memory_bytes: float = 150.1e9
    machine: str = "NVIDIA H200"
    software: str = "closed forms 1.0"
    n_multiprocessors: int = 132
    formats: tuple[str, ...] = ("bf16",)
    passed_s: float = 0.0
    prepared: Counter = field(default_factory=Counter)

    def now_s(self):
        return self.passed_s

    def multiplies(self, number_format):
        return number_format in self.formats

    def prepare(self, kernel):
        if kernel.family not in TRUE:
            raise UntimedError("no closed form of it is here")
        self.prepared[kernel.name] += 1
        self.passed_s += 0.01
        return _Prepared(self, kernel)


@dataclass
class _Prepared:
    bench: SyntheticBench
    kernel: object
    program: str = "closed form"
    n_calls: int = 0

    def __post_init__(self):
        name, known = self.kernel.name, self.bench
        is_first = known.prepared[name] == 1
        self.factor = 3.0 if name in known.slow_once and is_first else 1.0
        self.factor *= 2.0 if name in known.slow else 1.0

    def run_s(self, n_runs):
        family, name = self.kernel.family, self.kernel.name
        self.n_calls += 1
        seconds = FITTED[family].seconds(self.kernel.dimensions, RATES, TRUE[family])
        drawn = sha256(f"{name} {self.n_calls}".encode()).digest()[0] / 255 - 0.5
        scatter = 0.8 * (self.n_calls % 2) if name in self.bench.shaky else 2 * SCATTER * drawn
        cold = 1.0 + (COLD - 1.0) * max(0.0, 1.0 - self.bench.passed_s / COLD_S)
        whole = float(seconds) * n_runs * self.factor * cold * (1 + scatter)
        self.bench.passed_s += whole
        return whole
