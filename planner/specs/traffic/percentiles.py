"""Targets by percentile, and what each of them is a percentile of: said here, once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from planner.specs.validation.values import Check, Share, one_of

TTFT, TPOT, ITL, E2E = "ttft", "tpot", "itl", "e2e"

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        TTFT: "TTFT of a request: from its arrival to its first token; over all requests",
        TPOT: "TPOT of a request: from its first token to its last, over its output tokens less "
        "one; over all requests with two tokens or more",
        ITL: "ITL: from one token of a request to its next; over all tokens of all requests but "
        "first ones",
        E2E: "E2E of a request: from its arrival to its last token; over all requests",
    }
)
"""For help and reports."""

GOODPUT = (
    "goodput: the share of requests that meet all of the limits given; one with a single token "
    "meets any limit of TPOT"
)

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


USUAL_TARGETS: Mapping[str, PercentileTarget] = MappingProxyType(
    {
        option_of(quantity, percent / 100.0): PercentileTarget(
            quantity=quantity, share=round(percent / 100.0, 8), at_most_s=float("inf")
        )
        for quantity in DEFINITIONS
        for percent in USUAL_PERCENTILES
    }
)
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
