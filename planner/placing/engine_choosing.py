"""Deployments of an engine that a placement may want, of all that there are on a domain.

Of a shape devices and rent are the same. What is left is speed: of replicas that do both phases,
and of those that decode, the best that keeps the targets will do. Where prompts are read there are
two speeds: what comes before the first token leaves the less time to hand the cache over.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.serving.choices import EngineChoices
from planner.programs.layout import ceiling
from planner.programs.rows import alike_rows
from planner.specs.roles import PREFILL, TOGETHER
from planner.specs.targets import Targets


def wanted_choices(
    found: EngineChoices, targets: Targets, *, by_latency: bool, whole: bool = False
) -> Iterator[int]:
    """Of each shape, and where caches are handed over each format of them, the best in targets.

    Args:
        whole: the best of each sharding of the weights besides.
        by_latency: whether the quickest replica is the best, not the one that serves most.
    """
    table = found.table
    in_flight = table.batch * table.n_data
    rate, tpot, ttft = in_flight / found.place_s, found.tpot_high_s, found.ttft_high_s
    if not len(rows := np.flatnonzero(_kept(found, targets))):
        return
    order = [-rate, tpot] if by_latency else [ttft, tpot, -rate]
    if found.role == PREFILL:
        order = [-rate, ttft]
    rows = rows[np.lexsort([values[rows] for values in order])]
    first, group = alike_rows([key[rows] for key in _alike(found, whole=whole)])
    if found.role != PREFILL:
        yield from map(int, rows[first])
        return
    most = np.zeros(len(first))
    for row, one in zip(rows.tolist(), group.tolist(), strict=True):
        if rate[row] > most[one]:  # none that has its first token as soon reads as many
            most[one] = rate[row]
            yield row


def _alike(found: EngineChoices, *, whole: bool) -> list[IntArray]:
    """What choices have in common of which one will do, each (N,)."""
    table = found.table
    alike = [table.n_tensor, table.n_data, table.n_stages]
    of_format = []
    if found.role != TOGETHER:
        of_format.append([one.cache for one in table.formats])
    if whole:
        alike.append(table.n_expert_parallel)
        of_format.append([f"{one.weights} {one.experts}" for one in table.formats])
    numbers = [np.unique(names, return_inverse=True)[1] for names in of_format]
    return [*alike, *(number[table.format_index] for number in numbers)]


def _kept(found: EngineChoices, targets: Targets) -> BoolArray:
    """Choices that keep the targets; a role keeps those of what it does."""
    kept = np.ones(len(found), dtype=np.bool_)
    for values, most in ((found.tpot_high_s, targets.tpot_s), (found.ttft_high_s, targets.ttft_s)):
        if most is not None:
            kept &= values <= ceiling(most)
    if targets.min_batch is not None and found.role != PREFILL:
        kept &= found.table.batch * found.table.n_data >= targets.min_batch
    return kept
