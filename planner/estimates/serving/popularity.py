"""Rows and experts of the fullest device of a stage, by how popular each expert is."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.routing import (
    chances,
    expected_highest,
    experts_reached,
    fullest,
    fullest_balanced,
)
from planner.estimates.serving.deployments import DeploymentTable, runs
from planner.estimates.serving.rules import Context, starts
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.kernels import EngineSpec

_NONE = np.zeros(0)


def reached(
    ffn: Experts, tokens: FloatArray, table: DeploymentTable
) -> tuple[FloatArray, FloatArray]:
    """Rows that tokens bring to that device of a stage which has most, and experts hit there (N,).

    By the popularity of experts: the mean of its orders, or as a balancer deals copies.
    """
    span = int(table.n_redundant.max(initial=0)) + 1
    keys = table.n_expert_parallel * span + table.n_redundant
    rows, hit = np.zeros(np.shape(tokens)), np.zeros(np.shape(tokens))
    order = np.argsort(keys, kind="stable")
    heads, _ = runs(keys[order])
    for mine in np.split(order, heads[1:]) if len(order) else ():
        device = _fullest(ffn, *divmod(int(keys[mine[0]]), span))
        rows[mine], hit[mine] = device.rows(tokens[mine]), device.n_hit(tokens[mine])
    held = (ffn.n_experts + table.n_redundant) / table.n_expert_parallel
    return rows, np.maximum(hit, np.minimum(1.0, held))


def with_copies(
    model: Architecture, table: DeploymentTable, engine: EngineSpec, ground: Context
) -> DeploymentTable:
    """Deployments with the copies of experts that an engine's users give wide groups of experts.

    As many as its file says, or the next number with which slots go evenly into groups that
    experts do too; none where all experts are visited alike, or a rule of the engine forbids it.

    Args:
        ground: the engine's rules, and what is known of the deployments.
    """
    ep, least = table.n_expert_parallel, engine.n_redundant_experts
    experts = [one.ffn for one in model.layers if isinstance(one.ffn, Experts)]
    counts = {one.n_experts for one in experts if len({*one.expected_loads[0]}) > 1}
    if len(counts) != 1 or not least:
        return table
    (n_experts,) = counts
    more = -(n_experts + least) % ep
    has_some = (ep >= engine.n_balanced_groups) & ((more == 0) | (n_experts % ep == 0))
    copied = replace(table, n_redundant=np.where(has_some, least + more, 0))
    rules = tuple(one for one in ground.rules if "redundant" in one.names)
    can = starts(replace(ground, rules=rules), model, copied)
    return replace(copied, n_redundant=np.where(can, copied.n_redundant, 0))


@dataclass(slots=True, kw_only=True)
class _Fullest:
    """The fullest device of a stage, on average over the orders of experts.

    Candidates differ in a few hundred numbers of tokens, so that experts hit are remembered by it.

    Args:
        chances: of its experts, distinct ones (D,).
        counts: experts with each of these chances (D,).
        spread: standard deviations of its rows that it has more, as the fullest of many alike.
        known: numbers of tokens in ascending order, and experts hit by so many: two arrays (K,).
    """

    chances: FloatArray
    counts: FloatArray
    spread: float = 0.0
    known: tuple[FloatArray, FloatArray] = (_NONE, _NONE)

    @property
    def rows_per_token(self) -> float:
        return float(self.chances @ self.counts)

    def rows(self, tokens: FloatArray) -> FloatArray:
        """Of so many tokens (N,): as many for each, and what chance adds where ranks are alike."""
        variance = float((self.chances * (1.0 - self.chances)) @ self.counts)
        return np.asarray(tokens * self.rows_per_token + self.spread * np.sqrt(tokens * variance))

    def n_hit(self, tokens: FloatArray) -> FloatArray:
        """Experts there that any of so many tokens visits (N,)."""
        wanted, place = np.unique(np.asarray(tokens, dtype=float), return_inverse=True)
        counts, hits = self.known
        at = np.minimum(np.searchsorted(counts, wanted), max(0, len(counts) - 1))
        fresh = wanted[counts[at] != wanted] if len(counts) else wanted
        if len(fresh):
            counts = np.concatenate([counts, fresh])
            hits = np.concatenate([hits, experts_reached(fresh, self.chances, self.counts)])
            order = np.argsort(counts)
            counts, hits = counts[order], hits[order]
            self.known = (counts, hits)  # set at once: threads see a whole pair
        return np.asarray(hits[np.searchsorted(counts, wanted)][place])


@lru_cache(maxsize=256)
def _fullest(ffn: Experts, n_ranks: int, n_redundant: int) -> _Fullest:
    orders = [chances(loads, ffn.n_active) for loads in ffn.expected_loads]
    if n_redundant:  # dealt by load, whatever the order
        held, spread = (
            [fullest_balanced(orders[0], n_ranks, n_redundant)],
            expected_highest(n_ranks),
        )
    else:
        orders = orders if n_ranks > 1 else orders[:1]  # one device holds all in any order
        held, spread = [fullest(one, n_ranks) for one in orders], 0.0
    distinct, counts = np.unique(np.concatenate(held), return_counts=True)
    return _Fullest(chances=distinct, counts=counts / len(held), spread=spread)
