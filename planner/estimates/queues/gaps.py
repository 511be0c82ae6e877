"""ITL: times between two tokens, over all tokens."""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import interrupted
from planner.estimates.queues.backlog import Backlog
from planner.estimates.queues.laws import UPPER, Law, mixed
from planner.estimates.queues.served import Served

_IDLE_S = 1e-9
"""Stands for the pass of a state in which nothing decodes, whose tokens are none."""


def gaps(served: Served, n: FloatArray, shares: FloatArray, state: Backlog | None) -> Law:
    """The law over all tokens: of the passes of each state, each with the tokens that it writes.

    Args:
        n: sequences that decode in each state (S,).
        shares: of the time (S,).
        state: backlogs, of a station that reads prompts.
    """
    laws = []
    for at, plain_s in enumerate(np.maximum(served.plain_s(n), _IDLE_S)):
        if state is None:
            laws.append(Law(np.array([plain_s]), np.ones(1)))
        elif served.mixes:
            busy = slice(1 if state.idles[at] else 0, None)
            share = np.maximum(state.share[at, busy], 1e-12)
            # each token waits for all lanes of a pass, which begins when one of them is free
            ridden_s = float(served.ridden_s(n[at]))
            added = (state.class_s[at, busy] - ridden_s) * (served.station.n_lanes - 1.0)
            laws.append(Law(state.class_s[at, busy] + added, share))
        else:
            laws.append(_stalled(served, float(plain_s), max(float(n[at]), 1.0)))
    tokens_per_s = [k / law.mean for k, law in zip(n, laws, strict=True)]
    return mixed(laws, shares * np.array(tokens_per_s))


def _stalled(served: Served, plain_s: float, n: float) -> Law:
    """A pass and, at each look, all prompts that are read before the next, who then decode too."""
    looks, rate = served.n_looks, served.load.rate_per_s
    mean, cv2 = served.reading_moments
    prompts = Law(served.prompts_s(np.zeros(1))[0][0], served.load.weight).grouped(UPPER)
    comes = rate * looks * plain_s
    anybody = -np.expm1(-comes)
    # beside the first that came others did, in as long a part of the block as makes them so many
    others_s = (comes / anybody - 1.0) / rate
    work = others_s + prompts.values
    took, likely = interrupted(work, rate, np.full(len(work), mean), cv2)
    stalls = plain_s + np.maximum(took - others_s, 0.0)
    weights = likely * prompts.weights[:, None, None] * anybody / looks
    weights = weights * (1.0 + (stalls - plain_s) / mean / n)
    return Law(np.append(stalls, plain_s), np.append(weights, 1.0 - anybody / looks))
