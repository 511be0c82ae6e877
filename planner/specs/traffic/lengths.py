"""Lengths of requests, in and out: as cells for formulas, drawn for simulations, as moments."""

import math
import random
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.specs.records.devices import Workload
from planner.specs.traffic.arrivals import Trace
from planner.specs.traffic.distributions import AnyTokens
from planner.specs.traffic.strata import Cells, strata_of

USUAL_CELLS = 64


class Lengths(ABC):
    """How many tokens requests read and write."""

    __slots__ = ()

    @property
    @abstractmethod
    def most_input_tokens(self) -> int:
        """Of the longest prompt."""

    @property
    @abstractmethod
    def most_output_tokens(self) -> int:
        """Of the longest answer."""

    @property
    @abstractmethod
    def longest(self) -> tuple[int, int]:
        """Tokens in and out of the request that holds most."""

    @abstractmethod
    def moment(self, of_input: int, of_output: int) -> float:
        """Mean of inputᵃ outputᵇ, a + b at most 2."""

    @abstractmethod
    def cells(self, n_cells: int = USUAL_CELLS, cuts: Sequence[float] = ()) -> Cells:
        """Kinds of requests that stand for all; sums of tokens are those of the whole.

        Args:
            n_cells: at most so many, or one between each two cuts.
            cuts: tokens of prompts, ascending, which no kind is across.
        """

    @abstractmethod
    def drawn(self, source: random.Random) -> Iterator[tuple[int, int]]:
        """Requests without end, tokens in and out, each independent of the others."""

    @property
    def mean_input_tokens(self) -> float:
        return self.moment(1, 0)

    @property
    def mean_output_tokens(self) -> float:
        return self.moment(0, 1)

    @property
    def usual(self) -> Workload:
        """A request of mean length, in whole tokens."""
        return Workload(
            n_input_tokens=max(1, round(self.mean_input_tokens)),
            n_output_tokens=max(1, round(self.mean_output_tokens)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentLengths(Lengths):
    """Answers whose lengths do not depend on their prompts'."""

    input: AnyTokens
    output: AnyTokens

    @property
    def most_input_tokens(self) -> int:
        return self.input.most_tokens

    @property
    def most_output_tokens(self) -> int:
        return self.output.most_tokens

    @property
    def longest(self) -> tuple[int, int]:
        return self.most_input_tokens, self.most_output_tokens

    def moment(self, of_input: int, of_output: int) -> float:
        first = self.input.moment_upto(math.inf, of_input) if of_input else 1.0
        return first * (self.output.moment_upto(math.inf, of_output) if of_output else 1.0)

    def cells(self, n_cells: int = USUAL_CELLS, cuts: Sequence[float] = ()) -> Cells:
        each = max(1, math.isqrt(n_cells))
        outputs = strata_of(self.output, each)
        inputs = strata_of(self.input, max(1, n_cells // len(outputs)), tuple(cuts))
        if len(inputs) * len(outputs) < n_cells and len(inputs) < each:
            outputs = strata_of(self.output, max(1, n_cells // len(inputs)))
        both = [(one, other) for one in inputs for other in outputs]
        return Cells(
            n_input=tuple(one.mean_tokens for one, _ in both),
            n_output=tuple(other.mean_tokens for _, other in both),
            weight=tuple(one.weight * other.weight for one, other in both),
        )

    def drawn(self, source: random.Random) -> Iterator[tuple[int, int]]:
        first, second = self.input.draw, self.output.draw
        while True:
            yield first(source), second(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedLengths(Lengths):
    """Requests of which only the total is known, and the share of it that is read.

    Args:
        total: of both lengths.
        input_fraction: inside (0, 1). What is drawn has a token of each at least.
    """

    total: AnyTokens
    input_fraction: float

    @property
    def most_input_tokens(self) -> int:
        return max(1, math.ceil(self.total.most_tokens * self.input_fraction))

    @property
    def most_output_tokens(self) -> int:
        return max(1, math.ceil(self.total.most_tokens * (1.0 - self.input_fraction)))

    @property
    def longest(self) -> tuple[int, int]:
        n_input = self.most_input_tokens
        return n_input, max(1, self.total.most_tokens - n_input)

    def moment(self, of_input: int, of_output: int) -> float:
        whole = self.total.moment_upto(math.inf, of_input + of_output)
        return whole * self.input_fraction**of_input * (1.0 - self.input_fraction) ** of_output

    def cells(self, n_cells: int = USUAL_CELLS, cuts: Sequence[float] = ()) -> Cells:
        of_total = tuple(cut / self.input_fraction for cut in cuts)
        stratums = strata_of(self.total, n_cells, of_total)
        return Cells(
            n_input=tuple(one.mean_tokens * self.input_fraction for one in stratums),
            n_output=tuple(one.mean_tokens * (1.0 - self.input_fraction) for one in stratums),
            weight=tuple(one.weight for one in stratums),
        )

    def drawn(self, source: random.Random) -> Iterator[tuple[int, int]]:
        while True:
            total = max(2, self.total.draw(source))
            n_input = int(total * self.input_fraction + source.random())
            n_input = min(max(n_input, 1), total - 1)
            yield n_input, total - n_input


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLengths(Lengths):
    """Those of a trace, as likely as they are in it."""

    trace: Trace

    @property
    def most_input_tokens(self) -> int:
        return max(self.trace.n_input)

    @property
    def most_output_tokens(self) -> int:
        return max(self.trace.n_output)

    @property
    def longest(self) -> tuple[int, int]:
        both = zip(self.trace.n_input, self.trace.n_output, strict=True)
        return max(both, key=lambda pair: pair[0] + pair[1])

    def moment(self, of_input: int, of_output: int) -> float:
        both = zip(self.trace.n_input, self.trace.n_output, strict=True)
        whole: int = sum(a**of_input * b**of_output for a, b in both)
        return whole / len(self.trace)

    def cells(self, n_cells: int = USUAL_CELLS, cuts: Sequence[float] = ()) -> Cells:
        """Requests of neighbouring prompts, and among them of neighbouring answers."""
        trace, each = self.trace, max(1, math.isqrt(n_cells))
        parts: list[tuple[float, float, float]] = []
        rows = sorted(range(len(trace)), key=trace.n_input.__getitem__)
        for near in _runs(rows, trace.n_input, n_cells // each, cuts):
            near.sort(key=trace.n_output.__getitem__)
            for like in _runs(near, trace.n_output, each, ()):
                n_input = sum(trace.n_input[row] for row in like) / len(like)
                n_output = sum(trace.n_output[row] for row in like) / len(like)
                parts.append((n_input, n_output, len(like) / len(trace)))
        n_inputs, n_outputs, weights = zip(*parts, strict=True)
        return Cells(n_input=n_inputs, n_output=n_outputs, weight=weights)

    def drawn(self, source: random.Random) -> Iterator[tuple[int, int]]:
        n_input, n_output, n = self.trace.n_input, self.trace.n_output, len(self.trace)
        while True:
            row = int(source.random() * n)
            yield n_input[row], n_output[row]


AnyLengths = IndependentLengths | DividedLengths | TraceLengths
"""All that there are."""


def _runs(
    rows: Sequence[int], tokens: Sequence[int], n_runs: int, cuts: Sequence[float]
) -> Iterator[list[int]]:
    """Rows in ascending order of tokens, parted as `strata_of` parts a distribution."""
    whole = sum(tokens[row] for row in rows)
    ends = [0, *(bisect_right(rows, cut, key=tokens.__getitem__) for cut in cuts), len(rows)]
    for start, end in pairwise(ends):
        part = rows[start:end]
        of_part = (len(part) / len(rows) + sum(tokens[row] for row in part) / whole) / 2.0
        n = max(1, round(n_runs * of_part))
        gone, run = 0.0, []
        made = 1
        for row in part:
            run.append(row)
            gone += (1.0 / len(rows) + tokens[row] / whole) / 2.0
            if made < n and gone >= of_part * made / n:
                yield run
                run, made = [], made + 1
        if run:
            yield run


def lengths_of(
    trace: Trace | None, input_: AnyTokens | None = None, output: AnyTokens | None = None
) -> AnyLengths | None:
    """Those of a trace, or of tokens in and out; None where one of both is not known."""
    if trace is not None:
        return TraceLengths(trace=trace)
    if input_ is None or output is None:
        return None
    return IndependentLengths(input=input_, output=output)
