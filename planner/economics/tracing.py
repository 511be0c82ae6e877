"""What a frontier under the reference model is traced over: choices, their words, their proof."""

from __future__ import annotations

from functools import cached_property

from planner.economics.asking import as_conflict, economics_request
from planner.economics.describing import describe_choice, judge
from planner.economics.limiting import conflict_of
from planner.economics_results import EconomicsDeployment
from planner.errors import Problem
from planner.estimates.economics.choices import choices, tables_of
from planner.programs.economics import pose_economics
from planner.programs.layout import Assignment
from planner.programs.narrowing import Narrowed
from planner.programs.posed import InMemory, PosedProgram
from planner.results import Conflict
from planner.specs.defaults import ECONOMICS
from planner.specs.request import Request
from planner.surveys import CostModel


class EconomicsCandidates:
    """The deployments of a request under the reference model.

    For a split of devices and a batch everything that can be asked for grows with the time of
    a token, so the fastest layouts alone hold every point of the frontier too.

    Args:
        request: what is asked; its objective is set against speed.
        memory: one of `MEMORY_RULES`.

    Raises:
        RequestError: the reference model cannot be asked this.
    """

    def __init__(self, request: Request, *, memory: str) -> None:
        self._request = request
        self._asked = economics_request(request, memory=memory)
        self._tables = tables_of(self._asked)
        self._choices = choices(self._asked, self._tables)
        self.cost_model = CostModel(name=ECONOMICS, memory=memory, left_out=self._asked.notes)

    @cached_property
    def source(self) -> InMemory:
        """The choices as a program; there has to be one."""
        posed = pose_economics(self._choices, self._asked, objective=self._asked.objective)
        return InMemory(posed)

    @property
    def is_empty(self) -> bool:
        return not len(self._choices.batch)

    def rejected(self, narrowed: Narrowed) -> dict[str, int]:
        """What never reached the program, by reason."""
        return {"slower": self._choices.n_considered - narrowed.n_columns}

    def conflict(self) -> Conflict:
        """Why there is no deployment at all."""
        return as_conflict(self._request, conflict_of(self._asked, self._tables))

    def described(
        self, posed: PosedProgram, assignment: Assignment
    ) -> tuple[EconomicsDeployment, tuple[str, ...]]:
        """The deployment of an assignment, recounted, and the checks that it passed."""
        column = int(posed.arm[assignment.columns[0]])
        deployment = describe_choice(self._choices, self._asked, column)
        return deployment, judge(self._asked, deployment)


def axis_problems(x: str) -> list[Problem]:
    """Why a quantity cannot be kept short."""
    if x != "ttft":
        return []
    fact = "the reference model has no time to first token"
    return [Problem(where="--x", value=x, fact=fact, remedy="write `--x latency`")]
