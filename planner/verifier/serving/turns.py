"""How long who comes waits in a closed loop, counted in passes of the rank that it comes to.

A place that ends a request begins the next: of b places one asks for a pass or several, once in as
many steps as a request decodes. What it finds before it is what the b − 1 others left there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

LENGTH_SPREAD = 1 / (9 * math.sqrt(3))
"""Of lengths drawn evenly from 8/9 to 10/9 of their mean, the deviation over it."""


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
        waves: requests that each place serves, the first of them at once; 0 without end.
        begun: rounds over which the first of them begin to decode.
    """

    running: float
    steps: float
    step_s: float
    prompt_s: float
    pass_s: float
    n_chunks: float
    lanes: float
    waves: int = 0
    begun: float = 0.0

    def of_waves(self, of_width: Callable[[float], float]) -> float:
        """Mean over all waves after the first of what hangs on the steps that one comes in.

        Waves widen as lengths differ: the j-th by as much as j lengths do, and by as much as the
        first was wide. A normal law of deviation σ meets itself as an even one of √(4π) σ does.
        """
        widths = []
        for j in range(1, min(self.waves, 200)):
            variance = j * (LENGTH_SPREAD * self.steps) ** 2 + self.begun**2 / 12
            width = math.sqrt(4 * math.pi * variance)
            if 4 * math.pi * j * LENGTH_SPREAD**2 > 1:
                break
            widths.append(min(width, self.steps))
        n_wide = max(self.waves - 1, 1) - len(widths)
        apart = sum(of_width(width) for width in widths)
        return (apart + n_wide * of_width(self.steps)) / (len(widths) + n_wide)

    def rest_s(self, sharing: float, polled: int) -> float:
        """Half of what is under way: a pass that `sharing` prompts of others are in, or a step."""
        return self.of_waves(lambda width: self._rest_s(sharing, polled, width))

    def _rest_s(self, sharing: float, polled: int, width: float) -> float:
        if self.running <= 1:
            return 0.0
        round_s = width * self.step_s + self.running * self.prompt_s
        reads = (self.running - 1) * self.n_chunks / sharing / self.lanes * self.pass_s / round_s
        reads = min(reads, 1.0)
        return (
            reads * self.pass_s / 2
            + (1 - reads) * polled * self.step_s * min(self.running - 1, 1.0) / 2
        )

    def queue_s(self, room: float, polled: int) -> float:
        """Until prompts are read that came before, or with it and found room first."""

        def passes(width: float) -> float:
            beside = (self.running - 1) * polled / width * self.n_chunks / room / self.lanes
            return self._queue(room, width) + max(beside - 1, 0.0) / 2

        return self.of_waves(passes) * self.pass_s

    def met(self, room: float) -> float:
        """Prompts of others that come while a request decodes, of the one that each has a turn."""
        return (self.running - 1) * self.steps / (self._queue(room, self.steps) + self.steps)

    def _queue(self, room: float, width: float) -> float:
        """The wait w, in passes, that solves w = (b − 1) (w + s / 2) s / (width + s + w).

        Each of the others is before it for that share of its own turn, a pass of s half done.
        """
        others, each = self.running - 1, self.n_chunks / room / self.lanes
        if others <= 0:
            return 0.0
        linear = width + each - others * each
        constant = -others * each**2 / 2
        root = math.sqrt(linear**2 - 4 * constant)
        return -2 * constant / (linear + root) if linear > 0 else (root - linear) / 2

    def together_s(self, full_s: float, sharing: float, n_stages: float) -> float:
        """Mean of prompts that all come at once and are read, `sharing` in a pass, in order."""
        n_passes = max(self.running / sharing, 1.0)
        mean_turn = (n_passes - 1) / 2 / n_stages + 1
        return self.n_chunks * full_s * mean_turn
