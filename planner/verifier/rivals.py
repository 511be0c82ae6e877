"""The best of each runtime that was asked, counted anew and held against what is listed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from planner.results import AnyDeployment, Rival, runtime_name
from planner.verifier.findings import Finding, Path
from planner.verifier.quantities import Measure
from planner.verifier.runtimes.counting import Countings

CLOSE = 1e-8

Rivals = tuple[Rival[AnyDeployment], ...]


class Scale(Protocol):
    """What plans are compared by."""

    @property
    def measure(self) -> Measure:
        """The objective."""

    def lost(self, one: AnyDeployment) -> float:
        """What a deployment loses of the best."""


def judged_rivals(
    says: Rivals, among: Countings, listed: Sequence[AnyDeployment], scale: Scale
) -> tuple[Rivals, list[Finding]]:
    """The rivals that are true of their deployments, and what cannot be of them.

    Args:
        listed: the plan and the next best ones, counted: none may be better than the best of
            its own runtime.
    """
    wrong = list(_unasked(says, among))
    found: list[Rival[AnyDeployment]] = []
    for i, one in enumerate(says):
        here: Path = ("rivals", str(i))
        if one.deployment is None:  # time ended, or nothing of it satisfies the request
            found.append(replace(one, objective=None, loss_fraction=None))
            continue
        best, more = among.counted(one.deployment, (*here, "deployment"))
        wrong += [*more, *_misplaced(one, best, here, listed, scale)]
        value = scale.measure.of(best)
        is_so = one.objective is not None and math.isclose(one.objective, value, rel_tol=CLOSE)
        found.append(
            Rival(
                runtime=one.runtime,
                deployment=best,
                objective=one.objective if is_so else value,
                loss_fraction=scale.lost(best),
            )
        )
    return tuple(found), wrong


def _unasked(says: Rivals, among: Countings) -> Iterator[Finding]:
    """Runtimes that were asked and of which nothing is said, or that were not, or said twice."""
    asked = sorted(among.by_name) if len(among.by_name) > 1 else []
    said = sorted(one.runtime for one in says)
    if said != asked:
        fact = f"are not {', '.join(asked) or 'none'}, which were asked"
        yield Finding(path=("rivals",), says=", ".join(said), fact=fact)


def _misplaced(
    says: Rival[AnyDeployment],
    best: AnyDeployment,
    here: Path,
    listed: Sequence[AnyDeployment],
    scale: Scale,
) -> Iterator[Finding]:
    """The best of a runtime that is of another, beats the plan, or is beaten by what is listed."""
    if runtime_name(best) != says.runtime:
        fact = f"is of {runtime_name(best)}"
        yield Finding(path=(*here, "runtime"), says=says.runtime, fact=fact)
    lost = scale.lost(best)
    if lost < -CLOSE:
        yield Finding(
            path=(*here, "objective"), says=says.objective, fact="is better than the plan"
        )
    of_it = [scale.lost(one) for one in listed if runtime_name(one) == says.runtime]
    if of_it and min(of_it) < lost - CLOSE:
        fact = f"is not the best of {says.runtime}: one is listed here that is better"
        yield Finding(path=(*here, "objective"), says=says.objective, fact=fact)
