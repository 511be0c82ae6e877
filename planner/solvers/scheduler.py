"""HiGHS keeps one scheduler a process: a run with another number of threads fails silently."""

from __future__ import annotations

import highspy  # type: ignore[import-untyped]

_threads: int | None = None


def use_threads(n_threads: int) -> None:
    """Make sure that the next run may have this many threads; to be called before each."""
    global _threads
    if _threads not in (None, n_threads):
        highspy.Highs.resetGlobalScheduler(True)
    _threads = n_threads
