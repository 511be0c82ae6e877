"""Ranks of serving engines, pass by pass, and the fleets that they are of; compiled if it can be.

The same text runs as Python and as C: `ranks.pxd` beside it says which names are numbers, and
`hatch_build.py` compiles it where there is a compiler. Nothing here is imported from the package:
the C code is built alone.

* Sequences that decode go first; what a pass has room for beside them reads prompts, in the order
  of arrival, and cuts the last of them where it does not fit (vLLM, TensorRT-LLM). SGLang reads
  prompts alone and before all else.
* A request begins where there is a place for it and blocks for its whole prompt, and a watermark of
  blocks besides if anybody runs; of what it and the others have yet to write, a share finds blocks
  beforehand. It gets them as it is read.
* What is cached grows with each pass, by a block where the last is full. Where blocks do not
  suffice, the request that began last loses its place and its blocks, be it half read, until the
  pass fits; nobody begins in that pass.
* Who lost its place goes to the head of the line, and is read again with what it had written, but
  for blocks that can still be found: those that nobody holds are handed out anew in the order in
  which they were given back, the last of a request first, and the empty ones before all.
* Priorities: the lower goes first, then who came first; the last of these loses its place.
* An engine that composes a pass while the one before it runs has not seen who comes meanwhile, and
  who ends in that has a place and blocks still.

Lines of engines that say so stand in `planner/verifier/simulation`, where the same is done apart.
Passes without prompts are alike until a request ends, comes, or no longer fits: they are counted
as many at once.
"""

from array import array
from collections.abc import MutableSequence, Sequence
from math import ceil, floor, inf, log10, nextafter, sqrt

Floats = list[float]
Integers = MutableSequence[int]
"""Memoryviews, where this is C; lists are read faster by Python."""

NOBODY, ENDED, TURNS = -1, -2, 32
PLENTY = 1 << 60
"""Blocks, where no room is short."""

BINS_PER_DECADE = 400
FIRST_BIN = 3200
"""Of gaps between tokens, from 10⁻⁸ s on: those of one bin are within 0.6 % of each other."""

FACTOR = 0.14
N_DECAYS, CLIPPED, KEPT_PASSES, N_TRIES, N_LOOKED_AT = 600, 4096, 20, 32, 128
"""Of who retracts: see `planner/verifier/simulation/retracting.py`."""

LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM = range(3)
"""Routers: the replica with the fewest requests, each in turn, any."""


class Requests:
    """What is sent and what becomes of it, by the number of the request: memoryviews of (N,).

    Args:
        n_input, n_output, of_class: as given.
        family, n_shared, priority: prompts of a family begin with so many tokens that are alike,
            below 0 of none; the lower priority goes first.
        ready_s, first_s, last_s: as found; NaN until then.
    """

    def __init__(
        self,
        n_input: Integers,
        n_output: Integers,
        of_class: Integers,
        alike: tuple[Integers, Integers, Integers],
        floats: tuple[Floats, ...],
        integers: tuple[Integers, ...],
    ) -> None:
        self.n_input, self.n_output, self.of_class = n_input, n_output, of_class
        self.family, self.n_shared, self.priority = alike
        self.ready_s, self.first_s, self.last_s, self.lost_s = floats
        (
            self.behind,  # the next in the same line
            self.ends,  # the round of its last token, and its turn; NOBODY; or ENDED, still there
            self.written,  # tokens that who lost its place had written
            self.n_tokens,  # of the prompt that is read
            self.n_read,  # of them
            self.begun,  # how many began on its rank before
            self.filled,  # tokens of its prompt that have blocks; or the node that it holds
            self.run,  # what of its own can be found: where it waits to go on, or its first node
            self.given,  # the last pass that it had a block for; or that read it
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

    def insert(self, request: int, ready_s: Floats) -> None:
        """Before all that came later."""
        before, after = NOBODY, self.first
        if after != NOBODY and ready_s[self.last] <= ready_s[request]:
            self.append(request)
            return
        while after != NOBODY and ready_s[after] <= ready_s[request]:
            before, after = after, self.behind[after]
        if before == NOBODY:
            self.put_first(request)
            return
        self.behind[before] = request
        self.behind[request] = after
        if after == NOBODY:
            self.last = request

    def pop(self) -> int:
        request = self.first
        self.first = self.behind[request]
        return request


class Heap:
    """Requests by their keys, the least first; a key that is not that of its request is forgotten.

    Args:
        key, one: as many of both as may stand in it at once, twice at least.
        keys: of each request what it has to be, by its number; NOBODY of who is in no heap.
    """

    def __init__(self, key: Integers, item: Integers, keys: Integers) -> None:
        self.key, self.one, self.keys = key, item, keys
        self.n = 0

    def push(self, key: int, item: int) -> None:
        if self.n == len(self.key):
            # what stands takes half of it at most; nothing is written where it was not read yet
            n, self.n = self.n, 0
            for i in range(n):
                if self.keys[self.one[i]] == self.key[i]:
                    self.push(self.key[i], self.one[i])
        self.keys[item] = key
        at = self.n
        self.n += 1
        while at > 0:
            up = (at - 1) >> 1
            if self.key[up] < key:
                break
            self.key[at] = self.key[up]
            self.one[at] = self.one[up]
            at = up
        self.key[at] = key
        self.one[at] = item

    def first(self) -> int:
        """The least key that stands; there is one."""
        while self.keys[self.one[0]] != self.key[0]:
            self.drop()
        return self.key[0]

    def drop(self) -> None:
        """Forget the least."""
        self.n -= 1
        n = self.n
        keys, key, item = self.key, self.key[n], self.one[n]
        at, down = 0, 1
        while down < n:
            if down + 1 < n and keys[down + 1] < keys[down]:
                down += 1
            if key < keys[down]:
                break
            keys[at] = keys[down]
            self.one[at] = self.one[down]
            at = down
            down = 2 * at + 1
        keys[at] = key
        self.one[at] = item


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
        self.at, self.n_at, self.j, self.k = 0, 0, 0, 0

    def step(self, n: int, context: float) -> float:
        """Seconds of a pass, what they grow by with each token cached, and for how many more."""
        if self.n_contexts == 1:
            self.step_s, self.slope_s, self.left = self.lines[n], 0.0, inf
            return self.step_s
        at = self.at = cell(self.contexts, context, self.at)
        inside = (context - self.contexts[at]) / (self.contexts[at + 1] - self.contexts[at])
        low = self.lines[n * self.n_contexts + at]
        rise = self.lines[n * self.n_contexts + at + 1] - low
        self.slope_s = rise / (self.contexts[at + 1] - self.contexts[at])
        # beyond the last context its line goes on
        self.left = self.contexts[at + 1] - context if inside < 1.0 else inf
        self.step_s = low + inside * rise
        return self.step_s

    def reading(self, n: float, tokens: float, span: float) -> float:
        """What a pass takes longer that reads so many tokens of prompts beside n decodes [s]."""
        if len(self.sequences) == 1:
            seconds = self.plane(0, tokens, span)
        else:
            at = self.n_at = cell(self.sequences, n, self.n_at)
            inside = (n - self.sequences[at]) / (self.sequences[at + 1] - self.sequences[at])
            seconds = self.plane(at, tokens, span)
            if inside != 0.0:
                seconds += inside * (self.plane(at + 1, tokens, span) - seconds)
        # beyond the grid planes go on, some of them below nothing
        return seconds if seconds > 0.0 else 0.0

    def plane(self, at: int, tokens: float, span: float) -> float:
        j, k, below, beyond = 0, 0, 0, 0
        right, down = 0.0, 0.0
        if len(self.tokens) > 1:
            j = self.j = cell(self.tokens, tokens, self.j)
            right = (tokens - self.tokens[j]) / (self.tokens[j + 1] - self.tokens[j])
            below = j + 1
        if len(self.spans) > 1:
            k = self.k = cell(self.spans, span, self.k)
            down = (span - self.spans[k]) / (self.spans[k + 1] - self.spans[k])
            beyond = k + 1
        n = len(self.spans)
        row, other = (at * len(self.tokens) + j) * n, (at * len(self.tokens) + below) * n
        near = self.planes[row + k]
        near += down * (self.planes[row + beyond] - near)
        far = self.planes[other + k]
        far += down * (self.planes[other + beyond] - far)
        return near + right * (far - near)


def cell(points: Floats, x: float, last: int) -> int:
    """The interval of x, by its lower end; the first or the last of what is beyond the ends.

    `last` is where x was the last time, which is tried first.
    """
    if points[last] <= x < points[last + 1]:
        return last
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if points[middle] <= x:
            low = middle
        else:
            high = middle
    return low


class Idle:
    """Blocks that can be found and that nobody holds, in runs, in the order in which they go.

    A run has those from its first to before its last of a request, or of a family of prompts. Each
    run of a family knows the one that was given back before it, whose blocks are behind its own.
    """

    def __init__(self, runs: tuple[Integers, ...], families: tuple[Integers, ...]) -> None:
        self.family, self.begin, self.stop, self.below = runs
        self.known, self.top, self.holders = families
        self.size, self.n_shared = len(self.family), len(self.holders) // len(self.known)
        self.head, self.tail, self.n = 0, 0, 0

    def lay(self, family: int, begin: int, stop: int) -> int:
        """A run more, behind all others; its number."""
        while self.head < self.tail:
            at = self.head & (self.size - 1)
            if self.begin[at] < self.stop[at] and self.tail - self.head < self.size:
                break
            self.lose(self.stop[at] - self.begin[at])  # none, unless there are too many runs
        # numbers go up and places around: their number is a power of two
        at = self.tail & (self.size - 1)
        self.family[at], self.begin[at], self.stop[at] = family, begin, stop
        if family != NOBODY:
            self.below[at] = self.top[family]
            self.top[family] = self.tail
        self.n += stop - begin
        self.tail += 1
        return self.tail - 1

    def lose(self, n: int) -> None:
        """So many blocks are handed out anew: the last of the first runs."""
        self.n -= n
        while True:
            at = self.head & (self.size - 1)
            n_here = self.stop[at] - self.begin[at]
            if n_here > n:
                n_here = n
            self.stop[at] -= n_here
            n -= n_here
            # blocks are found from the first on: without one, none behind it
            if n_here and self.family[at] != NOBODY:
                self.known[self.family[at]] = self.stop[at]
            if self.stop[at] > self.begin[at]:
                return
            self.head += 1
            if n == 0:
                return

    def upto(self, run: int) -> int:
        """The end of a run; 0 of one that is gone."""
        if run < self.head:
            return 0
        at = run & (self.size - 1)
        return self.stop[at] if self.stop[at] > self.begin[at] else 0

    def wake(self, run: int, upto: int) -> int:
        """Blocks of a run up to there are held; how many."""
        at = run & (self.size - 1)
        n = (self.stop[at] if self.stop[at] < upto else upto) - self.begin[at]
        if n <= 0:
            return 0
        self.begin[at] += n
        self.n -= n
        return n

    def n_held(self, family: int, n: int) -> int:
        """Of the first blocks of a family, those that somebody holds."""
        first = family * self.n_shared
        while n and self.holders[first + n - 1] == 0:
            n -= 1
        return n

    def wake_family(self, family: int, n: int) -> int:
        """A request holds the first blocks of its family: how many nobody held."""
        woken = 0
        while self.top[family] >= self.head:
            at = self.top[family] & (self.size - 1)
            if self.begin[at] >= n:
                break
            woken += self.wake(self.top[family], n)
            if self.begin[at] < self.stop[at]:
                break
            self.top[family] = self.below[at]
        self.hold(family, 0, n)
        return woken

    def hold(self, family: int, begin: int, stop: int) -> None:
        """Blocks of a family have a holder more."""
        for i in range(family * self.n_shared + begin, family * self.n_shared + stop):
            self.holders[i] += 1
        if stop > self.known[family]:
            self.known[family] = stop

    def leave(self, family: int, n: int) -> int:
        """Blocks of a family have a holder less; how many have none."""
        for i in range(family * self.n_shared, family * self.n_shared + n):
            self.holders[i] -= 1
        held = self.n_held(family, n)
        if held < n:
            self.lay(family, held, n)
        return n - held


class Tree:
    """A radix tree of prompts, as `planner/verifier/simulation/blocks.py` has it in objects.

    A node has pages of `owner` up to `stop`, from where its parent stops. What goes on with the
    same family or owner is its `child`; own pages behind those of a family are in `Requests.run`.
    What nobody holds stands in a ring with the root, by when it was looked at last.
    """

    def __init__(self, log: Requests, block: int, first: Integers) -> None:
        self.log, self.block, self.first = log, block, first
        self.parent = self.owner = self.stop = self.locks = self.child = first[:0]
        self.n_children = self.touched = self.before = self.after = first[:0]
        self.n, self.n_idle, self.now, self.spare = 0, 0, 0, NOBODY
        for family in range(len(first)):
            first[family] = NOBODY
        self.add(NOBODY, NOBODY, 0)

    def add(self, parent: int, owner: int, stop: int) -> int:
        node = self.spare
        if node != NOBODY:
            self.spare = self.after[node]
        else:
            if self.n == len(self.stop):
                self.parent, self.owner = longer(self.parent), longer(self.owner)
                self.stop, self.locks = longer(self.stop), longer(self.locks)
                self.child, self.n_children = longer(self.child), longer(self.n_children)
                self.before, self.after = longer(self.before), longer(self.after)
                self.touched = longer(self.touched)
            node = self.n
            self.n += 1
        self.parent[node], self.owner[node], self.stop[node] = parent, owner, stop
        self.locks[node], self.child[node], self.n_children[node] = 0, NOBODY, 0
        self.now += 1
        self.touched[node] = self.now
        return node

    def alike(self, request: int) -> int:
        """Pages that a request shares with others of its family."""
        if self.log.family[request] == NOBODY:
            return 0
        n_shared, n_input = self.log.n_shared[request], self.log.n_input[request]
        return (n_shared if n_shared < n_input else n_input - 1) // self.block

    def edge(self, node: int, request: int) -> int:
        """The node behind one, on the way of a request."""
        if self.stop[node] == self.alike(request):
            return self.log.run[request]
        return self.child[node] if node else self.first[self.log.family[request]]

    def join(self, node: int, owner: int, child: int) -> None:
        """Put a node behind one, on the way of its owner."""
        if self.stop[node] == self.alike(owner):
            self.log.run[owner] = child
        elif node:
            self.child[node] = child
        else:
            self.first[self.log.family[owner]] = child

    def unlink(self, node: int) -> None:
        before, after = self.before[node], self.after[node]
        self.after[before], self.before[after] = after, before

    def link(self, node: int) -> None:
        """Behind all that were looked at before it."""
        before = self.before[0]
        while before and self.touched[before] > self.touched[node]:
            before = self.before[before]
        after = self.after[before]
        self.before[node], self.after[node] = before, after
        self.after[before], self.before[after] = node, node

    def touch(self, node: int) -> None:
        self.now += 1
        self.touched[node] = self.now
        if self.locks[node] == 0:
            self.unlink(node)
            self.link(node)

    def match(self, request: int, n_pages: int) -> int:
        """The last node that has the first pages of a request; it is cut where they end."""
        node = 0
        while True:
            child, upto = self.edge(node, request), n_pages
            if child == NOBODY:
                return node
            if self.owner[child] != request:
                upto = min(upto, self.alike(request), self.alike(self.owner[child]))
            if upto <= self.stop[node]:
                return node
            self.touch(child)
            node = child if self.stop[child] <= upto else self.split(child, upto)

    def split(self, child: int, stop: int) -> int:
        parent, owner = self.parent[child], self.owner[child]
        upper = self.add(parent, owner, stop)
        self.locks[upper], self.n_children[upper] = self.locks[child], 1
        self.join(parent, owner, upper)
        self.join(upper, owner, child)
        self.parent[child] = upper
        if self.locks[upper] == 0:
            self.link(upper)
        return upper

    def insert(self, request: int, n_pages: int) -> int:
        """Keep the first pages of a request; those that are there already are not kept twice."""
        node = self.match(request, n_pages)
        if self.stop[node] == n_pages:
            return node
        child = self.add(node, request, n_pages)
        self.join(node, request, child)
        self.link(child)
        self.n_children[node] += 1
        self.n_idle += n_pages - self.stop[node]
        return child

    def hold(self, node: int, by: int) -> int:
        """A request more, or one less, holds a node and all before it; pages held more by it."""
        held = 0
        while node:
            if by > 0 and self.locks[node] == 0:
                self.unlink(node)
            self.locks[node] += by
            if self.locks[node] == (by + 1) // 2:  # nobody did, or nobody does now
                held += by * (self.stop[node] - self.stop[self.parent[node]])
            if self.locks[node] == 0:
                self.link(node)
            node = self.parent[node]
        self.n_idle -= held
        return held

    def lose(self) -> bool:
        """The pages of the leaf that was looked at longest ago are free, if there is one."""
        node = self.after[0]
        while node and self.n_children[node] > 0:
            node = self.after[node]
        if node == 0:
            return False
        parent = self.parent[node]
        self.unlink(node)
        self.join(parent, self.owner[node], NOBODY)
        self.n_children[parent] -= 1
        self.n_idle -= self.stop[node] - self.stop[parent]
        self.after[node], self.spare = self.spare, node
        return True


def longer(values: Integers) -> Integers:
    copy = array("q", bytes(16 * len(values) + 512))
    for i in range(len(values)):
        copy[i] = values[i]
    return copy


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
        idle: Idle,
        tree: Tree,
        gaps: Integers,
        sums_s: tuple[Floats, Floats],
        n_bins: int,
        integers: tuple[Integers, ...],
    ) -> None:
        (
            self.n_lanes,
            self.most_running,
            self.chunk_tokens,
            self.n_polled,
            self.block,
            self.own_blocks,
            n_levels,
            self.mixes,
            self.ahead,
            self.only_reads,
            self.only_decodes,
            self.caches,
            self.retracts,
        ) = numbers
        self.room, self.sequence_bytes, self.block_bytes, self.reserved, watermark = scales[:5]
        self.least_s, self.least_step_s = scales[5:]
        self.times, self.log, self.ends, self.idle = times, requests, heap, idle
        self.tree = tree
        self.decoding, self.stack, self.phases, self.leaving, self.due = integers
        self.n_due, self.n_done, self.n_tries, self.n_decays, self.n_parts = 0, 0, 0, 0, 0
        self.unspent, self.tokens, self.new_pages, self.last_read, self.last_part = 0, 0, 0, 0, 0
        self.is_full, self.flew, self.rested_s, self.owed, self.pairs = False, False, 0.0, 0.0, 0.0
        self.base_share = self.first_share = self.reserved / FACTOR
        self.gaps, self.n_classes = gaps, len(self.decoding)
        self.gap_total_s, self.gap_s = sums_s
        self.n_bins = n_bins
        self.n_stack, self.n_begun, self.n_leaving = 0, 0, 0
        self.coming = Line(self.log.behind)
        self.lines = [Line(self.log.behind) for _ in range(n_levels)]
        self.n_levels, self.level, self.by_priority = n_levels, 0, n_levels > 1
        self.waiting = self.lines[0]
        self.read, self.ended = Line(self.log.behind), Line(self.log.behind)
        self.is_watched = False
        self.n_left, self.n_reading, self.rounds, self.since_look = 0, 0, 0, 0
        self.context, self.stall_s = 0.0, 0.0
        self.n_run, self.n_counted, self.most_run = 0, 0, 0
        self.began_s, self.run_step_s, self.slope_s = 0.0, 0.0, 0.0
        self.held, self.n_sequences, self.promised = 0, 0, 0
        self.n_known, self.n_unheld, self.n_passes, self.n_given, self.n_evicted = 0, 0, 0, 0, 0
        self.is_short = self.room < inf and self.block_bytes > 0.0
        self.watermark, self.n_blocks = 0, PLENTY
        if self.is_short:
            self.n_blocks = int(floor(self.room / self.block_bytes)) - self.own_blocks
            self.watermark = int(floor(watermark * (self.n_blocks + self.own_blocks)))
        self.most_read = self.blocks(self.chunk_tokens) + 1
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
        begins_s = inf
        if self.n_reading or self.n_leaving or self.first() != NOBODY:
            begins_s = self.free_s
            if self.n_begun_again == 0:  # who begins anew has as much to write as the shortest
                begins_s += self.least_s
        elif self.coming.first != NOBODY:
            begins_s = self.log.ready_s[self.coming.first]
            begins_s = (self.free_s if self.free_s > begins_s else begins_s) + self.least_s
        least = self.free_s + self.until_one_ends_s() if self.n_left else inf
        return least if least < begins_s else begins_s

    def until_one_ends_s(self) -> float:
        """How long those that decode do so at least before the next pass in which one ends."""
        passes = (self.ends.first() >> TURNS) - self.rounds - 1
        step_s = self.times.step(self.n_left, self.context / self.n_left)
        alike = passes
        if self.is_short:  # until somebody may lose its place, and passes are shorter
            alike = self.free() * self.block // (self.most_running + self.chunk_tokens)
            alike = 0 if alike < 0 else (alike if alike < passes else passes)
        return alike * step_s + (passes - alike) * self.least_step_s

    def is_busy(self) -> bool:
        if self.n_left > 0 or self.n_reading > 0 or self.n_leaving > 0:
            return True
        return self.first() != NOBODY

    def line_up(self) -> None:
        """Who had come when the pass that is about to begin was composed stands in line."""
        self.see(self.seen_s if self.ahead and self.is_busy() else self.free_s)

    def see(self, seen_s: float) -> None:
        while self.coming.first != NOBODY and self.log.ready_s[self.coming.first] <= seen_s:
            self.wait(self.coming.pop(), False)

    def wait(self, request: int, back: bool) -> None:
        """A request stands in line: at its end, or at its head who comes back."""
        if self.retracts:
            line = self.lines[self.log.priority[request] if self.by_priority else 0]
            line.append(request)
        elif self.by_priority:
            line = self.lines[self.log.priority[request]]
            line.insert(request, self.log.ready_s)
        elif back:
            self.waiting.put_first(request)
        else:
            self.waiting.append(request)

    def first(self) -> int:
        """Who is first in line."""
        if self.by_priority:
            for level in range(self.n_levels):
                line = self.lines[level]
                if line.first != NOBODY:
                    self.level = level
                    return line.first
            return NOBODY
        return self.waiting.first

    def run_pass(self, until_s: float) -> None:
        """The next pass: who goes, who is read, who begins; then who ended before it has left."""
        if self.retracts:
            self.pass_by_tokens(until_s)
            return
        if self.n_leaving and self.is_unmissed():
            self.leave(self.n_leaving)
        reads, evicts = self.reads(True), False
        if self.n_left > 0 and (self.mixes or not reads) and self.is_tight():
            evicts = self.makes_room()
        leaving = self.n_leaving
        self.go(reads, evicts, self.free_s if evicts else until_s)  # somebody may begin in the next
        if leaving > 0:
            self.leave(leaving)

    def is_unmissed(self) -> bool:
        """Whether nobody wants what those still have who ended."""
        if self.n_reading > 0 or self.first() != NOBODY:
            return False
        return self.free() >= self.n_left or self.growth(1) <= self.free()

    def go(self, reads: bool, evicts: bool, until_s: float) -> None:
        """One pass, or several that are alike; who lost its place waits, and so do others."""
        if evicts:
            reads = self.reads(False)
        elif self.only_decodes:
            self.join()
        if reads:
            self.read_prompts(not evicts)
        elif self.n_left > 0:
            self.decode_on(until_s)
        elif self.n_leaving > 0:
            self.see(self.free_s)  # nothing was composed while the last pass ran

    def reads(self, begins: bool) -> bool:
        """Whether the next pass reads anything of a prompt."""
        if self.n_reading == 0 and (not begins or self.first() == NOBODY):
            return False
        if self.only_decodes or (self.since_look > 0 and self.n_left > 0) or self.budget() <= 0:
            return False
        return self.n_reading > 0 or self.may_begin(self.growth(1) if self.mixes else 0)

    def is_tight(self) -> bool:
        """Whether the next pass may want more blocks than there are."""
        return self.is_short and self.free() < self.n_left + self.most_read

    # who begins

    def free(self) -> int:
        """Blocks that nobody holds, beside what sequences hold whatever their length."""
        if self.sequence_bytes != 0.0:
            return self.beside(self.n_sequences)
        return self.n_blocks - self.held

    def beside(self, n_sequences: int) -> int:
        """Blocks that nobody holds, if there are so many sequences."""
        room = self.room - n_sequences * self.sequence_bytes
        # blocks never run out: only what sequences hold whatever their length may
        if not self.is_short:
            return PLENTY if room >= 0.0 else -1
        return int(floor(room / self.block_bytes)) - self.own_blocks - self.held

    def blocks(self, n_tokens: int) -> int:
        return (n_tokens + self.block - 1) // self.block

    def may_begin(self, beside: int) -> bool:
        """Whether there is a place and room for the first in line, beside those that are there.

        `beside` are blocks that these get before it.
        """
        n_running = self.n_left + self.n_leaving + self.n_reading
        request = self.first()
        if request == NOBODY or n_running >= self.most_running:
            return False
        # that it fits by itself was asked when it came: `Fleet.arrive`
        if n_running == 0 or self.room == inf:
            return True
        n_tokens = self.log.n_input[request] + self.log.written[request]
        self.find(request, n_tokens)
        needed = self.blocks(n_tokens) - self.n_known + self.n_unheld
        if self.only_decodes and n_tokens % self.block == 0:
            needed += 1  # in the same pass
        ahead = 0.0
        if self.reserved > 0.0:
            owed = self.promised + self.upto(request) - self.held - beside - needed
            ahead = self.reserved * (owed if owed > 0 else 0)
        free = self.n_blocks - self.held
        if self.sequence_bytes != 0.0:
            free = self.beside(self.n_sequences + 1)
        return needed + beside + self.watermark + ahead <= free

    def upto(self, request: int) -> int:
        """Blocks of a request once it has written all."""
        n_output = 0 if self.only_reads else self.log.n_output[request]
        return self.blocks(self.log.n_input[request] + n_output)

    def find(self, request: int, n_tokens: int) -> None:
        """First blocks of a request that can be found, and how many of them nobody holds."""
        self.n_known, self.n_unheld = 0, 0
        if not self.caches or self.only_decodes:
            return
        family, n_alike = self.log.family[request], self.tree.alike(request)
        if family != NOBODY:
            # the last token is read in any case, for the one behind it
            most = (n_tokens - 1) // self.block
            n = n_alike if n_alike < most else most
            known = self.idle.known[family]
            n = n if n < known else known
            self.n_known = n
            self.n_unheld = n - self.idle.n_held(family, n)
        if self.log.written[request] > 0 or self.log.run[request] != NOBODY:
            # its own run lies behind what it shares, and is of use only if all of that is there
            upto = self.idle.upto(self.log.run[request])
            if upto > self.n_known and self.n_known == n_alike:
                self.n_unheld += upto - n_alike
                self.n_known = upto

    def begin(self) -> int:
        """Give the first in line its place."""
        request = self.first()
        line = self.lines[self.level]
        line.pop()
        n_tokens = self.log.n_input[request] + self.log.written[request]
        self.find(request, n_tokens)
        self.promised += self.upto(request)
        self.n_sequences += 1
        n_read = self.n_known * self.block
        if self.caches:
            family, n_alike = self.log.family[request], self.tree.alike(request)
            if family != NOBODY:
                n = n_alike if n_alike < self.n_known else self.n_known
                self.held += self.idle.wake_family(family, n)
            if self.n_known > n_alike:
                self.held += self.idle.wake(self.log.run[request], self.n_known)
            self.log.run[request] = NOBODY
            self.take(0)
        self.log.filled[request] = n_read
        self.log.n_tokens[request] = n_tokens
        self.log.n_read[request] = n_read
        return request

    def join(self) -> None:
        """Requests that were read elsewhere, whose first tokens are written, decode."""
        while self.may_begin(self.growth(1)):
            request = self.begin()
            self.fill(request, self.log.n_tokens[request])
            if self.log.written[request] == 0:
                self.log.first_s[request] = self.free_s
            self.decode(request)

    def fill(self, request: int, n_tokens: int) -> None:
        """A prompt gets blocks up to so many of its tokens."""
        before, family = self.log.filled[request], self.log.family[request]
        self.take(self.blocks(n_tokens) - self.blocks(before))
        self.log.filled[request] = n_tokens
        if family != NOBODY and self.caches:
            n_alike = self.tree.alike(request)
            begin, stop = before // self.block, n_tokens // self.block
            stop = n_alike if n_alike < stop else stop
            if stop > begin:
                self.idle.hold(family, begin, stop)

    def take(self, n: int) -> None:
        """So many blocks more are held; what was in them cannot be found any more."""
        self.held += n
        if self.idle.n:
            lost = self.idle.n - self.free()
            if lost > 0:
                self.idle.lose(lost)

    def decode(self, request: int) -> None:
        """A request that was read has one token of its answer more, and decodes the others."""
        n_tokens = self.log.n_tokens[request]
        if self.log.lost_s[request] >= 0.0:
            self.gap(self.free_s - self.log.lost_s[request], 1, self.log.of_class[request])
            self.log.lost_s[request] = -1.0
        left = self.log.n_output[request] - self.log.written[request] - 1
        self.log.written[request] = 0
        self.n_begun += 1
        self.log.begun[request] = self.n_begun
        if self.room < inf:
            self.remember(request)
        if self.retracts:
            self.log.given[request] = self.n_passes
            if left > 0:
                self.wait_for(2 * request)
        if left <= 0 or self.only_reads:
            self.end(request)
            return
        self.end_run()
        self.context += n_tokens + 1
        # by round, then by who began first
        self.ends.push(((self.rounds + left) << TURNS) + self.n_begun, request)
        self.n_left += 1
        self.phases[self.phase(n_tokens)] += 1
        self.decoding[self.log.of_class[request]] += 1

    def phase(self, n_tokens: int) -> int:
        """The rounds in which a request needs a block: so many behind those that blocks divide."""
        if self.block == 1:
            return 0
        # compiled, the rest of what is below nothing is below nothing
        return (n_tokens + (self.block - self.rounds % self.block)) % self.block

    def remember(self, request: int) -> None:
        """Keep in which order requests began; those that left are forgotten when it is full."""
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
        """Whether who began then still has its place, and has not begun again since."""
        request = self.stack[i]
        return self.log.ends[request] != NOBODY and self.log.begun[request] == self.stack[i + 1]

    def end(self, request: int) -> None:
        """A request has its last token; its place is free now, or when a pass more is composed."""
        self.log.last_s[request] = self.free_s
        if self.is_watched:  # beside stages a pass may end before one that began earlier
            self.ended.insert(request, self.log.last_s)
        self.log.ends[request] = ENDED
        if self.retracts:
            self.n_leaving += 1
            self.wait_for(2 * request + 1)
            return
        self.leaving[self.n_leaving] = request
        self.n_leaving += 1
        if not self.ahead:
            self.leave(1)

    def leave(self, n: int) -> None:
        """The first of those who ended have left."""
        for i in range(n):
            request = self.leaving[i]
            self.log.ends[request] = NOBODY
            written = 0 if self.only_reads else self.log.n_output[request] - 1
            cached = self.log.n_input[request] + written
            self.lose(request, cached, cached // self.block)
            self.log.run[request] = NOBODY
        self.n_leaving -= n
        for i in range(self.n_leaving):
            self.leaving[i] = self.leaving[i + n]

    def lose(self, request: int, n_tokens: int, n_full: int) -> None:
        """A request that has so many tokens cached gives back what it has; what can be found is
        known as its run."""
        self.n_sequences -= 1
        self.promised -= self.upto(request)
        if not self.caches:
            self.held -= self.blocks(n_tokens)
            return
        family, n_alike = self.log.family[request], min(self.tree.alike(request), n_full)
        self.held -= self.blocks(n_tokens) - n_alike
        self.log.run[request] = NOBODY
        if n_full > n_alike:
            self.log.run[request] = self.idle.lay(NOBODY, n_alike, n_full)
        if n_alike:
            self.held -= self.idle.leave(family, n_alike)

    # gaps between tokens

    def gap(self, gap_s: float, n: int, of_class: int) -> None:
        """So many gaps more of one class, each so long."""
        if self.n_bins:
            row = self.batch * self.n_classes + of_class
            self.gaps[row * self.n_bins + self.bin(gap_s)] += n
            self.gap_s[of_class] += gap_s * n

    def gap_of_all(self, gap_s: float) -> None:
        """All that decode have a gap more, so long."""
        for one in range(self.n_classes):
            if self.decoding[one]:
                self.gap(gap_s, self.decoding[one], one)

    def count_gaps(self) -> None:
        """All that decode have the gaps of the passes that have run."""
        first, last = self.n_counted, self.n_run
        self.n_counted = last
        if self.n_bins == 0 or first == last:
            return
        # steps grow evenly: their mean is that of the first and the last
        longest_s = self.run_step_s + self.slope_s * (last - 1)
        mean_s = (self.run_step_s + self.slope_s * first + longest_s) / 2.0
        for one in range(self.n_classes):
            self.gap_s[one] += mean_s * (self.decoding[one] * (last - first))
        self.put_in_bins(first, last)

    def put_in_bins(self, first: int, last: int) -> None:
        """The gaps of passes of the run, from the first to before the last."""
        # steps only grow, or only shrink: where both ends are in a bin, so is all between
        at = self.bin(self.run_step_s + self.slope_s * first)
        if last - first > 1 and self.bin(self.run_step_s + self.slope_s * (last - 1)) != at:
            middle = (first + last) >> 1
            self.put_in_bins(first, middle)
            self.put_in_bins(middle, last)
            return
        for one in range(self.n_classes):
            row = self.batch * self.n_classes + one
            self.gaps[row * self.n_bins + at] += self.decoding[one] * (last - first)

    def pass_edge(self) -> None:
        """Gaps from now on are of the next batch: each rank has sums of its own until then, which
        do not depend on which of them was advanced first."""
        self.count_gaps()
        for one in range(self.n_classes):
            self.gap_total_s[self.batch * self.n_classes + one] += self.gap_s[one]
            self.gap_s[one] = 0.0
        self.batch += 1

    def end_run(self) -> None:
        """The next pass is unlike those that have run."""
        self.count_gaps()
        self.n_run, self.n_counted, self.most_run = 0, 0, 0

    def bin(self, gap_s: float) -> int:
        at = int(log10(gap_s) * BINS_PER_DECADE + (FIRST_BIN + 0.5))
        return 0 if at < 0 else (self.n_bins - 1 if at >= self.n_bins else at)

    # passes that read prompts

    def budget(self) -> int:
        rides = self.mixes and not self.only_reads
        return self.chunk_tokens - (self.n_left if rides else 0)

    def read_prompts(self, begins: bool) -> None:
        """One pass that reads prompts; where the engine mixes, all that decode get a token."""
        budget, tokens, pairs = self.budget(), 0, 0.0
        n = self.n_left if self.mixes else 0
        if n:
            self.take(self.growth(1))
        request = self.read.first
        last_read, last_part = NOBODY, 0
        while budget > 0:
            if request == NOBODY:
                if not begins or not self.may_begin(0):
                    break
                request = self.begin()
                self.read.append(request)
                self.n_reading += 1
            part = self.part_of(request, budget)
            self.fill(request, self.log.n_read[request] + part)
            tokens += part
            # a token of a part attends to what was read before, and to half of the part on average
            pairs += part * (self.log.n_read[request] + part / 2.0)
            budget -= part
            last_read, last_part = request, part
            request = self.log.behind[request]
        self.read_through(n, tokens, pairs, last_read, last_part)

    def read_through(self, n: int, tokens: int, pairs: float, last: int, part: int) -> None:
        """A pass reads so many tokens, the last of them of this prompt, beside n that decode."""
        grown_s = self.times.reading(n, tokens, pairs / tokens)
        self.end_run()
        self.seen_s = began_s = self.free_s
        if n:
            step_s = self.times.step(n, self.context / n)
            self.gap_of_all(step_s + grown_s + self.stall_s)
            self.stall_s = 0.0
            self.free_s = began_s + step_s + grown_s
            self.write_by_all(n, 1)
        else:
            self.free_s = began_s + grown_s
            # who decodes waits meanwhile, which its next gap has
            if self.n_left:
                self.stall_s += grown_s / self.n_lanes
        self.parts_read(last, part)
        # of stages that work in turns the first is free for the next pass before
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

    def growth(self, k: int) -> int:
        """Blocks that those that decode get in the next k passes."""
        if not self.is_short:
            return 0
        if self.block == 1:
            return k * self.n_left
        pages = (k // self.block) * self.n_left
        at = self.rounds % self.block
        at = self.block - at if at else 0
        for i in range(k % self.block):  # noqa: B007 compiled as a number
            pages += self.phases[at]
            at = at - 1 if at else self.block - 1
        return pages

    def fitting(self, most: int) -> int:
        """Passes for which there are blocks, up to so many; one before prompts are kept."""
        free = self.free()
        if self.n_due > 0:
            return 1
        if free >= (most // self.block + 1) * self.n_left:
            return most
        # in as many rounds as a block has tokens each sequence needs one block
        k = free // self.n_left * self.block
        if k >= most:
            return most
        free -= k // self.block * self.n_left
        at = self.rounds % self.block
        at = self.block - at if at else 0
        while k < most:
            free -= self.phases[at]
            if free < 0:
                break
            k += 1
            at = at - 1 if at else self.block - 1
        return k

    def decode_on(self, until_s: float) -> None:
        """As many passes as are alike."""
        n = self.n_left
        if self.n_run == self.most_run:
            self.begin_run()
        k, most = self.until(until_s), (self.ends.first() >> TURNS) - self.rounds
        if k > self.most_run - self.n_run:
            k = self.most_run - self.n_run
        if k > most:
            k = most
        if self.n_leaving:
            k = 1
        if self.is_short:
            if k > 1:
                k = self.fitting(k)
            if k < 1:
                k = 1
            self.take_blocks(k)
        self.n_run += k
        self.free_s, self.seen_s = self.end_s(self.n_run), self.end_s(self.n_run - 1)
        self.since_look = (self.since_look + k) % self.n_polled
        self.write_by_all(n, k)

    def begin_run(self) -> None:
        """Passes that decode the same sequences, each a slope longer than the one before it.

        When one of them ends comes of its number alone, so that it makes no difference how many
        are counted at once: simulations that stop for different reasons agree to the last bit.
        """
        self.end_run()
        self.run_step_s = self.times.step(self.n_left, self.context / self.n_left)
        self.slope_s, self.began_s = self.times.slope_s, self.free_s
        self.most_run = PLENTY
        if self.times.left < PLENTY:
            self.most_run = int(floor(self.times.left)) if self.times.left > 1.0 else 1
        if self.n_bins and self.stall_s != 0.0:
            self.gap_of_all(self.run_step_s + self.stall_s)
            self.stall_s, self.n_counted = 0.0, 1

    def end_s(self, n: int) -> float:
        """When so many passes of the run have ended."""
        return self.began_s + (n * self.run_step_s + self.slope_s * n * (n - 1) / 2.0)

    def until(self, until_s: float) -> int:
        """Passes until the engine looks for requests and may find one, or until then."""
        to_look = self.n_polled - self.since_look
        is_waited = self.first() != NOBODY
        if (is_waited or self.n_reading > 0) and self.n_polled > 1:
            return to_look
        if self.coming.first != NOBODY and (self.by_priority or not is_waited):
            ready_s = self.log.ready_s[self.coming.first]
            if ready_s < until_s:
                until_s = ready_s
        if until_s == inf:
            return PLENTY
        k = self.passes_until(until_s)
        if is_waited:
            return k
        beyond = (to_look - k) % self.n_polled
        if beyond < 0:
            beyond += self.n_polled
        return k + beyond

    def passes_until(self, until_s: float) -> int:
        """Passes more that end then or later, one or more; the fewest."""
        if self.end_s(self.n_run + 1) >= until_s:
            return 1
        left_s = until_s - self.began_s
        most = int(ceil(left_s / self.run_step_s))
        k = most
        if self.slope_s > 0.0:
            # of k step + slope k (k - 1) / 2 = left, without cancellation: the loops mend rounding
            half = self.run_step_s - self.slope_s / 2.0
            root = 2.0 * left_s / (half + sqrt(half * half + 2.0 * self.slope_s * left_s))
            k = int(ceil(root))
            if k > most:
                k = most
        while k > 1 and self.end_s(k - 1) >= until_s:
            k -= 1
        while k < most and self.end_s(k) < until_s:
            k += 1
        k -= self.n_run
        return k if k > 1 else 1

    def write_by_all(self, n: int, k: int) -> None:
        """All n that decode have k tokens more; who has its last one leaves."""
        self.rounds += k
        self.context += n * k
        while self.ends.n and self.ends.key[0] >> TURNS <= self.rounds:
            request, key = self.ends.one[0], self.ends.key[0]
            self.ends.drop()
            if self.log.ends[request] != key:
                continue
            self.end_run()
            self.n_left -= 1
            self.decoding[self.log.of_class[request]] -= 1
            cached = self.log.n_input[request] + self.log.n_output[request]
            self.phases[self.phase(cached - 1)] -= 1
            self.context -= cached
            self.end(request)

    # who loses its place

    def makes_room(self) -> bool:
        """Take the places of the last until the next pass of all others fits.

        Blocks are handed out in the order in which requests began. Where priorities say who is
        last, it may have been given its block, which is then known by what was to be in it.
        """
        self.n_passes += 1
        n_before, self.n_given = self.n_evicted, 0
        if self.growth(1) > self.free():
            for i in range(0, self.n_stack, 2):
                if self.is_standing(i) and self.log.ends[self.stack[i]] != ENDED:
                    self.give_block(self.stack[i])
        budget = self.budget()
        if self.n_reading and budget > 0:
            request = self.read.first
            filled = self.log.n_read[request] + self.part_of(request, budget)
            needs = self.blocks(filled) - self.blocks(self.log.filled[request])
            while self.n_reading and self.growth(1) + needs > self.free():
                last = self.last()
                if last == NOBODY:
                    break
                self.log.given[last] = self.n_passes
                self.evict(last)
        return self.n_evicted > n_before

    def give_block(self, request: int) -> None:
        """Who decodes gets the block that it needs, if it needs one, from the last."""
        needs = self.needs(request)
        while needs and self.n_given >= self.free():
            last = self.last()
            if last == NOBODY:
                break
            if self.log.given[last] == self.n_passes and self.log.ends[last] >= 0:
                self.n_given -= self.needs(last)
            self.evict(last)
            if last == request:
                return
        self.n_given += needs
        self.log.given[request] = self.n_passes

    def needs(self, request: int) -> int:
        """Blocks that who decodes needs in the next pass."""
        n_tokens = self.log.n_input[request] + self.log.n_output[request] - 1
        n_tokens -= (self.log.ends[request] >> TURNS) - self.rounds
        return 1 if n_tokens % self.block == 0 else 0

    def last(self) -> int:
        """Who is to lose its place; nobody who is alone."""
        if self.n_left + self.n_leaving + self.n_reading < 2:
            return NOBODY
        if not self.by_priority:
            if self.n_reading:
                return self.read.first
            while not self.is_standing(self.n_stack - 2):
                self.n_stack -= 2
            return self.stack[self.n_stack - 2]
        last = NOBODY
        for i in range(0, self.n_stack, 2):
            if self.is_standing(i):
                last = self.later(last, self.stack[i])
        return self.later(last, self.read.first) if self.n_reading else last

    def later(self, first: int, other: int) -> int:
        """Of two requests the one that is last by priority, and then by its coming."""
        if first == NOBODY or self.log.priority[other] > self.log.priority[first]:
            return other
        if self.log.priority[other] < self.log.priority[first]:
            return first
        return other if self.log.ready_s[other] > self.log.ready_s[first] else first

    def evict(self, request: int) -> None:
        """Take the place of a request that runs."""
        self.n_evicted += 1
        ends = self.log.ends[request]
        if ends == ENDED:
            for i in range(self.n_leaving - 1, 0, -1):
                if self.leaving[i] == request:  # the first leaves
                    self.leaving[i] = self.leaving[i - 1]
                    self.leaving[i - 1] = request
            self.leave(1)
            return
        if ends == NOBODY:
            self.read.pop()
            self.n_reading -= 1
            filled = self.log.filled[request]
            self.lose(request, filled, filled // self.block)
        else:
            self.stop(request, (ends >> TURNS) - self.rounds)
        self.wait(request, True)
        self.n_begun_again += 1

    def stop(self, request: int, remaining: int) -> None:
        """Who decodes loses its place."""
        cached = self.drop(request, remaining, 0)
        known = cached + (1 if self.log.given[request] == self.n_passes else 0)
        if self.ahead:  # its token of the pass under way is not known yet
            known -= 1
            if known < self.log.n_tokens[request]:
                known = self.log.n_tokens[request]
        self.lose(request, cached, known // self.block)

    def drop(self, request: int, remaining: int, n_unknown: int) -> int:
        """Who decodes does no more, and has not written its last tokens; how many are cached."""
        written = self.log.n_output[request] - remaining
        cached = self.log.n_input[request] + written - 1
        self.end_run()
        self.log.ends[request] = NOBODY
        self.n_left -= 1
        self.phases[self.phase(cached)] -= 1
        self.context -= cached + 1
        self.decoding[self.log.of_class[request]] -= 1
        if written > n_unknown:
            self.log.written[request] = written - n_unknown
            self.log.lost_s[request] = self.free_s
        return cached

    # of an engine that retracts, as `planner/verifier/simulation/retracting.py` has it

    def pass_by_tokens(self, until_s: float) -> None:
        if self.idle_s > self.rested_s:
            self.rested_s, self.base_share, self.n_decays = self.idle_s, self.first_share, 0
        is_asked = self.n_reading > 0 or self.first() != NOBODY
        if not is_asked and self.n_left <= self.free() - self.tree.n_idle:
            self.settle()  # nobody misses what they have
        self.n_passes += 1
        if self.n_reading > 0:
            self.keep(self.read.first, self.log.n_read[self.read.first])
        self.flew = self.go_by_tokens(until_s)
        self.settle()
        self.n_due, self.n_done = self.n_done, 0
        if not self.ahead:
            self.settle()
            self.flew = False
            self.n_passes += 1

    def go_by_tokens(self, until_s: float) -> bool:
        """The next pass, or several that are alike; whether all that decode were in it."""
        was_alone = self.n_left + self.n_leaving == 0
        if self.parts(self.since_look == 0 or self.n_left == 0):
            self.read_through(0, self.tokens, self.pairs, self.last_read, self.last_part)
            self.is_full = self.is_full and not was_alone
            return False
        if self.n_left > 0 and self.fits():
            tries = self.first() != NOBODY and not self.is_full
            self.decode_on(self.free_s if tries else until_s)
            return True
        self.see(self.free_s)  # nothing was composed while the last pass ran
        self.n_passes += 1
        return False

    def clear(self, n_tokens: int) -> None:
        """Make room for so many tokens of what nobody holds."""
        while (self.free() - self.tree.n_idle) * self.block < n_tokens and self.tree.lose():
            pass

    def wait_for(self, told: int) -> None:
        """What becomes of a request is known when the next pass is composed, or before."""
        self.due[self.n_due + self.n_done] = told
        self.n_done += 1

    def settle(self) -> None:
        """The tokens of the last pass are known: prompts are kept, who ended leaves."""
        for i in range(self.n_due):
            request = self.due[i] >> 1
            if self.due[i] == NOBODY:
                continue
            if self.due[i] & 1 == 0:
                self.keep(request, self.log.n_tokens[request])
                continue
            self.is_full = False
            self.n_leaving -= 1
            self.log.ends[request] = NOBODY
            cached = self.log.n_input[request] + self.log.n_output[request] - 1
            self.keep(request, cached)
            self.lose_pages(request, cached)
        for i in range(self.n_done):
            self.due[i] = self.due[self.n_due + i]
        self.n_due = 0

    def keep(self, request: int, n_tokens: int) -> None:
        """The whole pages of a request can be found, and are held as such."""
        if not self.caches:
            return
        node, n_pages = self.log.filled[request], n_tokens // self.block
        n_input = self.log.n_input[request] // self.block
        kept = self.tree.insert(request, n_pages)
        if 0 < n_input < n_pages:
            self.tree.insert(request, n_input)  # the answer goes before the prompt
        self.held -= self.tree.stop[kept] - self.tree.stop[node]
        self.held += self.tree.hold(kept, 1) + self.tree.hold(node, -1)
        self.log.filled[request] = kept

    def lose_pages(self, request: int, n_tokens: int) -> None:
        node = self.log.filled[request]
        self.held -= self.blocks(n_tokens) - self.tree.stop[node]
        self.held += self.tree.hold(node, -1)
        self.n_sequences -= 1

    def yet(self, request: int) -> int:
        """Tokens that who runs has yet to write, or may have written in the pass under way."""
        ends, is_under_way = self.log.ends[request], self.flew
        is_under_way = is_under_way or self.log.given[request] == self.n_passes - 1
        return (0 if ends == ENDED else (ends >> TURNS) - self.rounds) + is_under_way

    def rest(self, n_more: int) -> float:
        """Tokens that nobody has, and that are not reserved, beside so many sequences more."""
        if not self.is_short:
            return inf if self.beside(self.n_sequences + n_more) >= 0 else 0.0
        return self.beside(self.n_sequences + n_more) * self.block - self.owed

    def parts(self, begins: bool) -> bool:
        """What the next pass reads of prompts, if it does."""
        self.unspent, self.tokens, self.new_pages, self.n_parts = self.chunk_tokens, 0, 0, 0
        begins = begins and self.may_try()
        if not begins and self.n_reading == 0:
            return False
        self.look_up()
        self.reserve()
        self.pairs = 0.0
        if self.n_reading > 0:
            self.charge(self.read.first)
        while begins and self.may_try() and self.start(self.first()):
            self.is_full = self.rest(0) <= 0
        self.clear(self.tokens + (self.n_parts * self.block if self.block > 1 else 0))
        self.held += self.new_pages
        return self.n_parts > 0

    def reserve(self) -> None:
        """Of what all have yet to write, what has to find room."""
        least, self.owed = self.first_share * FACTOR, 0.0
        share = self.base_share - (self.first_share - least) / N_DECAYS * self.n_decays
        share = max(share, least)
        for i in range(0, self.n_stack if self.is_short else 0, 2):
            if self.is_standing(i):
                self.owed += min(self.yet(self.stack[i]), CLIPPED) * share

    def may_try(self) -> bool:
        """Whether the first in line is."""
        if self.is_full or self.first() == NOBODY or (self.unspent <= 0 and self.rest(0) > 0):
            return False
        self.is_full = self.n_left + self.n_leaving + self.n_reading >= self.most_running
        return not self.is_full

    def charge(self, request: int) -> None:
        """A part of a prompt is read, and its answer reserved."""
        n_read, part = self.log.n_read[request], self.part_of(request, self.unspent)
        self.unspent -= self.blocks(part) * self.block
        self.owed += (self.blocks(part) + 1) * self.block
        self.owed += min(self.log.n_output[request], CLIPPED)
        self.new_pages += self.blocks(n_read + part) - self.blocks(n_read)
        self.n_parts += 1
        self.tokens += part
        self.pairs += part * (n_read + part / 2.0)
        self.last_read, self.last_part = request, part

    def start(self, request: int) -> bool:
        """Give the first in line its place, if there is room for it, and read it."""
        n_tokens = self.log.n_input[request] + self.log.written[request]
        node = self.tree.match(request, (n_tokens - 1) // self.block)
        self.held += self.tree.hold(node, 1)
        n_read = self.tree.stop[node] * self.block
        needed = min(self.log.n_output[request] - self.log.written[request], CLIPPED)
        needed += n_tokens - n_read + self.block
        if self.n_left + self.n_leaving + self.n_reading > 0 and needed >= self.rest(1):
            self.held += self.tree.hold(node, -1)
            self.is_full = True
            return False
        line = self.lines[self.level]
        self.read.append(line.pop())
        self.n_reading += 1
        self.n_sequences += 1
        self.log.n_tokens[request], self.log.n_read[request] = n_tokens, n_read
        self.log.filled[request] = node
        self.charge(request)
        return True

    def look_up(self) -> None:
        """Those in line are looked up now and then, so that what they share is kept."""
        if not self.caches or self.first() == NOBODY:
            return
        self.n_tries += 1
        if self.n_tries % N_TRIES == 1:
            for level in range(self.n_levels - 1, -1, -1):
                line = self.lines[level]
                self.look_up_from(line.first, N_LOOKED_AT)

    def look_up_from(self, request: int, n: int) -> None:
        if n > 0 and request != NOBODY:
            self.look_up_from(self.log.behind[request], n - 1)
            n_tokens = self.log.n_input[request] + self.log.written[request]
            self.tree.match(request, n_tokens // self.block)

    def take_blocks(self, k: int) -> None:
        """Those that decode have their blocks of k passes; pages are made free before each."""
        if not self.retracts:
            self.take(self.growth(k))
            return
        self.n_decays += k - 1
        self.held += self.growth(k - 1)
        self.clear(self.n_left * self.block)
        self.held += self.growth(k) - self.growth(k - 1)

    def fits(self) -> bool:
        """Whether those that decode have their pages, some of them taken back if need be."""
        if self.is_short:
            self.clear(self.growth(1) * self.block)
        if self.growth(1) <= self.free():
            self.n_decays += 1
            return True
        if self.n_leaving > 0:
            return False
        while self.n_left > 1 and self.growth(1) > self.free():
            self.retract(self.least())
            self.clear(self.n_left * KEPT_PASSES)
            self.clear(self.growth(1) * self.block)
        known, answers = self.n_left * KEPT_PASSES, 1
        for i in range(0, self.n_stack, 2):
            if self.is_standing(i):
                answers += self.log.n_output[self.stack[i]]
                known += self.log.n_output[self.stack[i]] - self.yet(self.stack[i])
        self.base_share = min(1.0, float(known) / answers)
        self.is_full, self.n_decays = False, 0
        return True

    def least(self) -> int:
        """Who has written least, of these who has the longest prompt, of these the last."""
        least, fewest, n_input = NOBODY, 0, 0
        for i in range(0, self.n_stack, 2):
            if self.is_standing(i):
                request = self.stack[i]
                written = self.log.n_output[request] - self.yet(request)
                if written == fewest and self.log.n_input[request] < n_input:
                    continue
                if least == NOBODY or written <= fewest:
                    least, fewest, n_input = request, written, self.log.n_input[request]
        return least

    def retract(self, request: int) -> None:
        remaining = (self.log.ends[request] >> TURNS) - self.rounds
        self.lose_pages(request, self.drop(request, remaining, self.yet(request) - remaining))
        for i in range(self.n_due):
            if self.due[i] >> 1 == request:
                self.due[i] = NOBODY
        self.wait(request, False)
        self.n_begun_again += 1


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
        (
            self.first,
            self.n_replicas,
            self.n_ranks,
            self.router,
            self.first_replica,
            self.block,
            self.own_blocks,
        ) = numbers
        (
            self.room,
            self.sequence_bytes,
            self.block_bytes,
            self.request_s,
            self.request_token_s,
        ) = scales
        self.counts, self.of_replica, self.chances = counts, of_replica, chances
        self.n_chosen, self.next_one = 0, 0
        self.looks = (self.router == LEAST_PRESENT and self.n_replicas > 1) or self.n_ranks > 1

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
                number = start + i
                if number >= n:
                    number -= n
                if self.of_replica[number] < least:
                    chosen, least = number, self.of_replica[number]
        self.next_one = chosen + 1
        return chosen

    def count(self, rank: int, by: int) -> None:
        self.counts[rank - self.first] += by
        self.of_replica[(rank - self.first) // self.n_ranks] += by

    def has_room_for(self, n_tokens: int) -> bool:
        n_blocks = (n_tokens + self.block - 1) // self.block + self.own_blocks
        return self.sequence_bytes + self.block_bytes * n_blocks <= self.room


class Fleet:
    """All ranks at work.

    A rank runs by itself until something else depends on it: a router that counts its requests, a
    cache that it hands over. Then it is looked at when a request of it may have ended.

    Args:
        pools, ranks, requests: all of them.
        pool_of: of each rank.
        routes: of each its pool, the pool that decodes or NOBODY, links or NOBODY, (3 R,).
        links: of all handovers.
        edges: with whom batches begin.
        floats: when batches began, (B,), how long each rank was busy by then, (B R,), and before
            when nothing happens to it that another sees, (R,).
        integers: rank and route of each request.
    """

    def __init__(
        self,
        pools: list[Pool],
        ranks: list[Rank],
        requests: Requests,
        pool_of: Integers,
        routes: Integers,
        links: list[Links],
        edges: Integers,
        floats: tuple[Floats, ...],
        integers: tuple[Integers, ...],
    ) -> None:
        self.pools, self.ranks, self.log = pools, ranks, requests
        self.pool_of, self.routes, self.links, self.edges = pool_of, routes, links, edges
        self.edge_s, self.busy_s, self.next_s = floats
        self.rank_of, self.route_of = integers
        self.next_edge, self.n_ranks, self.hands_over = 0, len(ranks), False

    def serve(self, arrived_s: Floats) -> None:
        """Everything, from the first request to the last."""
        n = len(arrived_s)
        for i in range(self.n_ranks):
            self.next_s[i] = inf
            rank = self.ranks[i]
            if rank.only_reads:
                self.hands_over = True
        for request in range(n):
            now_s = arrived_s[request]
            if self.hands_over:
                self.hand_over(now_s)
            while self.next_edge < len(self.edges) and request == self.edges[self.next_edge]:
                self.pass_edge(now_s)
            self.arrive(request, now_s)
        self.hand_over(inf)
        self.finish(n)

    def hand_over(self, until_s: float) -> None:
        """What ranks that read prompts are done with until then goes on, in the order of time."""
        while self.hands_over:
            first = NOBODY
            for i in range(self.n_ranks):
                rank = self.ranks[i]
                if rank.only_reads and (first == NOBODY or self.next_s[i] < self.next_s[first]):
                    first = i
            if self.next_s[first] == inf or self.next_s[first] > until_s:
                return
            self.settle(first, self.next_s[first])

    def settle(self, number: int, now_s: float) -> None:
        """A rank runs what begins until now, and who ended by now is done there."""
        rank = self.ranks[number]
        rank.advance(nextafter(now_s, inf))
        while rank.ended.first != NOBODY and self.log.last_s[rank.ended.first] <= now_s:
            request = rank.ended.pop()
            self.end(request, self.log.last_s[request])
        self.look_again(number)

    def look_again(self, number: int) -> None:
        """When a rank is to be settled next."""
        rank = self.ranks[number]
        at_s = rank.none_ends_before_s()
        if rank.ended.first != NOBODY and self.log.last_s[rank.ended.first] < at_s:
            at_s = self.log.last_s[rank.ended.first]
        self.next_s[number] = at_s

    def finish(self, n: int) -> None:
        """Ranks that nobody waits for serve all that they have; batches that never began do."""
        for i in range(self.n_ranks):
            rank = self.ranks[i]
            rank.advance(inf)
        last_s = 0.0
        for i in range(n):
            if last_s < self.log.last_s[i] < inf:
                last_s = self.log.last_s[i]
        while self.next_edge < len(self.edges):
            self.pass_edge(last_s)
        for i in range(self.n_ranks):
            rank = self.ranks[i]
            rank.pass_edge()

    def arrive(self, request: int, now_s: float) -> None:
        route = self.route_of[request]
        pool = self.pools[self.routes[3 * route]]
        number = self.choose(pool, now_s)
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
        self.give(request, number, now_s)

    def choose(self, pool: Pool, now_s: float) -> int:
        """The rank that gets the next request."""
        if pool.looks:
            for i in range(pool.first, pool.first + pool.n_replicas * pool.n_ranks):
                if self.next_s[i] <= now_s:
                    self.settle(i, now_s)
        return pool.choose()

    def give(self, request: int, number: int, now_s: float) -> None:
        """A rank gets a request, which stands in line there once it is ready."""
        self.rank_of[request] = number
        pool = self.pools[self.pool_of[number]]
        pool.count(number, 1)
        rank, ready_s = self.ranks[number], self.log.ready_s[request]
        if not rank.is_watched:
            rank.advance(now_s)
        rank.coming.insert(request, self.log.ready_s)
        if rank.is_watched:
            # whatever it gets runs a pass at least
            at_s = (ready_s if ready_s > rank.free_s else rank.free_s) + rank.least_s
            if at_s < self.next_s[number]:
                self.next_s[number] = at_s

    def end(self, request: int, now_s: float) -> None:
        """A request is done where it was: it is handed over, or its user has the answer."""
        number, route = self.rank_of[request], self.route_of[request]
        of_pool, then = self.pool_of[number], self.routes[3 * route + 1]
        ours = self.pools[of_pool]
        ours.count(number, -1)
        # who read the prompt wrote the first token: there may be nothing left to decode
        if then in (NOBODY, of_pool) or self.log.n_output[request] == 1:
            return
        theirs = self.pools[then]
        chosen = self.choose(theirs, now_s)
        self.log.ready_s[request] = now_s
        if self.routes[3 * route + 2] != NOBODY:
            links = self.links[self.routes[3 * route + 2]]
            sender = ours.first_replica + (number - ours.first) // ours.n_ranks
            receiver = theirs.first_replica + (chosen - theirs.first) // theirs.n_ranks
            n_tokens = self.log.n_input[request]
            self.log.ready_s[request] = links.done_s(now_s, n_tokens, sender, receiver)
        self.give(request, chosen, now_s)

    def pass_edge(self, now_s: float) -> None:
        """What ranks did until now is of the batch before."""
        for i in range(self.n_ranks):
            rank = self.ranks[i]
            rank.advance(now_s)
            if rank.is_watched:
                self.look_again(i)
        self.edge_s[self.next_edge] = now_s
        for i in range(self.n_ranks):
            rank = self.ranks[i]
            self.busy_s[self.next_edge * self.n_ranks + i] = rank.free_s - rank.idle_s
            rank.pass_edge()
        self.next_edge += 1
