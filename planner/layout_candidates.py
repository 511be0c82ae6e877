"""What a frontier is traced over: the planner's own candidates, their words and their judge."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from planner.describe import describe
from planner.engine_results import EngineConflict
from planner.estimates.candidates import machine_of
from planner.estimates.degrees import check_degrees
from planner.estimates.requested import table_of
from planner.explain import explain
from planner.programs.deployment import PosedProgram, pose
from planner.programs.layout import Assignment
from planner.results import Conflict
from planner.specs.request import Request
from planner.surveys import OWN, AnyDeployment, CostModel
from planner.verifier.plans import checked


class Candidates(Protocol):
    """What there is to choose from under a cost model, its words and its judge."""

    @property
    def cost_model(self) -> CostModel: ...

    @property
    def posed(self) -> PosedProgram: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def n_considered(self) -> int: ...

    @property
    def rejected(self) -> dict[str, int]: ...

    def conflict(self) -> Conflict | EngineConflict: ...

    def described(self, assignment: Assignment) -> tuple[AnyDeployment, tuple[str, ...]]: ...


class LayoutCandidates:
    """The planner's own candidates for a request without targets on the axes."""

    cost_model = OWN
    is_empty = False

    def __init__(self, request: Request) -> None:
        self._request = request
        self._machine = machine_of(request.cluster, request.model)
        check_degrees(request, self._machine)
        self._table = table_of(request, self._machine)

    @cached_property
    def posed(self) -> PosedProgram:
        return pose(self._table, self._request, objective=self._request.objective)

    @property
    def n_considered(self) -> int:
        rejected = self.rejected
        return self.posed.program.n_columns + rejected["memory"] + rejected["weights"]

    @property
    def rejected(self) -> dict[str, int]:
        """What never reached the program, by reason."""
        table = self._table
        n_decodes = len(table.variants) * len(table.decode.batches)
        n_too_large = table.n_too_large * (len(table.prefill.batches) + n_decodes)
        return {"weights": n_too_large, "memory": self.posed.n_unfit}

    def conflict(self) -> Conflict:
        return explain(self._request, self._machine)

    def described(self, assignment: Assignment) -> tuple[AnyDeployment, tuple[str, ...]]:
        """The deployment of an assignment, and the checks that it passed."""
        deployment = describe(self._table, self.posed, self._request, assignment)
        return deployment, checked(self._request, deployment)
