"""Streams: requests that the same replicas may serve.

A *unit* is a class, or the prompts of a class between two cuts. A stream is one unit, neighbouring
units of a class, or whole classes of one model together, of each all requests or a part. Streams
share out the units that they are of: in which parts, is for the program to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from planner.equations.arrays import IntArray
from planner.estimates.fluid_rates import Load
from planner.specs.records.devices import AnyModel
from planner.specs.traffic.percentiles import E2E, TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import FREE_CUTS, TrafficClass

MOST_SHARING = 4
"""Classes of one model up to which every set of them is a stream; beyond, all of them together."""

FREE_SHARES = (0.25, 0.5, 0.75, 0.9, 0.97)
"""Of the tokens of all prompts, what those below each cut that may be chosen have."""

WHOLE = 20
"""Parts of all requests of a unit, in which streams are of it."""

_ALL = (0.0, float("inf"))
"""Between which all prompts are."""

ALMOST_ALL = 0.999
"""The percentile that phases apart are planned by for a goodput of everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTarget:
    """A target of one class of a stream.

    Args:
        target: over the requests of the class.
        member: number of the class within the stream.
    """

    target: PercentileTarget
    member: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestClass:
    """Requests that the same replicas may serve.

    Args:
        name: each once.
        units: by number.
        parts: of the requests of each unit, of `WHOLE`, that are of the stream.
        classes: whose requests these are.
        model: that serves them.
        above_tokens, upto_tokens: of their prompts.
        load: of all of them, by cells.
        member: the class of each cell, by its number here, int[K].
        targets: of all classes.
        n_longest_input, n_longest_tokens: of the longest prompt, and of the longest request.
        rate_of_unit: the class of each unit, and its requests [1/s].
    """

    name: str
    units: tuple[int, ...]
    parts: tuple[int, ...]
    classes: tuple[TrafficClass, ...]
    model: AnyModel
    above_tokens: float
    upto_tokens: float
    load: Load
    member: IntArray
    targets: tuple[ClassTarget, ...]
    n_longest_input: int
    n_longest_tokens: int
    rate_of_unit: Mapping[int, tuple[str, float]]

    @property
    def rate_per_s(self) -> float:
        return self.load.rate_per_s

    @property
    def n_output_tokens(self) -> float:
        return self.load.mean(self.load.n_output)

    def least_s(self, *quantities: str) -> float:
        """The least that a target allows of some quantities [s]; inf without any."""
        limits = (it.target.at_most_s for it in self.targets if it.target.quantity in quantities)
        return min(limits, default=float("inf"))

    @property
    def part_of(self) -> dict[str, float]:
        """Of the requests of each class, those that are of the stream, by name."""
        names = (self.rate_of_unit[unit][0] for unit in self.units)
        return {name: part / WHOLE for name, part in zip(names, self.parts, strict=True)}

    def in_parts(self, parts: Mapping[str, int]) -> RequestClass:
        """A stream of whole classes with a part of the requests of each, of `WHOLE`, by name."""
        of_class = np.array([parts[one.name] for one in self.classes]) / WHOLE
        weight = self.load.rate_per_s * self.load.weight * of_class[self.member]
        words = (f"{100 * parts[one.name] // WHOLE} % of {one.name}" for one in self.classes)
        return replace(
            self,
            name=" + ".join(words),
            parts=tuple(parts[self.rate_of_unit[unit][0]] for unit in self.units),
            load=replace(self.load, rate_per_s=float(np.sum(weight)), weight=weight),
        )

    def tokens_per_s(self, factors: Mapping[str, float]) -> float:
        """That are written, at such times the traffic of its classes.

        Raises:
            ValueError: its classes change their shares, and so do lengths.
        """
        times = {factors.get(one.name, 1.0) for one in self.classes}
        if len(times) > 1:
            raise ValueError(f"classes of `{self.name}` do not grow alike")
        return self.rate_per_s * self.n_output_tokens * times.pop()


def streams_of(classes: Sequence[TrafficClass], *, sharing: bool) -> tuple[RequestClass, ...]:
    """Every stream that replicas may be for.

    Args:
        sharing: whether classes of one model may be served together.
    """
    streams: list[RequestClass] = []
    first: list[int] = []
    units: list[tuple[str, float]] = []
    for traffic in classes:
        first.append(len(units))
        edges = _edges(traffic)
        units += [(traffic.name, _rate_between(traffic, edges, it)) for it in pairwise(edges)]
        for model in traffic.models:
            streams += _of_class(traffic, model, edges, first[-1])
    if sharing:
        whole = [range(a, b) for a, b in pairwise([*first, len(units)])]
        streams += _shared(classes, whole)
    return tuple(replace(it, rate_of_unit={u: units[u] for u in it.units}) for it in streams)


def _rate_between(
    traffic: TrafficClass, edges: Sequence[float], between: tuple[float, float]
) -> float:
    """Requests of a class with such prompts [1/s]."""
    return traffic.rate_per_s * sum(weight for _, _, weight in _cells(traffic, edges, between))


def _edges(traffic: TrafficClass) -> tuple[float, ...]:
    """Tokens between which the prompts of a class are not divided, ascending."""
    longest = float(traffic.lengths.most_input_tokens)
    cuts = _free_cuts(traffic) if traffic.cuts == FREE_CUTS else traffic.cuts
    inside = sorted({float(cut) for cut in cuts if 0 < float(cut) < longest})
    return (0.0, *inside, float("inf"))


def _free_cuts(traffic: TrafficClass) -> tuple[int, ...]:
    """Prompts below which some shares of all tokens of prompts are, where lengths differ."""
    cells = traffic.lengths.cells()
    order = np.argsort(cells.n_input)
    tokens, weight = np.array(cells.n_input)[order], np.array(cells.weight)[order]
    below = np.cumsum(tokens * weight)
    at = np.searchsorted(below, np.array(FREE_SHARES) * below[-1])
    return tuple(sorted({int(tokens[i]) for i in at if i < len(tokens) - 1}))


def _of_class(
    traffic: TrafficClass, model: AnyModel, edges: Sequence[float], first: int
) -> Iterator[RequestClass]:
    """Streams of one class: cuts that were said part it, those that are free may."""
    n = len(edges) - 1
    name = traffic.name if model is traffic.model else f"{traffic.name} by {model.name}"
    for low in range(n):
        highest = n if traffic.cuts == FREE_CUTS else low + 1
        for high in range(low + 1, highest + 1):
            above, upto = edges[low], edges[high]
            stream = _request_class(
                [traffic], model, range(first + low, first + high), (above, upto), edges
            )
            if stream is not None:
                yield _named(stream, name)


def _named(stream: RequestClass, name: str) -> RequestClass:
    words = [name]
    if stream.above_tokens > 0.0:
        words.append(f"above {stream.above_tokens:.0f}")
    if stream.upto_tokens < float("inf"):
        words.append(f"up to {stream.upto_tokens:.0f}")
    return replace(stream, name=" ".join(words))


def _shared(classes: Sequence[TrafficClass], units: Sequence[range]) -> Iterator[RequestClass]:
    """Whole classes that one model may serve together."""
    models = {model.name: model for one in classes for model in one.models}
    for model in models.values():
        for some in _sets(classes, model):
            numbers = [unit for i in some for unit in units[i]]
            of_these = [classes[i] for i in some]
            stream = _request_class(of_these, model, numbers, _ALL, ())
            if stream is not None:
                yield _named(stream, " + ".join(one.name for one in of_these))


def _sets(classes: Sequence[TrafficClass], model: AnyModel) -> Iterator[tuple[int, ...]]:
    """Classes that may share replicas of a model: cuts that were said keep theirs apart."""
    mine = [
        i
        for i, traffic in enumerate(classes)
        if model in traffic.models and (not traffic.cuts or traffic.cuts == FREE_CUTS)
    ]
    fewest = 2 if len(mine) <= MOST_SHARING else len(mine)
    for size in range(fewest, len(mine) + 1):
        yield from combinations(mine, size)


def _request_class(
    classes: Sequence[TrafficClass],
    model: AnyModel,
    units: Sequence[int],
    between: tuple[float, float],
    edges: Sequence[float],
) -> RequestClass | None:
    """The requests of classes with such prompts; None where there are none."""
    cells = np.array(
        [
            (read, written, share * traffic.rate_per_s, number)
            for number, traffic in enumerate(classes)
            for read, written, share in _cells(traffic, edges, between)
        ]
    ).reshape(-1, 4)
    if not len(cells):
        return None
    n_input, n_output, weight, member = cells.T
    return RequestClass(
        name="",
        units=tuple(units),
        parts=(WHOLE,) * len(units),
        classes=tuple(classes),
        model=model,
        above_tokens=between[0],
        upto_tokens=between[1],
        load=Load(
            rate_per_s=float(np.sum(weight)),
            n_input=n_input,
            n_output=n_output,
            weight=weight,
        ),
        member=member.astype(np.int64),
        targets=tuple(
            ClassTarget(target=target, member=number)
            for number, traffic in enumerate(classes)
            for target in targets_of(traffic)
        ),
        n_longest_input=int(max(min(between[1], one.lengths.most_input_tokens) for one in classes)),
        n_longest_tokens=max(_longest(one, between[1]) for one in classes),
        rate_of_unit={},
    )


def _cells(
    traffic: TrafficClass, edges: Sequence[float], between: tuple[float, float]
) -> Iterator[tuple[float, float, float]]:
    """Tokens in and out, and shares of a class, of those of its cells with such prompts."""
    cells = traffic.lengths.cells(cuts=edges[1:-1])
    for cell in zip(cells.n_input, cells.n_output, cells.weight, strict=True):
        if between[0] < cell[0] <= between[1] and cell[2] > 0.0:
            yield cell


def _longest(traffic: TrafficClass, upto: float) -> int:
    """Tokens of the longest request; of short prompts, beside the longest answer there is."""
    whole = sum(traffic.lengths.longest)
    if upto >= traffic.lengths.most_input_tokens:
        return whole
    return min(whole, int(upto) + traffic.lengths.most_output_tokens)


def targets_of(traffic: TrafficClass) -> tuple[PercentileTarget, ...]:
    """What phases apart are planned by: percentiles, and of a goodput what surely comes to it.

    Of several limits that a share is to meet at once, each may be missed by its part of the rest.
    """
    goal = traffic.goodput
    if goal is None:
        return traffic.targets
    limits = {TTFT: goal.ttft_s, TPOT: goal.tpot_s, E2E: goal.e2e_s}
    bounds = {name: most for name, most in limits.items() if most is not None}
    share = min(ALMOST_ALL, 1.0 - (1.0 - goal.share) / max(1, len(bounds)))
    targets = (
        PercentileTarget(quantity=name, share=share, at_most_s=most)
        for name, most in bounds.items()
    )
    return (*traffic.targets, *targets)
