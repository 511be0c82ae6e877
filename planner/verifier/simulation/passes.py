"""How long passes take, looked up as often as there are passes: a million times and more."""

import math
from bisect import bisect_right
from dataclasses import dataclass

from planner.specs.records.roles import DecodeTimes, ReadingTimes, Row


def _cell(points: Row | tuple[int, ...], x: float) -> tuple[int, float]:
    """The interval of x, by its lower end, and how far into it x is; beyond the ends outside 0..1.

    A grid of one point is as if it had the same value everywhere.
    """
    if len(points) == 1:
        return 0, 0.0
    at = min(max(bisect_right(points, x) - 1, 0), len(points) - 2)
    return at, (x - points[at]) / (points[at + 1] - points[at])


class DecodeLookup:
    """D, with one line of contexts for each number of sequences that there can be."""

    __slots__ = ("_contexts", "_lines")

    def __init__(self, times: DecodeTimes, most_running: int) -> None:
        self._contexts = times.context_tokens
        self._lines: list[list[float]] = [[0.0] * len(times.context_tokens)]
        for n in range(1, most_running + 1):
            at, inside = _cell(times.n_sequences, n)
            low = times.seconds[at]
            high = times.seconds[min(at + 1, len(times.seconds) - 1)]
            self._lines.append([a + inside * (b - a) for a, b in zip(low, high, strict=True)])

    def step(self, n: int, context: float) -> tuple[float, float, float]:
        """Seconds of a pass, what they grow by with each token cached, and for how many more.

        Args:
            n: sequences that decode.
            context: tokens that each of them has cached on average.
        """
        line, contexts = self._lines[n], self._contexts
        if len(contexts) == 1:
            return line[0], 0.0, float("inf")
        at, inside = _cell(contexts, context)
        rise = line[at + 1] - line[at]
        wide = contexts[at + 1] - contexts[at]
        left = contexts[at + 1] - context if inside < 1.0 else float("inf")
        return line[at] + inside * rise, rise / wide, left


@dataclass(slots=True)
class DecodeRun:
    """Passes that decode the same sequences, each a slope longer than the one before it.

    When one of them ends comes of its number alone, so that it makes no difference how many are
    counted at once: simulations that stop for different reasons agree to the last bit.

    Args:
        began_s, step_s, slope_s: when the first began, how long it takes, and the slope [s].
        most: passes for which the slope holds.
        n, n_counted: that have run, and whose gaps between tokens are counted.
    """

    began_s: float
    step_s: float
    slope_s: float
    most: float
    n: int = 0
    n_counted: int = 0

    def end_s(self, n: int) -> float:
        """When so many have run."""
        return self.began_s + (n * self.step_s + self.slope_s * n * (n - 1) / 2.0)

    def until(self, until_s: float) -> int:
        """Passes more that end then or later, one or more; the fewest."""
        if self.end_s(self.n + 1) >= until_s:
            return 1
        left_s, step_s, slope_s = until_s - self.began_s, self.step_s, self.slope_s
        n = most = math.ceil(left_s / step_s)
        if slope_s > 0.0:
            # of n step + slope n (n - 1) / 2 = left, without cancellation: the loops mend rounding
            half = step_s - slope_s / 2.0
            root = 2.0 * left_s / (half + math.sqrt(half * half + 2.0 * slope_s * left_s))
            n = min(most, math.ceil(root))
        while n > 1 and self.end_s(n - 1) >= until_s:
            n -= 1
        while n < most and self.end_s(n) < until_s:
            n += 1
        return max(1, n - self.n)


class ReadingLookup:
    """R, between the eight points around what is asked."""

    __slots__ = ("_planes", "_sequences", "_spans", "_tokens")

    def __init__(self, times: ReadingTimes) -> None:
        self._sequences = times.n_sequences
        self._tokens = times.prompt_tokens
        self._spans = times.span_tokens
        self._planes = times.seconds

    def seconds(self, n: int, tokens: float, span: float) -> float:
        """What a pass takes longer that reads so many tokens of prompts beside n decodes."""
        at, inside = _cell(self._sequences, n)
        time_s = self._plane(at, tokens, span)
        if inside and len(self._sequences) > 1:
            time_s += inside * (self._plane(at + 1, tokens, span) - time_s)
        return max(0.0, time_s)

    def _plane(self, at: int, tokens: float, span: float) -> float:
        plane = self._planes[at]
        j, right = _cell(self._tokens, tokens)
        k, down = _cell(self._spans, span)
        below, beyond = min(j + 1, len(self._tokens) - 1), min(k + 1, len(self._spans) - 1)
        near = plane[j][k] + down * (plane[j][beyond] - plane[j][k])
        far = plane[below][k] + down * (plane[below][beyond] - plane[below][k])
        return near + right * (far - near)
