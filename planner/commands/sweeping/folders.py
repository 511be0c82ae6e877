"""Rows of a sweep on the disk: parts and a manifest, from which a sweep that was cut short goes on.

    manifest.json        the requests with their digests, versions, the parts that are complete
    rows-00001.jsonl     rows as they came; the last part may be cut short, and is mended
    rows-00001.parquet   in its place once it is complete, where that is wanted
    answers/000017.json  the whole answer of request 17, where it is kept

A row is written after its answer; a request is done when its row is.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from planner.commands.sweeping.tasks import COLUMNS, Result, Row, Task
from planner.errors import Problem, RequestError
from planner.report.as_json import versions
from planner.report.files import replace_file

SCHEMA = "planner.sweep/1"
MANIFEST = "manifest.json"
ROWS_OF_A_PART = 1_000


class RowFolder:
    """The folder of a sweep, open for its rows.

    Args:
        path: of the folder, made where there is none.
        tasks: all requests of the sweep.
        parts: format of complete parts.

    Raises:
        RequestError: it holds other rows, or another process writes into it.
        OSError: the system does not let it be written.
    """

    def __init__(
        self, path: Path, tasks: Sequence[Task], *, parts: str, keeps_answers: bool
    ) -> None:
        self.path, self.rows = path, dict[int, Row]()
        self._is_parquet, self._keeps_answers = parts == "parquet", keeps_answers
        if self._is_parquet:
            _pyarrow()
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        if keeps_answers:
            (path / "answers").mkdir(exist_ok=True)
        self._head = {
            "schema": SCHEMA,
            "versions": versions(),
            "parts_format": parts,
            "keeps_answers": keeps_answers,
            "requests": [{"digest": one.digest, "command": one.command} for one in tasks],
        }
        words = {word for task in tasks for word in task.words if word.startswith("--")}
        self._options = sorted({word.partition("=")[0] for word in words})
        self._parts: list[Row] = []
        self._stream: IO[bytes] | None = None
        self._n_open = 0
        self._resume()
        self._write_manifest()

    def write(self, results: Sequence[Result]) -> None:
        """Keep rows; they are there when this returns, whatever ends the process then."""
        if self._keeps_answers:
            for result in results:
                if result.answer:
                    name = f"{result.row['index']:06d}.json"
                    replace_file(str(self.path / "answers" / name), result.answer)
        if self._stream is None:
            self._stream = self._part("jsonl").open("ab")
        self._stream.write(b"".join(json.dumps(one.row).encode() + b"\n" for one in results))
        self._stream.flush()
        self._n_open += len(results)
        if self._n_open >= ROWS_OF_A_PART:
            self._end_part()

    def close(self) -> None:
        """Complete the last part; what was written before is kept without it, too."""
        if self._n_open:
            self._end_part()

    def release(self) -> None:
        """Let another process write into the folder."""
        if self._stream is not None:
            self._stream.close()
        self._lock.close()

    def _part(self, suffix: str) -> Path:
        return self.path / f"rows-{len(self._parts) + 1:05d}.{suffix}"

    def _resume(self) -> None:
        """Rows that are there, of the same requests by the same versions."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            return
        try:
            head = json.loads(manifest.read_bytes())
            self._parts = head.pop("parts")
            head.pop("n_done")
        except (ValueError, KeyError, AttributeError):
            raise self._refused("is the folder of no sweep") from None
        if head != self._head:
            raise self._refused(_difference(head, self._head))
        for part in self._parts:
            path = self.path / part["name"]
            content = path.read_bytes() if path.exists() else b""
            if hashlib.sha256(content).hexdigest() != part["sha256"]:
                raise self._refused(f"`{part['name']}` in it is not as it was written")
            self._take(_rows_of(path))
        path = self._part("jsonl")
        if path.exists():  # cut short, maybe within a line
            whole = path.read_bytes().rpartition(b"\n")
            os.truncate(path, len(whole[0]) + len(whole[1]))
            rows = _rows_of(path)
            self._take(rows)
            self._n_open = len(rows)

    def _take(self, rows: Sequence[Row]) -> None:
        self.rows |= {row["index"]: row for row in rows}

    def _end_part(self) -> None:
        journal, stream = self._part("jsonl"), self._stream
        if stream is not None:
            os.fsync(stream.fileno())
            stream.close()
        self._stream, path = None, journal
        if self._is_parquet:
            path = self._part("parquet")
            _write_parquet(path, _rows_of(journal), self._options)
        self._parts.append(
            {
                "name": path.name,
                "n_rows": self._n_open,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
        self._n_open = 0
        self._write_manifest()
        if path != journal:
            journal.unlink()

    def _write_manifest(self) -> None:
        n_done = sum(part["n_rows"] for part in self._parts)
        manifest = {**self._head, "n_done": n_done, "parts": self._parts}
        replace_file(str(self.path / MANIFEST), json.dumps(manifest, indent=1) + "\n")

    def _refused(self, fact: str) -> RequestError:
        self._lock.close()
        return _error(self.path, fact)


def _error(path: Path, fact: str) -> RequestError:
    remedy = "name another one, or remove it"
    return RequestError([Problem(where="--folder", value=str(path), fact=fact, remedy=remedy)])


def _difference(there: Row, here: Row) -> str:
    for name, what in (("schema", "layout"), ("versions", "versions of the planner")):
        if there.get(name) != here[name]:
            return f"holds rows of other {what}"
    if there.get("requests") == here["requests"]:
        return "holds rows that are kept otherwise: `--parts` and `--keep` were others"
    known = {one["digest"] for one in there.get("requests", ())}
    n_new = sum(one["digest"] not in known for one in here["requests"])
    n = len(here["requests"])
    return f"holds another sweep: {n_new} of {n} requests, or what they read, are not its own"


def _locked(path: Path) -> IO[bytes]:
    """A file that only one process holds, where the system has such a thing."""
    stream = (path / ".lock").open("ab")
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return stream
    except OSError:
        stream.close()
        raise _error(path, "is being written by another process") from None
    return stream


def _rows_of(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    return [
        {key: value for key, value in row.items() if key in COLUMNS or value is not None}
        for row in _pyarrow().parquet.read_table(path).to_pylist()
    ]


def _write_parquet(path: Path, rows: Sequence[Row], options: Sequence[str]) -> None:
    pyarrow = _pyarrow()
    kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    columns = COLUMNS | dict.fromkeys(options, str)
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    beside = path.with_suffix(".tmp")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), beside)
    beside.replace(path)


def _pyarrow() -> Any:  # noqa: ANN401 a module without types
    try:
        import pyarrow.parquet
    except ImportError:
        fact, remedy = "needs the package pyarrow", "`pip install 'llm-serving-planner[calibrate]'`"
        problem = Problem(where="--parts", value="parquet", fact=fact, remedy=remedy)
        raise RequestError([problem]) from None
    return pyarrow
