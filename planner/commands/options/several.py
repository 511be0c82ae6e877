"""Options of the commands that answer with several plans, as text to what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planner.commands.options.reading import Faults, one_of, read
from planner.commands.options.written import WrittenPareto, WrittenSurvey
from planner.errors import Problem
from planner.results.surveys import DEFAULT_ALPHA, X_AXES, Y_AXES
from planner.units import UnitError, parse

STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSurvey:
    """What the options ask for.

    Args:
        models, topologies: names, each once.
        keywords: arguments of `comparing.compare` or `comparing.frontiers`, SI.
    """

    models: tuple[str, ...]
    topologies: tuple[str, ...]
    keywords: dict[str, Any]


def read_survey(written: WrittenSurvey) -> tuple[AskedSurvey, tuple[Problem, ...]]:
    """Read all options of `plan compare` or `plan pareto`; see `reading.read`."""
    asked, problems = read(written)
    axes, axis_problems = read_axes(written)
    keywords = {**asked.keywords(), **axes}
    if isinstance(written, WrittenPareto):
        del keywords["objective"]
    survey = AskedSurvey(
        models=names_of(written.model), topologies=names_of(written.topology), keywords=keywords
    )
    return survey, (*problems, *axis_problems)


def read_axes(written: WrittenSurvey) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """What makes cases, and of a frontier its axes, as arguments; and what is wrong with them."""
    faults = Faults()
    by = faults.read("--by", written.by, one_of("way to divide", ("weights", "formats")))
    keywords: dict[str, Any] = {"by": by or ""}
    if isinstance(written, WrittenPareto):
        keywords["x"] = faults.read("--x", written.x, one_of("axis", X_AXES)) or X_AXES[0]
        keywords["y"] = faults.read("--y", written.y, one_of("axis", Y_AXES)) or Y_AXES[0]
        alpha = faults.read("--alpha", written.alpha, _alpha)
        keywords["alpha"] = DEFAULT_ALPHA if alpha is None else alpha
        faults.problems += _misplaced(written)
    return keywords, tuple(faults.problems)


def _alpha(text: str) -> float:
    value = parse(text, "1", example="3", allow_zero=True)
    if not math.isfinite(value) or value > 100:
        raise UnitError(text, "is beyond anything real", "write `3`")
    return value


def names_of(text: str) -> tuple[str, ...]:
    """Names of a list that commas divide, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _misplaced(written: WrittenPareto) -> list[Problem]:
    """Options that mean nothing here, or not together."""
    problems = []
    if written.objective != "cost":
        remedy = f"write `--y {written.objective}`" if written.objective in Y_AXES else ""
        fact = "a frontier has two objectives, `--x` and `--y`"
        problems.append(
            Problem(where="--objective", value=written.objective, fact=fact, remedy=remedy)
        )
    if written.gap != "0":
        fact = "a frontier is proved without a gap"
        problems.append(Problem(where="--gap", value=written.gap, fact=fact))
    others = {"--json": written.json, "--quiet": written.quiet, "--all": written.all}
    if written.csv == STDOUT:
        problems += [
            Problem(where=name, fact="cannot go with `--csv -`")
            for name, is_set in others.items()
            if is_set
        ]
    return problems
