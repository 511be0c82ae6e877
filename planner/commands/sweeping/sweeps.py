"""`sweep`: many requests, shared among the workers of an executor, as rows in any order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.sweeping import tasks as work
from planner.commands.sweeping.crews import Crew, Shift, processes
from planner.commands.sweeping.folders import RowFolder
from planner.commands.sweeping.requests import SweepRequest, load_sweep, requests_of
from planner.commands.sweeping.tasks import Result, Row, Task
from planner.errors import Problem, RequestError, SolverError

if TYPE_CHECKING:
    from pandas import DataFrame

OnProgress = Callable[[str, int, int, int], None]
"""Called with what is being done (`reading` or `answering`), how many are done, of how many, and
how many of these were done before."""


@dataclass(slots=True, kw_only=True)
class Sweep:
    """Requests that were read, and rows as they come.

    Iterating answers what is not answered yet: rows that were kept in the folder come first, then
    each as it is done, in any order.

    Args:
        requests: in the order of their `index`.
        tasks: the same, on their way to workers.
        rows: what is done, by index.
    """

    requests: Sequence[SweepRequest]
    tasks: Sequence[Task]
    rows: dict[int, Row]
    _crew: Crew
    _folder: RowFolder | None
    _on_progress: OnProgress

    def __iter__(self) -> Iterator[Row]:
        yield from [self.rows[index] for index in sorted(self.rows)]
        before = len(self.rows)
        rest = [one for one in self.tasks if one.index not in self.rows]

        def tick() -> None:
            self._on_progress("answering", len(self.rows), len(self.tasks), before)

        try:
            shift = Shift(self._crew, work.answer, given_up=_lost_result, tick=tick)
            for results in shift.results(rest):
                if self._folder is not None and results:
                    self._folder.write(results)
                rows = [it.row for it in results]
                self.rows |= {row["index"]: row for row in rows}
                yield from rows
            if self._folder is not None:
                self._folder.close()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of workers and folder; what is done is kept."""
        self._crew.close()
        if self._folder is not None:
            self._folder.release()

    def frame(self) -> DataFrame:
        """All rows, those that are not there yet too, as a frame of pandas by index."""
        from pandas import DataFrame

        for _ in self:
            pass
        return DataFrame([self.rows[one.index] for one in self.tasks]).set_index("index")


def sweep(
    requests: str | Path | Iterable[Mapping[str, object] | SweepRequest],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    parts: str = "jsonl",
    keep_answers: bool = False,
    on_progress: OnProgress | None = None,
) -> Sweep:
    """Read many requests, and make ready to answer them.

    Args:
        requests: a file as `plan sweep` takes it, or options of the command line by name, like
            `{"model": "llama-3.1-8b", "latency_target": "30ms"}`; `command` may name `place` or
            `fleet`.
        executor: whose workers answer; processes of this machine if None.
        workers: how many there are; one a core if None.
        folder: where rows are kept, and found again; nowhere if None.
        parts: `jsonl` or `parquet`.
        keep_answers: whether whole answers are kept in the folder.
        on_progress: called several times a second.

    Raises:
        RequestError: requests that cannot be read, all of them, or a folder of other rows.
    """
    made = _made(requests)
    n_workers = max(1, min(workers or os.cpu_count() or 1, len(made)))
    if executor is None:
        crew = processes(n_workers)
    else:
        own = getattr(executor, "_max_workers", None)
        crew = Crew(executor=executor, n_workers=workers or own or n_workers)
    news = on_progress or (lambda *_: None)
    try:
        tasks = _read(made, crew, news, keeps_answers=keep_answers)
        kept = None
        if folder is not None:
            kept = RowFolder(Path(folder), tasks, parts=parts, keeps_answers=keep_answers)
    except BaseException:
        crew.close()
        raise
    return Sweep(
        requests=made,
        tasks=tasks,
        rows={} if kept is None else kept.rows,
        _crew=crew,
        _folder=kept,
        _on_progress=news,
    )


def _made(
    requests: str | Path | Iterable[Mapping[str, object] | SweepRequest],
) -> list[SweepRequest]:
    if isinstance(requests, str | Path):
        return load_sweep(requests)
    listed = list(requests)
    made = [one for one in listed if isinstance(one, SweepRequest)]
    return made + requests_of(one for one in listed if not isinstance(one, SweepRequest))


def _read(
    requests: Sequence[SweepRequest], crew: Crew, news: OnProgress, *, keeps_answers: bool
) -> list[Task]:
    """Tasks with their digests.

    Raises:
        RequestError: with the problems of all requests, each where it is written.
    """
    tasks = [
        Task(index=i, words=request.words, command=request.command, keeps_answer=keeps_answers)
        for i, request in enumerate(requests)
    ]
    read: dict[int, Task] = {}

    def tick() -> None:
        news("reading", len(read), len(tasks), 0)

    for some in Shift(crew, work.read, given_up=_lost_reading, tick=tick).results(tasks):
        read |= {task.index: task for task in some}
    tasks = [read[i] for i in range(len(tasks))]
    if problems := _problems(requests, tasks):
        bad = [task for task in tasks if task.problems]
        said = [f"the first of {len(bad)} is `{it.command}`\n{it.hint}" for it in bad[:1]]
        raise RequestError(problems, hint="".join(said).strip())
    return tasks


def _problems(requests: Sequence[SweepRequest], tasks: Sequence[Task]) -> list[Problem]:
    problems = [requests[it.index].located(problem) for it in tasks for problem in it.problems]
    seen = Counter(task.digest for task in tasks if task.digest)
    for task in tasks:
        if seen[task.digest] > 1:
            fact, remedy = "is there several times", "leave all but one out"
            where = requests[task.index].shown
            problems.append(Problem(where=where, value=task.command, fact=fact, remedy=remedy))
    return list(dict.fromkeys(problems))


def _lost_reading(task: Task, reason: str) -> Task:
    problem = Problem(where="plan sweep", value=task.command, fact=reason)
    return replace(task, problems=(problem,))


def _lost_result(task: Task, reason: str) -> Result:
    row = work.empty_row(task) | {"code": SolverError.exit_code}
    return Result(row=row | {"reason": reason})
