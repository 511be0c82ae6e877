"""How long who comes waits in a closed loop, counted in passes of the rank that it comes to.

A place that ends a request begins the next: of b places one asks for a pass or several, once in as
many steps as a request decodes. What it finds before it is what the b − 1 others left there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """One rank in its loop.

    Args:
        running: places.
        steps: that a request decodes for.
        step_s, pass_s: one of these, and one that reads prompts too.
        prompt_s: what a prompt lengthens the steps of the others by.
        n_chunks: passes of a prompt.
        lanes: passes under way at once.
    """

    running: float
    steps: float
    step_s: float
    prompt_s: float
    pass_s: float
    n_chunks: float
    lanes: float

    def rest_s(self, sharing: float, polled: int) -> float:
        """Half of what is under way: a pass that `sharing` prompts of others are in, or a step."""
        if self.running <= 1:
            return 0.0
        round_s = self.steps * self.step_s + self.running * self.prompt_s
        reads = (self.running - 1) * self.n_chunks / sharing / self.lanes * self.pass_s / round_s
        reads = min(reads, 1.0)
        return reads * self.pass_s / 2 + (1 - reads) * self.alone_s(polled)

    def alone_s(self, polled: int) -> float:
        """Half of a step that is under way where prompts of others never are."""
        return polled * self.step_s * min(self.running - 1, 1.0) / 2

    def blocked_s(self, room: float) -> float:
        """That a prompt keeps the next one from being read."""
        return self.n_chunks * self.pass_s / room / self.lanes

    def queue_s(self, room: float) -> float:
        """Until the prompts that came before are read."""
        return self._queue(room) * self.pass_s

    def met(self, room: float) -> float:
        """Prompts of others that come while a request decodes, of the one that each has a turn."""
        return (self.running - 1) * self.steps / (self._queue(room) + self.steps)

    def _queue(self, room: float) -> float:
        """The wait w, in passes, that solves w = (b − 1) (w + s / 2) s / (steps + s + w).

        Each of the others is before it for that share of its own turn, a pass of s half done.
        """
        others, each = self.running - 1, self.n_chunks / room / self.lanes
        if others <= 0:
            return 0.0
        linear = self.steps + each - others * each
        constant = -others * each**2 / 2
        root = math.sqrt(linear**2 - 4 * constant)
        return -2 * constant / (linear + root) if linear > 0 else (root - linear) / 2

    def together_s(self, full_s: float, sharing: float, n_stages: float) -> float:
        """Mean of prompts that all come at once and are read, `sharing` in a pass, in order."""
        n_passes = max(self.running / sharing, 1.0)
        mean_turn = (n_passes - 1) / 2 / n_stages + 1
        return self.n_chunks * full_s * mean_turn
