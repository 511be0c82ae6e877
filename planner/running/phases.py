"""What is being done, in words: whoever waits at a terminal reads them."""

from __future__ import annotations

_phase = (0, "working")


def begin(words: str) -> None:
    """Say what is done from now on."""
    global _phase
    _phase = (_phase[0] + 1, words)


def words() -> str:
    return _phase[1]


def number() -> int:
    """Of phases so far."""
    return _phase[0]
