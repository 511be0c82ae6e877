"""Decode by the reference model of [Erdil2025], with deployable integers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from planner.errors import SolverError
from planner.estimates.economics.choices import Choices, Tables, choices, joined_choices, tables_of
from planner.estimates.economics.passes import LayoutRows
from planner.programs.blocks import BlockProgram, InMemory, Objective
from planner.programs.economics import pose_economics
from planner.programs.layout import Assignment, keeping
from planner.quantities.table import GIB
from planner.results.erdil2025 import EconomicsChoice, EconomicsDeployment, Split
from planner.runtimes.candidates import Candidates
from planner.runtimes.describe import agree
from planner.runtimes.erdil_requests import economics_request
from planner.solvers.search import optimum
from planner.solvers.solution import Status
from planner.specs.ask.defaults import command_of, make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.request import Request
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.runtimes import ERDIL2025
from planner.verifier.findings import Invalid
from planner.verifier.runtimes.erdil2025 import economics_deployment

MEMORY = "memory"
CLOSER = 1.0 - 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class ErdilCandidates(Candidates):
    """The fastest layout that fits, for every format, split of devices and batch.

    For a split of devices and a batch everything that can be asked for grows with the time of
    a token, so the fastest layouts alone hold every best plan, and every point of a frontier.

    Args:
        request: in the reference model's records.
        asked: the request that it comes from; `None` where it was written in them.
    """

    request: EconomicsRequest
    asked: Request | None = None
    _lists: list[Choices] = field(init=False, default_factory=list)

    runtime = ERDIL2025.name
    variant = None

    @property
    def named(self) -> Request | EconomicsRequest:
        return self.asked or self.request

    @cached_property
    def tables(self) -> tuple[Tables, ...]:
        return tables_of(self.request)

    @cached_property
    def choices(self) -> Choices:
        return choices(self.request, self.tables)

    @property
    def n_candidates(self) -> int:
        return len(self.choices.batch)

    @property
    def outside(self) -> Mapping[str, int]:
        return {"slower": self.choices.n_considered - len(self.choices.batch)}

    def source(self, aim: Objective, number: int = 0) -> InMemory:
        def posed(choices: Choices, memory_scale: float = aim.memory) -> BlockProgram:
            self._lists.append(choices)
            return pose_economics(
                choices,
                self.request,
                aim,
                memory_scale=memory_scale,
                model=number,
                variant=len(self._lists) - 1,
            )

        def roomier(times: float) -> BlockProgram:
            """What fits as it is, and layouts of which some do not, on devices of more memory."""
            room = self.request.hbm_bytes
            more = choices(self.request, self.tables, memory_scale=times, tight_bytes=room)
            return posed(joined_choices([self.choices, more]), times)

        if aim.memory == 1.0:
            return InMemory(replace(posed(self.choices), roomier=roomier))
        listed = choices(self.request, self.tables, memory_scale=aim.memory)
        best = posed(listed)
        if aim.objective != MEMORY:
            return InMemory(best)
        # with less memory other layouts are the fastest that fit: those of the last memory in
        # which anything keeps the limits hold the one that needs least
        while (least := self._least_bytes(best)) is not None:
            scale = float(np.nextafter(least / self.request.hbm_bytes, 0.0)) * CLOSER
            listed = choices(self.request, self.tables, memory_scale=scale)
            if not len(listed.batch):
                break
            less = posed(listed)
            if self._least_bytes(less) is None:
                break
            best = less
        return InMemory(best)

    def _least_bytes(self, posed: BlockProgram) -> float | None:
        """What the plan that needs least memory holds; None where nothing keeps the limits."""
        if len(posed.program.slots) > 1:
            least = optimum(InMemory(posed), self.request.options)
            return None if least.status is Status.INFEASIBLE else least.objective / GIB
        kept = keeping(posed.program)
        return float(self._lists[-1].held_bytes[kept].min()) if kept.any() else None

    def deployment(self, posed: BlockProgram, assignment: Assignment) -> EconomicsDeployment:
        column = assignment.columns[0]
        choices = self._lists[int(posed.variant[column])]
        targets = self.request.targets
        n_replicas, demand = posed.fleet(1, assignment, targets)
        candidates = self.with_targets(replace(targets, demand_tokens_per_s=demand))
        return candidates.described(choices, int(posed.arm[column]), n_replicas)

    def described(self, choices: Choices, choice: int, n_replicas: int = 1) -> EconomicsDeployment:
        """Replicas of one of some choices, by the account.

        Raises:
            SolverError: the arrays say otherwise, or the account refuses the choice.
        """
        n_drafted = int(choices.n_drafted[choice])
        chosen = EconomicsChoice(
            weights_format=self.request.served[int(choices.served[choice])].weights_format,
            layout=_layout(choices.ways, choice),
            batch=int(choices.batch[choice]),
            n_drafted=n_drafted,
            draft_layout=_layout(choices.draft_ways, choice) if n_drafted else None,
            n_replicas=n_replicas,
        )
        try:
            deployment, _ = economics_deployment(self.request, chosen)
        except Invalid as refused:
            raise SolverError(f"the account refuses the choice: {refused.at(())}") from None
        agree(
            {
                "time of a token": (choices.token_s[choice], deployment.tpot_s),
                "memory": (choices.held_bytes[choice], deployment.used_bytes),
            }
        )
        return deployment

    def command(self, changes: Mapping[str, str]) -> str:
        if self.asked is None:
            return ""
        return command_of(self.asked, changes, ERDIL2025.name)


def erdil_candidates(
    model: ModelSpec, cluster: ClusterSpec, choices: PlanOptions
) -> tuple[ErdilCandidates, ...]:
    """Of the model that is asked for.

    Raises:
        RequestError: the request cannot be read, or the reference model knows no such pool.
    """
    request = make_request(model, cluster, choices)
    stated = economics_request(request, memory=choices.memory)
    return (ErdilCandidates(request=stated, asked=request),)


def _layout(ways: LayoutRows, column: int) -> Split:
    names = (degree.name for degree in fields(Split))
    return Split(**{name: int(getattr(ways, name)[column]) for name in names})
