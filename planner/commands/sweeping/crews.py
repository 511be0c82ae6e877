"""Workers of a sweep: tasks in chunks, as many at once as keep all of them busy; none is lost.

A chunk takes about half a second, by what those before it took. Where a worker dies its chunk is
tried again in single tasks; a task that was lost twice is tried alone, and given up where its
worker dies twice so: one death is chance, and what was lost beside another may never have begun.
"""

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from time import perf_counter
from typing import TYPE_CHECKING, Generic, TypeVar

from planner.commands.sweeping.tasks import Task

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

T = TypeVar("T")

_MOST_TRIES = 4
_TRIES_BESIDE = 2
_CHUNK_S = 0.5
_MOST_IN_A_CHUNK = 64
_TICK_S = 0.25
_BUSY = 2  # chunks for each worker: one at work, one waiting

_LOADED = (
    *("planner.commands.cli", "planner.commands.fleet", "planner.planning.plans"),
    *("planner.report.as_json", "planner.report.answers.plans"),
)
_WARNINGS = "PYTHONWARNINGS"

Work = Callable[[Sequence[Task]], list[T]]
Tick = Callable[[], None]


@dataclass(slots=True, kw_only=True)
class Crew:
    """An executor, and how to get another where it breaks.

    Args:
        executor: that tasks go to.
        n_workers: it has.
        renew: another one in its place; None where it is the caller's.
    """

    executor: Executor
    n_workers: int
    renew: Callable[[], Executor] | None = None

    def renewed(self, error: BaseException) -> None:
        """Put another executor in the place of a broken one.

        Raises:
            BaseException: the error, where the executor is the caller's.
        """
        if self.renew is None:
            raise error
        self.close()
        self.executor = self.renew()

    def close(self) -> None:
        """End the processes that were begun here, whatever they do; another's executor stays."""
        if self.renew is not None:
            for process in list((getattr(self.executor, "_processes", None) or {}).values()):
                process.kill()
            self.executor.shutdown(cancel_futures=True)


def processes(n_workers: int) -> Crew:
    """Processes of this machine; they end with this one, however it ends."""
    made = {"mp_context": begun_loaded(), "initializer": begin}
    make = partial(ProcessPoolExecutor, n_workers, **made)
    return Crew(executor=make(), n_workers=n_workers, renew=make)


def begun_loaded(*modules: str) -> "ForkServerContext | SpawnContext":
    """How workers begin: with libraries loaded, and these modules, where a system can fork.

    Libraries are loaded once for all workers, none of which hears Ctrl-C. What is left of
    semaphores where a sweep is cut short is removed without a word.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload([*_LOADED, *modules])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    told = os.environ.get(_WARNINGS, "")
    os.environ[_WARNINGS] = ",".join(filter(None, (told, "ignore:resource_tracker")))
    try:
        forkserver.ensure_running()
    finally:
        os.environ[_WARNINGS] = told  # empty is as if it were not there
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return get_context("forkserver")


def begin() -> None:
    """Make a process a worker: deaf to Ctrl-C, and gone when who waits for it is gone."""
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def end_with() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with, daemon=True).start()


@dataclass(slots=True)
class _Queue:
    """Tasks that wait, those that are tried alone apart, and how often each was lost."""

    waiting: deque[Task]
    alone: deque[Task] = field(default_factory=deque)
    lost: Counter[int] = field(default_factory=Counter)
    size: int = 1

    def chunk(self, n_workers: int) -> list[Task]:
        """The next tasks, fewer towards the end, so that all workers end together."""
        if not self.waiting:
            return [self.alone.popleft()]
        if self.lost[self.waiting[0].index]:
            return [self.waiting.popleft()]
        n = max(1, min(self.size, len(self.waiting) // (2 * n_workers)))
        return [self.waiting.popleft() for _ in range(n)]

    def put_back(self, tasks: Sequence[Task]) -> list[Task]:
        """Queue tasks whose worker died; those that were tried often enough come back."""
        given_up = []
        for task in tasks:
            self.lost[task.index] += 1
            n_lost = self.lost[task.index]
            if n_lost >= _MOST_TRIES:
                given_up.append(task)
            elif n_lost >= _TRIES_BESIDE:
                self.alone.append(task)
            else:
                self.waiting.appendleft(task)
        return given_up

    def learn(self, n_tasks: int, elapsed_s: float) -> None:
        fits = int(_CHUNK_S * n_tasks / max(elapsed_s, 1e-9))
        self.size = max(1, min(_MOST_IN_A_CHUNK, 2 * self.size, fits))


class Shift(Generic[T]):
    """Tasks of a kind that a crew does.

    Args:
        crew: does them.
        work: of a chunk: one result a task.
        given_up: the result of a task whose worker died as often as it may.
        tick: called several times a second while there is nothing else to do.
    """

    def __init__(
        self, crew: Crew, work: Work[T], *, given_up: Callable[[Task, str], T], tick: Tick
    ) -> None:
        self._crew, self._work, self._given_up, self._tick = crew, work, given_up, tick
        self._flight: dict[Future[list[T]], tuple[list[Task], float]] = {}

    def results(self, tasks: Sequence[Task]) -> Iterator[list[T]]:
        """Results, chunk by chunk as they come.

        Raises:
            BrokenExecutor: the executor is the caller's, and broke.
        """
        queue = _Queue(deque(tasks))
        while queue.waiting or queue.alone or self._flight:
            broken = self._submit(queue)
            done, _ = wait(self._flight, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            self._tick()
            lost: list[Task] = []
            for future in done:
                chunk, begun_s = self._flight.pop(future)
                try:
                    answers = future.result()
                except BrokenExecutor as error:
                    broken, lost = error, lost + chunk
                except CancelledError:
                    raise ConnectionError("the scheduler of the workers is gone") from None
                except Exception as error:  # a worker that a cluster lost, or could not reach
                    yield self._back(queue, chunk, error)
                else:
                    queue.learn(len(chunk), perf_counter() - begun_s)
                    yield answers
            if broken is not None:
                lost += [task for chunk, _ in self._flight.values() for task in chunk]
                self._flight.clear()
                self._crew.renewed(broken)
                yield self._back(queue, lost, broken)

    def _submit(self, queue: _Queue) -> BrokenExecutor | None:
        """Keep workers busy; the error of an executor that is broken."""
        most = _BUSY * self._crew.n_workers
        while (queue.waiting and len(self._flight) < most) or (queue.alone and not self._flight):
            chunk = queue.chunk(self._crew.n_workers)
            try:
                future = self._crew.executor.submit(self._work, chunk)
            except BrokenExecutor as error:
                (queue.waiting if queue.waiting else queue.alone).extendleft(reversed(chunk))
                return error
            self._flight[future] = chunk, perf_counter()
        return None

    def _back(self, queue: _Queue, tasks: Sequence[Task], error: BaseException) -> list[T]:
        reason = f"its worker died {_MOST_TRIES} times: {str(error) or type(error).__name__}"
        return [self._given_up(task, reason) for task in queue.put_back(tasks)]
