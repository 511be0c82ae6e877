"""Targets of a class as a table of texts: percentiles, and a goodput with its limits.

ttft_p95 = "1 s"         # or ttft-p95; a percentile like 99.9 in quotes: "itl_p99.9"
tpot_p95 = "40 ms"
goodput = "99%"          # of all requests meet what follows, all at once
ttft = "2 s"
tpot = "50 ms"
e2e = "60 s"

The command writes a goodput as one text: `99% ttft<2s tpot<50ms`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from planner.errors import Problem
from planner.quantities.units import UnitError, parse
from planner.specs.files.tables import literal
from planner.specs.traffic.percentiles import (
    DEFINITIONS,
    E2E,
    ITL,
    TPOT,
    TTFT,
    GoodputTarget,
    PercentileTarget,
    percentile_named,
)

_GOODPUT = "goodput"
_LIMITED = (TTFT, TPOT, E2E)
_SPACES = re.compile(r"\s*<=?\s*")
_EXAMPLE = "write `99% ttft<2s tpot<50ms`"
_REMEDY = 'write a percentile like `ttft_p95 = "1 s"`, of ' + ", ".join(DEFINITIONS)


@dataclass(slots=True)
class ReadTargets:
    """What a table says, and what is wrong with it."""

    percentiles: list[PercentileTarget] = field(default_factory=list)
    goodput: GoodputTarget | None = None
    problems: list[Problem] = field(default_factory=list)


def read_targets(table: Mapping[str, object], where: str, key: str) -> ReadTargets:
    """Read all of a table.

    Args:
        where: the file.
        key: of the table in it.
    """
    targets = ReadTargets()
    limits: dict[str, float] = {}
    for name, raw in table.items():
        named = percentile_named(name)
        at = f"{key}.{name}"
        if named is None and name not in (_GOODPUT, *_LIMITED):
            fact = "is no target"
            if name == ITL:
                fact = "is of tokens, not of requests: goodput has no limit of it"
            targets.problems.append(Problem(where=where, key=at, fact=fact, remedy=_REMEDY))
            continue
        dimension = "1" if name == _GOODPUT else "s"
        try:
            value = _quantity(raw, dimension)
        except UnitError as error:
            targets.problems.append(error.problem(where, key=at, value=literal(raw)))
            continue
        if named is None:
            limits[name] = value
        else:
            target = PercentileTarget(quantity=named[0], share=named[1], at_most_s=value)
            targets.percentiles.append(target)
    targets.problems += target_problems(targets.percentiles, where, key)
    _take_goodput(targets, limits, table, (where, key))
    return targets


def goodput_of(text: str) -> GoodputTarget:
    """A share of all requests, and the limits that each of them meets.

    Raises:
        UnitError: the text is no goodput, with what is wrong and what to write instead.

    >>> goodput_of("99% ttft<2s tpot<50ms")
    GoodputTarget(share=0.99, ttft_s=2.0, tpot_s=0.05, e2e_s=None)
    """
    share, *limited = _SPACES.sub("<", text).split() or [""]
    value = parse(share, "1", example="99%") if share and "<" not in share else 0.0
    if not 0.0 < value <= 1.0:
        raise UnitError(text, "does not begin with a share of requests", _EXAMPLE)
    limits: dict[str, float] = {}
    for word in limited:
        name, _, most = word.partition("<")
        if name.lower() not in _LIMITED or f"{name.lower()}_s" in limits:
            fact = f"limits `{name}` twice" if name.lower() in _LIMITED else f"limits no `{name}`"
            raise UnitError(text, fact, f"{_EXAMPLE}, of {', '.join(_LIMITED)}")
        limits[f"{name.lower()}_s"] = parse(most, "s")
    if not limits:
        raise UnitError(text, "has no limits", _EXAMPLE)
    return GoodputTarget(share=value, **limits)


def target_problems(
    targets: Iterable[PercentileTarget], where: str, key: str = ""
) -> Iterator[Problem]:
    """Percentiles that are asked for twice, under two names perhaps."""
    seen = set()
    for target in targets:
        if (target.quantity, target.share) in seen:
            yield Problem(where=where, key=key, value=target.name, fact="is asked for twice")
        seen.add((target.quantity, target.share))


def _take_goodput(
    targets: ReadTargets, limits: dict[str, float], table: Mapping[str, object], at: tuple[str, str]
) -> None:
    """The share and its limits; of both there has to be something."""
    where, key = at
    share = limits.pop(_GOODPUT, None)
    limited = next(filter(table.__contains__, _LIMITED), None)
    problem = None
    if _GOODPUT not in table and limited:
        remedy = f'add `goodput = "95%"` for a share that meets it, or name it `{limited}_p95`'
        fact, name = "does not say of how many requests", limited
        problem = Problem(where=where, key=f"{key}.{name}", fact=fact, remedy=remedy)
    elif share is not None and share > 1.0:
        fact, remedy = "is above 1", "write `0.95` or `95%`"
        problem = Problem(where=where, key=f"{key}.{_GOODPUT}", fact=fact, remedy=remedy)
    elif share is not None and not limited:
        fact, remedy = "has no limits", 'add one, like `ttft = "2 s"`'
        problem = Problem(where=where, key=f"{key}.{_GOODPUT}", fact=fact, remedy=remedy)
    elif share is not None:
        named = {f"{name}_s": value for name, value in limits.items()}
        targets.goodput = GoodputTarget(share=share, **named)
    targets.problems += [problem] if problem else []


def _quantity(raw: object, dimension: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UnitError(str(raw), "is not a quantity", "write it like `1 s`")
    text = raw if isinstance(raw, str) else f"{raw:.15g}"
    return parse(text, dimension)
