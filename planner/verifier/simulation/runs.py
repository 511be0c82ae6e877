"""A run: what is sent to a fleet, and where it goes."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence

from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.pools import ClassLoad, Links, Pool, Route
from planner.verifier.simulation.workers import ARRIVES, ENDS, RUNS, STANDS, Events, Workers


class _Sender:
    """What is left of one class to be sent."""

    __slots__ = ("_chance", "_source", "coming", "load")

    def __init__(self, load: ClassLoad, chance: random.Random) -> None:
        self.load = load
        self.coming: Arriving | None = None
        self._source: Iterator[Arriving] = load.source.requests(chance.getrandbits(64))
        chance.getrandbits(64)  # as `planner.estimates.simulation.drawing` does
        self._chance = random.Random(chance.getrandbits(64))

    def draw(self) -> Arriving | None:
        """The next request, or None of a source that has ended."""
        self.coming = next(self._source, None)
        return self.coming

    def route(self, n_input: int) -> Route:
        """One of those that take such prompts.

        Raises:
            ValueError: none does.
        """
        routes = self.load.routes
        if len(routes) > 1:
            routes = tuple(one for one in routes if one.takes(n_input))
        if len(routes) == 1:
            return routes[0]
        if not routes:
            fact = f"class `{self.load.name}` has no route for a prompt of {n_input} tokens"
            raise ValueError(fact)
        at = self._chance.random() * sum(one.share for one in routes)
        for candidate in routes[:-1]:
            at -= candidate.share
            if at < 0.0:
                return candidate
        return routes[-1]


class Run:
    """One simulation: `arrived_s` is when each request came, `route_of` where each was sent."""

    def __init__(
        self, pools: Sequence[Pool], classes: Sequence[ClassLoad], n_requests: int, seed: int
    ) -> None:
        chance = random.Random(seed)
        self.classes = classes
        self.arrived_s: list[float] = []
        self._events = Events()
        self._senders = [_Sender(one, chance) for one in classes]
        self.workers = Workers(pools, self._events, chance)
        self._log = self.workers.log
        self._n_requests = n_requests
        self.route_of: list[Route] = []
        self._links = _links(classes)
        self._has_caches = any(one.n_cached_tokens for one in classes)

    def serve(self, edges: Sequence[int]) -> None:
        """Everything, from the first request to the last; batches begin with these."""
        self.workers.count(edges, len(self.classes))
        for number in range(len(self.classes)):
            self._expect(number)
        happens = {
            RUNS: self.workers.run,
            ENDS: self._end,
            STANDS: lambda request, _: self.workers.stand(request),
            ARRIVES: self._arrive,
        }
        events = self._events
        while events:
            at_s, kind, what = events.pop()
            happens[kind](what, at_s)
        self.workers.finish()

    # what comes

    def _expect(self, number: int) -> None:
        """The next request of a class comes when its source says so."""
        coming = self._senders[number].draw()
        if coming is not None:
            self._events.push(coming.at_s, ARRIVES, number)

    def _arrive(self, number: int, now_s: float) -> None:
        coming = self._senders[number].coming
        if coming is not None and len(self.arrived_s) < self._n_requests:
            self._send(self._enter(number, now_s, coming), now_s)
            self._expect(number)

    def _enter(self, number: int, now_s: float, coming: Arriving) -> int:
        """A request comes; it gets the next number."""
        request, log = len(self.arrived_s), self._log
        n_cached = self.classes[number].n_cached_tokens
        n_input = coming.n_input + n_cached
        self.workers.pass_edges(request, now_s)
        self.arrived_s.append(now_s)
        self.route_of.append(self._senders[number].route(n_input))
        self.workers.rank_of.append(-1)
        log.n_input.append(n_input)
        log.n_output.append(coming.n_output)
        log.ready_s.append(now_s)
        log.first_s.append(math.nan)
        log.last_s.append(math.nan)
        if len(self.classes) > 1:
            log.of_class.append(number)
        if self._has_caches:
            log.n_cached.append(n_cached)
        return request

    # where it goes

    def _send(self, request: int, now_s: float) -> None:
        """A request is sent on its way."""
        log, workers, route = self._log, self.workers, self.route_of[request]
        first = workers.pools[route.pool]
        rank = first.choose()
        if self._has_room(request, route):
            station = first.pool.station
            log.ready_s[request] += station.request_s
            log.ready_s[request] += station.request_token_s * log.n_input[request]
            workers.give(request, rank, now_s)
        else:
            log.first_s[request] = log.last_s[request] = math.inf

    def _has_room(self, request: int, route: Route) -> bool:
        n_input, n_output = self._log.n_input[request], self._log.n_output[request]
        first = self.workers.pools[route.pool].pool.station
        if route.then is None:
            return first.has_room_for(n_input, n_output)
        then = self.workers.pools[route.then].pool.station
        return first.has_room_for(n_input, 0) and then.has_room_for(n_input, n_output)

    def _end(self, request: int, now_s: float) -> None:
        """A request is done where it was: it is handed over, or its user has the answer."""
        workers, route = self.workers, self.route_of[request]
        rank = workers.rank_of[request]
        ours = workers.behind[rank]
        ours.leave(rank)
        is_last = route.then is None or ours.pool.name == route.then
        if not is_last and self._log.n_output[request] > 1:
            self._hand_over(request, route, now_s)

    def _hand_over(self, request: int, route: Route, now_s: float) -> None:
        """The cache of a prompt that was read goes to who decodes."""
        log, workers, rank = self._log, self.workers, self.workers.rank_of[request]
        ours, theirs = workers.behind[rank], workers.pools[str(route.then)]
        chosen = theirs.choose()
        log.first_s[request] = log.last_s[request] = math.nan
        log.ready_s[request] = now_s
        if route.handover is not None:
            sender = ours.first + ours.replica_of(rank)
            receiver = theirs.first + theirs.replica_of(chosen)
            links, n_tokens = self._links[id(route)], log.n_input[request]
            log.ready_s[request] = links.done_s(now_s, n_tokens, sender, receiver)
        workers.give(request, chosen, now_s)


def _links(classes: Sequence[ClassLoad]) -> Mapping[int, Links]:
    """Links of each route that hands over; routes with one handover share its links."""
    handovers = {
        id(route): route.handover
        for load in classes
        for route in load.routes
        if route.handover is not None
    }
    shared = {id(handover): Links(handover) for handover in handovers.values()}
    return {route: shared[id(handover)] for route, handover in handovers.items()}
