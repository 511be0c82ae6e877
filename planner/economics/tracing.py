"""What a frontier under the reference model is traced over: choices, their words, their proof."""

from __future__ import annotations

from functools import cached_property

from planner.economics.asking import as_conflict, economics_request
from planner.economics.describing import describe_choice, judge
from planner.economics.limiting import conflict_of
from planner.economics_results import EconomicsDeployment
from planner.errors import Problem
from planner.estimates.economics.choices import choices, tables_of
from planner.programs.deployment import PosedProgram
from planner.programs.economics import pose_economics
from planner.programs.layout import Assignment
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
    def posed(self) -> PosedProgram:
        """The choices as a program; there has to be one."""
        return pose_economics(self._choices, self._asked, objective=self._asked.objective)

    @property
    def is_empty(self) -> bool:
        return not len(self._choices.batch)

    @property
    def n_considered(self) -> int:
        return self._choices.n_considered

    @property
    def rejected(self) -> dict[str, int]:
        """What never reached the program, by reason."""
        return {"slower": self.n_considered - len(self._choices.batch)}

    def conflict(self) -> Conflict:
        """Why there is no deployment at all."""
        return as_conflict(self._request, conflict_of(self._asked, self._tables))

    def described(self, assignment: Assignment) -> tuple[EconomicsDeployment, tuple[str, ...]]:
        """The deployment of an assignment, recounted, and the checks that it passed."""
        deployment = describe_choice(self._choices, self._asked, assignment.columns[0])
        return deployment, judge(self._asked, deployment)


def axis_problems(x: str) -> list[Problem]:
    """Why a quantity cannot be kept short."""
    if x != "ttft":
        return []
    fact = "the reference model has no time to first token"
    return [Problem(where="--x", value=x, fact=fact, remedy="write `--x latency`")]
