"""How many tokens prompts or answers have: distributions of one length.

Each is of real numbers from 1 to a longest, beyond which what it would have counts as the longest;
`draw` rounds so that means are kept. Shares and partial moments are in closed form, so that parts
of a distribution add up to the whole of it.
"""

import math
import random
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, field
from statistics import NormalDist

_NORMAL = NormalDist()

MOST_TOKENS = 10**7
"""Of one request: what is longer is no number of tokens."""

NEVER = 1e-6
"""Share of the requests whose lengths are not told apart, where nobody says which is longest."""


class TokenDistribution(ABC):
    """Of one length, in tokens.

    `_share`, `_moment` and `_at` are of the distribution without its ends.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def most_tokens(self) -> int:
        """The longest that is drawn."""

    @abstractmethod
    def _share(self, n_tokens: float) -> float:
        """P(X ≤ n)."""

    @abstractmethod
    def _moment(self, n_tokens: float, power: int) -> float:
        """E[X^power; X ≤ n], of powers 1 and 2."""

    @abstractmethod
    def _at(self, share: float) -> float:
        """The n with P(X ≤ n) = share, which is inside (0, 1)."""

    def share_upto(self, n_tokens: float) -> float:
        """Share of the requests that are no longer."""
        if n_tokens < 1.0:
            return 0.0
        return self._share(n_tokens) if n_tokens < self.most_tokens else 1.0

    def moment_upto(self, n_tokens: float, power: int = 1) -> float:
        """Mean of the tokens, or of their squares, where those of longer requests count as none."""
        if n_tokens < 1.0:
            return 0.0
        end = min(n_tokens, self.most_tokens)
        moment = self._share(1.0) + self._moment(end, power) - self._moment(1.0, power)
        if n_tokens >= self.most_tokens:
            moment += (1.0 - self._share(end)) * end**power
        return moment

    def tokens_at(self, share: float) -> float:
        """What such a share of the requests is no longer than."""
        if share <= 0.0 or share >= 1.0:
            return 1.0 if share <= 0.0 else float(self.most_tokens)
        return min(max(self._at(share), 1.0), float(self.most_tokens))

    @property
    def mean_tokens(self) -> float:
        return self.moment_upto(math.inf)

    def draw(self, source: random.Random) -> int:
        """A length, rounded up as often as keeps the mean."""
        return int(self.tokens_at(source.random()) + source.random())


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTokens(TokenDistribution):
    """The same of all requests."""

    n_tokens: int

    @property
    def most_tokens(self) -> int:
        return self.n_tokens

    def _share(self, n_tokens: float) -> float:
        return float(n_tokens >= self.n_tokens)

    def _moment(self, n_tokens: float, power: int) -> float:
        return float(self.n_tokens**power) if n_tokens >= self.n_tokens else 0.0

    def _at(self, share: float) -> float:
        return float(self.n_tokens)

    def draw(self, source: random.Random) -> int:
        return self.n_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformTokens(TokenDistribution):
    """Evenly from the shortest to the longest."""

    least_tokens: int
    most_tokens: int = field()  # without it the dataclass takes the property for a default

    def _share(self, n_tokens: float) -> float:
        wide = self.most_tokens - self.least_tokens
        return min(max((n_tokens - self.least_tokens) / wide, 0.0), 1.0)

    def _moment(self, n_tokens: float, power: int) -> float:
        end = min(max(n_tokens, self.least_tokens), self.most_tokens)
        whole = float(end ** (power + 1) - self.least_tokens ** (power + 1))
        return whole / (power + 1) / (self.most_tokens - self.least_tokens)

    def _at(self, share: float) -> float:
        return self.least_tokens + share * (self.most_tokens - self.least_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class LognormalTokens(TokenDistribution):
    """Whose logarithm is normal.

    Args:
        unbounded_mean_tokens: where none were cut to the longest.
        sigma: deviation of the logarithm.
        longest_tokens: None for what one request in a million is longer than.
    """

    unbounded_mean_tokens: float
    sigma: float
    longest_tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        return self.longest_tokens or math.ceil(self._at(1.0 - NEVER))

    @property
    def _mu(self) -> float:
        return math.log(self.unbounded_mean_tokens) - self.sigma**2 / 2.0

    def _share(self, n_tokens: float) -> float:
        return _NORMAL.cdf((math.log(n_tokens) - self._mu) / self.sigma)

    def _moment(self, n_tokens: float, power: int) -> float:
        whole = math.exp(power * self._mu + (power * self.sigma) ** 2 / 2.0)
        beyond = (math.log(n_tokens) - self._mu) / self.sigma - power * self.sigma
        return whole * _NORMAL.cdf(beyond)

    def _at(self, share: float) -> float:
        return math.exp(self._mu + self.sigma * _NORMAL.inv_cdf(share))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialTokens(TokenDistribution):
    """One token, and others as often as not: 1 + an exponential.

    Args:
        unbounded_mean_tokens: where none were cut to the longest; above 1.
        longest_tokens: None for what one request in a million is longer than.
    """

    unbounded_mean_tokens: float
    longest_tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        return self.longest_tokens or math.ceil(self._at(1.0 - NEVER))

    @property
    def _further(self) -> float:
        return self.unbounded_mean_tokens - 1.0

    def _share(self, n_tokens: float) -> float:
        return -math.expm1(-(n_tokens - 1.0) / self._further)

    def _moment(self, n_tokens: float, power: int) -> float:
        a, y = self._further, n_tokens - 1.0
        gone = math.exp(-y / a)
        first = a - (y + a) * gone
        if power == 1:
            return 1.0 - gone + first
        return 1.0 - gone + 2.0 * first + 2.0 * a * a - (y * y + 2.0 * a * y + 2.0 * a * a) * gone

    def _at(self, share: float) -> float:
        return 1.0 - self._further * math.log1p(-share)


@dataclass(frozen=True, slots=True, kw_only=True)
class TabledTokens(TokenDistribution):
    """Percentiles, evenly between each and the next; before the first, evenly from one token on.

    Args:
        tokens: ascending, above 1, (P,).
        shares: no longer than these, ascending, the last 1, (P,).
        longest_tokens: None for the last of them.
    """

    tokens: tuple[float, ...]
    shares: tuple[float, ...]
    longest_tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        return min(math.ceil(self.tokens[-1]), self.longest_tokens or MOST_TOKENS)

    def _ends(self, index: int) -> tuple[float, float, float, float]:
        """Of an interval: both lengths, and the shares up to them."""
        low, below = (self.tokens[index - 1], self.shares[index - 1]) if index else (1.0, 0.0)
        return low, self.tokens[index], below, self.shares[index]

    def _share(self, n_tokens: float) -> float:
        if n_tokens >= self.tokens[-1]:
            return 1.0
        low, high, below, above = self._ends(bisect_left(self.tokens, n_tokens))
        return below + (above - below) * (n_tokens - low) / (high - low)

    def _moment(self, n_tokens: float, power: int) -> float:
        moment = 0.0
        for index in range(len(self.tokens)):
            low, high, below, above = self._ends(index)
            end = min(high, n_tokens)
            if end <= low:
                break
            dense = (above - below) / (high - low)
            moment += dense * (end ** (power + 1) - low ** (power + 1)) / (power + 1)
        return moment

    def _at(self, share: float) -> float:
        low, high, below, above = self._ends(bisect_left(self.shares, share))
        return low + (high - low) * (share - below) / (above - below)


AnyTokens = FixedTokens | UniformTokens | LognormalTokens | ExponentialTokens | TabledTokens
"""All that there are."""


def lognormal_by_percentile(
    mean_tokens: float, share: float, n_tokens: float, longest_tokens: int | None = None
) -> LognormalTokens:
    """The one whose mean and one percentile are known.

    n = m exp(z σ − σ²/2), z the normal quantile of the share: of the two σ the smaller.

    Raises:
        ValueError: there is none; the text says why.
    """
    z, distance = _NORMAL.inv_cdf(share), math.log(n_tokens / mean_tokens)
    most = z * z / 2.0
    if z > 0.0 and not 0.0 < distance <= most:
        side = "is not above the mean" if distance <= 0.0 else "is too far above the mean"
        raise ValueError(f"{side}: a lognormal's is at most {math.exp(most):.3g} times it")
    if z <= 0.0 and distance >= 0.0:
        raise ValueError("is not below the mean")
    root = math.sqrt(z * z - 2.0 * distance)
    return LognormalTokens(
        unbounded_mean_tokens=mean_tokens,
        sigma=z - root if z > 0.0 else z + root,
        longest_tokens=longest_tokens,
    )
