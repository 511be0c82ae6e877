"""Ranks of serving engines, pass by pass, and the fleets that they are of; compiled if it can be.

The same text runs as Python and as C: `ranks.pxd` beside it says which names are numbers, and
`hatch_build.py` compiles it where there is a compiler. Nothing here is imported from the package:
the C code is built alone.

* Sequences that decode go first; what a pass has room for beside them reads prompts, in the order
  of arrival, and cuts the last of them where it does not fit (vLLM, TensorRT-LLM). SGLang reads
  prompts alone and before all else.
* A request begins where there is a place for it and its prompt finds room for its cache; of what
  it and the others have yet to write, a share finds room beforehand.
* What is cached grows with each pass. Where it no longer fits, the request that began last loses
  its place and its cache: it goes to the head of the line, and is read again, with what it had
  written, once another has ended.
* Of a prompt that shares its beginning with an earlier one, what is still cached is not read.
* An engine that composes a pass while the one before it runs has not seen who comes meanwhile.

Passes without prompts are alike until a request ends, comes, or no longer fits: they are counted
as many at once. Sources: vLLM documentation, optimization and V1 scheduler; SGLang documentation,
scheduler; TensorRT-LLM documentation, capacity scheduler.
"""

from collections.abc import Callable, Sequence
from math import ceil, floor, inf, log10, nextafter, sqrt

Floats = list[float]
Integers = list[int]
"""Memoryviews, where this is C; lists are read faster by Python."""

NOBODY = -1

BINS_PER_DECADE = 400
FIRST_BIN = 3200
"""Of gaps between tokens, from 10⁻⁸ s on: those of one bin are within 0.6 % of each other."""

STANDS, ENDS = 1, 2
"""Events beside a rank that runs: a request stands in line; it is done where it was."""

LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM = range(3)
"""Routers: the replica with the fewest requests, each in turn, any."""


class Requests:
    """What is sent and what becomes of it, by the number of the request: memoryviews of (N,).

    Args:
        n_input, n_output, n_cached, of_class: as given.
        ready_s, first_s, last_s: as found; NaN until then.
    """

    def __init__(
        self,
        n_input: Integers,
        n_output: Integers,
        n_cached: Integers,
        of_class: Integers,
        floats: tuple[Floats, ...],
        integers: tuple[Integers, ...],
    ) -> None:
        self.n_input, self.n_output = n_input, n_output
        self.n_cached, self.of_class = n_cached, of_class
        self.ready_s, self.first_s, self.last_s, self.lost_s = floats
        (
            self.behind,  # the next in the same line
            self.ends,  # the round in which it has its last token; NOBODY of who does not decode
            self.written,  # tokens that who lost its place had written
            self.n_tokens,  # of the prompt that is read
            self.n_read,  # of them
            self.begun,  # how many began on its rank before
        ) = integers


class Line:
    """Requests in a line, each with the next behind it."""

    def __init__(self, behind: Integers) -> None:
        self.behind = behind
        self.first = NOBODY
        self.last = NOBODY

    def append(self, request: int) -> None:
        self.behind[request] = NOBODY
        if self.first == NOBODY:
            self.first = request
        else:
            self.behind[self.last] = request
        self.last = request

    def put_first(self, request: int) -> None:
        self.behind[request] = self.first
        if self.first == NOBODY:
            self.last = request
        self.first = request

    def pop(self) -> int:
        request = self.first
        self.first = self.behind[request]
        return request


class Heap:
    """The least key first, with two numbers; of equal keys that of the lower order.

    Keys, orders and numbers are memoryviews that are made larger where they are full.
    """

    def __init__(
        self,
        new_floats: Callable[[int], Floats],
        new_integers: Callable[[int], Integers],
        size: int,
    ) -> None:
        self.new_floats, self.new_integers = new_floats, new_integers
        self.key = new_floats(size)
        self.order, self.one, self.other = (
            new_integers(size),
            new_integers(size),
            new_integers(size),
        )
        self.size = size
        self.n = 0

    def grow(self) -> None:
        n = self.size
        self.size = 2 * n
        key = self.new_floats(self.size)
        for i in range(n):  # an array takes no memoryview as a slice
            key[i] = self.key[i]
        self.key = key
        for which in range(3):
            numbers = self.new_integers(self.size)
            before = self.order if which == 0 else self.one if which == 1 else self.other
            for i in range(n):
                numbers[i] = before[i]
            if which == 0:
                self.order = numbers
            elif which == 1:
                self.one = numbers
            else:
                self.other = numbers

    def push(self, key: float, order: int, one: int, other: int) -> None:
        if self.n == self.size:
            self.grow()
        at = self.n
        self.n += 1
        while at > 0:
            up = (at - 1) >> 1
            if self.key[up] < key or (self.key[up] == key and self.order[up] < order):
                break
            self.key[at] = self.key[up]
            self.order[at] = self.order[up]
            self.one[at] = self.one[up]
            self.other[at] = self.other[up]
            at = up
        self.key[at] = key
        self.order[at] = order
        self.one[at] = one
        self.other[at] = other

    def drop(self) -> None:
        """Forget the least."""
        self.n -= 1
        n = self.n
        key, order = self.key[n], self.order[n]
        one, other = self.one[n], self.other[n]
        at = 0
        while True:
            down = 2 * at + 1
            if down >= n:
                break
            right = down + 1
            if right < n and (
                self.key[right] < self.key[down]
                or (self.key[right] == self.key[down] and self.order[right] < self.order[down])
            ):
                down = right
            if key < self.key[down] or (key == self.key[down] and order < self.order[down]):
                break
            self.key[at] = self.key[down]
            self.order[at] = self.order[down]
            self.one[at] = self.one[down]
            self.other[at] = self.other[down]
            at = down
        self.key[at] = key
        self.order[at] = order
        self.one[at] = one
        self.other[at] = other


class Times:
    """How long passes of a station take: D on lines of contexts, R between eight points.

    Args:
        contexts: ascending, (C,).
        lines: D of each number of sequences from 0 on, row after row, (n · C,).
        sequences, tokens, spans: ascending: grids of R.
        planes: R, sequences by tokens by spans, flattened.
    """

    def __init__(
        self,
        contexts: Floats,
        lines: Floats,
        sequences: Floats,
        tokens: Floats,
        spans: Floats,
        planes: Floats,
    ) -> None:
        self.contexts, self.lines = contexts, lines
        self.sequences, self.tokens, self.spans, self.planes = sequences, tokens, spans, planes
        self.n_contexts = len(contexts)
        self.step_s = 0.0
        self.slope_s = 0.0
        self.left = 0.0

    def step(self, n: int, context: float) -> float:
        """Seconds of a pass, what they grow by with each token cached, and for how many more."""
        if self.n_contexts == 1:
            self.step_s, self.slope_s, self.left = self.lines[n], 0.0, inf
            return self.step_s
        at = cell(self.contexts, context)
        inside = (context - self.contexts[at]) / (self.contexts[at + 1] - self.contexts[at])
        low = self.lines[n * self.n_contexts + at]
        rise = self.lines[n * self.n_contexts + at + 1] - low
        self.slope_s = rise / (self.contexts[at + 1] - self.contexts[at])
        self.left = self.contexts[at + 1] - context if inside < 1.0 else inf
        self.step_s = low + inside * rise
        return self.step_s

    def reading(self, n: float, tokens: float, span: float) -> float:
        """What a pass takes longer that reads so many tokens of prompts beside n decodes [s]."""
        if len(self.sequences) == 1:
            found = self.plane(0, tokens, span)
        else:
            at = cell(self.sequences, n)
            inside = (n - self.sequences[at]) / (self.sequences[at + 1] - self.sequences[at])
            found = self.plane(at, tokens, span)
            if inside != 0.0:
                found += inside * (self.plane(at + 1, tokens, span) - found)
        return found if found > 0.0 else 0.0

    def plane(self, at: int, tokens: float, span: float) -> float:
        j, k, below, beyond = 0, 0, 0, 0
        right, down = 0.0, 0.0
        if len(self.tokens) > 1:
            j = cell(self.tokens, tokens)
            right = (tokens - self.tokens[j]) / (self.tokens[j + 1] - self.tokens[j])
            below = j + 1
        if len(self.spans) > 1:
            k = cell(self.spans, span)
            down = (span - self.spans[k]) / (self.spans[k + 1] - self.spans[k])
            beyond = k + 1
        n = len(self.spans)
        row, other = (at * len(self.tokens) + j) * n, (at * len(self.tokens) + below) * n
        near = self.planes[row + k]
        near += down * (self.planes[row + beyond] - near)
        far = self.planes[other + k]
        far += down * (self.planes[other + beyond] - far)
        return near + right * (far - near)


def cell(points: Floats, x: float) -> int:
    """The interval of x, by its lower end; the first or the last of what is beyond the ends."""
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if points[middle] <= x:
            low = middle
        else:
            high = middle
    return low


class Rank:
    """Who waits, who is read, who decodes, and when the pass under way ends.

    `free_s` is when that is, `idle_s` how long there was none so far. Requests that ended are in
    `ended`, a line of their own, where somebody has to know.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        scales: Sequence[float],
        times: Times,
        requests: Requests,
        heap: Heap,
        gaps: Integers,
        gap_total_s: Floats,
        n_bins: int,
        decoding: Integers,
        stack: Integers,
    ) -> None:
        (
            self.n_lanes,
            self.most_running,
            self.chunk_tokens,
            self.n_polled,
            self.mixes,
            self.ahead,
            self.only_reads,
            self.only_decodes,
        ) = numbers
        self.room, self.sequence_bytes, self.token_bytes, self.reserved = scales
        self.times, self.log, self.ends = times, requests, heap
        self.gaps, self.gap_total_s, self.n_classes = gaps, gap_total_s, len(decoding)
        self.n_bins = n_bins
        self.stack, self.n_stack, self.n_begun = stack, 0, 0
        self.decoding = decoding
        self.coming, self.waiting = Line(self.log.behind), Line(self.log.behind)
        self.read, self.ended = Line(self.log.behind), Line(self.log.behind)
        self.is_watched = False
        self.n_left, self.n_reading, self.rounds, self.since_look = 0, 0, 0, 0
        self.is_crowded = False
        self.context, self.held, self.owed, self.stall_s = 0.0, 0.0, 0.0, 0.0
        self.seen_s, self.free_s, self.idle_s = -inf, 0.0, 0.0
        self.n_begun_again = 0
        self.batch = 0

    def advance(self, until_s: float) -> None:
        """Run all passes that begin before then."""
        while self.free_s < until_s:
            self.line_up()
            if self.is_busy():
                self.run_pass(until_s)
            elif self.coming.first != NOBODY and self.log.ready_s[self.coming.first] < until_s:
                ready_s = self.log.ready_s[self.coming.first]
                self.idle_s += ready_s - self.free_s
                self.free_s = ready_s
            else:
                return

    def none_ends_before_s(self) -> float:
        """No request ends earlier, whoever comes from now on; infinite where there is none."""
        least = inf
        if self.n_left:
            step_s = self.times.step(self.n_left, self.context / self.n_left)
            least = self.free_s + (self.ends_next() - self.rounds - 1) * step_s
        if self.n_reading or (self.waiting.first != NOBODY and self.may_begin(self.waiting.first)):
            return self.free_s
        if self.coming.first != NOBODY:
            ready_s = self.log.ready_s[self.coming.first]
            comes_s = self.free_s if self.free_s > ready_s else ready_s
            return least if least < comes_s else comes_s
        return least

    def is_busy(self) -> bool:
        return self.n_left > 0 or self.n_reading > 0 or self.waiting.first != NOBODY

    def line_up(self) -> None:
        """Who had come when the pass that is about to begin was composed stands in line."""
        seen_s = self.seen_s if self.ahead and self.is_busy() else self.free_s
        while self.coming.first != NOBODY and self.log.ready_s[self.coming.first] <= seen_s:
            self.waiting.append(self.coming.pop())

    def run_pass(self, until_s: float) -> None:
        reads = (
            not self.only_decodes and (self.since_look == 0 or not self.n_left) and self.gathers()
        )
        decodes = self.n_left > 0 and (self.mixes or not reads)
        evicts = decodes and self.makes_room()
        if evicts:  # who lost its place waits for a pass at least, and so do others
            reads = reads and self.n_reading > 0
        elif self.only_decodes:
            self.join()
        if reads:
            self.read_prompts(not evicts)
        else:
            self.decode_on(until_s)

    # who begins

    def may_begin(self, request: int) -> bool:
        """Whether there is a place and room for a request, beside those that are there."""
        if self.n_left + self.n_reading >= self.most_running:
            return False
        if self.n_left == 0 and self.n_reading == 0:
            return True
        if self.is_crowded:
            return False
        written = self.log.written[request]
        owed = 0 if self.only_reads else self.log.n_output[request] - written
        held = self.sequence_bytes + self.token_bytes * (self.log.n_input[request] + written)
        return self.held + held + self.reserved * self.token_bytes * (self.owed + owed) <= self.room

    def begin(self) -> int:
        """Give the first in line its place."""
        request = self.waiting.pop()
        written = self.log.written[request]
        n_tokens = self.log.n_input[request] + written
        self.held += self.sequence_bytes + self.token_bytes * n_tokens
        self.owed += self.log.n_output[request] - written
        cached = self.log.n_cached[request]
        self.log.n_tokens[request] = n_tokens
        self.log.n_read[request] = cached if cached < n_tokens - 1 else n_tokens - 1
        return request

    def join(self) -> None:
        """Requests that were read elsewhere, whose first tokens are written, decode."""
        while self.waiting.first != NOBODY and self.may_begin(self.waiting.first):
            request = self.begin()
            if self.log.written[request] == 0:
                self.log.first_s[request] = self.free_s
            self.decode(request)

    def decode(self, request: int) -> None:
        """A request that was read has one token of its answer more, and decodes the others."""
        n_tokens = self.log.n_tokens[request]
        if self.log.lost_s[request] >= 0.0:
            self.gap(self.free_s - self.log.lost_s[request], 1, self.log.of_class[request])
            self.log.lost_s[request] = -1.0
        left = self.log.n_output[request] - self.log.written[request] - 1
        self.log.written[request] = 0
        self.owed -= 1
        if left <= 0 or self.only_reads:
            self.owed -= left
            self.end(request, n_tokens)
            return
        self.held += self.token_bytes
        self.context += n_tokens + 1
        self.log.ends[request] = self.rounds + left
        self.ends.push(self.rounds + left, request, request, 0)
        self.n_left += 1
        self.n_begun += 1
        self.log.begun[request] = self.n_begun
        if self.room < inf:
            self.remember(request)
        self.decoding[self.log.of_class[request]] += 1

    def remember(self, request: int) -> None:
        """Keep in which order requests began; those that ended are forgotten when it is full."""
        if self.n_stack + 2 > len(self.stack):
            kept = 0
            for i in range(0, self.n_stack, 2):
                if self.is_standing(i):
                    self.stack[kept] = self.stack[i]
                    self.stack[kept + 1] = self.stack[i + 1]
                    kept += 2
            self.n_stack = kept
        self.stack[self.n_stack] = request
        self.stack[self.n_stack + 1] = self.n_begun
        self.n_stack += 2

    def is_standing(self, i: int) -> bool:
        """Whether who began then still decodes, and has not begun again since."""
        request = self.stack[i]
        return self.log.ends[request] != NOBODY and self.log.begun[request] == self.stack[i + 1]

    def end(self, request: int, n_cached: int) -> None:
        self.held -= self.sequence_bytes + self.token_bytes * n_cached
        self.is_crowded = False
        self.log.last_s[request] = self.free_s
        if self.is_watched:
            self.ended.append(request)

    # gaps between tokens

    def gap(self, gap_s: float, n: int, of_class: int) -> None:
        """So many gaps more of one class, each so long."""
        if self.n_bins:
            at = int(log10(gap_s) * BINS_PER_DECADE + (FIRST_BIN + 0.5))
            at = 0 if at < 0 else (self.n_bins - 1 if at >= self.n_bins else at)
            row = self.batch * self.n_classes + of_class
            self.gaps[row * self.n_bins + at] += n
            self.gap_total_s[row] += gap_s * n

    def gap_of_all(self, gap_s: float, k: int) -> None:
        """All that decode have so many gaps more, each so long."""
        if self.n_bins:
            for one in range(self.n_classes):
                if self.decoding[one]:
                    self.gap(gap_s, self.decoding[one] * k, one)

    # passes that read prompts

    def gathers(self) -> bool:
        """Whether the next pass reads anything of a prompt."""
        if self.budget() <= 0:
            return False
        if self.n_reading:
            return True
        return self.waiting.first != NOBODY and self.may_begin(self.waiting.first)

    def budget(self) -> int:
        rides = self.mixes and not self.only_reads
        return self.chunk_tokens - (self.n_left if rides else 0)

    def read_prompts(self, begins: bool) -> None:
        """One pass that reads prompts; where the engine mixes, all that decode get a token."""
        budget, tokens, pairs = self.budget(), 0, 0.0
        request = self.read.first
        last_read, last_part = NOBODY, 0
        while request != NOBODY and budget > 0:
            part = self.part_of(request, budget)
            tokens += part
            pairs += part * (self.log.n_read[request] + part / 2.0)
            budget -= part
            last_read, last_part = request, part
            request = self.log.behind[request]
        while begins and budget > 0 and self.waiting.first != NOBODY:
            if not self.may_begin(self.waiting.first):
                break
            request = self.begin()
            self.read.append(request)
            self.n_reading += 1
            part = self.part_of(request, budget)
            tokens += part
            pairs += part * (self.log.n_read[request] + part / 2.0)
            budget -= part
            last_read, last_part = request, part
        n = self.n_left if self.mixes else 0
        grown_s = self.times.reading(n, tokens, pairs / tokens)
        self.seen_s = began_s = self.free_s
        if n:
            step_s = self.times.step(n, self.context / n)
            self.gap_of_all(step_s + grown_s + self.stall_s, 1)
            self.stall_s = 0.0
            self.free_s = began_s + step_s + grown_s
            self.write_by_all(n, 1)
        else:
            self.free_s = began_s + grown_s
            if self.n_left:
                self.stall_s += grown_s / self.n_lanes
        self.parts_read(last_read, last_part)
        self.free_s -= grown_s * (1.0 - 1.0 / self.n_lanes)

    def part_of(self, request: int, budget: int) -> int:
        left = self.log.n_tokens[request] - self.log.n_read[request]
        return left if left < budget else budget

    def parts_read(self, last: int, part: int) -> None:
        """All prompts before the last are read, and so much of that."""
        while True:
            request = self.read.first
            if request == last:
                self.log.n_read[request] += part
                if self.log.n_read[request] < self.log.n_tokens[request]:
                    return
            self.read.pop()
            self.n_reading -= 1
            if self.log.written[request] == 0:
                self.log.first_s[request] = self.free_s
            self.decode(request)
            if request == last:
                return

    # passes that do not

    def decode_on(self, until_s: float) -> None:
        """As many passes as are alike."""
        n = self.n_left
        step_s = self.times.step(n, self.context / n)
        slope_s, cell_left = self.times.slope_s, self.times.left
        most = float(self.ends_next() - self.rounds)
        if cell_left < 1.0:
            cell_left = 1.0
        if cell_left < most:
            most = cell_left
        growth = n * self.token_bytes
        if growth > 0.0 and self.room < inf:
            fits = (self.room - self.held) / growth
            if fits < most:
                most = fits
        k = self.until(until_s, step_s, slope_s)
        if k > most:
            k = int(floor(most))
        if k < 1:
            k = 1
        took_s = k * step_s + slope_s * k * (k - 1) / 2.0
        if self.stall_s != 0.0:
            self.gap_of_all(step_s + self.stall_s, 1)
            self.stall_s = 0.0
            if k > 1:
                self.gap_of_all((took_s - step_s) / (k - 1), k - 1)
        else:
            self.gap_of_all(took_s / k, k)
        self.free_s += took_s
        self.seen_s = self.free_s - step_s - slope_s * (k - 1)
        self.since_look = (self.since_look + k) % self.n_polled
        self.write_by_all(n, k)

    def until(self, until_s: float, step_s: float, slope_s: float) -> int:
        """Passes until the engine looks for requests and may find one, or until then."""
        to_look = self.n_polled - self.since_look
        is_waited = self.waiting.first != NOBODY
        if is_waited and self.n_polled > 1:
            return to_look
        if self.coming.first != NOBODY and not is_waited:
            ready_s = self.log.ready_s[self.coming.first]
            if ready_s < until_s:
                until_s = ready_s
        left_s = until_s - self.free_s
        if left_s == inf:
            return 1 << 40
        k = passes_until(left_s, step_s, slope_s)
        if is_waited:
            return k
        beyond = (to_look - k) % self.n_polled
        if beyond < 0:
            beyond += self.n_polled
        return k + beyond

    def ends_next(self) -> int:
        """The round in which the next request ends."""
        while self.log.ends[self.ends.one[0]] != self.ends.key[0]:
            self.ends.drop()  # it lost its place
        return int(self.ends.key[0])

    def write_by_all(self, n: int, k: int) -> None:
        """All n that decode have k tokens more; who has its last one leaves."""
        self.rounds += k
        self.context += n * k
        self.held += n * k * self.token_bytes
        self.owed -= n * k
        while self.ends.n and self.ends.key[0] <= self.rounds:
            request, ends = self.ends.one[0], int(self.ends.key[0])
            self.ends.drop()
            if self.log.ends[request] != ends:
                continue
            self.log.ends[request] = NOBODY
            self.n_left -= 1
            self.decoding[self.log.of_class[request]] -= 1
            cached = self.log.n_input[request] + self.log.n_output[request]
            self.context -= cached
            self.end(request, cached)

    def makes_room(self) -> bool:
        """Take their places from those who began last until a pass of all others fits."""
        n, evicts = self.n_left, False
        while n > 1 and self.held + n * self.token_bytes > self.room:
            while not self.is_standing(self.n_stack - 2):
                self.n_stack -= 2
            self.n_stack -= 2
            request = self.stack[self.n_stack]
            remaining = self.log.ends[request] - self.rounds
            written = self.log.n_output[request] - remaining
            cached = self.log.n_input[request] + written
            self.log.ends[request] = NOBODY
            self.n_left -= 1
            self.held -= self.sequence_bytes + self.token_bytes * cached
            self.context -= cached
            self.owed -= remaining
            self.log.written[request] = written
            self.log.lost_s[request] = self.free_s
            self.waiting.put_first(request)
            self.decoding[self.log.of_class[request]] -= 1
            self.n_begun_again += 1
            self.is_crowded = True
            evicts = True
            n -= 1
        return evicts


def passes_until(left_s: float, step_s: float, slope_s: float) -> int:
    """Passes that take so long at least, the first a step and each a slope longer; one or more."""
    most = int(ceil(left_s / step_s))
    if most < 1:
        most = 1
    k = most
    if slope_s > 0.0:
        # of k step + slope k (k - 1) / 2 = left, without cancellation: the loops mend rounding
        half = step_s - slope_s / 2.0
        root = 2.0 * left_s / (half + sqrt(half * half + 2.0 * slope_s * left_s))
        k = int(ceil(root))
        if k > most:
            k = most
        if k < 1:
            k = 1
    while k > 1 and (k - 1) * step_s + slope_s * (k - 1) * (k - 2) / 2.0 >= left_s:
        k -= 1
    while k < most and k * step_s + slope_s * k * (k - 1) / 2.0 < left_s:
        k += 1
    return k


class Links:
    """When each pair of replicas, and each replica, is done with what it moves.

    Each pair has a link of its own, and each replica a wire to all others; what comes to a link or
    a wire in use waits for it, in the order of coming.

    Args:
        scales: seconds of each cache however small; bytes a second of a link and of a wire; bytes
            of a cache whatever its length, and of each token.
        pairs: when each link is free, senders by receivers, flattened.
        sends, gets: when the wire of each replica is free, each way.
    """

    def __init__(self, scales: Sequence[float], pairs: Floats, sends: Floats, gets: Floats) -> None:
        (
            self.latency_s,
            self.bytes_per_s,
            self.wire_bytes_per_s,
            self.sequence_bytes,
            self.token_bytes,
        ) = scales
        self.pairs, self.sends, self.gets, self.n_replicas = pairs, sends, gets, len(sends)

    def done_s(self, now_s: float, n_tokens: int, sender: int, receiver: int) -> float:
        """When a cache that is sent now is there."""
        n_bytes = self.sequence_bytes + self.token_bytes * n_tokens
        pair = sender * self.n_replicas + receiver
        begins_s = max(now_s, self.pairs[pair])
        ends_s = begins_s + n_bytes / self.bytes_per_s
        self.pairs[pair] = ends_s
        begins_s = max(begins_s, self.sends[sender], self.gets[receiver])
        sent_s = begins_s + n_bytes / self.wire_bytes_per_s
        self.sends[sender] = sent_s
        self.gets[receiver] = sent_s
        return max(ends_s, sent_s) + self.latency_s


class Pool:
    """Replicas that are alike, and the router before them.

    Args:
        first: number of its first rank; of replicas each has `n_ranks`.
        counts: requests of each rank, and of each replica: memoryviews.
        chances: that a router which chooses at random takes, one after the other.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        scales: Sequence[float],
        counts: Integers,
        of_replica: Integers,
        chances: Floats,
    ) -> None:
        self.first, self.n_replicas, self.n_ranks, self.router, self.first_replica = numbers
        (
            self.room,
            self.sequence_bytes,
            self.token_bytes,
            self.request_s,
            self.request_token_s,
        ) = scales
        self.counts, self.of_replica, self.chances = counts, of_replica, chances
        self.n_chosen, self.next_one = 0, 0

    def choose(self) -> int:
        """The rank that gets the next request: that with the fewest of the replica's."""
        rank = self.replica() * self.n_ranks
        best = rank
        for one in range(rank + 1, rank + self.n_ranks):
            if self.counts[one] < self.counts[best]:
                best = one
        return self.first + best

    def replica(self) -> int:
        n = self.n_replicas
        if self.router == AT_RANDOM:
            self.n_chosen += 1
            return int(self.chances[self.n_chosen - 1] * n)
        chosen = self.next_one % n
        if self.router == LEAST_PRESENT:
            least, start = self.of_replica[chosen], chosen
            for i in range(1, n):
                one = start + i
                if one >= n:
                    one -= n
                if self.of_replica[one] < least:
                    chosen, least = one, self.of_replica[one]
        self.next_one = chosen + 1
        return chosen

    def count(self, rank: int, by: int) -> None:
        self.counts[rank - self.first] += by
        self.of_replica[(rank - self.first) // self.n_ranks] += by

    def has_room_for(self, n_tokens: int) -> bool:
        return self.sequence_bytes + self.token_bytes * n_tokens <= self.room


class Fleet:
    """All ranks at work.

    A rank runs by itself until something else depends on it: a router that counts its requests, a
    cache that it hands over. Then it is next when a request of it may end.

    Args:
        pools, ranks, requests: all of them.
        events: a heap.
        pool_of: of each rank.
        routes: of each its pool, the pool that decodes or NOBODY, links or NOBODY, (3 R,).
        links: of all handovers.
        edge_s, busy_s: when batches began, (B,), and how long each rank was busy by then, (B R,).
    """

    def __init__(
        self,
        pools: list[Pool],
        ranks: list[Rank],
        requests: Requests,
        events: Heap,
        pool_of: Integers,
        routes: Integers,
        links: list[Links],
        edges: Integers,
        edge_s: Floats,
        busy_s: Floats,
        more: tuple[Integers, ...],
    ) -> None:
        self.pools, self.ranks, self.log, self.events = pools, ranks, requests, events
        self.pool_of, self.routes, self.links = pool_of, routes, links
        self.edges, self.edge_s, self.busy_s = edges, edge_s, busy_s
        self.rank_of, self.route_of, self.versions = more
        self.n_come, self.next_edge = 0, 0

    def serve(self, arrived_s: Floats) -> None:
        """Everything, from the first request to the last."""
        n, sent = len(arrived_s), 0
        order = self.n_come
        while sent < n or self.events.n:
            if sent < n and self.is_next(arrived_s[sent], order):
                self.arrive(sent, arrived_s[sent])
                sent += 1
                self.n_come += 1
                order = self.n_come
            else:
                self.happen()
        self.finish(n)

    def is_next(self, at_s: float, order: int) -> bool:
        """Whether an arrival comes before all else; of what comes at once, what was known first."""
        if self.events.n == 0 or at_s < self.events.key[0]:
            return True
        return at_s == self.events.key[0] and order < self.events.order[0]

    def happen(self) -> None:
        """The next event."""
        now_s, what = self.events.key[0], self.events.one[0]
        version = self.events.other[0]
        self.events.drop()
        if version == -STANDS:
            self.stand(what)
        elif version == -ENDS:
            self.end(what, now_s)
        elif version == self.versions[what]:
            self.advance(what, nextafter(now_s, inf))
            self.schedule(what, now_s)

    def finish(self, n: int) -> None:
        """Ranks that nobody waits for serve all that they have; batches that never began do."""
        for i in range(len(self.ranks)):
            rank = self.ranks[i]
            rank.advance(inf)
        last_s = 0.0
        for i in range(n):
            if last_s < self.log.last_s[i] < inf:
                last_s = self.log.last_s[i]
        while self.next_edge < len(self.edges):
            self.pass_edge(last_s)

    def push(self, at_s: float, one: int, other: int) -> None:
        self.n_come += 1
        self.events.push(at_s, self.n_come, one, other)

    def arrive(self, request: int, now_s: float) -> None:
        while self.next_edge < len(self.edges) and request == self.edges[self.next_edge]:
            self.pass_edge(now_s)
        route = self.route_of[request]
        pool = self.pools[self.routes[3 * route]]
        rank = pool.choose()
        n_input, n_output = self.log.n_input[request], self.log.n_output[request]
        if self.routes[3 * route + 1] == NOBODY:
            fits = pool.has_room_for(n_input + n_output)
        else:
            then = self.pools[self.routes[3 * route + 1]]
            fits = pool.has_room_for(n_input) and then.has_room_for(n_input + n_output)
        if not fits:
            self.log.first_s[request] = inf
            self.log.last_s[request] = inf
            return
        self.log.ready_s[request] = now_s + pool.request_s + pool.request_token_s * n_input
        self.give(request, rank, now_s)

    def give(self, request: int, rank: int, now_s: float) -> None:
        """A rank gets a request, which stands in line there once it is ready."""
        self.rank_of[request] = rank
        pool = self.pools[self.pool_of[rank]]
        pool.count(rank, 1)
        if self.log.ready_s[request] > now_s:
            self.push(self.log.ready_s[request], request, -STANDS)
        else:
            self.stand(request)

    def stand(self, request: int) -> None:
        rank = self.rank_of[request]
        one = self.ranks[rank]
        one.coming.append(request)
        if one.is_watched:
            self.schedule(rank, self.log.ready_s[request])

    def schedule(self, rank: int, now_s: float) -> None:
        """A rank is next when a request of it may end."""
        one = self.ranks[rank]
        at_s = one.none_ends_before_s()
        self.versions[rank] += 1
        if at_s < inf:
            self.push(at_s if at_s > now_s else now_s, rank, self.versions[rank])

    def advance(self, rank: int, until_s: float) -> None:
        one = self.ranks[rank]
        one.advance(until_s)
        while one.ended.first != NOBODY:
            request = one.ended.pop()
            self.push(self.log.last_s[request], request, -ENDS)

    def end(self, request: int, now_s: float) -> None:
        """A request is done where it was: it is handed over, or its user has the answer."""
        rank, route = self.rank_of[request], self.route_of[request]
        number, then = self.pool_of[rank], self.routes[3 * route + 1]
        ours = self.pools[number]
        ours.count(rank, -1)
        if then in (NOBODY, number) or self.log.n_output[request] == 1:
            return
        theirs = self.pools[then]
        chosen = theirs.choose()
        self.log.ready_s[request] = now_s
        if self.routes[3 * route + 2] != NOBODY:
            links = self.links[self.routes[3 * route + 2]]
            sender = ours.first_replica + (rank - ours.first) // ours.n_ranks
            receiver = theirs.first_replica + (chosen - theirs.first) // theirs.n_ranks
            n_tokens = self.log.n_input[request]
            self.log.ready_s[request] = links.done_s(now_s, n_tokens, sender, receiver)
        self.give(request, chosen, now_s)

    def pass_edge(self, now_s: float) -> None:
        """What ranks did until now is of the batch before."""
        for i in range(len(self.ranks)):
            self.advance(i, now_s)
        self.edge_s[self.next_edge] = now_s
        for i in range(len(self.ranks)):
            rank = self.ranks[i]
            self.busy_s[self.next_edge * len(self.ranks) + i] = rank.free_s - rank.idle_s
            rank.batch = self.next_edge + 1
        self.next_edge += 1
