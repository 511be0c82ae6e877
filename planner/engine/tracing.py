"""What a frontier over the deployments of an engine is traced over, its words and its judge."""

from __future__ import annotations

from functools import cached_property

from planner.deadlines import out_of_time
from planner.engine.describing import judge
from planner.engine.planning import EnginePlanner
from planner.engine_results import EngineConflict, EngineDeployment
from planner.programs.engine import pose_engine
from planner.programs.layout import Assignment
from planner.programs.narrowing import Narrowed
from planner.programs.posed import InMemory, PosedProgram
from planner.surveys import CostModel


class EngineCandidates:
    """The deployments of an engine for a request without targets on the axes.

    Args:
        planner: the request with all that it names; its objective is set against speed.

    Raises:
        OutOfTimeError: time ended before any deployment was found that fits.
    """

    def __init__(self, planner: EnginePlanner) -> None:
        self._planner = planner
        self._choices = planner.choices()
        if self._choices.is_cut and self.is_empty:
            raise out_of_time()
        self.cost_model = CostModel(name=planner.request.engine)

    @cached_property
    def source(self) -> InMemory:
        """The choices as a program; there has to be one."""
        request = self._planner.request
        posed = pose_engine(self._choices, request, objective=request.objective)
        return InMemory(posed, is_cut=self._choices.is_cut)

    @property
    def is_empty(self) -> bool:
        return not len(self._choices)

    def rejected(self, narrowed: Narrowed) -> dict[str, int]:
        """What never reached the program, by reason."""
        return {"memory": self._choices.n_considered - narrowed.n_columns}

    def conflict(self) -> EngineConflict:
        """Why there is no deployment at all."""
        return self._planner.conflict()

    def described(
        self, posed: PosedProgram, assignment: Assignment
    ) -> tuple[EngineDeployment, tuple[str, ...]]:
        """The deployment of an assignment, evaluated by itself, and the checks that it passed."""
        column = int(posed.arm[assignment.columns[0]])
        deployment = self._planner.describe(self._choices, column)
        return deployment, judge(self._planner.request, deployment)
