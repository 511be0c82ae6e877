"""One attention rank of a serving engine, pass by pass, with the clauses of its scheduler.

* Sequences that decode go first; what a pass has room for beside them reads prompts, in the order
  of arrival, and cuts the last of them where it does not fit (vLLM, TensorRT-LLM). SGLang reads
  prompts alone and before all else.
* A request begins where there is a place for it and its prompt finds room for its cache; of what
  it and the others have yet to write, a share finds room beforehand.
* What is cached grows with each pass. Where it no longer fits, who began last loses its place and
  its cache: it goes to the head of the line, and is read again, with what it had written, once
  another has ended.
* Of a prompt that shares its beginning with an earlier one, what is still cached is not read.
* An engine that composes a pass while the one before it runs has not seen who comes meanwhile
  (vLLM since 0.14: asynchronous scheduling; SGLang and TensorRT-LLM: overlap scheduler).

Passes without prompts are alike until a request ends, comes, or no longer fits: they are counted
as many at once. Sources: vLLM documentation, optimization and V1 scheduler; SGLang documentation,
scheduler; TensorRT-LLM documentation, capacity scheduler.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from planner.specs.roles import PREFILL
from planner.specs.stations import Station
from planner.verifier.simulation.gaps import Gaps
from planner.verifier.simulation.log import Log
from planner.verifier.simulation.passes import DecodeLookup, ReadingLookup


@dataclass(slots=True)
class _Prompt:
    """A prompt that is being read: so many of its tokens are."""

    request: int
    n_tokens: int
    n_read: int = 0


class Rank:
    """Who waits, who is read, who decodes, and when the pass under way ends.

    `free_s` is when that is, `idle_s` how long there was none so far; `gaps` are those of each
    class, and `ended` has requests in the order in which they ended, for who takes them from it.
    """

    __slots__ = (
        "_coming",
        "_context",
        "_crowded",
        "_decode",
        "_decoding",
        "_ends",
        "_held",
        "_left",
        "_log",
        "_lost_s",
        "_owed",
        "_reading",
        "_reads",
        "_rounds",
        "_seen_s",
        "_since_look",
        "_stall",
        "_station",
        "_waiting",
        "_written",
        "ended",
        "free_s",
        "gaps",
        "idle_s",
        "n_begun_again",
        "n_present",
    )

    def __init__(self, station: Station, log: Log) -> None:
        self._station = station
        self._log = log
        self._decode = (
            DecodeLookup(station.decode, station.most_running) if station.decode else None
        )
        self._reads = ReadingLookup(station.reading) if station.reading else None
        self._coming: deque[int] = deque()
        self._waiting: deque[int] = deque()
        self._reading: deque[_Prompt] = deque()
        self._left: dict[int, int] = {}  # round in which each decoding request ends, oldest first
        self._ends: list[tuple[int, int]] = []
        self._written: dict[int, int] = {}  # tokens that who lost its place had written
        self._lost_s: dict[int, float] = {}  # when who lost its place did
        self._decoding: dict[int, int] = {}  # how many of each class, where there are several
        self._rounds = 0
        self._since_look = 0
        self._context = 0.0
        self._crowded = False  # somebody lost its place, and nobody has ended since
        self._held = 0.0
        self._owed = 0.0
        self._stall = 0.0
        self._seen_s = -math.inf  # when the pass under way began
        self.ended: list[int] | None = None
        self.free_s = 0.0
        self.gaps: list[Gaps] = [log.gaps]
        self.idle_s = 0.0
        self.n_begun_again = 0
        self.n_present = 0

    def arrive(self, request: int) -> None:
        """A request comes; of all that come none is ready before an earlier one."""
        self._coming.append(request)
        self.n_present += 1

    def advance(self, until_s: float) -> None:
        """Run all passes that begin before then."""
        coming, ready = self._coming, self._log.ready_s
        while self.free_s < until_s:
            self._line_up()
            if self._is_busy():
                self._pass(until_s)
            elif coming and ready[coming[0]] < until_s:
                self.idle_s += ready[coming[0]] - self.free_s
                self.free_s = ready[coming[0]]
            else:
                return

    def none_ends_before_s(self) -> float:
        """No request ends earlier, whoever comes from now on; infinite where there is none."""
        least = math.inf
        if self._left:
            n = len(self._left)
            assert self._decode is not None
            step = self._decode.step(n, self._context / n)[0]
            least = self.free_s + (self._ends_next() - self._rounds - 1) * step
        if self._reading or (self._waiting and self._may_begin(self._waiting[0])):
            return self.free_s
        if self._coming:
            return min(least, max(self.free_s, self._log.ready_s[self._coming[0]]))
        return least

    def _is_busy(self) -> bool:
        return bool(self._left or self._reading or self._waiting)

    def _line_up(self) -> None:
        """Who had come when the pass that is about to begin was composed stands in line."""
        ahead = self._station.composes_ahead and self._is_busy()
        seen, ready = self._seen_s if ahead else self.free_s, self._log.ready_s
        while self._coming and ready[self._coming[0]] <= seen:
            self._waiting.append(self._coming.popleft())

    def _pass(self, until_s: float) -> None:
        reads = self._reads is not None and self._looks() and self._gather()
        decodes = bool(self._left) and (self._station.mixes_prefill or not reads)
        evicts = decodes and self._make_room()
        if evicts:  # who lost its place waits for a pass at least, and so do others
            reads = reads and bool(self._reading)
        elif self._reads is None:
            self._join()
        if reads:
            self._read(begins=not evicts)
        else:
            self._decode_on(until_s)

    def _looks(self) -> bool:
        return self._since_look == 0 or not self._left

    # who begins

    def _may_begin(self, request: int) -> bool:
        """Whether there is a place and room for a request, beside those that are there."""
        station, log = self._station, self._log
        if len(self._left) + len(self._reading) >= station.most_running:
            return False
        written = self._written.get(request, 0)
        owed = 0 if station.role == PREFILL else log.n_output[request] - written
        held = station.held_bytes(log.n_input[request] + written)
        ahead = station.reserved_fraction * station.token_bytes * (self._owed + owed)
        if not self._left and not self._reading:
            return True
        return not self._crowded and self._held + held + ahead <= station.room_bytes

    def _begin(self) -> _Prompt:
        """Give the first in line its place."""
        request = self._waiting.popleft()
        log, station = self._log, self._station
        written = self._written.get(request, 0)
        n_tokens = log.n_input[request] + written
        self._held += station.held_bytes(n_tokens)
        self._owed += log.n_output[request] - written
        n_cached = min(log.n_cached[request], n_tokens - 1) if log.n_cached else 0
        return _Prompt(request, n_tokens, n_cached)

    def _join(self) -> None:
        """Requests that were read elsewhere, whose first tokens are written, decode."""
        while self._waiting and self._may_begin(self._waiting[0]):
            prompt = self._begin()
            if prompt.request not in self._written:
                self._log.first_s[prompt.request] = self.free_s
            self._decodes(prompt)

    def _decodes(self, prompt: _Prompt) -> None:
        """A request that was read has one token of its answer more, and decodes the others."""
        request = prompt.request
        if request in self._lost_s:
            one = self._log.of_class[request] if self._log.of_class else 0
            self.gaps[one].add(self.free_s - self._lost_s.pop(request), 1)
        written = self._written.pop(request, 0) + 1
        left = self._log.n_output[request] - written
        self._owed -= 1
        if left <= 0 or self._station.role == PREFILL:
            self._owed -= left
            self._end(request, prompt.n_tokens)
            return
        self._held += self._station.token_bytes
        self._context += prompt.n_tokens + 1
        ends = self._rounds + left
        self._left[request] = ends
        heappush(self._ends, (ends, request))
        self._count(request, 1)

    def _end(self, request: int, n_cached: int) -> None:
        self._held -= self._station.held_bytes(n_cached)
        self._crowded = False
        self._log.last_s[request] = self.free_s
        self.n_present -= 1
        if self.ended is not None:
            self.ended.append(request)

    # gaps between tokens

    def _count(self, request: int, by: int) -> None:
        """So many more of a class decode."""
        if self._log.of_class:
            one = self._log.of_class[request]
            self._decoding[one] = self._decoding.get(one, 0) + by

    def _gap(self, gap_s: float, k: int = 1) -> None:
        """All that decode have so many gaps more, each so long."""
        if not self._log.of_class:
            self.gaps[0].add(gap_s, len(self._left) * k)
            return
        for one, n in self._decoding.items():
            if n:
                self.gaps[one].add(gap_s, n * k)

    # passes that read prompts

    def _gather(self) -> bool:
        """Whether the next pass reads anything of a prompt."""
        if self._budget() <= 0:
            return False
        return bool(self._reading or (self._waiting and self._may_begin(self._waiting[0])))

    def _budget(self) -> int:
        rides = self._station.mixes_prefill and self._station.role != PREFILL
        return self._station.chunk_tokens - (len(self._left) if rides else 0)

    def _read(self, *, begins: bool) -> None:
        """One pass that reads prompts; where the engine mixes, all that decode get a token."""
        parts = self._parts(begins=begins)
        tokens = sum(part for _, part in parts)
        pairs = sum(part * (prompt.n_read + part / 2.0) for prompt, part in parts)
        n = len(self._left) if self._station.mixes_prefill else 0
        assert self._reads is not None
        grown = self._reads.seconds(n, tokens, pairs / tokens)
        self._seen_s = began = self.free_s
        if n:
            assert self._decode is not None
            step = self._decode.step(n, self._context / n)[0]
            self._gap(step + grown + self._stall)
            self._stall = 0.0
            self.free_s = began + step + grown
            self._written_by_all(n, 1)
        else:
            self.free_s = began + grown
            if self._left:
                self._stall += grown / self._station.n_lanes
        self._parts_read(parts)
        self.free_s -= grown * (1.0 - 1.0 / self._station.n_lanes)

    def _parts(self, *, begins: bool) -> list[tuple[_Prompt, int]]:
        """What of which prompts the pass reads, in order; none but the last is cut."""
        budget, found = self._budget(), []
        for prompt in self._reading:
            part = min(prompt.n_tokens - prompt.n_read, budget)
            if part <= 0:
                break
            found.append((prompt, part))
            budget -= part
        while begins and budget > 0 and self._waiting and self._may_begin(self._waiting[0]):
            prompt = self._begin()
            self._reading.append(prompt)
            part = min(prompt.n_tokens - prompt.n_read, budget)
            found.append((prompt, part))
            budget -= part
        return found

    def _parts_read(self, parts: list[tuple[_Prompt, int]]) -> None:
        for prompt, part in parts:
            prompt.n_read += part
            if prompt.n_read < prompt.n_tokens:
                continue
            self._reading.popleft()
            if prompt.request not in self._written:
                self._log.first_s[prompt.request] = self.free_s
            self._decodes(prompt)

    # passes that do not

    def _decode_on(self, until_s: float) -> None:
        """As many passes as are alike."""
        n = len(self._left)
        assert self._decode is not None
        step, slope, cell = self._decode.step(n, self._context / n)
        most: float = min(self._ends_next() - self._rounds, max(1.0, cell))
        growth = n * self._station.token_bytes
        if growth > 0.0:
            most = min(most, (self._station.room_bytes - self._held) / growth)
        k = max(1, min(math.floor(most), self._until(until_s, step, slope)))
        took = k * step + slope * k * (k - 1) / 2.0
        if self._stall:
            self._gap(step + self._stall)
            self._stall = 0.0
            if k > 1:
                self._gap((took - step) / (k - 1), k - 1)
        else:
            self._gap(took / k, k)
        self.free_s += took
        self._seen_s = self.free_s - step - slope * (k - 1)
        self._since_look = (self._since_look + k) % self._station.n_polled_rounds
        self._written_by_all(n, k)

    def _until(self, until_s: float, step: float, slope: float) -> int:
        """Passes until the engine looks for requests and may find one, or until then."""
        polled = self._station.n_polled_rounds
        to_look = polled - self._since_look
        if self._waiting and polled > 1:
            return to_look
        if self._coming and not self._waiting:
            until_s = min(until_s, self._log.ready_s[self._coming[0]])
        left = until_s - self.free_s
        if left == math.inf:
            return 1 << 40
        k = _passes_until(left, step, slope)
        return k if self._waiting else k + (to_look - k) % polled

    def _ends_next(self) -> int:
        """The round in which the next request ends."""
        ends = self._ends
        while self._left.get(ends[0][1]) != ends[0][0]:
            heappop(ends)  # it lost its place
        return ends[0][0]

    def _written_by_all(self, n: int, k: int) -> None:
        """All n that decode have k tokens more; who has its last one leaves."""
        self._rounds += k
        self._context += n * k
        self._held += n * k * self._station.token_bytes
        self._owed -= n * k
        ends, left, log = self._ends, self._left, self._log
        while ends and ends[0][0] <= self._rounds:
            when, request = heappop(ends)
            if left.get(request) != when:
                continue
            del left[request]
            self._count(request, -1)
            cached = log.n_input[request] + log.n_output[request]
            self._context -= cached
            self._end(request, cached)

    def _make_room(self) -> bool:
        """Take their places from those who began last until a pass of all others fits."""
        station, before = self._station, len(self._left)
        n = before
        while n > 1 and self._held + n * station.token_bytes > station.room_bytes:
            request, ends = self._left.popitem()
            remaining = ends - self._rounds
            written = self._log.n_output[request] - remaining
            cached = self._log.n_input[request] + written
            self._held -= station.held_bytes(cached)
            self._context -= cached
            self._owed -= remaining
            self._written[request] = written
            self._lost_s[request] = self.free_s
            self._waiting.appendleft(request)
            self._count(request, -1)
            self._log.n_begun_again += 1
            self.n_begun_again += 1
            self._crowded = True
            n -= 1
        return n < before


def _passes_until(left_s: float, step_s: float, slope_s: float) -> int:
    """Passes that take so long at least, the first a step and each a slope longer; one or more."""
    most = max(1, math.ceil(left_s / step_s))
    k = most
    if slope_s > 0.0:
        # of k step + slope k (k - 1) / 2 = left, without cancellation: the loops mend rounding
        half = step_s - slope_s / 2.0
        root = 2.0 * left_s / (half + math.sqrt(half * half + 2.0 * slope_s * left_s))
        k = max(1, min(most, math.ceil(root)))

    def suffices(n: int) -> bool:
        return n * step_s + slope_s * n * (n - 1) / 2.0 >= left_s

    while k > 1 and suffices(k - 1):
        k -= 1
    while k < most and not suffices(k):
        k += 1
    return k
