"""How long a run may take and how it ends; and what is being done, for whoever waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_T = TypeVar("_T")

_phase = (0, "working")


def begin(words: str) -> None:
    """Say what is done from now on."""
    global _phase
    _phase = (_phase[0] + 1, words)


def current() -> tuple[int, str]:
    """The number of the phase and its words."""
    return _phase


@contextmanager
def meanwhile(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Let a variable of the context have another value within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
