"""What is being done, in words: whoever waits at a terminal reads them."""

_phase = (0, "working")


def begin(words: str) -> None:
    """Say what is done from now on."""
    global _phase
    _phase = (_phase[0] + 1, words)


def current() -> tuple[int, str]:
    """The number of the phase and its words."""
    return _phase
