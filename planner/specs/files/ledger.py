"""What a request has read, and what is to be said of it: files with their digests, remarks.

Files are entered by those who read them, as they read them, into the ledger that is open around
the request; nothing is kept where none is open. A ledger belongs to the thread that opened it, so
that requests of several threads do not mix, and is gone with its request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from planner.errors import Problem
from planner.running import meanwhile
from planner.specs.files.places import shipped_as, shipped_file, shown_path

LAYOUTS, ENGINES, ECONOMICS = "layouts", "engines", "economics"
"""What may time an answer: layouts on meshes, an engine's kernels, the economics cost model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that a request used.

    Args:
        kind: what it describes: `model`, `topology`, `device`, `engine`, `state`, …
        name: that it was found by; its path where it was named so.
        path: from the working folder; of a file that ships, from the folder of those.
        sha256: of its bytes, in hexadecimal.
        is_shipped: it comes with the planner.
        replaces: the file that ships and that it hides; empty if it hides none, or a copy of it.
    """

    kind: str
    name: str
    path: str
    sha256: str
    is_shipped: bool
    replaces: str = ""


@dataclass(slots=True)
class Ledger:
    """Files and remarks of one request, each once, in the order in which they came."""

    _files: dict[tuple[str, str], DataFile] = field(default_factory=dict)
    _remarks: dict[tuple[Problem, str], str] = field(default_factory=dict)
    _timings: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)

    @property
    def files(self) -> tuple[DataFile, ...]:
        return tuple(self._files.values())

    @property
    def remarks(self) -> tuple[Problem, ...]:
        """What holds of anything, and of what times the answer."""
        held = [one for one, timing in self._remarks if not timing or timing in self._timings]
        return tuple(dict.fromkeys(held))

    def enter(self, file: DataFile) -> None:
        self._files.setdefault((file.kind, file.path), file)

    def remark(self, problem: Problem, timing: str, once: str) -> None:
        if once not in self._said:
            self._remarks[problem, timing] = once
        self._said |= {once} - {""}

    def is_timed_by(self, timing: str) -> None:
        self._timings.add(timing)

    def take(self, other: Ledger) -> None:
        """Everything that another holds, after what is here."""
        for file in other._files.values():
            self.enter(file)
        for (problem, timing), once in other._remarks.items():
            self.remark(problem, timing, once)
        self._timings |= other._timings


_OPEN: ContextVar[Ledger | None] = ContextVar("ledger", default=None)


@contextmanager
def recording() -> Iterator[Ledger]:
    """A ledger for what the block reads; an outer one stays as it is."""
    ledger = Ledger()
    with meanwhile(_OPEN, ledger):
        yield ledger


@contextmanager
def used_if_read() -> Iterator[None]:
    """Of files that the block refuses nothing is kept: they are left out, and no answer used them.

    What refuses them is raised as ever.
    """
    with recording() as tried:
        yield
    _open().take(tried)


def _open() -> Ledger:
    """The ledger around the request; without one, a ledger that nobody keeps."""
    return _OPEN.get() or Ledger()


def files_used() -> tuple[DataFile, ...]:
    """Files that were read for the request that is being answered; none without a ledger."""
    return _open().files


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a request uses a file for.

    Args:
        kind: what the file describes.
        name: that it was found by; empty if it was given as a path.
        replaces: the file that ships and that it hides; empty if it hides none.
    """

    kind: str
    name: str = ""
    replaces: str = ""


MOST_BYTES = 256 * 2**20
"""Of a file that is looked at again."""


def is_unchanged(file: DataFile) -> bool | None:
    """Whether the file that some request used is the same here; None where it is not here."""
    from hashlib import sha256

    path = shipped_file(file.path) if file.is_shipped else Path(file.path)
    try:
        if path is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return sha256(path.read_bytes()).hexdigest() == file.sha256
    except (OSError, ValueError):
        return None


def enter(use: Use, path: Path, content: bytes) -> None:
    """Enter a file that was read, with its bytes."""
    ledger = _OPEN.get()
    if ledger is None:
        return
    from hashlib import sha256  # only what records needs it

    ours = shipped_as(path)
    hidden = shipped_file(use.replaces) if use.replaces else None
    is_copy = hidden is not None and hidden.read_bytes() == content  # as in a clone of this project
    ledger.enter(
        DataFile(
            kind=use.kind,
            name=use.name or str(path),
            path=ours or shown_path(path),
            sha256=sha256(content).hexdigest(),
            is_shipped=bool(ours),
            replaces="" if is_copy else use.replaces,
        )
    )


def remark(problem: Problem, *, timing: str = "", once: str = "") -> None:
    """Say something of a request that is no fault: what has no effect, and what wins instead.

    Args:
        problem: what is said, and of what.
        timing: what has to time the answer for it to hold; anything if empty.
        once: what it is of: the first that is said of it stands; each by itself if empty.
    """
    _open().remark(problem, timing, once)


def timed_by(timing: str) -> None:
    """Say what times an answer: `LAYOUTS`, `ENGINES` or `ECONOMICS`."""
    _open().is_timed_by(timing)
