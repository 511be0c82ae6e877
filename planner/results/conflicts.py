"""Why there is no plan: limits that conflict, and the least changes of them that have one."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.quantities.table import QUANTITIES
from planner.results.obstacles import Obstacle
from planner.results.plans import AnyDeployment, AnyRequest
from planner.results.records import AnswerRecord
from planner.specs.validation.hints import LATER

EXPLAINED = (
    "each limit of a conflict was left out in turn, and the others of it could be met",
    "what is reachable is proved optimal",
)
NO_CHOICE = ("no layouts, degrees and formats that are asked for go together, whatever the limits",)
UNEXPLAINED = ("time ended before it was known which limits stand in the way",)
"""How a conflict was checked, or why it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedLimit:
    """A limit that yields with others, or a policy.

    Args:
        name: the constraint's name; of a placement, `demand x` of a model.
        requested: the limit, SI.
        needed: what the plans that the least change allows come to, SI.
        limit: the same as an option has it, in few digits where these have a plan, SI.
    """

    name: str
    requested: float
    needed: float
    limit: float

    @property
    def price_fraction(self) -> float:
        """By which share the limit is loosened, half of it as much as twice; 0 of a policy."""
        is_limit = self.name.partition(" ")[0] in QUANTITIES
        return share_of(self.requested, self.needed) if is_limit else 0.0


def share_of(requested: float, needed: float) -> float:
    """By which share a limit is loosened: a most that doubles, and a least that is halved, by 1."""
    return max(requested, needed) / min(requested, needed) - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Limits that yield together, by as little as any change of them and no others allows.

    Args:
        changes: what each has to be.
        price_fraction: sum of the shares by which limits are loosened, see `RelaxedLimit` [1].
        deployment: the best with limits at these values, all others kept.
        objective: of the request, what that comes to, SI.
        command: that has it.
    """

    changes: tuple[RelaxedLimit, ...]
    price_fraction: float
    deployment: AnyDeployment
    objective: float
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(AnswerRecord):
    """Why no plan exists: limits that cannot hold together, none of which can be left out.

    Args:
        request: what was asked.
        obstacles: limits that stand in the way, those of each of `cores` together.
        cores: sets of limits that no plan holds together, and one holds without any of them.
        closest: the deployment of the cheapest relaxation; without one, what needs least memory.
        command: a command that would work, empty when none was found.
        n_candidates: candidates that were considered.
        verified: how the absence of a plan was confirmed.
        relaxations: the cheapest changes of limits that have a plan, the cheapest first; one whose
            limits are all changed in a cheaper one is none of them.
        other_requests: what other runtimes were asked, or the first in its own words.
    """

    request: AnyRequest
    obstacles: tuple[Obstacle, ...]
    closest: AnyDeployment | None
    command: str
    n_candidates: int
    verified: tuple[str, ...]
    cores: tuple[tuple[str, ...], ...] = field(default=(), metadata={LATER: True})
    relaxations: tuple[Relaxation, ...] = field(default=(), metadata={LATER: True})
    other_requests: tuple[AnyRequest, ...] = field(default=(), metadata={LATER: True})

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(obstacle.name for obstacle in self.obstacles))
        return f"no plan exists: {names} cannot hold together"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRelaxation:
    """Wishes that yield together, by as little as any change has a placement.

    Args:
        changes: what each has to be.
        price_fraction: sum of the shares by which wishes are loosened [1].
        objective: of the best with wishes at these values, all others kept, SI.
        n_replicas, n_devices, output_tokens_per_s, usd_per_hour: of all its replicas together.
        command: that has it; empty where nothing was typed.
    """

    changes: tuple[RelaxedLimit, ...]
    price_fraction: float
    objective: float
    n_replicas: int
    n_devices: int
    output_tokens_per_s: float
    usd_per_hour: float
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementConflict(AnswerRecord):
    """Why nothing can be placed: wishes that cannot hold together, none of which can go.

    Args:
        pool: name of the cluster.
        n_free, n_devices: devices that are free, and all of them.
        obstacles: the irreducible set.
        verified: how it was confirmed.
        relaxations: the cheapest changes of wishes that have a placement, the cheapest first.
    """

    pool: str
    n_free: int
    n_devices: int
    obstacles: tuple[Obstacle, ...]
    verified: tuple[str, ...]
    relaxations: tuple[PlacementRelaxation, ...] = field(default=(), metadata={LATER: True})

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(obstacle.name for obstacle in self.obstacles))
        return f"no placement exists: {names} cannot hold together"
