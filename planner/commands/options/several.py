"""Options of the commands that answer with several plans, as text to what they mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.commands.options.reading import Faults, one_of
from planner.errors import Problem
from planner.units import UnitError, parse

if TYPE_CHECKING:
    from planner.commands.options.written_surveys import WrittenPareto, WrittenSurvey

STDOUT = "-"


def read_axes(written: WrittenSurvey) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """What makes cases, and of a frontier its axes, as arguments; and what is wrong with them."""
    from planner.commands.options.written_surveys import WrittenPareto

    faults = Faults()
    by = faults.read("--by", written.by, one_of("way to divide", ("weights", "formats")))
    keywords: dict[str, Any] = {"by": by or ""}
    if isinstance(written, WrittenPareto):
        from planner.results.surveys import DEFAULT_ALPHA, X_AXES, Y_AXES

        keywords["x"] = faults.read("--x", written.x, one_of("axis", X_AXES)) or X_AXES[0]
        keywords["y"] = faults.read("--y", written.y, one_of("axis", Y_AXES)) or Y_AXES[0]
        alpha = faults.read("--alpha", written.alpha, _alpha)
        keywords["alpha"] = DEFAULT_ALPHA if alpha is None else alpha
        faults.problems += _beside_csv(written)
    return keywords, tuple(faults.problems)


def _alpha(text: str) -> float:
    value = parse(text, "1", example="3", allow_zero=True)
    if not math.isfinite(value) or value > 100:
        raise UnitError(text, "is beyond anything real", "write `3`")
    return value


def names_of(text: str) -> tuple[str, ...]:
    """Names of a list that commas divide, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _beside_csv(written: WrittenPareto) -> list[Problem]:
    """Outputs that cannot go with a table on stdout."""
    others = {"--json": written.json, "--quiet": written.quiet, "--all": written.all}
    return [
        Problem(where=name, fact="cannot go with `--csv -`")
        for name, is_set in others.items()
        if is_set and written.csv == STDOUT
    ]
