"""Deployments of an engine that a placement may want, of all that there are on a domain.

Of a shape devices and rent are the same. What is left is speed: of replicas that do both phases,
and of those that decode, the best that keeps the targets will do. Where prompts are read there are
two speeds: what comes before the first token leaves the less time to hand the cache over.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.choices import EngineChoices
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.timer import SAFE
from planner.placing.fabrics.domains import Domain, largest_piece
from planner.placing.fabrics.patterns import NODE, Beaten
from planner.programs.layout import ceiling
from planner.programs.rows import alike_rows, dominated, least_by_group
from planner.specs.ask.targets import Targets
from planner.specs.records.roles import PREFILL, TOGETHER


def lying(cuts: DeploymentTable, domain: Domain) -> BoolArray:
    """Cuts that lie on a domain as they are costed, and as engines start them, (N,).

    Engines start as many devices on every node, as their rules `equal-shares-of-nodes` say.
    """
    n_devices, share = cuts.n_devices, domain.per_node
    if domain.span == NODE:
        return np.asarray(n_devices <= share)
    is_whole = share == largest_piece(domain.ground.inventory, domain.kind)
    tensor, group = cuts.n_tensor, cuts.n_group
    fits = (share % tensor == 0) | ((tensor % share == 0) & is_whole)
    fits &= (share % group == 0) | (group % share == 0)
    if cuts.has_pools:  # a node is of one of them
        fits &= (group % share == 0) & (cuts.n_expert_devices % share == 0)
    is_spread = (n_devices > share) & (n_devices % share == 0)
    return np.asarray(fits & is_spread & (n_devices // share <= domain.n_shares))


def wanted_choices(
    choices: EngineChoices, targets: Targets, *, by_latency: bool, whole: bool = False
) -> Iterator[int]:
    """Of each shape, and where caches are handed over each format of them, the best in targets.

    Args:
        whole: the best of each sharding of the weights besides.
        by_latency: whether the quickest replica is the best, not the one that serves most.
    """
    table = choices.table
    in_flight = table.batch * table.n_data
    rate, tpot, ttft = in_flight / choices.place_s, choices.tpot_high_s, choices.ttft_high_s
    if not len(rows := np.flatnonzero(_kept(choices, targets))):
        return
    order = [-rate, tpot] if by_latency else [ttft, tpot, -rate]
    if choices.role == PREFILL:
        order = [-rate, ttft]
    rows = rows[np.lexsort([values[rows] for values in order])]
    first, group = alike_rows([key[rows] for key in _common_traits(choices, whole=whole)])
    if choices.role == PREFILL:  # none that has its first token as soon reads as many
        first = np.flatnonzero(~dominated([-rate[rows], ttft[rows]], group, len(first)))
    yield from map(int, rows[first])


Shape = tuple[int, ...]

GROWTH = 8
"""Of how many choices of a shape are timed, from one round to the next."""


class BestOfShapes:
    """What of deployments that do both phases `wanted_choices` may want: see `Sifter`.

    Args:
        beaten: what nobody wants; where it has rates, copies of what is met outdo more.
        beliefs: of which each has a best of its own: what any of them may want is kept.
    """

    def __init__(
        self,
        targets: Targets,
        beaten: Beaten,
        beliefs: Sequence[str],
        *,
        by_latency: bool,
        whole: bool,
    ) -> None:
        self._targets, self._by_latency, self._whole = targets, by_latency, whole
        known = {} if by_latency or whole else beaten.rates
        self._rates = {belief: known[belief] * SAFE if known else None for belief in beliefs}
        self._best: dict[Shape, FloatArray] = {}
        self._n_rejected = 0

    def rounds(self, choices: EngineChoices) -> IntArray:
        """Few of each shape, the best by their bounds, then `GROWTH` times as many (N,)."""
        _, group, values = self._values(choices)
        first = np.full(len(choices), len(choices), dtype=np.int64)
        for of_belief in values:
            order = np.lexsort((of_belief, group))
            place = np.arange(len(order)) - np.searchsorted(group[order], group[order])
            first[order] = np.minimum(first[order], place)
        return np.asarray(np.log(first + 1) / np.log(GROWTH)).astype(np.int64)

    def meet(self, timed: EngineChoices) -> None:
        """Look for better ones among choices that were timed."""
        shapes, group, values = self._values(timed)
        known = self._best_met(shapes)
        least = np.array([least_by_group(one, group, len(shapes)) for one in values])
        self._best |= zip(shapes, np.minimum(least, known).T, strict=True)
        n_devices = np.array([math.prod(shape) for shape in shapes], dtype=np.int64)[:, None]
        for rates, of_belief in zip(self._rates.values(), -least, strict=True):
            if rates is not None and len(shapes):
                n = np.arange(len(rates))
                copies = np.where(n > n_devices, n // n_devices, 0) * of_belief.clip(0.0)[:, None]
                np.maximum(rates, copies.max(axis=0) * SAFE, out=rates)

    def sifted(
        self, choices: EngineChoices, weight: IntArray | None = None, *, is_new: bool = False
    ) -> BoolArray:
        """Which of some choices may be the best of their shape (N,)."""
        shapes, group, values = self._values(choices)
        stays = np.any(np.isfinite(values) & (values <= self._best_met(shapes)[:, group]), axis=0)
        self._n_rejected += int((~stays if weight is None else weight[~stays]).sum())
        return np.asarray(stays)

    def counted(self, kept: EngineChoices) -> EngineChoices:
        """What may still be wanted of what was kept; all that was rejected is considered too."""
        n_considered = kept.n_considered + self._n_rejected
        return replace(kept.take(self.sifted(kept)), n_considered=n_considered)

    def _best_met(self, shapes: Sequence[Shape]) -> FloatArray:
        """The best that was met of each shape, by belief (B, S)."""
        nothing = np.full(len(self._rates), np.inf)
        known = [self._best.get(shape, nothing) for shape in shapes]
        return np.reshape(known, (len(shapes), len(self._rates))).T

    def _values(self, some: EngineChoices) -> tuple[list[Shape], IntArray, FloatArray]:
        """Shapes of choices; which each has, and how good it is by belief (B, N): less is better.

        What breaks a target is infinitely bad, and so is what a belief leaves out.
        """
        values = np.full((len(self._rates), len(some)), np.inf)
        for of_belief, (belief, least) in zip(values, self._rates.items(), strict=True):
            choices = some.believing(belief)
            rates = choices.table.batch * choices.table.n_data / choices.place_s
            kept = _kept(choices, self._targets)
            if least is not None:
                kept &= rates > least[choices.table.n_devices]
            value = choices.tpot_high_s if self._by_latency else -rates
            of_belief[some.counts(belief)] = np.where(kept, value, np.inf)
        columns = _common_traits(some, whole=self._whole)
        first, group = alike_rows(columns)
        shapes = list(zip(*(column[first].tolist() for column in columns), strict=True))
        return shapes, group, values


def _common_traits(choices: EngineChoices, *, whole: bool) -> list[IntArray]:
    """What choices have in common of which one will do, each (N,)."""
    table = choices.table
    alike = [table.n_tensor, table.n_data, table.n_stages]
    alike += [table.n_expert_devices] * table.has_pools
    of_format = []
    if choices.role != TOGETHER:
        of_format.append([one.cache for one in table.formats])
    if whole:
        alike.append(table.n_expert_parallel)
        of_format.append([f"{one.weights} {one.experts}" for one in table.formats])
    numbers = [np.unique(names, return_inverse=True)[1] for names in of_format]
    return [*alike, *(number[table.format_index] for number in numbers)]


def _kept(choices: EngineChoices, targets: Targets) -> BoolArray:
    """Choices that keep the targets; a role keeps those of what it does."""
    kept = np.ones(len(choices), dtype=np.bool_)
    for values, most in (
        (choices.tpot_high_s, targets.tpot_s),
        (choices.ttft_high_s, targets.ttft_s),
    ):
        if most is not None:
            kept &= values <= ceiling(most)
    if targets.min_batch is not None and choices.role != PREFILL:
        kept &= choices.table.batch * choices.table.n_data >= targets.min_batch
    return kept
