"""What the deployments of a runtime are counted by; written once, whoever judges an answer.

A plan, a frontier or a comparison holds deployments of one runtime or of several, each with the
request in its runtime's own words. Whoever judges them asks these questions and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from planner.results.plans import AnyDeployment, AnyRequest, VariantReport, runtime_name
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.files.tables import Provenance
from planner.verifier.findings import Finding, Path, differences


class Counting(Protocol):
    """One runtime's deployments, counted from a request in its words."""

    @property
    def runtime(self) -> str:
        """`roofline`, `vllm`, …"""

    @property
    def checks(self) -> tuple[str, ...]:
        """What every deployment passes before it goes out, in words."""

    @property
    def variants(self) -> tuple[VariantReport, ...]:
        """The variants that may be served in the model's place."""

    @property
    def may_lack(self) -> bool:
        """Whether only a search says which of these could be had."""

    def counted(self, says: Any, path: Path) -> tuple[Any, list[Finding]]:  # noqa: ANN401
        """A deployment that is true of its choice, itself where that cannot be, and all that
        is wrong with the choice, limits of the request that do not hold among it."""

    def way(self, chosen: Any) -> tuple[object, ...]:  # noqa: ANN401
        """How a deployment uses the pool: those that share it differ in less."""

    def error(self, objective: str, best: Any) -> float:  # noqa: ANN401
        """Relative standard deviation of what is predicted of an objective; 0 where unknown."""

    def provenance(self, best: Any = None) -> tuple[Provenance, ...]:  # noqa: ANN401
        """Sources of what a deployment serves, or the model asked for, and of what it runs on."""


def counting_of(request: AnyRequest) -> Counting:
    if isinstance(request, Request):
        from planner.verifier.runtimes.layouts import LayoutCounting

        return LayoutCounting(request)
    if isinstance(request, EngineRequest):
        from planner.verifier.runtimes.engines import EngineCounting

        return EngineCounting(request)
    from planner.verifier.runtimes.erdil2025 import ErdilCounting

    return ErdilCounting(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Countings:
    """The runtimes that were asked together, by name; that of the request is the first."""

    by_name: Mapping[str, Counting]

    @classmethod
    def of(cls, requests: Sequence[AnyRequest]) -> Countings:
        parts = [counting_of(one) for one in requests]
        return cls(by_name={one.runtime: one for one in parts})

    @property
    def first(self) -> Counting:
        return next(iter(self.by_name.values()))

    def of_deployment(self, deployment: AnyDeployment) -> Counting | None:
        """What a deployment is counted by; None where its runtime was not asked."""
        return self.by_name.get(runtime_name(deployment))

    def counted(self, says: AnyDeployment, path: Path) -> tuple[AnyDeployment, list[Finding]]:
        """As `Counting.counted`, by the runtime of the deployment."""
        counting = self.of_deployment(says)
        if counting is None:
            fact = f"was not asked: {', '.join(self.by_name)} were"
            return says, [Finding(path=path, says=runtime_name(says), fact=fact)]
        return counting.counted(says, path)

    def way(self, chosen: AnyDeployment) -> tuple[object, ...]:
        """How a deployment uses the pool, under which runtime."""
        counting = self.of_deployment(chosen)
        return (runtime_name(chosen), *(counting.way(chosen) if counting else ()))

    def error(self, objective: str, best: AnyDeployment) -> float:
        counting = self.of_deployment(best)
        return counting.error(objective, best) if counting else 0.0

    @property
    def variants(self) -> dict[str, VariantReport]:
        """Variants of all runtimes, by name."""
        return {one.name: one for part in self.by_name.values() for one in part.variants}

    @property
    def may_lack(self) -> bool:
        return any(part.may_lack for part in self.by_name.values())


SHARED = ("workload", "targets", "objective", "options", "confidence", "prefer")
"""What every runtime that is asked together is asked alike."""


def disagreements(requests: Sequence[AnyRequest], path: Path) -> Iterator[Finding]:
    """What another runtime was asked that the first was not, and runtimes that were asked twice.

    Args:
        path: of the other requests.
    """
    first, *others = requests
    known = {field.name for field in fields(first)}
    met = {counting_of(first).runtime}
    for i, other in enumerate(others):
        here = (*path, str(i))
        name = counting_of(other).runtime
        if name in met:
            yield Finding(path=here, says=name, fact="is asked twice")
        met.add(name)
        for field in fields(other):
            if field.name in SHARED and field.name in known:
                value, true = getattr(other, field.name), getattr(first, field.name)
                yield from differences(value, true, (*here, field.name))
