"""Targets by percentile, and what each of them is a percentile of; of a class, as a table of texts.

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
from typing import Annotated

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError, parse
from planner.specs.files.tables import literal
from planner.specs.validation.values import Check, Share, one_of

TTFT, TPOT, ITL, E2E = "ttft", "tpot", "itl", "e2e"

_WORDS = packaged_table("specs/traffic/percentiles.toml")
DEFINITIONS: Mapping[str, str] = _WORDS["definitions"]
GOODPUT: str = _WORDS["goodput"]
"""What a target is a percentile of, and goodput, for help and reports."""

USUAL_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)

_KEY = re.compile(r"(?P<quantity>[a-z0-9]+)[-_]p(?P<percent>\d{1,2}(?:\.\d{1,6})?)")


Percentile = Annotated[
    float, Check(lambda p: ("" if 0.0 < p < 1.0 else "is no percentile", "write a share like 0.95"))
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileTarget:
    """A share of all requests, or of all tokens, is to have no more of a quantity.

    Args:
        quantity: of `DEFINITIONS`.
        share: inside (0, 1).
        at_most_s: above zero [s].

    >>> PercentileTarget(quantity="ttft", share=0.95, at_most_s=1.0).name
    'TTFT p95'
    """

    quantity: Annotated[str, one_of("quantity", DEFINITIONS)]
    share: Percentile
    at_most_s: float

    @property
    def name(self) -> str:
        return f"{self.quantity.upper()} p{self.share * 100.0:.8g}"

    @property
    def option(self) -> str:
        return option_of(self.quantity, self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputTarget:
    """A share of all requests is to meet all of these limits; None is no limit.

    Args:
        share: inside (0, 1].
        ttft_s, tpot_s, e2e_s: of a request, above zero [s].
    """

    share: Share
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def is_met(self, ttft_s: float, tpot_s: float, e2e_s: float) -> bool:
        """Whether one request meets the limits.

        Args:
            tpot_s: 0 of a request with a single token.
        """
        return (
            (self.ttft_s is None or ttft_s <= self.ttft_s)
            and (self.tpot_s is None or tpot_s <= self.tpot_s)
            and (self.e2e_s is None or e2e_s <= self.e2e_s)
        )


def option_of(quantity: str, share: float) -> str:
    """How the command spells a target.

    >>> option_of("itl", 0.999)
    '--itl-p99.9'
    """
    return f"--{quantity}-p{share * 100.0:.8g}"


USUAL_TARGETS: Mapping[str, PercentileTarget] = {
    option_of(quantity, percent / 100.0): PercentileTarget(
        quantity=quantity, share=round(percent / 100.0, 8), at_most_s=float("inf")
    )
    for quantity in DEFINITIONS
    for percent in USUAL_PERCENTILES
}
"""Options of the command, each with a target that holds always."""


def percentile_named(key: str) -> tuple[str, float] | None:
    """The quantity and the share that a key names, `ttft_p95` or `itl-p99.9`; None if it does not.

    >>> percentile_named("ttft_p95"), percentile_named("ttft_p0"), percentile_named("tps_p95")
    (('ttft', 0.95), None, None)
    """
    match = _KEY.fullmatch(key.lower().removeprefix("--"))
    if match is None or match["quantity"] not in DEFINITIONS:
        return None
    share = round(float(match["percent"]) / 100.0, 8)
    return (match["quantity"], share) if share > 0.0 else None


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
    where, table_key = at
    share = limits.pop(_GOODPUT, None)
    limited = next(filter(table.__contains__, _LIMITED), None)
    name, fact, remedy = _GOODPUT, "", ""
    if _GOODPUT not in table and limited:
        name, fact = limited, "does not say of how many requests"
        remedy = f'add `goodput = "95%"` for a share that meets it, or name it `{limited}_p95`'
    elif share is not None and share > 1.0:
        fact, remedy = "is above 1", "write `0.95` or `95%`"
    elif share is not None and not limited:
        fact, remedy = "has no limits", 'add one, like `ttft = "2 s"`'
    elif share is not None:
        named = {f"{name}_s": value for name, value in limits.items()}
        targets.goodput = GoodputTarget(share=share, **named)
    if fact:
        key = f"{table_key}.{name}"
        targets.problems.append(Problem(where=where, key=key, fact=fact, remedy=remedy))


def _quantity(raw: object, dimension: str) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UnitError(str(raw), "is not a quantity", "write it like `1 s`")
    text = raw if isinstance(raw, str) else f"{raw:.15g}"
    return parse(text, dimension)
