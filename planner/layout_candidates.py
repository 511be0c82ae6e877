"""What a frontier is traced over: the planner's own candidates, their words and their judge."""

from __future__ import annotations

from typing import Protocol

from planner.describe import describe
from planner.engine_results import EngineConflict
from planner.estimates.candidates import machine_of
from planner.estimates.degrees import check_degrees
from planner.estimates.requested import table_of
from planner.explain import explain
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.programs.narrowing import Narrowed
from planner.programs.posed import PosedProgram, Source
from planner.results import Conflict
from planner.specs.request import Request
from planner.surveys import OWN, AnyDeployment, CostModel
from planner.verifier.plans import checked


class Candidates(Protocol):
    """What there is to choose from under a cost model, its words and its judge."""

    @property
    def cost_model(self) -> CostModel: ...

    @property
    def source(self) -> Source: ...

    @property
    def is_empty(self) -> bool: ...

    def rejected(self, narrowed: Narrowed) -> dict[str, int]:
        """What never reached the program, by reason."""

    def conflict(self) -> Conflict | EngineConflict: ...

    def described(
        self, posed: PosedProgram, assignment: Assignment
    ) -> tuple[AnyDeployment, tuple[str, ...]]:
        """The deployment of an assignment, and the checks that it passed."""


class LayoutCandidates:
    """The planner's own candidates for a request without targets on the axes."""

    cost_model = OWN
    is_empty = False

    def __init__(self, request: Request) -> None:
        self._request = request
        self._machine = machine_of(request.cluster, request.model)
        check_degrees(request, self._machine)
        self._table = table_of(request, self._machine)
        self.source = Posing(self._table, request, objective=request.objective)

    def rejected(self, narrowed: Narrowed) -> dict[str, int]:
        table = self._table
        return {
            "weights": table.n_too_large * table.n_of_arm,
            "memory": narrowed.posed.n_unfit,
        }

    def conflict(self) -> Conflict:
        return explain(self._request, self._machine)

    def described(
        self, posed: PosedProgram, assignment: Assignment
    ) -> tuple[AnyDeployment, tuple[str, ...]]:
        """The deployment of an assignment, and the checks that it passed."""
        deployment = describe(self._table, posed, self._request, assignment)
        return deployment, checked(self._request, deployment)
