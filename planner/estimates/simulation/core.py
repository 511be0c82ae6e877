"""The simulator's inner loop: compiled where the installation has it so, else its text as it is.

`PLANNER_COMPILED=0` runs the text. So does a compiled part that was made of another text: its hash
is in it. An installation without a compiler is slower by some thirty times, which is said once.
"""

import hashlib
import os
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FIELDS = Any
"""An array of the core: a memoryview of C's numbers, or a list of Python's."""

NOBODY = -1
SETTING = "PLANNER_COMPILED"
COMPILED = "planner.estimates.simulation.compiled"


def text_hash(text: bytes) -> str:
    """Of the text of `ranks.py`, as the build puts it into what it compiles."""
    return hashlib.sha256(text).hexdigest()


@cache
def _loaded() -> tuple[ModuleType, bool]:
    if os.environ.get(SETTING) != "0":
        try:
            compiled = import_module(COMPILED)
        except ImportError:
            compiled = None
        text = Path(__file__).with_name("ranks.py").read_bytes()
        if compiled is not None and compiled.text_hash() == text_hash(text):
            return compiled, True
    return import_module("planner.estimates.simulation.ranks"), False


def is_compiled() -> bool:
    """Whether the inner loop runs as C."""
    return _loaded()[1]


class _Core:
    """The classes of the inner loop, from where they were loaded."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(_loaded()[0], name)


core: Any = _Core()
