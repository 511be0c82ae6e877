"""Which deployments of an engine a question may want: bounded, and timed only where bounds allow.

A program over thousands of devices has millions of columns, and a plan needs a handful. Of times
that no deployment goes below a program is made whose rows and objective are no more than the true
ones, so that what its screens reject the true one rejects too. Some cuts of the model at a time,
three such programs follow each other:

    decode   a column for each batch: its decode pass alone
    least    one for each chunk besides: prompts are read as fast as they can be
    exact    as timed

The best that was met goes on to the next cuts. What is asked of other beliefs is looked at in the
same go, since these share all times.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.serving.choices import EngineChoices, joined_choices
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.grids import BatchSpans, Look
from planner.estimates.serving.timer import Timer
from planner.estimates.serving.traffic import Drafts
from planner.programs.blocks import BlockProgram, LeftOut
from planner.programs.incumbents import Incumbents
from planner.programs.layout import LayoutProgram, ceiling
from planner.programs.rows import rest_of_context, rows_of
from planner.programs.screens import Field, Sieve
from planner.running import begin
from planner.running.deadlines import is_over

LOOKS = (Look(1.4, False), Look(1.4, True), Look(1.06, True, 20_000), Look(1.0, True))
"""One after the other, at what is left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belief:
    """What is believed of times.

    Args:
        counts: which of some choices do, with what loosened limits let in or as it is asked.
        pose: states these, likewise.
        spare: how far beyond the best choice others are wanted besides, as a share of it.
        n_best: contexts that must be there with their best.
        at_least: objective up to which all must be there.
    """

    counts: Callable[[EngineChoices, bool], BoolArray]
    pose: Callable[[EngineChoices, bool], BlockProgram]
    spare: Callable[[EngineChoices], float] = lambda _: 0.0
    n_best: int = 1
    at_least: float = -np.inf


@dataclass(frozen=True, slots=True, eq=False)
class RequiredChoices:
    """What may be wanted of all choices.

    Args:
        choices: as timed.
        left_out: what is known of all others, by the first belief.
        within: objectives up to which none is left out, of each belief.
    """

    choices: EngineChoices
    left_out: LeftOut
    within: tuple[float, ...]


class _Near(Incumbents):
    """What is met of one belief, and what is near it."""

    def __init__(self, belief: Belief) -> None:
        super().__init__(belief.n_best)
        self._belief, self._spare, self.within = belief, 0.0, np.inf

    @property
    def good(self) -> float:
        near = self._values[0] * (1.0 + self._spare) if self._values else -np.inf
        return max(super().good, ceiling(near), self._belief.at_least)

    def meet(self, choices: EngineChoices) -> None:
        """Look for better ones among choices that were timed."""
        believed = choices.take(self._belief.counts(choices, False))
        if not len(believed):
            return
        _, best = Sieve(self).sift(self._belief.pose(believed, False).program)
        if best is not None:
            self._spare = self._belief.spare(believed.take(np.array(best.columns[:1])))

    def sifted(self, choices: EngineChoices) -> tuple[BoolArray, LayoutProgram | None]:
        """Which of some choices may be wanted (N,), and the program of those that count."""
        stays, counts = np.zeros(len(choices), dtype=np.bool_), self._belief.counts(choices, True)
        if not counts.any():
            return stays, None
        self.within = min(self.within, self.good)
        program = self._belief.pose(choices.take(counts), True).program
        field, _ = Sieve(self, searches=False).sift(program)
        rows = np.flatnonzero(counts)
        stays[rows[field.columns[field.columns < len(rows)]]] = True
        return stays, program


class Sifter(Protocol):
    """What of timed or bounded deployments may be wanted, by what was met so far."""

    def sifted(
        self, choices: EngineChoices, weight: IntArray | None = None, *, is_new: bool = False
    ) -> BoolArray:
        """Which of some choices may be wanted (N,), by times that they do not go below.

        Args:
            weight: how many deployments each stands for (N,); one where it is left out.
            is_new: whether none of their contexts was looked at before.
        """

    def rounds(self, choices: EngineChoices) -> IntArray | None:
        """In which round each of some choices is timed, by what is promising (N,).

        None where all are timed at once.
        """

    def meet(self, timed: EngineChoices) -> None:
        """Look for better ones among choices that were timed."""


class Bounding:
    """The search for what may be wanted, some cuts of the model at a time.

    Args:
        memory_scale: factor on what the engine may take of a device; those beyond are left out.
    """

    def __init__(self, timer: Timer, sifter: Sifter, memory_scale: float) -> None:
        self._timer, self._sifter, self._scale = timer, sifter, memory_scale
        self._kept: list[EngineChoices] = []
        self._n_unfit = 0

    def kept(self, blocks: Iterable[DeploymentTable]) -> EngineChoices:
        """Of blocks of cuts, each with every batch and one chunk, what may be wanted, timed.

        Raises:
            ValueError: there is no block.
        """
        is_cut = False
        for block in blocks:
            is_cut = bool(self._kept) and is_over()
            if is_cut:
                break
            n_devices = int(block.n_devices.max(initial=0))
            engine = self._timer.clock.engine.title
            begin(f"timing deployments of {engine} on up to {n_devices:,} devices")
            self._look_at(block)
        kept = joined_choices(self._kept)
        return replace(kept, n_considered=len(kept) + self._n_unfit, is_cut=is_cut)

    def _look_at(self, block: DeploymentTable) -> None:
        exact: list[EngineChoices] = []
        for drafts in self._timer.drafts:
            spans = BatchSpans(*self._timer.in_chunks(block, drafts))
            looks = (look for look in LOOKS if spans.can.sum() >= look.n_least)
            left = [self._bound(spans, look, drafts) for look in looks][-1]
            exact += self._timed(left, drafts)
        timed = joined_choices(exact)
        self._kept.append(timed.take(self._sifter.sifted(timed)))

    def _timed(self, left: EngineChoices, drafts: Drafts | None) -> Iterator[EngineChoices]:
        """Bounded choices as timed, the most promising first, while others may still be wanted."""
        rounds = self._sifter.rounds(left)
        rounds = np.zeros(len(left), dtype=np.int64) if rounds is None else rounds
        for number in range(int(rounds.max(initial=0)) + 1):
            some = left.take(rounds == number)
            some = some.take(self._sifter.sifted(some)) if number else some
            timed = self._timer.exact(some.table, drafts, self._scale)
            self._sifter.meet(timed)
            yield timed

    def _bound(self, spans: BatchSpans, look: Look, drafts: Drafts | None) -> EngineChoices:
        """Leave out spans of batches that do not fit or that nobody wants; bounds of the others."""
        timer = self._timer
        chunk, span, first, last, weight = spans.by(look)
        ends = (first, last if look.reads else first)
        is_end = np.bincount(np.concatenate(ends), minlength=len(spans.rows)) > 0
        fresh = np.flatnonzero(is_end & np.isnan(spans.decode_s))
        spans.decode_s[fresh] = timer.decode_s(spans.rows.take(fresh), drafts)
        fits, least = timer.least(
            spans.rows.take(first).with_chunk(timer.chunks[chunk]),
            drafts,
            self._scale,
            last=spans.rows.batch[last],
            decode_s=(spans.decode_s[ends[0]], spans.decode_s[ends[1]]),
            reads=look.reads,
        )
        self._n_unfit += int(weight[~fits].sum())
        rounds = self._sifter.rounds(least) if look.reads and look is not LOOKS[-1] else None
        if rounds is not None:  # few of each, so that more of the others is left out
            promising = least.table.take(rounds == 0)
            self._sifter.meet(timer.exact(promising, drafts, self._scale))
        is_new = look is LOOKS[0] and drafts is timer.drafts[0]
        stays = fits.copy()
        stays[fits] = self._sifter.sifted(least, weight[fits], is_new=is_new)
        spans.leave_out(chunk[~stays], span[~stays])
        return least.take(stays[fits])


class Beliefs:
    """What a plan may want: near the best of each belief.

    Args:
        beliefs: the first is that of the program, and counts all choices; what it rejects is
            accounted for.
    """

    def __init__(self, beliefs: Sequence[Belief]) -> None:
        self._near = [_Near(one) for one in beliefs]
        self._rejected: dict[str, int] = {}
        self._bound, self._n_contexts = np.inf, 0

    def wanted(self, kept: EngineChoices) -> RequiredChoices:
        """What is left in the end."""
        program = self._near[0].sifted(kept)[1]
        left_out = LeftOut(
            rejected=self._rejected,
            bound=self._bound,
            n_contexts=self._n_contexts - (program.n_contexts if program else 0),
        )
        return RequiredChoices(kept, left_out, tuple(one.within for one in self._near))

    def rounds(self, choices: EngineChoices) -> None:
        """All at once: see `Sifter`."""

    def meet(self, timed: EngineChoices) -> None:
        """See `Sifter`."""
        for near in self._near:
            near.meet(timed)

    def sifted(
        self, choices: EngineChoices, weight: IntArray | None = None, *, is_new: bool = False
    ) -> BoolArray:
        """See `Sifter`; what is rejected is counted."""
        (stays, program), *others = (one.sifted(choices) for one in self._near)
        for more, _ in others:
            stays = stays | more
        if program is not None:
            self._n_contexts += program.n_contexts if is_new else 0
            self._count(program, ~stays, weight)
        return stays

    def _count(self, program: LayoutProgram, gone: BoolArray, weight: IntArray | None) -> None:
        """Add what goes to the account: by the first row that it breaks, or its bound."""
        field, n = Field(program), len(gone)
        for row in rows_of(program):
            rest = rest_of_context(field.least(row.column), program.n_slots)
            breaks = row.column > (np.repeat(row.room, program.n_slots) - rest)[field.group]
            self._reject(row.name, weight, gone & breaks[:n])
            gone = gone & ~breaks[:n]
        least = rest_of_context(field.least(program.column_objective), program.n_slots)
        least += np.repeat(program.context_objective, program.n_slots)
        reach = (program.column_objective + least[field.group])[:n]
        beyond = gone & (reach > self._near[0].good)
        self._bound = min(self._bound, float(reach[beyond].min(initial=np.inf)))
        self._reject("bound", weight, beyond)
        self._reject("empty", weight, gone & ~beyond)

    def _reject(self, name: str, weight: IntArray | None, gone: BoolArray) -> None:
        if n_gone := int((gone if weight is None else weight[gone]).sum()):
            self._rejected[name] = self._rejected.get(name, 0) + n_gone
