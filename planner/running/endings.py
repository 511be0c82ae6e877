"""What ends a process before its answer: Ctrl-C, signals like it, a lack of memory.

The command listens from its first instant, and is never ended in the middle of a file or of its
answer. A library that is interrupted while it loads or works may swallow Ctrl-C or turn it into
an error of its own, so what was heard is counted. Where SIGINT was ignored when the process began
(a job in the background, `nohup`), it stays ignored.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

CTRL_C = (signal.SIGINT,)
ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that end a process and leave it no time: a file must not be half written by then."""

_AGAIN_S = 0.01
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "can't start new thread")


class _Ear:
    """What the process has heard, if it listens: one for the process, as signals are."""

    is_listening = False
    is_over = False  # all is said: what comes now changes nothing
    n_heard = 0


def listen() -> None:
    """Hear Ctrl-C until the process ends: for the command, which owns its process."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored since before the process began, or somebody else's
    _Ear.is_listening = True
    signal.signal(signal.SIGINT, _hear)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _hear)
        sys.unraisablehook = _unraisable


def was_heard() -> bool:
    """Whether a Ctrl-C came, wherever it ended up."""
    return _Ear.n_heard > 0


def deafen() -> None:
    """All is said: let no Ctrl-C turn a whole answer into a death by signal."""
    _Ear.is_over = True
    if _Ear.is_listening:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _hear(number: int, frame: FrameType | None) -> None:
    if not _Ear.is_over:
        _Ear.n_heard += 1
        raise KeyboardInterrupt


def _unraisable(args: UnraisableHookArgs) -> None:
    """A Ctrl-C that fell into a destructor, where nobody hears it, comes once more, a bit later."""
    if isinstance(args.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(args)


def cause_of(error: BaseException) -> KeyboardInterrupt | MemoryError | None:
    """Of the two, what an error of a library comes from; None if it is an error by itself."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in chain:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    if was_heard() or any(isinstance(one, KeyboardInterrupt) for one in chain):
        return KeyboardInterrupt()
    return MemoryError() if any(map(_is_out_of_memory, chain)) else None


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether the system had no memory for it, or for the code of a library, or a thread."""
    said = str(error).lower()
    is_telling = isinstance(error, ImportError | RuntimeError | OSError)
    return isinstance(error, MemoryError) or (is_telling and any(t in said for t in _NO_MEMORY))


def check_room(n_bytes: int) -> None:
    """Begin nothing that has no room, as under `ulimit -v`: libraries hang, or end the process.

    Raises:
        MemoryError: so much address space is not to be had.
    """
    import mmap

    try:
        mmap.mmap(-1, n_bytes).close()
    except OSError as error:
        raise MemoryError from error


@contextmanager
def signals_held(signals: tuple[int, ...]) -> Iterator[list[int]]:
    """Hold signals back until the block is done; then they go to whom they would have gone.

    A second Ctrl-C is not held: somebody insists. Outside the main thread, which alone hears
    signals, nothing is held.

    Returns:
        what came, in order; the block may clear it where it no longer matters.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def remember(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.getsignal(number) for number in signals}
    before = {number: was for number, was in before.items() if was not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, remember)
        yield came
    finally:
        for number, was in before.items():
            signal.signal(number, was)
        for number in came:
            signal.raise_signal(number)
