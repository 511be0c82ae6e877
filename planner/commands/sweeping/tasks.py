"""What a worker does of a sweep: reads requests, or answers them, each as its command line does.

A worker is a process that may have answered anything before; nothing of one request is left for
the next but what it read. Threads of one process take turns.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from planner.errors import Problem, RequestError
from planner.quantities.tables import packaged_table

Row = dict[str, Any]

_TYPES = {"int": int, "str": str, "float": float}
COLUMNS: dict[str, type] = {
    name: _TYPES[kind]
    for name, kind in packaged_table("report/words.toml")["sweep"]["columns"].items()
}
"""Of every row; what an answer does not have is None. Options as they were written follow."""

_OF_DEPLOYMENTS = (
    *("summary", "n_devices", "n_replicas", "usd_per_hour", "usd_per_token"),
    "output_tokens_per_s",
)

_ALONE = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request on its way to a worker.

    Args:
        index: of the request in the sweep.
        keeps_answer: whether the whole answer comes back too.
        digest: of its words and the files that it reads; empty before they are read.
        problems, hint: why it cannot be read.
    """

    index: int
    words: tuple[str, ...]
    command: str
    keeps_answer: bool = False
    digest: str = ""
    problems: tuple[Problem, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row, and the whole answer as JSON where it is kept."""

    row: Row
    answer: str = ""


def read(tasks: Sequence[Task]) -> list[Task]:
    """Read options and files of requests, each to its digest or its problems; search nothing."""
    with _ALONE:
        return [_read(task) for task in tasks]


def answer(tasks: Sequence[Task]) -> list[Result]:
    """Answer requests as programs read them; of no plan, or a failure, the row says why."""
    with _ALONE:
        return [_result(task) for task in tasks]


def _read(task: Task) -> Task:
    from planner.commands.fleet import read_fleet
    from planner.commands.options.parsing import parse
    from planner.commands.options.said import Said, settings
    from planner.commands.placements import read_place
    from planner.commands.plan import read_plan
    from planner.specs.files.ledger import recording

    readers: dict[str, Callable[[Said], object]]
    readers = {"plan": read_plan, "place": read_place, "fleet": read_fleet}
    try:
        with recording() as ledger:
            said = parse(task.words)
            with settings(said):
                readers[said.command](said)
    except RequestError as error:
        return replace(task, problems=error.problems, hint=error.hint)
    files = sorted((one.kind, one.path, one.sha256) for one in ledger.files)
    text = json.dumps([task.words, files])
    return replace(task, digest=hashlib.sha256(text.encode()).hexdigest())


def _result(task: Task) -> Result:
    from planner.commands.cli import envelope_of

    began_s = time.perf_counter()
    said, envelope = envelope_of(task.words, began_s=began_s)
    row = empty_row(task) | _figures(envelope) | {"code": said.code}
    if said.code:
        row["reason"] = _reason(envelope, said.message)
    else:
        row["remarks"] = said.message or None
    row["wall_s"] = time.perf_counter() - began_s
    return Result(row=row, answer=said.text if task.keeps_answer else "")


def empty_row(task: Task) -> Row:
    """What is known of a request before it is answered."""
    from planner.commands.options.parsing import parse

    said = parse(task.words)
    row: Row = dict.fromkeys(COLUMNS)
    row |= {"index": task.index, "digest": task.digest, "command": task.command}
    for name in ("model", "topology"):
        value = getattr(said, name)
        row[name] = ",".join(value) if isinstance(value, tuple) else str(value or "")
    return row | {name: said.text(name) or "yes" for name in said.texts}


def _reason(envelope: Row, message: str) -> str:
    """Why there is no plan: the first line of what people read, or what failed."""
    if envelope.get("kind") == "error":
        return str(envelope["answer"]["message"])
    heads = (line[len("error: ") :] for line in message.splitlines() if line.startswith("error: "))
    return next(heads, message)


def _figures(envelope: Row) -> Row:
    """Columns that an answer has: a plan's are those of its deployment."""
    kind, body = envelope.get("kind"), envelope.get("answer") or {}
    certificate = envelope.get("certificate") or {}
    figures: Row = {"kind": kind, "answer_digest": envelope.get("digest")}
    figures |= {name: certificate.get(name) for name in ("status", "gap")}
    if kind == "plan":
        return figures | _of_deployment(body["deployment"])
    if kind not in ("placement", "fleet"):
        return figures
    figures |= {name: body.get(name) for name in ("usd_per_hour", "output_tokens_per_s")}
    return figures | {
        "engine": ",".join(sorted({one["engine"] for one in body["recipes"]} - {""})),
        "summary": body["title"],
        "n_devices": body.get("n_devices", body.get("n_used")),
        "n_replicas": len(body["replicas"]),
    }


def _of_deployment(best: Row) -> Row:
    return {
        **{name: best[name] for name in _OF_DEPLOYMENTS},
        "engine": best.get("engine") or "roofline",
        "batch": best.get("batch", best.get("decode", {}).get("batch")),
        "tpot_s": _planned(best, "tpot_s"),
        "ttft_s": _planned(best, "ttft_s"),
    }


def _planned(deployment: Row, name: str) -> float | None:
    """A time as it is planned with, which targets hold: not below what is predicted."""
    value = deployment.get(f"planned_{name}", deployment.get(name))
    return value["value"] if isinstance(value, dict) else value
