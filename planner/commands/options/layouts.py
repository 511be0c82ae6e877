"""The option `--layout`: the layout of each phase, by the names that reports print."""

from __future__ import annotations

import re

from planner.commands.options import counts
from planner.specs.targets import ATTENTIONS, Layouts, PhaseLayout
from planner.units import UnitError

PHASES = ("prefill", "decode")
_EXAMPLE = "write it like `prefill=WGXYZ,decode=WS2D` or `decode=WS2D/batch`"
_NEXT = re.compile(r",(?=\s*\w+\s*=)")  # names of layouts with experts have commas of their own


def layouts_of(text: str) -> Layouts:
    """`prefill=WGXYZ,decode=WS2D/batch/1`: a phase each, its layout, the cut of attention, parts.

    Raises:
        UnitError: it is not written so.
    """
    found: dict[str, PhaseLayout] = {}
    for part in _NEXT.split(text):
        phase, equals, name = (word.strip() for word in part.partition("="))
        if not equals:
            raise UnitError(text, "does not say of which phase", _EXAMPLE)
        if phase not in PHASES:
            raise UnitError(text, f"`{phase}` is no phase", "it is prefill or decode")
        if phase in found:
            raise UnitError(text, f"says twice what {phase} is", "say it once")
        found[phase] = _layout_of(text, name)
    return Layouts(**found)


def _layout_of(text: str, written: str) -> PhaseLayout:
    words = [word.strip() for word in written.split("/")]
    parts = [counts.count(word) for word in words if word.isdecimal()]
    cuts = [word for word in words if word in ATTENTIONS]
    names = [word for word in words if word not in ATTENTIONS and not word.isdecimal()]
    if not all(words) or max(len(names), len(cuts), len(parts)) > 1:
        raise UnitError(text, "is no layout, and no way to cut attention", _EXAMPLE)
    return PhaseLayout(
        name=next(iter(names), None),
        attention=next(iter(cuts), None),
        n_microbatches=next(iter(parts), None),
    )
