"""Parts of a distribution that stand for it in formulas: more of them where tokens are."""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from planner.specs.traffic.distributions import FixedTokens, TokenDistribution

_HALVINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Kinds of requests that stand for all: their mean lengths, and how many there are of each.

    Args:
        n_input, n_output: tokens, (K,).
        weight: share of the requests, adding up to 1, (K,).
    """

    n_input: tuple[float, ...]
    n_output: tuple[float, ...]
    weight: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def mean_input_tokens(self) -> float:
        return math.fsum(map(operator.mul, self.weight, self.n_input))

    @property
    def mean_output_tokens(self) -> float:
        return math.fsum(map(operator.mul, self.weight, self.n_output))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Requests of neighbouring lengths: their share, and their mean."""

    weight: float
    mean_tokens: float


@lru_cache(maxsize=1024)  # classes have their lengths in common, and are asked for cells often
def strata_of(
    distribution: TokenDistribution, n_strata: int, cuts: tuple[float, ...] = ()
) -> tuple[Stratum, ...]:
    """Parts of which each has as much of the requests and of their tokens, taken together.

    Their weights add up to 1, and their tokens to the mean. None is across a cut, for which there
    may be as many more.

    Args:
        distribution: of one length.
        n_strata: at most so many between all cuts together, or one between each two.
        cuts: lengths, in ascending order; a request of that length is below.
    """
    if isinstance(distribution, FixedTokens):
        return (Stratum(weight=1.0, mean_tokens=float(distribution.n_tokens)),)
    stratums = []
    low_share, low_tokens = 0.0, 0.0
    for edge in _ends(distribution, n_strata, cuts):
        share, tokens = distribution.share_upto(edge), distribution.moment_upto(edge)
        weight = share - low_share
        if weight > 0.0:
            stratums.append(Stratum(weight=weight, mean_tokens=(tokens - low_tokens) / weight))
            low_share, low_tokens = share, tokens
    return tuple(stratums)


def _ends(distribution: TokenDistribution, n_strata: int, cuts: Sequence[float]) -> Iterator[float]:
    """Upper ends, in ascending order, the last that of everything."""
    mean, most = distribution.mean_tokens, float(distribution.most_tokens)

    def gone(n_tokens: float) -> float:
        return (distribution.share_upto(n_tokens) + distribution.moment_upto(n_tokens) / mean) / 2

    low, low_gone = 1.0, 0.0
    for high in (*(cut for cut in cuts if 1.0 <= cut < most), most):
        high_gone = gone(high)
        n = max(1, round(n_strata * (high_gone - low_gone)))
        for part in range(1, n):
            wanted = low_gone + (high_gone - low_gone) * part / n
            below, above = low, high
            for _ in range(_HALVINGS):
                middle = (below + above) / 2.0
                below, above = (middle, above) if gone(middle) < wanted else (below, middle)
            yield above
        yield high
        low, low_gone = high, high_gone
