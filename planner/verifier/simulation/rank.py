"""One attention rank of a serving engine, pass by pass, with the clauses of its scheduler.

* Sequences that decode go first; what a pass has room for beside them reads prompts, in the order
  of arrival, and cuts the last of them where it does not fit (vLLM, TensorRT-LLM). SGLang reads
  prompts alone and before all else.
* A request begins where there is a place for it and blocks for its whole prompt, and a watermark of
  blocks besides if anybody runs; of what it and the others have yet to write, a share finds blocks
  beforehand. It gets them as it is read (vLLM 0.33, vllm/v1/core/kv_cache_manager.py:518-548).
* What is cached grows with each pass, by a block where the last is full. Where blocks do not
  suffice, the request that began last loses its place and its blocks, be it half read, until the
  pass fits; nobody begins in that pass (vllm/v1/core/sched/scheduler.py:908-988, 1022).
* Who lost its place goes to the head of the line, and is read again with what it had written
  (scheduler.py:1799-1843), but for blocks that can still be found (kv_cache_manager.py:266-304).
* Priorities: the lower goes first, then who came first; the last of these loses its place
  (sched/request_queue.py:131-137; scheduler.py:931-935).
* An engine that composes a pass while the one before it runs has not seen who comes meanwhile, and
  who ends in that has a place and blocks still (vllm/v1/engine/core.py:708-822, since 0.14; SGLang
  and TensorRT-LLM: overlap scheduler).

Passes without prompts are alike until a request ends, comes, or no longer fits: they are counted
as many at once. Other sources: SGLang documentation, scheduler; TensorRT-LLM documentation,
capacity scheduler.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from planner.specs.records.roles import PREFILL, Station
from planner.verifier.simulation.blocks import Blocks
from planner.verifier.simulation.log import Gaps, Log
from planner.verifier.simulation.passes import DecodeLookup, DecodeRun, ReadingLookup


@dataclass(slots=True)
class Prompt:
    """A prompt that is being read: so many of its tokens are, and have blocks."""

    request: int
    n_tokens: int
    n_read: int
    n_held: int


Parts = list[tuple[Prompt, int]]
"""Of prompts, and how many tokens of each a pass reads."""


_NONE = DecodeRun(0.0, 0.0, 0.0, 0)


class Rank:
    """Who waits, who is read, who decodes, and when the pass under way ends.

    `free_s` is when that is, `idle_s` how long there was none so far; `gaps` are those of each
    class, and `ended` has requests in the order in which they ended, for who takes them from it.
    """

    def __init__(self, station: Station, log: Log) -> None:
        self._station = station
        self._log = log
        self._decode = (
            DecodeLookup(station.decode, station.most_running) if station.decode else None
        )
        self._shortest_s = min(map(min, station.decode.seconds)) if station.decode else 0.0
        self._reads = ReadingLookup(station.reading) if station.reading else None
        self._coming: deque[int] = deque()
        self._waiting: list[tuple[int, float, int]] = []  # a heap: level, time or turn, request
        self._turn = 0.0
        self._reading: deque[Prompt] = deque()
        self._left: dict[int, int] = {}  # round in which each decoding request ends, oldest first
        self._leaving: list[int] = []  # who ended in the last pass, and has its place still
        self._ends: list[tuple[int, int, int]] = []  # with the turn in which each began
        self._read_tokens: dict[int, int] = {}  # of who decodes, tokens that were read
        self._phases = [0] * station.block_tokens  # decoding requests, by when blocks are full
        self._written: dict[int, int] = {}  # tokens that who lost its place had written
        self._lost_s: dict[int, float] = {}  # when who lost its place did
        self._decoding: dict[int, int] = {}  # how many of each class, where there are several
        self._rounds = 0
        self._n_begun = 0
        self._since_look = 0
        self._context = 0.0
        self._blocks = Blocks(station)
        self._promised = 0  # blocks of all that run, once they have written all
        self._given: dict[int, bool] = {}  # who had its turn to get a block, and whether it did
        self._stall = 0.0
        self._run = _NONE
        self._seen_s = -math.inf  # when the pass under way began
        self.ended: list[int] | None = None
        self.free_s = 0.0
        self.gaps: list[Gaps] = [log.gaps]
        self.idle_s = 0.0
        self.n_begun_again = 0

    def arrive(self, request: int) -> None:
        """A request comes; of all that come none is ready before an earlier one."""
        self._coming.append(request)

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
        n = self._n_decoding()
        if n:
            assert self._decode is not None
            step = self._decode.step(n, self._context / n)[0]
            if self._station.room_bytes < math.inf:  # who loses its place makes passes shorter
                step = self._shortest_s
            least = self.free_s + (self._ends_next() - self._rounds - 1) * step
        if self._reading or self._leaving or self._waiting:
            return self.free_s
        if self._coming:
            return min(least, max(self.free_s, self._log.ready_s[self._coming[0]]))
        return least

    def _is_busy(self) -> bool:
        return bool(self._left or self._reading or self._waiting)

    def _n_decoding(self) -> int:
        return len(self._left) - len(self._leaving)

    def _line_up(self) -> None:
        """Who had come when the pass that is about to begin was composed stands in line."""
        ahead = self._station.composes_ahead and self._is_busy()
        self._see(self._seen_s if ahead else self.free_s)

    def _see(self, seen_s: float) -> None:
        ready = self._log.ready_s
        while self._coming and ready[self._coming[0]] <= seen_s:
            self._wait(self._coming.popleft(), back=False)

    def _wait(self, request: int, *, back: bool) -> None:
        """A request stands in line: at its end, or at its head who comes back."""
        priority = self._priority(request)
        if self._station.by_priority and not self._station.retracts:
            key = self._log.ready_s[request]
        else:
            self._turn += 1.0
            key = -self._turn if back else self._turn
        heappush(self._waiting, (priority, key, request))

    def _priority(self, request: int) -> int:
        return self._log.priority[request] if self._station.by_priority else 0

    def _pass(self, until_s: float) -> None:
        """The next pass: who goes, who is read, who begins; then who ended before it has left."""
        if self._growth(1) <= self._blocks.free() and not (self._waiting or self._reading):
            self._leave(self._leaving)  # nobody misses what they have
        decodes = self._station.mixes_prefill or not self._reads_next()
        evicts = decodes and self._make_room()
        leaving = list(self._leaving)
        if self._reads is None and not evicts:
            self._join()
        if self._reads_next(begins=not evicts):
            self._read(begins=not evicts)
        elif self._n_decoding():
            self._decode_on(self.free_s if evicts else until_s)  # somebody may begin in the next
        else:
            self._see(self.free_s)  # nothing was composed while the last pass ran
        self._leave(leaving)

    # who begins

    def _may_begin(self, beside: int = 0) -> bool:
        """Whether there is a place and room for the first in line, beside those that are there.

        `beside` are blocks that these get before it.
        """
        station, blocks = self._station, self._blocks
        n_running = len(self._left) + len(self._reading)
        if not self._waiting or n_running >= station.most_running:
            return False
        if n_running == 0:
            return True
        n_tokens, n_blocks = self._size(self._waiting[0][2])
        n_known, n_idle = self._cached(self._waiting[0][2], n_tokens)
        needed = -(-n_tokens // station.block_tokens) - n_known + n_idle
        if self._reads is None and n_tokens % station.block_tokens == 0:
            needed += 1  # in the same pass
        owed = self._promised + n_blocks - blocks.n_held - beside - needed
        if station.watermark_fraction > 0.0 and blocks.n_blocks() < math.inf:
            whole = blocks.n_blocks() + station.own_blocks
            beside += math.floor(station.watermark_fraction * whole)
        return needed + beside + station.reserved_fraction * max(0, owed) <= blocks.free(1)

    def _size(self, request: int) -> tuple[int, int]:
        """Tokens of a request that are to be read, and its blocks once it has written all."""
        log = self._log
        n_tokens = log.n_input[request] + self._written.get(request, 0)
        upto = log.n_input[request]
        upto += 0 if self._station.role == PREFILL else log.n_output[request]
        return n_tokens, -(-upto // self._station.block_tokens)

    def _cached(self, request: int, n_tokens: int) -> tuple[int, int]:
        if not self._station.caches_prefixes or self._reads is None:
            return 0, 0
        most = (n_tokens - 1) // self._station.block_tokens
        return self._blocks.known(request, *self._family(request), most)

    def _family(self, request: int) -> tuple[int | None, int]:
        """Of prompts that begin alike, and how many blocks do."""
        if not self._log.family or self._log.family[request] < 0:
            return None, 0
        n_shared = min(self._log.n_shared[request], self._log.n_input[request] - 1)
        return self._log.family[request], n_shared // self._station.block_tokens

    def _begin(self) -> Prompt:
        """Give the first in line its place."""
        request = self._waiting[0][2]
        n_tokens, n_blocks = self._size(request)
        n_known, _ = self._cached(request, n_tokens)
        heappop(self._waiting)
        self._promised += n_blocks
        self._blocks.n_sequences += 1
        self._blocks.begin(request, *self._family(request), n_known)
        self._blocks.take(0)
        n_held = n_known * self._station.block_tokens
        n_cached = self._log.n_cached[request] if self._log.n_cached else 0
        return Prompt(request, n_tokens, max(n_held, min(n_cached, n_tokens - 1)), n_held)

    def _join(self) -> None:
        """Requests that were read elsewhere, whose first tokens are written, decode."""
        while self._may_begin(self._growth(1)):
            prompt = self._begin()
            self._fill(prompt, prompt.n_tokens)
            if prompt.request not in self._written:
                self._log.first_s[prompt.request] = self.free_s
            self._decodes(prompt)

    def _fill(self, prompt: Prompt, n_tokens: int) -> None:
        """A prompt gets blocks up to so many of its tokens."""
        self._blocks.fill(*self._family(prompt.request), prompt.n_held, n_tokens)
        prompt.n_held = n_tokens

    def _decodes(self, prompt: Prompt) -> None:
        """A request that was read has one token of its answer more, and decodes the others."""
        request = prompt.request
        if request in self._lost_s:
            member = self._log.of_class[request] if self._log.of_class else 0
            self.gaps[member].add(self.free_s - self._lost_s.pop(request), 1)
        written = self._written.pop(request, 0) + 1
        left = self._log.n_output[request] - written
        self._read_tokens[request] = prompt.n_tokens
        if left <= 0 or self._station.role == PREFILL:
            self._left[request] = self._rounds
            self._end(request)
            return
        self._end_run()
        self._context += prompt.n_tokens + 1
        self._n_begun += 1
        ends = self._rounds + left
        self._left[request] = ends
        heappush(self._ends, (ends, self._n_begun, request))
        self._phases[self._phase(prompt.n_tokens)] += 1
        self._count(request, 1)

    def _phase(self, n_tokens: int) -> int:
        """The rounds in which a request needs a block: so many behind those that blocks divide."""
        return (n_tokens - self._rounds) % self._station.block_tokens

    def _end(self, request: int) -> None:
        """A request has its last token; its place is free now, or when a pass more is composed."""
        self._log.last_s[request] = self.free_s
        if self.ended is not None:
            self.ended.append(request)
        self._leaving.append(request)
        if not self._station.composes_ahead:
            self._leave([request])

    def _leave(self, requests: Sequence[int]) -> None:
        """Of these, those who ended and are there still have left."""
        for request in [it for it in self._leaving if it in requests]:
            del self._left[request]
            written = 0 if self._station.role == PREFILL else self._log.n_output[request] - 1
            self._lose(request, self._log.n_input[request] + written, returns=False)
        self._leaving = [it for it in self._leaving if it in self._left]

    def _lose(self, request: int, n_tokens: int, *, returns: bool, n_known: int = -1) -> None:
        """A request that has so many tokens cached gives back what it has."""
        size = self._station.block_tokens
        n_full = (n_tokens if n_known < 0 else n_known) // size
        self._read_tokens.pop(request, None)
        self._blocks.n_sequences -= 1
        family = self._family(request)
        self._blocks.give_back(request, *family, n_tokens, n_full, returns=returns)
        self._promised -= self._size(request)[1]

    # gaps between tokens

    def _count(self, request: int, by: int) -> None:
        """So many more of a class decode."""
        if self._log.of_class:
            member = self._log.of_class[request]
            self._decoding[member] = self._decoding.get(member, 0) + by

    def _of_classes(self) -> Iterable[tuple[int, int]]:
        """Classes, and how many of each decode."""
        if not self._log.of_class:
            return [(0, self._n_decoding())]
        return [(one, n) for one, n in self._decoding.items() if n]

    def _gap(self, gap_s: float) -> None:
        """All that decode have a gap more, so long."""
        for one, n in self._of_classes():
            self.gaps[one].add(gap_s, n)

    def count_gaps(self) -> None:
        """All that decode have the gaps of the passes that have run."""
        run = self._run
        if run.n > run.n_counted:
            for one, n in self._of_classes():
                self.gaps[one].add_run(run.step_s, run.slope_s, run.n_counted, run.n, n)
        run.n_counted = run.n

    def _end_run(self) -> None:
        """The next pass is unlike those that have run."""
        if self._run.n:
            self.count_gaps()
            self._run = _NONE

    # passes that read prompts

    def _reads_next(self, *, begins: bool = True) -> bool:
        """Whether the next pass reads anything of a prompt."""
        looks = self._reads is not None and (self._since_look == 0 or not self._n_decoding())
        if not looks or self._budget() <= 0:
            return False
        beside = self._growth(1) if self._station.mixes_prefill else 0
        return bool(self._reading) or (begins and self._may_begin(beside))

    def _budget(self) -> int:
        rides = self._station.mixes_prefill and self._station.role != PREFILL
        return self._station.chunk_tokens - (self._n_decoding() if rides else 0)

    def _read(self, *, begins: bool) -> None:
        """One pass that reads prompts; where the engine mixes, all that decode get a token."""
        n = self._n_decoding() if self._station.mixes_prefill else 0
        if n:
            self._blocks.take(self._growth(1))
        self._read_parts(self._parts(begins=begins), n)

    def _read_parts(self, parts: Parts, n: int) -> None:
        """A pass reads parts of prompts, beside so many that decode."""
        tokens = sum(part for _, part in parts)
        pairs = sum(part * (prompt.n_read + part / 2.0) for prompt, part in parts)
        assert self._reads is not None
        grown = self._reads.seconds(n, tokens, pairs / tokens)
        self._end_run()
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
            if self._n_decoding():
                self._stall += grown / self._station.n_lanes
        self._parts_read(parts)
        self.free_s -= grown * (1.0 - 1.0 / self._station.n_lanes)

    def _parts(self, *, begins: bool) -> Parts:
        """What of which prompts the pass reads, in order; none but the last is cut."""
        budget, parts = self._budget(), []
        for prompt in self._reading:
            part = min(prompt.n_tokens - prompt.n_read, budget)
            if part <= 0:
                break
            parts.append((prompt, part))
            self._fill(prompt, prompt.n_read + part)
            budget -= part
        while begins and budget > 0 and self._may_begin():
            prompt = self._begin()
            self._reading.append(prompt)
            part = min(prompt.n_tokens - prompt.n_read, budget)
            parts.append((prompt, part))
            self._fill(prompt, prompt.n_read + part)
            budget -= part
        return parts

    def _parts_read(self, parts: Parts) -> None:
        for prompt, part in parts:
            prompt.n_read += part
            if prompt.n_read < prompt.n_tokens:
                continue
            self._reading.popleft()
            if prompt.request not in self._written:
                self._log.first_s[prompt.request] = self.free_s
            self._decodes(prompt)

    # passes that do not

    def _growth(self, k: int) -> int:
        """Blocks that those that decode get in the next k passes."""
        size = self._station.block_tokens
        more = sum(self._phases[-(self._rounds + i) % size] for i in range(k % size))
        return k // size * self._n_decoding() + more

    def _fitting(self, most: int) -> int:
        """Passes for which there are blocks, up to so many."""
        free, n, size = self._blocks.free(), self._n_decoding(), self._station.block_tokens
        if free == math.inf:
            return most
        k = int(free) // n * size
        while k < most and self._growth(k + 1) <= free:
            k += 1
        return min(k, most)

    def _decode_on(self, until_s: float) -> None:
        """As many passes as are alike."""
        n, run = self._n_decoding(), self._run
        if run.n == run.most:
            self._end_run()
            assert self._decode is not None
            step, slope, cell = self._decode.step(n, self._context / n)
            run = self._run = DecodeRun(self.free_s, step, slope, max(1, cell // 1))
            if self._stall:
                self._gap(step + self._stall)
                self._stall, run.n_counted = 0.0, 1
        most = min(self._ends_next() - self._rounds, run.most - run.n, self._until(until_s))
        k = 1 if self._leaving else max(1, self._fitting(max(1, int(most))))
        self._grow(k)
        run.n += k
        self.free_s, self._seen_s = run.end_s(run.n), run.end_s(run.n - 1)
        self._since_look = (self._since_look + k) % self._station.n_polled_rounds
        self._written_by_all(n, k)

    def _grow(self, k: int) -> None:
        """Those that decode get their blocks of the next k passes."""
        self._blocks.take(self._growth(k))

    def _until(self, until_s: float) -> float:
        """Passes until the engine looks for requests and may find one, or until then."""
        polled = self._station.n_polled_rounds
        to_look = polled - self._since_look
        if (self._waiting or self._reading) and polled > 1:
            return to_look
        if self._coming and (not self._waiting or self._station.by_priority):
            until_s = min(until_s, self._log.ready_s[self._coming[0]])
        if until_s == math.inf:
            return until_s
        k = self._run.until(until_s)
        return k if self._waiting else k + (to_look - k) % polled

    def _ends_next(self) -> int:
        """The round in which the next request ends."""
        ends = self._ends
        while self._left.get(ends[0][2]) != ends[0][0] or ends[0][2] in self._leaving:
            heappop(ends)  # it lost its place
        return ends[0][0]

    def _written_by_all(self, n: int, k: int) -> None:
        """All n that decode have k tokens more; who has its last one leaves."""
        self._rounds += k
        self._context += n * k
        ends, left, log = self._ends, self._left, self._log
        while ends and ends[0][0] <= self._rounds:
            when, _, request = heappop(ends)
            if left.get(request) != when or request in self._leaving:
                continue
            self._end_run()
            self._count(request, -1)
            cached = log.n_input[request] + log.n_output[request]
            self._phases[self._phase(cached - 1)] -= 1
            self._context -= cached
            self._end(request)

    # who loses its place

    def _make_room(self) -> bool:
        """Take the places of the last until the next pass of all others fits.

        Blocks are handed out in the order in which requests began. Where priorities say who is
        last, it may have been given its block, which is then known by what was to be in it.
        """
        if not self._n_decoding():
            return False
        before, decoding = len(self._left) + len(self._reading), self._left.keys()
        if self._growth(1) > self._blocks.free():
            for request in [it for it in decoding if it not in self._leaving]:
                self._give_block(request)
        if self._reading and self._budget() > 0:
            prompt = self._reading[0]
            upto = prompt.n_read + min(prompt.n_tokens - prompt.n_read, self._budget())
            size = self._station.block_tokens
            needed = -(-upto // size) + -prompt.n_held // size
            self._given = dict.fromkeys(decoding, False)
            while self._reading and self._growth(1) + needed > self._blocks.free():
                if not self._evict():
                    break
        self._given = {}
        return len(self._left) + len(self._reading) < before

    def _give_block(self, request: int) -> None:
        """Who decodes gets the block that it needs, if it needs one, from the last."""
        needs = request in self._left and self._grows(request)
        while needs and sum(self._given.values()) >= self._blocks.free():
            if not self._evict():
                break
            if request not in self._left:
                return
        if request in self._left:
            self._given[request] = needs

    def _grows(self, request: int) -> bool:
        """Whether who decodes needs a block in the next pass."""
        written = self._log.n_output[request] - (self._left[request] - self._rounds)
        return (self._log.n_input[request] + written - 1) % self._station.block_tokens == 0

    def _last(self) -> int | None:
        """Who is to lose its place; nobody who is alone."""
        running, log = [*self._left, *(it.request for it in self._reading)], self._log
        if len(running) < 2:
            return None
        if self._station.by_priority:
            return max(running, key=lambda it: (log.priority[it], log.ready_s[it]))
        return running[-1]

    def _evict(self) -> bool:
        """Take the place of the last that runs, unless it is alone."""
        request = self._last()
        if request is None:
            return False
        if request in self._leaving:
            self._leave([request])
            return True
        if self._reading and self._reading[0].request == request:
            self._lose(request, self._reading.popleft().n_held, returns=True)
            self._wait(request, back=True)
        else:
            self._stop(request)
        self._given.pop(request, None)
        self._log.n_begun_again += 1
        self.n_begun_again += 1
        return True

    def _stop(self, request: int) -> None:
        """Who decodes loses its place."""
        cached = self._drop(request)
        known = cached + (request in self._given)
        if self._station.composes_ahead:  # its token of the pass under way is not known yet
            known = max(self._read_tokens[request], known - 1)
        self._lose(request, cached, returns=True, n_known=known)
        self._wait(request, back=True)

    def _drop(self, request: int, n_unknown: int = 0) -> int:
        """Who decodes does no more, and has not written its last tokens; how many are cached."""
        self._end_run()
        written = self._log.n_output[request] - (self._left.pop(request) - self._rounds)
        cached = self._log.n_input[request] + written - 1
        self._phases[self._phase(cached)] -= 1
        self._context -= cached + 1
        self._count(request, -1)
        if written > n_unknown:
            self._written[request] = written - n_unknown
            self._lost_s[request] = self.free_s
        return cached
