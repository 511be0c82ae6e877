"""Kernels of PyTorch on one device: a GPU inside CUDA graphs, or this machine's processor.

PyTorch is imported here alone and only when something is timed: it is no dependency.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

from planner.errors import Problem, RequestError
from planner.tools.measuring.kernel_cases import KernelCase
from planner.tools.measuring.programs import Call, Programs, Torch, UntimedError

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

    def prepare(self, kernel: KernelCase) -> TorchKernel:
        """Operands in memory, in as many copies as the caches cannot hold."""
        try:
            operands = self._programs.bytes_of(kernel)
            room = ROOM * self._free_bytes()
            if operands > room:
                raise UntimedError(f"its operands of {operands / 1e9:.3g} GB have no room")
            n_copies = int(min(MOST_COPIES, COLD * self._cache_bytes // operands + 1))
            n_copies = max(1, min(n_copies, int(room // operands)))
            program, calls = self._programs.calls(kernel, n_copies)
        except _starved(self._torch):
            raise UntimedError("its operands have no room") from None
        except RuntimeError as error:
            raise UntimedError(_reason(error)) from None
        run = self._replayed(calls) if self._is_cuda else _counted(calls)
        return TorchKernel(self._torch, program, run)

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
            begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graphs[n_runs].replay()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e-3

        return run_s


class TorchKernel:
    """A kernel of PyTorch with its operands."""

    def __init__(self, torch: Torch, program: str, run: Callable[[int], float]) -> None:
        self._torch, self._run = torch, run
        self.program = program

    def run_s(self, n_runs: int) -> float:
        """Time of so many runs [s]."""
        try:
            with self._torch.inference_mode():
                return self._run(n_runs)
        except _starved(self._torch):
            raise UntimedError("its results have no room") from None
        except RuntimeError as error:
            raise UntimedError(_reason(error)) from None


def _counted(calls: list[Call]) -> Callable[[int], float]:
    """Runs one after the other, timed by the processor's clock."""

    def run_s(n_runs: int) -> float:
        began_s = time.perf_counter()
        for place in range(n_runs):
            calls[place % len(calls)]()
        return time.perf_counter() - began_s

    return run_s


def _starved(torch: Torch) -> type[Exception]:
    """What PyTorch raises without memory; until 2.5 it had no name of its own but on GPUs."""
    starved: type[Exception] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)
    return starved


def _reason(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"PyTorch: {first[:160]}"


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
