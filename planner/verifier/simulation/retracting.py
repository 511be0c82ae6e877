"""A rank of SGLang 0.5.23, whose scheduler takes back who has least. Files of sglang/srt:

* Prompts are read by themselves, before all else; one that is cut goes on first. Who begins needs
  room for its prompt, its answer and a page, beside a share of what each that runs has yet to write
  (managers/schedule_policy.py:699-711, 1411-1423, 1593-1650; mem_cache/prefill_budget.py:122-188).
* That share falls with each pass that decodes, is counted anew where somebody is taken back, and
  begins anew where nothing runs (managers/scheduler_components/new_token_ratio_tracker.py:19-49;
  managers/scheduler.py:4543, 5320).
* Where nobody more fits, nobody is tried until somebody leaves (scheduler.py:3945-3980, 4119-4140,
  4234-4276).
* Where pages do not suffice, who has written least is taken back, of these who has the longest
  prompt, of these the last, until they do; its last token is lost, and it goes to the end of the
  line. Where somebody ends in the pass under way, nobody decodes in the next
  (schedule_batch.py:3451-3580; scheduler.py:4459-4552; batch_result_processor.py:343-349, 1038).
* A prompt can be found once its pass has ended and the next was composed, a cut one before that.
  Pages are made free beforehand, one for each request (scheduler.py:3910-3921; mem_cache/
  unified_radix_cache.py:1164-1330; mem_cache/allocation.py:152-200, 572-586).
"""

from heapq import heappop, nsmallest

from planner.specs.records.roles import Station
from planner.verifier.simulation.blocks import Node, Radix
from planner.verifier.simulation.log import Log
from planner.verifier.simulation.rank import Parts, Prompt, Rank

FACTOR, N_DECAYS = 0.14, 600
"""The share ends at so much of its beginning, after so many passes (environ.py:646-648)."""

CLIPPED, KEPT_PASSES = 4096, 20
"""Tokens of an answer that are reckoned with (schedule_policy.py:72-74), and passes for which who
stays shall have room (environ.py:649)."""

N_TRIES, N_LOOKED_AT = 32, 128
"""Those in line are looked up each so many tries, so many of them (schedule_policy.py:124-126)."""


class Retracting(Rank):
    """As SGLang has it: who waits, is read and decodes is `Rank`'s."""

    def __init__(self, station: Station, log: Log) -> None:
        super().__init__(station, log)
        self._page = station.block_tokens
        self._first_share = self._base_share = station.reserved_fraction / FACTOR
        self._tree = Radix(self._blocks, self._family)
        self._nodes: dict[int, Node] = {}  # that who runs holds
        self._due: dict[int, bool] = {}  # of the last pass, not known yet: who was read, or ended
        self._done: dict[int, bool] = {}  # of this pass
        self._flying: set[int] | None = set()  # who was in the last pass; None: all that decode
        self._is_full, self._n_decays, self._n_tries, self._rested_s = False, 0, 0, 0.0
        self._owed, self._unspent, self._found = 0.0, 0, Parts()

    def _pass(self, until_s: float) -> None:
        if self.idle_s > self._rested_s:
            self._rested_s, self._base_share, self._n_decays = self.idle_s, self._first_share, 0
        if not (self._waiting or self._reading) and self._n_decoding() <= self._unused():
            self._settle()  # nobody misses what they have
        for prompt in self._reading:
            self._keep(prompt.request, prompt.n_read)
        self._flying = self._go(until_s)
        self._settle()
        self._due, self._done = self._done, {}
        if not self._station.composes_ahead:
            self._settle()
            self._flying = set()

    def _go(self, until_s: float) -> set[int] | None:
        """The next pass, or several that are alike; who was in it."""
        was_alone = not self._left
        if parts := self._parts(begins=self._since_look == 0 or not self._n_decoding()):
            self._read_parts(parts, 0)
            self._is_full = self._is_full and not was_alone
            return {prompt.request for prompt, _ in parts}
        if self._n_decoding() and self._fits():
            tries = self._waiting and not self._is_full
            self._decode_on(self.free_s if tries else until_s)
            return None
        self._see(self.free_s)  # nothing was composed while the last pass ran
        return set()

    def _unused(self) -> float:
        """Pages that have nothing in them."""
        return self._blocks.free() - self._tree.n_idle

    def _clear(self, n_tokens: int) -> None:
        """Make room for so many tokens of what nobody holds."""
        while self._unused() * self._page < n_tokens and self._tree.lose():
            pass

    # what becomes of tokens

    def _end(self, request: int) -> None:
        self._log.last_s[request] = self.free_s
        if self.ended is not None:
            self.ended.append(request)
        self._leaving.append(request)
        self._done[request] = True

    def _decodes(self, prompt: Prompt) -> None:
        self._done[prompt.request] = False
        super()._decodes(prompt)

    def _settle(self) -> None:
        """The tokens of the last pass are known: prompts are kept, who ended leaves."""
        for request, ended in self._due.items():
            if ended:
                self._is_full = False
                self._leave([request])
            else:
                self._keep(request, self._read_tokens[request])
        self._due = {}

    def _keep(self, request: int, n_tokens: int) -> None:
        """The whole pages of a request can be found, and are held as such."""
        if not self._station.caches_prefixes:
            return
        node, n_pages = self._nodes[request], n_tokens // self._page
        n_input = self._log.n_input[request] // self._page
        kept = self._tree.insert(request, n_pages)
        if 0 < n_input < n_pages:
            self._tree.insert(request, n_input)  # the answer goes before the prompt
        self._blocks.n_held -= kept.stop - node.stop
        self._tree.hold(kept, 1)
        self._tree.hold(node, -1)
        self._nodes[request] = kept

    def _lose(self, request: int, n_tokens: int, *, returns: bool, n_known: int = -1) -> None:
        if not returns:
            self._keep(request, n_tokens)
        del self._read_tokens[request]
        node = self._nodes.pop(request)
        self._blocks.n_held -= -(-n_tokens // self._page) - node.stop
        self._blocks.n_sequences -= 1
        self._tree.hold(node, -1)

    # who begins

    def _yet(self, request: int) -> int:
        """Tokens that who runs has yet to write, or may have written in the pass under way."""
        is_under_way = self._flying is None or request in self._flying
        return self._left[request] - self._rounds + is_under_way

    def _rest(self, n_more: int = 0) -> float:
        """Tokens that nobody has, and that are not reserved."""
        return self._blocks.free(n_more) * self._page - self._owed

    def _parts(self, *, begins: bool) -> Parts:
        self._unspent, self._found = self._station.chunk_tokens, []
        begins = begins and self._may_try()
        if not (begins or self._reading):
            return []
        self._look_up()
        least = self._first_share * FACTOR
        share = self._base_share - (self._first_share - least) / N_DECAYS * self._n_decays
        share = max(share, least)
        self._owed = 0 + sum([min(self._yet(it), CLIPPED) * share for it in self._left])
        held = 0
        for prompt in self._reading:
            held += self._charge(prompt)
        while begins and self._may_try():
            if (started := self._start()) is None:
                break
            held += self._charge(started)
            self._is_full = self._rest() <= 0
        n_tokens = sum(part for _, part in self._found)
        self._clear(n_tokens + (len(self._found) * self._page if self._page > 1 else 0))
        self._blocks.n_held += held
        return self._found

    def _may_try(self) -> bool:
        """Whether the first in line is."""
        if self._is_full or not self._waiting or self._unspent <= 0 < self._rest():
            return False
        if len(self._left) + len(self._reading) >= self._station.most_running:
            self._is_full = True
        return not self._is_full

    def _charge(self, prompt: Prompt) -> int:
        """A part of a prompt is read, and its answer reserved; its new pages."""
        part = min(prompt.n_tokens - prompt.n_read, self._unspent)
        whole, n_read = -(-part // self._page) * self._page, prompt.n_read + part
        self._found.append((prompt, part))
        self._unspent -= whole
        self._owed += whole + self._page + min(self._log.n_output[prompt.request], CLIPPED)
        n_held, prompt.n_held = prompt.n_held, n_read
        return -(-n_read // self._page) + -n_held // self._page

    def _start(self) -> Prompt | None:
        """Give the first in line its place, if there is room for it."""
        request = self._waiting[0][2]
        n_tokens = self._size(request)[0]
        node = self._tree.match(request, (n_tokens - 1) // self._page)
        self._tree.hold(node, 1)
        left = self._log.n_output[request] - self._written.get(request, 0)
        n_held = node.stop * self._page
        n_cached = self._log.n_cached[request] if self._log.n_cached else 0
        prompt = Prompt(request, n_tokens, max(n_held, min(n_cached, n_tokens - 1)), n_held)
        needed = n_tokens - prompt.n_read + min(left, CLIPPED) + self._page
        if (self._left or self._reading) and needed >= self._rest(1):
            self._tree.hold(node, -1)
            self._is_full = True
            return None
        heappop(self._waiting)
        self._blocks.n_sequences += 1
        self._nodes[request] = node
        self._reading.append(prompt)
        return prompt

    def _look_up(self) -> None:
        """Those in line are looked up now and then, so that what they share is kept."""
        if self._waiting and self._station.caches_prefixes:
            self._n_tries += 1
            if self._n_tries % N_TRIES == 1:
                for _, _, request in reversed(nsmallest(N_LOOKED_AT, self._waiting)):
                    self._tree.match(request, self._size(request)[0] // self._page)

    # who decodes

    def _fitting(self, most: int) -> int:
        return 1 if self._due else super()._fitting(most)

    def _grow(self, k: int) -> None:
        self._n_decays += k - 1
        self._blocks.n_held += self._growth(k - 1)
        self._clear(self._n_decoding() * self._page)
        self._blocks.n_held += self._growth(k) - self._growth(k - 1)

    def _fits(self) -> bool:
        """Whether those that decode have their pages, some of them taken back if need be."""
        self._clear(self._growth(1) * self._page)
        if self._growth(1) <= self._blocks.free():
            self._n_decays += 1
            return True
        if self._leaving:
            return False
        log = self._log
        written = {it: log.n_output[it] - self._yet(it) for it in self._left}
        order = sorted(written, key=lambda it: (written[it], -log.n_input[it]), reverse=True)
        while len(order) > 1 and self._growth(1) > self._blocks.free():
            self._retract(order.pop())
            self._clear(len(order) * KEPT_PASSES)
            self._clear(self._growth(1) * self._page)
        known = sum(written[it] for it in order) + KEPT_PASSES * len(order)
        self._base_share = min(1.0, known / (sum(log.n_output[it] for it in order) + 1))
        self._is_full, self._n_decays = False, 0
        return True

    def _retract(self, request: int) -> None:
        n_unknown = self._yet(request) - (self._left[request] - self._rounds)
        self._lose(request, self._drop(request, n_unknown), returns=True)
        self._due.pop(request, None)
        self._wait(request, back=False)
        self._log.n_begun_again += 1
        self.n_begun_again += 1
