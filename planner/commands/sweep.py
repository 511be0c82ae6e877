"""`plan sweep`: a file of requests to rows in a folder, a table and a page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.commands.sweeping import sweeps
from planner.commands.sweeping.requests import load_sweep
from planner.errors import Problem, RequestError
from planner.quantities.units import show
from planner.report.answers.sweeps import document
from planner.report.files import Answer
from planner.report.progress import tell

INTERRUPTED = 130


def sweep(said: Said) -> Answer:
    """Rows of many requests, in a folder, a table and a page."""
    file = said.sweep
    if said.workers is not None and said.dask is not None:
        fact, remedy = "a Dask cluster has its own workers", "leave one of both out"
        said.refuse("--workers", fact, remedy)
    requests = said.load("--sweep", load_sweep)
    said.check()
    assert requests is not None
    keywords = {"workers": said.workers, "parts": said.parts}
    keywords["keep_answers"] = said.keep == "answers"
    folder = Path(said.folder or f"{Path(file).stem}.rows")
    line, began_s = _SweepLine(len(requests)), time.monotonic()
    read: sweeps.Sweep | None = None
    try:
        with _cluster(said.dask) as cluster:
            keywords |= cluster
            read = sweeps.sweep(requests, folder=folder, on_progress=line.tell, **keywords)
            for _ in read:
                pass
    except KeyboardInterrupt:
        n_done = 0 if read is None else len(read.rows)
        message = f"interrupted: {n_done:,} of {len(requests):,} requests are done and kept"
        message += f" in `{folder}`, and the same command goes on from there"
        return Answer(message=message, code=INTERRUPTED)
    rows, elapsed_s = [read.rows[task.index] for task in read.tasks], time.monotonic() - began_s
    made = partial(document, rows, folder=str(folder), elapsed_s=elapsed_s)
    return shown(said, made, code=min(row["code"] for row in rows))


@contextmanager
def _cluster(address: str | None) -> Iterator[dict[str, Any]]:
    """The executor of a Dask cluster and how many threads it has; nothing without an address."""
    if address is None:
        yield {}
        return
    try:
        from distributed import Client
    except ImportError:
        fact, remedy = "needs Dask", "`pip install 'llm-serving-planner[dask]'`"
        raise _error(address, fact, remedy) from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        remedy = "start one: `dask scheduler`, and `dask worker ADDRESS --nthreads 1`"
        raise _error(address, f"no scheduler answers: {error}", remedy) from None
    with client:
        n_threads = sum(client.nthreads().values())
        if not n_threads:
            raise _error(address, "has no worker", f"start some: `dask worker {address}`")
        yield {"executor": client.get_executor(pure=False), "workers": n_threads}


def _error(address: str, fact: str, remedy: str) -> Exception:
    return RequestError([Problem(where="--dask", value=address, fact=fact, remedy=remedy)])


class _SweepLine:
    """How far a sweep is, on one line of a terminal."""

    def __init__(self, n_requests: int) -> None:
        self._began_s = time.monotonic()
        self._what = ""
        self.tell("reading", 0, n_requests, 0)

    def tell(self, what: str, n_done: int, n_all: int, n_before: int) -> None:
        if what != self._what:
            self._what, self._began_s = what, time.monotonic()
        elapsed_s = time.monotonic() - self._began_s
        text = f"{what} requests: {n_done:,} of {n_all:,}, {show(round(elapsed_s, 1), 's')}"
        if n_done > n_before:
            left_s = elapsed_s * (n_all - n_done) / (n_done - n_before)
            text += f", {show(left_s, 's')} left"
        tell(lambda _: text)
