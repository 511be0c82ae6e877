"""What a runtime offers to choose from, and several of these as one program.

Whatever decides, explains, surveys or audits asks these questions and no others: none of it
knows which runtime answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.programs.layout import Assignment
from planner.programs.posed import Aim, PosedProgram, Several, Source
from planner.quantities.table import MEMORY
from planner.results.plans import AnyDeployment, AnyRequest, Considered
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.targets import Targets


class Candidates(Protocol):
    """The deployments of one model under one runtime that satisfy the form of a request."""

    @property
    def request(self) -> AnyRequest:
        """What is asked, in the runtime's words."""

    @property
    def named(self) -> AnyRequest:
        """The same in the words of whoever asked: with a model and a pool that have names."""

    @property
    def runtime(self) -> str:
        """`roofline`, `vllm`, `sglang`, `trtllm` or `erdil2025`."""

    @property
    def variant(self) -> Considered | None:
        """The variant of the model that is served; `None` of the model itself."""

    @property
    def n_candidates(self) -> int:
        """How many there are, whether they fit or not, but for those `outside`."""

    @property
    def outside(self) -> Mapping[str, int]:
        """Candidates that no program is made of, by the screen that rejected them."""

    def source(self, aim: Aim, number: int = 0) -> Source:
        """Their program.

        Args:
            aim: what it is stated for.
            number: of these candidates among those that are chosen among.
        """

    def heavier(self, aim: Aim, relief: float) -> Iterator[Source]:
        """What further memory lets in besides, in contexts that `source` has not."""

    def explained(self) -> Candidates:
        """The same without a gap, and with those that no memory there is would hold."""

    def deployment(self, posed: PosedProgram, assignment: Assignment) -> AnyDeployment:
        """What an assignment stands for, evaluated afresh.

        Raises:
            SolverError: the arrays say otherwise.
        """

    def checked(self, deployment: AnyDeployment) -> tuple[str, ...]:
        """The checks that a deployment passed, none of them by the code that found it.

        Raises:
            SolverError: it is not what it says, or breaks a limit.
        """

    def error(self, objective: str, deployment: AnyDeployment) -> float:
        """Relative standard deviation of what is predicted of an objective; 0 where unknown."""

    def with_targets(self, targets: Targets) -> Candidates:
        """The same for other targets."""

    def more_room(self) -> Iterator[tuple[str, str, Candidates]]:
        """(option, value, candidates) of requests like it with smaller weights or more devices."""

    def freed(self) -> tuple[str, str, Candidates] | None:
        """(option, value, candidates) without a policy that leaves candidates out; None of none."""

    def without_rules(self, near: AnyDeployment | None) -> Iterator[tuple[str, Candidates]]:
        """(rule of the engine, what nothing but that rule forbids), batches some apart.

        Args:
            near: the best of the runtime, whose chunk they have.
        """

    def around(self, posed: PosedProgram, assignment: Assignment) -> Candidates:
        """Of what a rule forbids all batches and chunks, as an assignment cuts the model."""

    def larger(self, served_tokens_per_s: float) -> Iterator[tuple[str, str, Candidates]]:
        """Likewise for a demand beyond the pool, of which so much is served."""

    def command(self, changes: Mapping[str, str]) -> str:
        """The command line of the request, with some options changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Candidates of several runtimes and models, chosen among in one program."""

    parts: tuple[Candidates, ...]

    def source(self, aim: Aim) -> Several:
        return Several([one.source(aim, number) for number, one in enumerate(self.parts)])

    def of(self, posed: PosedProgram, assignment: Assignment) -> Candidates:
        """Those that an assignment is of."""
        return self.parts[int(posed.model[assignment.context])]

    def deployment(self, posed: PosedProgram, assignment: Assignment) -> AnyDeployment:
        return self.of(posed, assignment).deployment(posed, assignment)

    def runtimes(self) -> tuple[str, ...]:
        """Those of the candidates, each once."""
        return tuple(dict.fromkeys(one.runtime for one in self.parts))

    def under(self, runtime: str) -> Among:
        """The candidates of one runtime; the model that is asked for stays the first."""
        return Among(parts=tuple(one for one in self.parts if one.runtime == runtime))

    def other_requests(self, first: AnyRequest) -> tuple[AnyRequest, ...]:
        """What runtimes are asked, in the order in which they were named, but for one of these."""
        asked = [self.under(name).request for name in self.runtimes()]
        return tuple(one for one in asked if one is not first)

    def with_targets(self, targets: Targets) -> Among:
        return Among(parts=tuple(one.with_targets(targets) for one in self.parts))

    def freed(self) -> Among:
        """Those without policies: nothing but limits leaves any out."""
        return Among(parts=tuple(free[2] if (free := one.freed()) else one for one in self.parts))

    def explained(self) -> Among:
        """Those of the model that is asked for; its variants are left out."""
        asked = [one for one in self.parts if one.variant is None]
        return Among(parts=tuple(one.explained() for one in asked))

    @property
    def requests(self) -> tuple[AnyRequest, ...]:
        """What all of them were asked, the first one first."""
        return (self.request, *self.other_requests(self.request))

    @property
    def request(self) -> AnyRequest:
        """What the first was asked: targets, objective and options are those of all."""
        return self.parts[0].request


def has_region(among: Among) -> bool:
    """Whether what was measured, and nothing that is asked for, says what is believed."""
    asked = (one.request for one in among.parts)
    return all(isinstance(it, EngineRequest) and it.confidence is None for it in asked)


def limits_of(among: Among) -> dict[str, float]:
    """Limits of a request by name, SI; the memory of a device is always one, of the first."""
    return {**among.request.targets.limits(), MEMORY: float("inf")}


def variants_of(parts: Sequence[Candidates]) -> tuple[Considered, ...]:
    """The variants that are chosen among, each once."""
    return tuple(dict.fromkeys(one.variant for one in parts if one.variant is not None))
