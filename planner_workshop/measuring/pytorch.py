"""Kernels of PyTorch on one device: a GPU inside CUDA graphs, or this machine's processor.

PyTorch is imported here alone and only when something is timed: it is no dependency. Whether the
machine at hand is the device that is asked for, which formats it multiplies, and the table of what
was timed on it are here too.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from planner.equations.kernels.constants import ANY
from planner.errors import Problem, RequestError
from planner.specs.records.devices import DeviceSpec
from planner_workshop.calibration.plain import NOTES, PEAK, WORDS
from planner_workshop.measuring.kernel_cases import KernelCase
from planner_workshop.measuring.programs import Bench, Call, Prepared, Programs, Torch, UntimedError
from planner_workshop.measuring.timing import KernelTime, Measurements

CUDA, CPU = "cuda", "cpu"
BACKENDS = (CUDA, CPU)

WHERE = "plan measure"
CACHE_BYTES = 64 * 2**20
"""Taken as the largest cache of a device that does not say, a processor's among them [bytes]."""

COLD = 2.0
"""Operands of successive runs hold so many times the cache, so that none is found there [1]."""

MOST_COPIES = 64
ROOM = 0.6
"""Share of the free memory that operands may take [1]."""


def open_bench(backend: str) -> TorchBench:
    """PyTorch's kernels on a backend.

    Args:
        backend: `cuda`, which is AMD's GPUs too, or `cpu`.

    Raises:
        RequestError: PyTorch is not installed, or sees no such device.
    """
    try:
        import torch
    except ImportError:
        fact, remedy = "needs PyTorch, which is not installed", "`pip install torch`"
        raise RequestError([Problem(where=WHERE, fact=fact, remedy=remedy)]) from None
    if backend == CUDA and not torch.cuda.is_available():
        fact = f"PyTorch {torch.__version__} sees no GPU"
        remedy = "`--backend cpu` times this machine's processor"
        raise RequestError([Problem(where="--backend", value=CUDA, fact=fact, remedy=remedy)])
    return TorchBench(torch, backend)


class TorchBench:
    """One device as PyTorch drives it."""

    def __init__(self, torch: Torch, backend: str) -> None:
        self._torch = torch
        self._is_cuda = backend == CUDA
        self._programs = Programs(torch, backend)
        known = torch.cuda.get_device_properties(0) if self._is_cuda else None
        self._cache_bytes = float(getattr(known, "L2_cache_size", 0) or CACHE_BYTES)
        self.machine = str(known.name) if known else _processor(torch)
        self.n_multiprocessors = int(known.multi_processor_count) if known else 0
        self.memory_bytes = float(known.total_memory) if known else _memory_bytes()
        toolkit = torch.version.cuda and f", CUDA {torch.version.cuda}"
        toolkit = toolkit or (torch.version.hip and f", ROCm {torch.version.hip}") or ""
        self.software = f"torch {torch.__version__.partition('+')[0]}{toolkit * self._is_cuda}"

    def now_s(self) -> float:
        """Seconds that have passed [s]."""
        return time.perf_counter()

    def multiplies(self, number_format: str) -> bool:
        """Whether a small product in the format runs."""
        sizes = {"m": 16.0, "n": 64.0, "k": 64.0}
        try:
            self.prepare(KernelCase(family="gemm", format=number_format, dimensions=sizes)).run_s(1)
        except UntimedError:
            return False
        return True

    def prepare(self, kernel: KernelCase) -> Prepared:
        """Operands in memory, in as many copies as the caches cannot hold."""
        with _told(self._torch, "operands"):
            operands = self._programs.bytes_of(kernel)
            room = ROOM * self._free_bytes()
            if operands > room:
                raise UntimedError(f"its operands of {operands / 1e9:.3g} GB have no room")
            n_copies = int(min(MOST_COPIES, COLD * self._cache_bytes // operands + 1))
            n_copies = max(1, min(n_copies, int(room // operands)))
            program, calls = self._programs.calls(kernel, n_copies)
        run = self._replayed(calls) if self._is_cuda else _counted(calls)

        def run_s(n_runs: int) -> float:
            with _told(self._torch, "results"), self._torch.inference_mode():
                return run(n_runs)

        return Prepared(program=program, run_s=run_s)

    def _free_bytes(self) -> float:
        if self._is_cuda:
            free, _ = self._torch.cuda.mem_get_info()
            reserved = self._torch.cuda.memory_reserved() - self._torch.cuda.memory_allocated()
            return float(free + reserved)
        return self.memory_bytes / 2

    def _replayed(self, calls: list[Call]) -> Callable[[int], float]:
        """Runs inside a graph, timed by the device's own clock."""
        cuda = self._torch.cuda
        graphs: dict[int, Any] = {}

        def run_s(n_runs: int) -> float:
            if n_runs not in graphs:
                stream = cuda.Stream()
                stream.wait_stream(cuda.current_stream())
                with cuda.stream(stream):  # what a library sets up on its first call
                    calls[0]()
                cuda.current_stream().wait_stream(stream)
                graph = cuda.CUDAGraph()
                with cuda.graph(graph):
                    for place in range(n_runs):
                        calls[place % len(calls)]()
                graphs.clear()
                graphs[n_runs] = graph
            return cuda_s(self._torch, graphs[n_runs].replay)

        return run_s


def cuda_s(torch: Torch, run: Call) -> float:
    """Time of a call by the clock of the GPU [s]."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3


def _counted(calls: list[Call]) -> Callable[[int], float]:
    """Runs one after the other, timed by the processor's clock."""

    def run_s(n_runs: int) -> float:
        began_s = time.perf_counter()
        for place in range(n_runs):
            calls[place % len(calls)]()
        return time.perf_counter() - began_s

    return run_s


@contextmanager
def _told(torch: Torch, what: str) -> Iterator[None]:
    """What PyTorch raises, as why a kernel is not timed.

    Args:
        what: of it has no room, where memory is what PyTorch lacks.
    """
    # until 2.5 lack of memory had no name of its own but on GPUs
    starved: type[Exception] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
    try:
        yield
    except starved:
        raise UntimedError(f"its {what} have no room") from None
    except RuntimeError as error:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UntimedError(f"PyTorch: {first[:160]}") from None


def _processor(torch: Torch) -> str:
    """`processor AMD EPYC 7B13, 2 threads`."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123, no file of a user
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        name = names[0] if names else name
    except OSError:
        pass
    return f"processor {name}, {torch.get_num_threads()} threads"


def _memory_bytes() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


FORMATS = ("bf16", "fp16", "fp8")
"""Of weights whose products can be timed."""

USUAL = ("bf16", "fp8")
"""Those that are timed without being asked for, where the device multiplies them."""

MEMORY_TOLERANCE = 0.15
"""Datasheets round, count in tens or in twos, and drivers keep some for themselves [1]."""


def unlike(device: DeviceSpec, bench: Bench, *, by_name: bool) -> list[Problem]:
    """What tells that the machine is another device; nothing if it may be this one.

    Args:
        device: as asked for.
        bench: the machine.
        by_name: the device's name begins with its maker's name of the chip.
    """
    chip = device.name.partition("-")[0]
    is_named = not by_name or chip in bench.machine.lower().replace(" ", "")
    is_as_large = abs(bench.memory_bytes / device.hbm_bytes - 1) <= MEMORY_TOLERANCE
    if is_named and is_as_large:
        return []
    fact = f"is not what is here: {bench.machine} with {bench.memory_bytes / 1e9:.4g} GB"
    remedy = "name its device, or write a device file of your own"
    return [Problem(where="--device", value=device.name, fact=fact, remedy=remedy)]


def formats_of(
    names: Sequence[str], device: DeviceSpec | None, bench: Bench
) -> tuple[tuple[str, ...], list[Problem]]:
    """Formats of weights to time, and what is wrong with those that were asked for.

    Args:
        names: by name; the usual ones if empty.
        device: whose peaks judge the rows; None where nobody describes it yet.
        bench: the machine.
    """
    peaks = USUAL if device is None else tuple(device.peak_flop_per_s)
    usual = [name for name in USUAL if name in peaks and bench.multiplies(name)]
    problems = []
    for name in names:
        if name not in peaks and device is not None:
            fact, remedy = f"{device.name} does not multiply it", f"it does {', '.join(peaks)}"
        elif not bench.multiplies(name):
            fact, remedy = f"{bench.software} has no product in it on {bench.machine}", ""
        else:
            continue
        problems.append(Problem(where="--weights", value=name, fact=fact, remedy=remedy))
    return tuple(names) or tuple(usual), problems


_MICRO = 1e-6
_WITHOUT_FORMAT = "bf16"
"""Whose peak bounds kernels that are of any format: they hardly multiply."""


def table_text(measurements: Measurements, bench: Bench, *, device: str) -> str:
    """The table: a header and a row for each kernel.

    Args:
        measurements: what was timed.
        bench: on which machine and with what.
        device: what that is called here.
    """
    sizes = dict.fromkeys(name for one in measurements.timed for name in one.kernel.dimensions)
    family, form, latency = WORDS
    header = (family, form, PEAK, *sizes, latency, *NOTES)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, header, restval="", lineterminator="\n")
    writer.writeheader()
    said = (device, bench.machine, bench.software)
    for one in measurements.timed:
        writer.writerow(dict(zip(header, _cells(one, tuple(sizes), said), strict=True)))
    return stream.getvalue()


def _cells(timing: KernelTime, sizes: tuple[str, ...], said: tuple[str, ...]) -> list[str]:
    kernel = timing.kernel
    return [
        kernel.family,
        kernel.format,
        _WITHOUT_FORMAT if kernel.format == ANY else "",
        *(f"{kernel.dimensions[name]:.10g}" if name in kernel.dimensions else "" for name in sizes),
        f"{timing.seconds / _MICRO:.5g}",
        *said,
        timing.program,
        f"{timing.spread:.3g}",
        str(timing.n_repeats),
    ]
