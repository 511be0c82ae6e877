"""A first fleet that the simulation confirms, of few configurations: what goes out if time ends.

Of each stream that the fluid optimum serves, the configurations that are cheapest at fluid rates
are looked at, one way of each, until their rates serve the traffic. What a simulation refutes is
taken down, and more is asked of what is left each time: with room to spare it is soon confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.book import Book
from planner.placing.fleets.searching import Allowed, Chosen, everything, settled
from planner.running.deadlines import check, is_over

FIRST = 2
"""Configurations of a stream and role that are looked at first; twice as many the next time."""

MOST = 32
"""Configurations of a stream and role that are looked at: of more, no fleet is soon found."""

MARGINS = (1.0, 1.15, 1.4, 2.0, 3.0)
"""Times the traffic that rates have to serve: the next where the one before is refuted."""

Confirmed = Callable[[Chosen], bool]


def first_fleet(
    fluid: Chosen, confirmed: Confirmed, margins: Sequence[float] = MARGINS
) -> Chosen | None:
    """A fleet that is confirmed; None where there is none of these, or no time.

    Args:
        fluid: the optimum at fluid rates, whose streams are served.
        confirmed: whether a fleet is, by simulation; takes down what is not.

    Raises:
        OutOfTimeError: time ended before.
    """
    market = fluid.market
    names = [one.name for one in market.request.classes]
    for margin in margins if fluid.is_found else ():
        while True:
            check()
            chosen = settled(market, factors=dict.fromkeys(names, margin), sure=True)
            if chosen.is_found:
                break
            if not more_looked_at(fluid):
                return None
        if confirmed(chosen):
            return chosen
    return None


def more_looked_at(fluid: Chosen, allowed: Allowed = everything) -> bool:
    """Look at as many of each stream and role again; whether anything was left."""
    book, market = fluid.market.book, fluid.market
    served = {(one.model, one.role) for one, _ in fluid.replicas}
    some = [
        one
        for one in market.offered.configurations
        if (one.model, one.role) in served and allowed(one)
    ]
    prices = np.array([one.usd_per_hour / one.output_tokens_per_s for one in some])
    ranked = [some[i] for i in np.argsort(prices, kind="stable").tolist()]
    looked = [
        _looked_at(book, [one for one in ranked if (one.model, one.role) == key]) for key in served
    ]
    return any(looked)


def _looked_at(book: Book, ranked: Sequence[NodeConfiguration]) -> bool:
    """Look at some that nothing was found of, the cheapest first; whether there were any."""
    n_known = sum(book.sure(one) is not None for one in ranked)
    left, n = min(max(FIRST, n_known), MOST - n_known), 0
    for one in ranked:
        if left <= 0 or is_over():
            break
        if book.sure(one) is None:
            book.look_at(one, n_ways=1)
            found = book.sure(one)
            left -= found is not None and found.output_tokens_per_s > 0.0
            n += 1
    return n > 0
