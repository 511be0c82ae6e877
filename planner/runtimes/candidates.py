"""What a runtime offers to choose from, and several of these as one program.

Whatever decides, explains, surveys or audits asks these questions and no others: none of it
knows which runtime answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from planner.programs.blocks import BlockProgram, Objective, ProgramBlocks, ProgramUnion
from planner.programs.layout import Assignment
from planner.quantities.table import MEMORY
from planner.results.plans import AnyDeployment, AnyRequest, VariantReport
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.targets import Targets
from planner.verifier.plans import checked


class Candidates(ABC):
    """The deployments of one model under one runtime that satisfy the form of a request.

    Args:
        request: what is asked, in the runtime's words.
        runtime: `roofline`, `vllm`, `sglang`, `trtllm` or `erdil2025`.
        variant: the variant of the model that is served; `None` of the model itself.
        n_candidates: how many there are, whether they fit or not, but for those `outside`.
    """

    if TYPE_CHECKING:

        @property
        def request(self) -> AnyRequest: ...
        @property
        def runtime(self) -> str: ...
        @property
        def variant(self) -> VariantReport | None: ...
        @property
        def n_candidates(self) -> int: ...

    @property
    def named(self) -> AnyRequest:
        """The request in the words of whoever asked: with a model and a pool that have names."""
        return self.request

    @property
    def outside(self) -> Mapping[str, int]:
        """Candidates that no program is made of, by the screen that rejected them."""
        return {}

    @abstractmethod
    def source(self, aim: Objective, number: int = 0) -> ProgramBlocks:
        """Their program.

        Args:
            aim: what it is stated for.
            number: of these candidates among those that are chosen among.
        """

    def heavier(self, aim: Objective, relief: float) -> Iterator[ProgramBlocks]:
        """What further memory lets in besides, in contexts that `source` has not.

        Nothing where what more memory lets in is known of every context.
        """
        yield from ()

    def explained(self) -> Self:
        """The same without a gap, and with those that no memory there is would hold."""
        proved = replace(self.request.options, gap=0.0, proof="two", time_limit_s=None)
        return self.asking(options=proved)

    @abstractmethod
    def deployment(self, posed: BlockProgram, assignment: Assignment) -> AnyDeployment:
        """What an assignment stands for, evaluated afresh.

        Raises:
            SolverError: the arrays say otherwise.
        """

    def checked(self, deployment: AnyDeployment) -> tuple[str, ...]:
        """The checks that a deployment passed, none of them by the code that found it.

        Raises:
            SolverError: it is not what it says, or breaks a limit.
        """
        return checked(self.request, deployment)

    def error(self, objective: str, deployment: AnyDeployment) -> float:
        """Relative standard deviation of what is predicted of an objective; 0 where unknown."""
        return 0.0

    def with_targets(self, targets: Targets) -> Self:
        """The same for other targets."""
        return self.asking(targets=targets)

    def asking(self, **changes: Any) -> Self:  # noqa: ANN401
        """The same of a request with some fields changed."""
        return replace(self, request=replace(self.request, **changes))  # type: ignore[type-var]

    def more_room(self) -> Iterator[tuple[str, str, Self]]:
        """(option, value, candidates) of requests like it with smaller weights or more devices."""
        yield from ()

    def freed(self) -> tuple[str, str, Self] | None:
        """(option, value, candidates) without a policy that leaves candidates out; None of none."""
        return None

    def without_rules(self, near: AnyDeployment | None) -> Iterator[tuple[str, Self]]:
        """(rule of the engine, what nothing but that rule forbids), batches some apart.

        Args:
            near: the best of the runtime, whose chunk they have.
        """
        yield from ()

    def around(self, posed: BlockProgram) -> Self:
        """Of what a rule forbids all batches and chunks, of the cuts that are left."""
        return self

    def larger(self, served_tokens_per_s: float) -> Iterator[tuple[str, str, Self]]:
        """Likewise for a demand beyond the pool, of which so much is served."""
        yield from ()

    @abstractmethod
    def command(self, changes: Mapping[str, str]) -> str:
        """The command line of the request, with some options changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePool:
    """Candidates of several runtimes and models, chosen among in one program."""

    parts: tuple[Candidates, ...]

    def source(self, aim: Objective) -> ProgramUnion:
        return ProgramUnion([one.source(aim, number) for number, one in enumerate(self.parts)])

    def of(self, posed: BlockProgram, assignment: Assignment) -> Candidates:
        """Those that an assignment is of."""
        return self.parts[int(posed.model[assignment.context])]

    def deployment(self, posed: BlockProgram, assignment: Assignment) -> AnyDeployment:
        return self.of(posed, assignment).deployment(posed, assignment)

    def runtimes(self) -> tuple[str, ...]:
        """Those of the candidates, each once."""
        return tuple(dict.fromkeys(one.runtime for one in self.parts))

    def under(self, runtime: str) -> CandidatePool:
        """The candidates of one runtime; the model that is asked for stays the first."""
        return CandidatePool(parts=tuple(one for one in self.parts if one.runtime == runtime))

    def other_requests(self, first: AnyRequest) -> tuple[AnyRequest, ...]:
        """What runtimes are asked, in the order in which they were named, but for one of these."""
        requests = [self.under(name).request for name in self.runtimes()]
        return tuple(one for one in requests if one is not first)

    def with_targets(self, targets: Targets) -> CandidatePool:
        return CandidatePool(parts=tuple(one.with_targets(targets) for one in self.parts))

    def freed(self) -> CandidatePool:
        """Those without policies: nothing but limits leaves any out."""
        return CandidatePool(
            parts=tuple(free[2] if (free := one.freed()) else one for one in self.parts)
        )

    def explained(self) -> CandidatePool:
        """Those of the model that is asked for; its variants are left out."""
        candidates = [one for one in self.parts if one.variant is None]
        return CandidatePool(parts=tuple(one.explained() for one in candidates))

    @property
    def requests(self) -> tuple[AnyRequest, ...]:
        """What all of them were asked, the first one first."""
        return (self.request, *self.other_requests(self.request))

    @property
    def request(self) -> AnyRequest:
        """What the first was asked: targets, objective and options are those of all."""
        return self.parts[0].request


def has_region(among: CandidatePool) -> bool:
    """Whether what was measured, and nothing that is asked for, says what is believed."""
    requests = (one.request for one in among.parts)
    return all(isinstance(it, EngineRequest) and it.confidence is None for it in requests)


def limits_of(among: CandidatePool) -> dict[str, float]:
    """Limits of a request by name, SI; the memory of a device is always one, of the first."""
    return {**among.request.targets.limits(), MEMORY: float("inf")}


def variants_of(parts: Sequence[Candidates]) -> tuple[VariantReport, ...]:
    """The variants that are chosen among, each once."""
    return tuple(dict.fromkeys(one.variant for one in parts if one.variant is not None))
