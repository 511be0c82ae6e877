"""Collectives of PyTorch between the GPUs of one node, or between processes of a processor.

Every process goes through the same list with the same code. What decides anything, a time that
has passed or that a run took, is made the same in all of them first: the longest of any.
"""

from __future__ import annotations

import math
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from planner.equations.collectives import KINDS
from planner.errors import Problem, RequestError
from planner_workshop.measuring.kernel_cases import KernelCase, wanted_collectives
from planner_workshop.measuring.programs import Call, Prepared, Tensor, Torch, UntimedError
from planner_workshop.measuring.pytorch import cuda_s
from planner_workshop.measuring.timing import Measurements, measure

LIBRARY = {"cuda": "nccl", "cpu": "gloo"}
"""What sends, by PyTorch's name of the devices; on AMD's GPUs `nccl` is RCCL."""

PATIENCE = timedelta(seconds=120)
"""After which processes that do not answer end the session."""

NUMBER_BYTES = 2

Queue: TypeAlias = Any
"""Of PyTorch's processes."""


def measure_collectives(backend: str, n_gpus: int, *, budget_s: float) -> Measurements:
    """Time collectives between processes that are started for it, one a GPU.

    Args:
        backend: `cuda` or `cpu`.
        n_gpus: of one node; processes where it is `cpu`.
        budget_s: for everything but the start of the processes [s].

    Raises:
        RequestError: there are not so many GPUs, or the processes failed.
    """
    import torch
    import torch.multiprocessing as processes

    if backend == "cuda" and torch.cuda.device_count() < n_gpus:
        fact = f"PyTorch sees {torch.cuda.device_count()}"
        raise RequestError([Problem(where="--gpus", value=str(n_gpus), fact=fact)])
    with tempfile.TemporaryDirectory() as folder:
        answers = processes.get_context("spawn").SimpleQueue()
        try:
            processes.start_processes(
                _work, (backend, n_gpus, budget_s, folder, answers), nprocs=n_gpus, join=True
            )
        except (processes.ProcessRaisedException, processes.ProcessExitedException) as error:
            fact = f"a process ended: {str(error).strip().splitlines()[-1][:160]}"
            raise RequestError([Problem(where="--gpus", value=str(n_gpus), fact=fact)]) from error
        measurements: Measurements = answers.get()
    return measurements


def _work(
    rank: int, backend: str, n_gpus: int, budget_s: float, folder: str, answers: Queue
) -> None:
    """What one process does; the first of them answers."""
    import torch
    import torch.distributed as together

    if backend == "cuda":
        torch.cuda.set_device(rank)
    together.init_process_group(
        LIBRARY[backend],
        store=together.FileStore(str(Path(folder, "meeting")), n_gpus),
        rank=rank,
        world_size=n_gpus,
        timeout=PATIENCE,
    )
    try:
        bench = CollectiveBench(torch, backend, n_gpus)
        measurements = measure(bench, wanted_collectives(n_gpus), budget_s=budget_s)
    finally:
        together.destroy_process_group()
    if rank == 0:
        answers.put(measurements)


class CollectiveBench:
    """One of the processes that send to each other."""

    def __init__(self, torch: Torch, backend: str, n_gpus: int) -> None:
        self._torch, self._backend = torch, backend
        self._device = torch.device(backend)
        self._rank = torch.distributed.get_rank()
        sizes = {int(one.dimensions["n_devices"]) for one in wanted_collectives(n_gpus)}
        # every process has to take part in making each group, its own or not
        self._groups = {
            size: torch.distributed.new_group(list(range(size))) for size in sorted(sizes)
        }
        self.machine = self.software = LIBRARY[backend]
        self._began_s = time.perf_counter()
        self.memory_bytes, self.n_multiprocessors = 0.0, 0

    def now_s(self) -> float:
        """Seconds that have passed, in the process where most have [s]."""
        return self.longest_s(time.perf_counter() - self._began_s)

    def multiplies(self, number_format: str) -> bool:
        return False

    def prepare(self, kernel: KernelCase) -> Prepared:
        """Buffers of one collective, in the processes of its group."""
        if kernel.family not in KINDS:
            raise UntimedError("is no collective")
        size = int(kernel.dimensions["n_devices"])
        call: Call | None = None  # where this process has no part of it
        if self._rank < size:
            call = self._call(kernel.family, size, int(kernel.dimensions["n_bytes"]))
        recorded: dict[int, Call] = {}

        def run_s(n_runs: int) -> float:
            """Time of so many runs, that of the slowest process [s]."""
            seconds, reason = 0.0, ""
            if call is not None:
                try:
                    if n_runs not in recorded:
                        recorded.clear()
                        recorded[n_runs] = self._recorded(call, n_runs)
                    seconds = self._seconds_of(recorded[n_runs])
                except RuntimeError as error:
                    seconds, reason = math.inf, str(error).strip().partition("\n")[0][:160]
            longest = self.longest_s(seconds)
            if longest == math.inf:
                raise UntimedError(f"PyTorch: {reason}" if reason else "another process failed")
            return longest

        return Prepared(program=f"{LIBRARY[self._backend]} {kernel.family}", run_s=run_s)

    def longest_s(self, seconds: float) -> float:
        """The longest time of any process; infinite if one failed [s]."""
        torch = self._torch
        value = torch.tensor([seconds], dtype=torch.float64, device=self._device)
        torch.distributed.all_reduce(value, op=torch.distributed.ReduceOp.MAX)
        return float(value.item())

    def _recorded(self, call: Call, n_runs: int) -> Call:
        """So many runs as one call: inside a graph where there are graphs."""
        if self._backend != "cuda":

            def run() -> None:
                for _ in range(n_runs):
                    call()

            return run
        cuda = self._torch.cuda
        call()  # what the library sets up on its first message cannot be recorded
        cuda.synchronize()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for _ in range(n_runs):
                call()
        replay: Call = graph.replay
        return replay

    def _seconds_of(self, run: Call) -> float:
        """Time of one call in this process [s]."""
        if self._backend != "cuda":
            began_s = time.perf_counter()
            run()
            return time.perf_counter() - began_s
        return cuda_s(self._torch, run)

    def _call(self, kind: str, size: int, n_bytes: int) -> Call:
        together, group = self._torch.distributed, self._groups[size]
        n_numbers = max(1, n_bytes // NUMBER_BYTES // size) * size
        whole, other = self._numbers(n_numbers), self._numbers(n_numbers)
        part = self._numbers(n_numbers // size)
        # their names before PyTorch 2.13, which still has these
        gather = getattr(together, "all_gather_single", together.all_gather_into_tensor)
        scatter = getattr(together, "reduce_scatter_single", together.reduce_scatter_tensor)
        calls: dict[str, Call] = {
            "all_reduce": lambda: together.all_reduce(whole, group=group),
            "all_gather": lambda: gather(whole, part, group=group),
            "reduce_scatter": lambda: scatter(part, whole, group=group),
            "all_to_all": lambda: together.all_to_all_single(other, whole, group=group),
        }
        return calls[kind]

    def _numbers(self, n_numbers: int) -> Tensor:
        return self._torch.zeros(n_numbers, dtype=self._torch.bfloat16, device=self._device)
