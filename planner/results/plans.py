"""What the planner answers, as frozen records in SI units.

A `Plan` holds one deployment, the next best ones, and the `Certificate` that proves it.
A request without a plan ends in a `Conflict`. Reports read these records and compute
nothing that is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from planner.quantities.units import show
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.records import AnswerRecord
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.quality import with_variants
from planner.specs.ask.request import Request
from planner.specs.records.certificates import Certificate
from planner.specs.records.devices import Provenance
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.runtimes import ERDIL2025, ROOFLINE
from planner.specs.validation.hints import LATER, computed

if TYPE_CHECKING:  # pools are read from files, which an error without any need not wait for
    from planner.results.arrivals import Load
    from planner.results.placements import Placement

AnyDeployment = Deployment | EngineDeployment | EconomicsDeployment
"""What runs, whichever runtime: all of them know speed, money, devices, memory and formats."""

AnyRequest = Request | EngineRequest | EconomicsRequest
"""What is asked, in a runtime's words: all of them have targets, an objective and options."""


def runtime_name(deployment: AnyDeployment) -> str:
    """Who runs a deployment and times it, as options write it."""
    if isinstance(deployment, EngineDeployment):
        return deployment.engine
    return ROOFLINE.name if isinstance(deployment, Deployment) else ERDIL2025.name


_R = TypeVar("_R", bound=AnyRequest, covariant=True)
_D = TypeVar("_D", bound=AnyDeployment, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Generic[_D]):
    """The best of another way to use the pool.

    Args:
        objective: SI.
        loss_fraction: what it loses of the best objective.
        is_tie: it loses less than the error of what is predicted.
    """

    deployment: _D
    objective: float
    loss_fraction: float
    is_tie: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """A limit of the request and what the plan uses of it, in the limit's own unit.

    Args:
        name: the constraint's name: `tpot`, `ttft`, `cost`, `devices`, `batch`, `demand`, `hbm`.
        used: what the plan uses or reaches, SI.
        limit: what was asked, SI.
        dimension: of both, as `units.show` takes it.
        relief: factor by which the limit was loosened to see what it costs.
        gain_fraction: share of the objective that the loosened limit would gain, exactly;
            `None` where the search was cut short, and of the demand.
    """

    name: str
    used: float
    limit: float
    dimension: str
    relief: float
    gain_fraction: float | None

    @property
    def binds(self) -> bool:
        """Whether the plan would be better if this limit were looser."""
        return self.gain_fraction is not None and self.gain_fraction > 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantReport:
    """A variant that could have been served in the model's place.

    Args:
        name, title: its names.
        quality_loss_fraction: what it loses of the model's quality; None where nobody says [1].
        quality: where that is known from.
    """

    name: str
    title: str
    quality_loss_fraction: float | None
    quality: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival(Generic[_D]):
    """The best that one runtime has, where several were asked.

    Args:
        runtime: its name.
        deployment: its best; `None` where nothing of it satisfies the request, or time ended.
        objective: SI; `None` likewise.
        loss_fraction: what it loses of the best objective of all.
        error_fraction: of what it loses, below which it is the better one in more than a third
            of all cases, as both predictions err apart; 0 of what is not predicted, and of the
            best itself.
    """

    runtime: str
    deployment: _D | None
    objective: float | None
    loss_fraction: float | None
    error_fraction: float = 0.0

    @property
    def is_tie(self) -> bool:
        """Whether predictions cannot tell it from the best, which it is not itself."""
        return self.loss_fraction is not None and self.loss_fraction < self.error_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCost:
    """What a plan would gain if an engine started what one of its rules alone forbids.

    Args:
        rule: its name.
        deployment: the best that was met of what it forbids; no command starts it.
        objective: SI.
        gain_fraction: share of the best objective, `RULE_SHARE` or more; nothing proves that no
            deployment gains more.
    """

    rule: str
    deployment: EngineDeployment
    objective: float
    gain_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGain:
    """What a plan would gain of a machine with more of something, or less where that is better.

    Args:
        name: of what, as `--what-if` has it.
        factor: so many times as much [1].
        objective: the best then, SI.
        gain_fraction: share of the best objective.
    """

    name: str
    factor: float
    objective: float
    gain_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(AnswerRecord, Generic[_R, _D]):
    """The answer to a request.

    Args:
        request: what was asked, variants of the model that may take its place among it.
        deployment: the plan.
        alternatives: the best of other ways to use the pool, the nearest first.
        limits: what the plan uses of each.
        certificate: the proof.
        provenance: where the constants come from.
        variants: models that could have been served in the model's place.
        error_fraction: relative standard deviation of the best objective, where it is known;
            plans that lose less of it are ties.
        n_ties: ways to use the pool, the plan's own left out, whose best loses less.
        given_up_fraction: what the plan loses of the best objective for being simpler.
        rivals: the best of each runtime that was asked, where several were.
        other_requests: what the other runtimes were asked, each in its own words.
        mix: of a demand, the best replicas of several sorts that were found; its certificate
            bounds what any of them serve it for. None where nobody asked, or time ended before.
        inside: the best whose settings were all measured, at what is predicted; None where there
            is none, where nothing was left to the planner to believe, or time ended before.
        anywhere: the best if all that is predicted held, measured or not; None likewise.
        rule_costs: rules of engines without which the plan would gain much, the dearest first.
        load: of a demand, what it does at its requests where they come at random times; None
            without one.
        gains: of more of each resource of the machine by itself, the most first; where asked.
    """

    request: _R
    deployment: _D
    alternatives: tuple[Alternative[_D], ...]
    limits: tuple[LimitUse, ...]
    certificate: Certificate
    provenance: tuple[Provenance, ...]
    variants: tuple[VariantReport, ...] = ()
    error_fraction: float = 0.0
    n_ties: int = 0
    given_up_fraction: float = 0.0
    rivals: tuple[Rival[_D], ...] = ()
    other_requests: tuple[_R, ...] = ()
    mix: Placement | None = None
    inside: Alternative[_D] | None = None
    anywhere: Alternative[_D] | None = None
    rule_costs: tuple[RuleCost, ...] = ()
    load: Load | None = None
    gains: tuple[ResourceGain, ...] = field(default=(), metadata={LATER: True})

    @property
    def cheaper_mix(self) -> Placement | None:
        """The mix, where it serves for less than alike replicas by more than the gap asked for."""
        most = self.request.options.gap + 1e-9
        return self.mix if self.mix is not None and 1.0 - self.of_alike(self.mix) > most else None

    def of_alike(self, mix: Placement) -> float:
        """Rent or devices of a mix, over those of the plan."""
        by_devices = mix.certificate.objective_name == "devices"
        alike = float(self.deployment.n_devices) if by_devices else self.deployment.usd_per_hour
        return mix.certificate.objective / alike

    @computed
    def n_assumed(self) -> int:
        """Constants of the inputs that have no published source."""
        return sum(value.is_assumed for value in self.provenance)

    def __str__(self) -> str:
        best, proof = self.deployment, self.certificate
        times = f"TPOT {show(best.planned_tpot_s, 's')}, "
        if not isinstance(best, EconomicsDeployment):  # which knows decode only
            times += f"TTFT {show(best.planned_ttft_s, 's')}, "
        return "\n".join(
            (
                best.summary,
                f"{times}"
                f"{show(best.usd_per_token, 'USD/token')}, {show(best.usd_per_hour, 'USD/h')}",
                f"{proof.status}, gap {proof.gap:.3g}, {proof.n_candidates} candidates, "
                f"{proof.solver}, verified",
            )
        )


LayoutPlan = Plan[Request, Deployment]
EnginePlan = Plan[EngineRequest, EngineDeployment]
ErdilPlan = Plan[EconomicsRequest, EconomicsDeployment]
AnyPlan = Plan[AnyRequest, AnyDeployment]


def served_by(request: Request, deployment: Deployment) -> Request:
    """The request of the model that a deployment serves.

    Raises:
        KeyError: it serves none that was asked for.
    """
    requests = with_variants(request)
    named = {"": requests[0], **{one.model.name: one for one in requests[1:]}}
    return named[deployment.variant]
