"""How long a run may take and how it ends; and what is being done, for whoever waits."""

_phase = (0, "working")


def begin(words: str) -> None:
    """Say what is done from now on."""
    global _phase
    _phase = (_phase[0] + 1, words)


def current() -> tuple[int, str]:
    """The number of the phase and its words."""
    return _phase
