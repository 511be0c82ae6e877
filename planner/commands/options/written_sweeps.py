"""Every option of `plan sweep`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.commands.options.groups import OUTPUT, SEARCH, SERVE, text


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSweep:
    """Options of `plan sweep`."""

    sweep: Annotated[
        str | None, text(SERVE, "FILE", "Requests: a grid, a list or both; see examples/sweep.toml")
    ] = None
    workers: Annotated[
        str | None, text(SEARCH, "N", "Processes that share the requests. [one a core]")
    ] = None
    dask: Annotated[
        str | None,
        text(SEARCH, "ADDRESS", "Scheduler of a Dask cluster that shares them, like tcp://h:8786."),
    ] = None
    folder: Annotated[
        str | None,
        text(OUTPUT, "DIR", "Where rows are kept as they come, and found again. [FILE.rows]"),
    ] = None
    parts: Annotated[str, text(OUTPUT, "FORMAT", "Format of the rows: jsonl or parquet.")] = "jsonl"
    keep: Annotated[
        str | None,
        text(OUTPUT, "WHAT", "answers: each whole one too, as JSON for `plan verify`."),
    ] = None
    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Frontiers and a table: one page that needs nothing else.")
    ] = None
