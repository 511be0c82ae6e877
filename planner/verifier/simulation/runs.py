"""A run: what is sent to a fleet, where it goes, and what its users do with an answer."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence

from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.events import ARRIVES, ENDS, LEAVES, RUNS, STANDS, TURNS, Events
from planner.verifier.simulation.loads import ClassLoad, Route
from planner.verifier.simulation.pools import Links, Pool
from planner.verifier.simulation.workers import Workers


class _Sender:
    """What is left of one class to be sent."""

    __slots__ = ("_chance", "_further", "_source", "coming", "load")

    def __init__(self, load: ClassLoad, chance: random.Random) -> None:
        self.load = load
        self.coming: Arriving | None = None
        self._source: Iterator[Arriving] = load.source.requests(chance.getrandbits(64))
        self._further: Iterator[Arriving] = load.source.requests(chance.getrandbits(64))
        self._chance = random.Random(chance.getrandbits(64))

    def draw(self) -> Arriving | None:
        """The next request, or None of a source that has ended."""
        self.coming = next(self._source, None)
        return self.coming

    def draw_turn(self) -> Arriving | None:
        """Lengths of another turn of a conversation."""
        return next(self._further, None)

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
        for one in routes[:-1]:
            at -= one.share
            if at < 0.0:
                return one
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
        self.workers = Workers(pools, self._events, chance, awaited=_awaited(classes))
        self._log = self.workers.log
        self._n_requests = n_requests
        self.route_of: list[Route] = []
        self._turns: dict[int, int] = {}  # of the conversation of a request, those behind it
        self._links = _links(classes)
        self._has_caches = any(one.conversation is not None for one in classes)

    def serve(self, edges: Sequence[int]) -> None:
        """Everything, from the first request to the last; batches begin with these."""
        self.workers.count(edges, len(self.classes))
        for number, one in enumerate(self.classes):
            if one.in_flight is None:
                self._expect(number)
            else:
                for _ in range(one.in_flight.n):
                    self._begin(number, 0.0)
        happens = {
            RUNS: self.workers.run,
            ENDS: self._end,
            STANDS: lambda request, _: self.workers.stand(request),
            ARRIVES: self._arrive,
            TURNS: self._turn,
            LEAVES: self._after,
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
            self._open(number, coming, now_s)
            self._expect(number)

    def _begin(self, number: int, now_s: float) -> None:
        """The next request of a closed loop, or the first of its next conversation."""
        if len(self.arrived_s) < self._n_requests:
            coming = self._senders[number].draw()
            if coming is not None:
                self._open(number, coming, now_s)

    def _open(self, number: int, coming: Arriving, now_s: float) -> None:
        """A request of its own, or the first turn of a conversation."""
        talk = self.classes[number].conversation
        n_shared = talk.n_shared_tokens if talk else 0
        if talk:
            self._turns[len(self.arrived_s)] = talk.n_turns - 1
        request = self._enter(number, now_s, coming.n_input + n_shared, coming.n_output)
        self._send(request, now_s, n_cached=n_shared)

    def _turn(self, before: int, now_s: float) -> None:
        """The prompt behind an answer: all that was said, and something new."""
        left, number = self._turns.pop(before), self._number(before)
        coming = self._senders[number].draw_turn()
        if coming is None or len(self.arrived_s) >= self._n_requests:
            return
        self._turns[len(self.arrived_s)] = left - 1
        said = self._log.n_input[before] + self._log.n_output[before]
        request = self._enter(number, now_s, said + coming.n_input, coming.n_output)
        self._send(request, now_s, n_cached=said, after=before)

    def _enter(self, number: int, now_s: float, n_input: int, n_output: int) -> int:
        """A request comes; it gets the next number."""
        request, log = len(self.arrived_s), self._log
        self.workers.pass_edges(request, now_s)
        self.arrived_s.append(now_s)
        self.route_of.append(self._senders[number].route(n_input))
        self.workers.rank_of.append(-1)
        log.n_input.append(n_input)
        log.n_output.append(n_output)
        log.ready_s.append(now_s)
        log.first_s.append(math.nan)
        log.last_s.append(math.nan)
        if len(self.classes) > 1:
            log.of_class.append(number)
        return request

    def _number(self, request: int) -> int:
        return self._log.of_class[request] if self._log.of_class else 0

    # where it goes

    def _send(self, request: int, now_s: float, *, n_cached: int, after: int | None = None) -> None:
        """A request is sent on its way, to where the turn before it was if there was one."""
        log, workers, route = self._log, self.workers, self.route_of[request]
        first = workers.pools[route.pool]
        if after is not None and self.route_of[after].pool == route.pool and route.then is None:
            rank = workers.rank_of[after]
        else:
            rank = first.choose()
            n_cached = n_cached if after is None else self._n_shared(request)
        if self._has_caches:
            log.n_cached.append(n_cached)
        if self._has_room(request, route):
            station = first.pool.station
            log.ready_s[request] += station.request_s
            log.ready_s[request] += station.request_token_s * log.n_input[request]
            workers.give(request, rank, now_s)
        else:
            log.first_s[request] = log.last_s[request] = math.inf
            self._events.push(now_s, LEAVES, request)

    def _n_shared(self, request: int) -> int:
        talk = self.classes[self._number(request)].conversation
        return talk.n_shared_tokens if talk else 0

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
        if is_last or self._log.n_output[request] == 1:
            self._after(request, now_s)
        else:
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

    def _after(self, request: int, now_s: float) -> None:
        """What a user does who has an answer: thinks, or goes, and another comes."""
        number = self._number(request)
        one = self.classes[number]
        if one.conversation is not None and self._turns.get(request, 0) > 0:
            self._events.push(now_s + one.conversation.think_s, TURNS, request)
            return
        self._turns.pop(request, None)
        if one.in_flight is not None:
            self._begin(number, now_s)


def _awaited(classes: Sequence[ClassLoad]) -> frozenset[str]:
    """Pools of whose requests somebody waits for the end, to send another."""
    return frozenset(
        name
        for one in classes
        if one.in_flight is not None or one.conversation is not None
        for route in one.routes
        for name in (route.pool, route.then)
        if name is not None
    )


def _links(classes: Sequence[ClassLoad]) -> Mapping[int, Links]:
    """Links of each route that hands over; routes with one handover share its links."""
    handovers = {
        id(route): route.handover
        for one in classes
        for route in one.routes
        if route.handover is not None
    }
    shared = {id(handover): Links(handover) for handover in handovers.values()}
    return {route: shared[id(handover)] for route, handover in handovers.items()}
