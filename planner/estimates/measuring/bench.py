"""What times kernels: a machine with a program for each, or the reason why there is none."""

from __future__ import annotations

from typing import Protocol

from planner.estimates.measuring.wanted import Wanted


class UntimedError(Exception):
    """A kernel that a bench cannot time; the text says why."""


class Prepared(Protocol):
    """A kernel with its operands in memory, ready to run."""

    @property
    def program(self) -> str:
        """What runs: the function, and the library's choice where it is known."""

    def run_s(self, n_runs: int) -> float:
        """Time of so many runs, one after the other, without their launches by the host [s].

        Raises:
            UntimedError: it cannot be run.
        """


class Bench(Protocol):
    """A machine and a library of kernels on it.

    Args:
        machine: as the library calls it: `NVIDIA H200`.
        software: the library, with its version.
        memory_bytes: of the device, as the library counts it [bytes].
        n_multiprocessors: of the device; 0 where it has none.
    """

    @property
    def machine(self) -> str: ...

    @property
    def software(self) -> str: ...

    @property
    def memory_bytes(self) -> float: ...

    @property
    def n_multiprocessors(self) -> int: ...

    def now_s(self) -> float:
        """Seconds that have passed since some moment, as budgets count them [s]."""

    def multiplies(self, number_format: str) -> bool:
        """Whether it has a product in the format."""

    def prepare(self, kernel: Wanted) -> Prepared:
        """Put the operands of a kernel into memory.

        Raises:
            UntimedError: there is no program for it, or no room.
        """
