"""What else would be placed: the best that was measured, and the best if predictions held."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from planner.errors import OutOfTimeError
from planner.placing.alike import preferred
from planner.placing.describing import chosen_of, placement_of
from planner.placing.fabrics.site import OfferedOnNodes
from planner.placing.program import UNITS
from planner.placing.searching import Asked, Search, searched
from planner.results.engines import EngineDeployment
from planner.results.placements import OtherPlacement, Placed, Placement
from planner.running.deadlines import is_over
from planner.specs.region import INSIDE, MEDIAN


def beside(asked: Asked, search: Search, found: Placement) -> Placement:
    """A placement with the best inside the measured region, and at what is predicted anywhere.

    Nothing is timed for them: the one leaves deployments out, the other counts them otherwise.
    """
    if not asked.request.has_region:
        return found
    best = {belief: _other(asked, search, found, belief) for belief in (INSIDE, MEDIAN)}
    return replace(found, inside=best[INSIDE], anywhere=best[MEDIAN])


def is_measured(one: Placed) -> bool:
    """Whether all its replicas are inside the measured region."""
    deployments = [it.deployment for it in one.recipes]
    return all(isinstance(it, EngineDeployment) and not it.outside for it in deployments)


def _other(asked: Asked, search: Search, found: Placement, belief: str) -> OtherPlacement | None:
    """The best by a belief; None where there is none, or nobody knows."""
    if is_over() or not search.solution.status.is_final:
        return None
    best: Placement | None = found
    if belief == MEDIAN or not is_measured(found):  # else nothing inside is better
        best = _placed(asked, search, belief)
    if best is None:
        return None
    value, least = best.certificate.objective, found.certificate.objective
    sign = math.copysign(1.0, UNITS[asked.request.objective][0])
    return OtherPlacement(
        objective=value,
        loss_fraction=sign * (value - least) / abs(least) if least else 0.0,
        recipes=best.recipes,
        replicas=best.replicas,
        served=best.served,
        handovers=best.handovers,
    )


def _placed(asked: Asked, search: Search, belief: str) -> Placement | None:
    began_s, request, offered = time.perf_counter(), asked.request, search.offered
    assert isinstance(offered, OfferedOnNodes)
    request = replace(request, confidence=0.0) if belief == MEDIAN else request
    asked = replace(asked, request=request)
    try:
        other = searched(asked, offered.believing(belief))
    except OutOfTimeError:
        return None
    if other.solution.answer is None or other.is_nothing or not other.solution.status.is_final:
        return None
    return placement_of(asked, chosen_of(preferred(asked, other)), began_s=began_s)
