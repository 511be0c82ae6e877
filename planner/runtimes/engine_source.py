"""The program of an engine's deployments for one aim, of those that it may want."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.estimates.serving.choices import EngineChoices
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.timer import Timer
from planner.programs.blocks import NO_RELIEFS, NOTHING, BlockProgram, Objective
from planner.programs.bounding import Belief, Beliefs, Bounding, RequiredChoices
from planner.programs.engine import OF_A_CUT, cuts_of, numbers_of, pose_engine
from planner.programs.reduction import MOST_WHOLE, loosened
from planner.quantities.table import MEMORY, QUANTITIES
from planner.running.deadlines import is_over, out_of_time
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.engine_rules import EngineRule
from planner.specs.region import BELIEFS

MOST_TIMED = 3 * MOST_WHOLE // 2
"""Candidates that are all timed, so that no bound has to be believed: of these some do not fit."""

CUTS_AT_ONCE = 256
"""Of which all deployments are in memory at once."""


def limits_on(objective: str, aim: Objective) -> tuple[float, tuple[tuple[str, float], ...]]:
    """Beyond what an aim wants nothing of a quantity, and its further limits on others."""
    most = min((most for name, most in aim.at_most if name == objective), default=math.inf)
    return most, tuple(one for one in aim.at_most if one[0] != objective)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimedChoices:
    """What was timed for a question, and for which others it is enough.

    Args:
        aim: None where all choices are there.
        memory_scale: beyond which none is.
        reliefs: of the limits.
        n_best: of each belief, contexts that are there with their best.
    """

    wanted: RequiredChoices
    aim: Objective | None
    memory_scale: float
    reliefs: Mapping[str, float]
    n_best: Mapping[str, int]

    def serves(self, aim: Objective, n_best: int | None, reliefs: Mapping[str, float]) -> bool:
        """Whether all that an aim may want is there."""
        known = self.aim
        if self.memory_scale < aim.memory * reliefs.get(MEMORY, 1.0):
            return False
        if known is None:
            return True
        most, others = limits_on(known.objective, aim)
        if (known.without, limits_on(known.objective, known)[1]) != (aim.without, others):
            return False
        if not reliefs.items() <= self.reliefs.items() or aim.belief not in self.n_best:
            return False
        if math.isfinite(most):
            return most <= self.wanted.within[list(self.n_best).index(aim.belief)]
        is_known = n_best is not None and n_best <= self.n_best[aim.belief]
        return is_known and known.objective == aim.objective


@dataclass(frozen=True, eq=False)
class ChoiceCache:
    """All that an engine offers, and what of it was timed for questions so far.

    Args:
        spare: of the best choice, one row of some, how far beyond it others are wanted besides;
            as a share of the objective.
    """

    timer: Timer
    cuts: DeploymentTable
    spare: Callable[[str, EngineChoices], float]
    known: list[TimedChoices] = field(default_factory=list)

    @cached_property
    def n_candidates(self) -> int:
        """All that start."""
        timer = self.timer
        return sum(
            int(np.count_nonzero(timer.in_chunks(block, drafts)[1]))
            for block in timer.blocks(self.cuts)
            for drafts in timer.drafts
        )

    @property
    def is_small(self) -> bool:
        """Whether so few are offered that all are timed and no bound has to be believed."""
        timer = self.timer
        n_most = len(self.cuts) * len(timer.grid.batch) * len(timer.drafts) * len(timer.formats)
        return n_most <= 8 * MOST_TIMED and self.n_candidates <= MOST_TIMED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forbidden:
    """What is looked at of the deployments that one rule alone forbids.

    Args:
        offered: the request with the batches and chunks that are.
    """

    rule: EngineRule
    cuts: DeploymentTable
    offered: EngineRequest


class EngineBlocks:
    """The program of an aim.

    Args:
        number: of these candidates among those that are chosen among.
    """

    def __init__(self, offered: ChoiceCache, aim: Objective, number: int) -> None:
        self._offered, self._aim, self._number = offered, aim, number
        self._at_most = limits_on(aim.objective, aim)[0]
        self.is_cut = False

    def blocks(
        self, n_best: int | None = None, reliefs: Mapping[str, float] = NO_RELIEFS
    ) -> Iterator[BlockProgram]:
        """See `ProgramBlocks`: in one block, or if all is wanted of many, some cuts at a time.

        Raises:
            OutOfTimeError: time ended before any choice was found that fits.
        """
        is_everything = n_best is None and math.isinf(self._at_most)
        if is_everything and not self._offered.is_small:
            yield from self._in_parts(self._scale(reliefs))
            return
        aim, known = self._aim, self._timed(n_best, reliefs)
        choices, left_out = known.wanted.choices, known.wanted.left_out
        self.is_cut = choices.is_cut
        if choices.is_cut and not len(choices):
            raise out_of_time()
        if known.aim is None or known.aim.objective != aim.objective or aim.belief:
            left_out = replace(left_out, bound=math.inf)
        yield replace(self._stated(choices), left_out=left_out)

    def _in_parts(self, memory_scale: float) -> Iterator[BlockProgram]:
        """All choices, some cuts at a time, while there is time."""
        cuts = self._offered.cuts
        for first in range(0, len(cuts), CUTS_AT_ONCE):
            self.is_cut = self.is_cut or (first > 0 and is_over())
            if self.is_cut:
                return
            some = np.arange(first, min(first + CUTS_AT_ONCE, len(cuts)))
            choices = self._offered.timer.choices(cuts.take(some), memory_scale)
            self.is_cut = choices.is_cut
            yield self._stated(choices)

    def _scale(self, reliefs: Mapping[str, float]) -> float:
        """Factor on the memory of a device, of what is timed."""
        relief = QUANTITIES[MEMORY].relief  # which is asked of every plan
        return self._aim.memory * max(reliefs.get(MEMORY, relief), relief)

    def _stated(self, choices: EngineChoices) -> BlockProgram:
        aim = self._aim

        def roomier(times: float) -> BlockProgram:
            return self._program(choices, aim.memory * times, aim.belief)

        return replace(roomier(1.0), roomier=roomier)

    def of(self, model: int, numbers: IntArray) -> BlockProgram:
        """See `ProgramBlocks`."""
        cuts = cuts_of(np.unique(numbers & OF_A_CUT), self._offered.timer.request.formats)
        choices = self._offered.timer.choices(cuts, self._aim.memory, to_end=True)
        choices = choices.take(np.isin(numbers_of(choices.table), numbers))
        return self._program(choices, self._aim.memory, self._aim.belief)

    def _program(self, choices: EngineChoices, memory_scale: float, belief: str) -> BlockProgram:
        choices = choices.believing(belief).within(memory_scale)
        return pose_engine(
            choices,
            self._offered.timer.request,
            self._aim,
            memory_scale=memory_scale,
            model=self._number,
            variant=BELIEFS.index(belief),
        )

    def _timed(self, n_best: int | None, reliefs: Mapping[str, float]) -> TimedChoices:
        aim, offered = self._aim, self._offered
        for one in offered.known:
            if one.serves(aim, n_best, reliefs):
                return one
        scale = self._scale(reliefs)
        if offered.is_small:
            wanted = RequiredChoices(offered.timer.choices(offered.cuts, scale), NOTHING, ())
            known = TimedChoices(wanted=wanted, aim=None, memory_scale=scale, reliefs={}, n_best={})
        else:
            known = self._bounded(n_best, reliefs, scale)
        offered.known.append(known)
        return known

    def _bounded(
        self, n_best: int | None, reliefs: Mapping[str, float], scale: float
    ) -> TimedChoices:
        """With what the answers to other beliefs need, where a plan is asked for."""
        aim, offered = self._aim, self._offered
        is_plan = (n_best or 1) > 1 and offered.timer.request.confidence is None
        names = dict.fromkeys([aim.belief, *(BELIEFS if is_plan else ())])
        n_best_of = {name: (n_best or 1) if name == aim.belief else 1 for name in names}
        beliefs = [
            Belief(
                counts=partial(self._counts, name),
                pose=partial(self._bound, scale, {} if name else reliefs, name),
                n_best=n_best_of[name],
            )
            for name in names
        ]
        beliefs[0] = replace(
            beliefs[0],
            spare=partial(offered.spare, aim.objective if is_plan else ""),
            at_least=-math.inf if n_best else self._at_most,
        )
        near = Beliefs(beliefs)
        search = Bounding(offered.timer, near, scale)
        return TimedChoices(
            wanted=near.wanted(search.kept(offered.timer.blocks(offered.cuts))),
            aim=aim,
            memory_scale=scale,
            reliefs=reliefs,
            n_best=n_best_of,
        )

    def _counts(self, belief: str, choices: EngineChoices, is_loose: bool) -> BoolArray:
        """Of some choices those that count where so much is believed."""
        counts = np.ones(len(choices), dtype=np.bool_)
        if not is_loose:
            held = choices.fixed_bytes + choices.moving_bytes
            counts = held <= choices.limit_bytes * self._aim.memory
        return counts & choices.counts(belief)

    def _bound(
        self,
        scale: float,
        reliefs: Mapping[str, float],
        belief: str,
        choices: EngineChoices,
        is_loose: bool,
    ) -> BlockProgram:
        """Of some choices the program of a belief, with all limits loosened at once or as it is."""
        posed = self._program(choices, scale if is_loose else self._aim.memory, belief)
        for name, relief in reliefs.items() if is_loose else ():
            posed = loosened(posed, name, relief)
        return posed
