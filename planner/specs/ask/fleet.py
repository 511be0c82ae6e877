"""What is asked of a fleet: classes of traffic, devices as they are, and what must hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.specs.ask.defaults import N_SIMULATED
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.pools import SiteSpec
from planner.specs.files.state import State
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ModelSpec
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import ALL_TOGETHER, LEAST_PRESENT, RoleOptions
from planner.specs.records.runtimes import ENGINES, DeploymentTable
from planner.specs.traffic.records import TrafficClass


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """One request for a fleet, defaults filled in.

    Args:
        site: the devices, of all kinds together.
        classes: of traffic, in the order in which they were said.
        engines: that replicas may run under; of several each replica has the best.
        counts: most devices of a kind by its name; of those not named, all that there are.
        places: the site of a kind by its name, of those that have one: caches are handed over
            within one.
        state: what is busy, failed, reserved, slow or narrow; None for nothing.
        roles: that replicas may have, and what hands caches over.
        sharing: whether classes of one model may share replicas.
        router: of `planner.specs.records.roles`.
        weights_formats, kv_formats: to choose from; None leaves those that are usual.
        batches, chunks: most sequences of a rank and tokens of a pass, to choose from.
        most_devices: of one replica; None for the usual most.
        limits: most `rent` [USD/h], `devices` and `power` [W], of all replicas together.
        quality_loss_fraction: that formats may lose at most; None for what is usual.
        n_simulated: requests that the fleet is tried on.
        options: how to solve; its seed is also that of the simulation.
        confidence: share of cases in which planned passes are no longer, as `EngineRequest` has it.
        tables: of the engines, on the kinds of devices that they have kernels of.
        deployments: rows of tables that are among the engines, those of the classes' requests.
    """

    site: SiteSpec
    classes: tuple[TrafficClass, ...]
    engines: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    state: State | None = None
    roles: RoleOptions = ALL_TOGETHER
    sharing: bool = True
    router: str = LEAST_PRESENT
    weights_formats: tuple[str, ...] | None = None
    kv_formats: tuple[str, ...] | None = None
    batches: tuple[int, ...] | None = None
    chunks: tuple[int, ...] | None = None
    most_devices: int | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    quality_loss_fraction: float | None = None
    n_simulated: int = N_SIMULATED
    options: SolverOptions = field(default_factory=SolverOptions)
    confidence: float | None = None
    tables: tuple[EngineTables, ...] = ()
    deployments: tuple[DeploymentTable, ...] = ()

    @property
    def has_region(self) -> bool:
        """Whether what was measured, and nothing that is asked for, says what is believed."""
        return self.confidence is None and all(name in ENGINES for name in self.engines)

    @property
    def every_model(self) -> tuple[ModelSpec | Architecture, ...]:
        return tuple(it for one in self.classes for it in one.models)

    @property
    def rate_per_s(self) -> float:
        """Requests of all classes a second."""
        return sum(one.rate_per_s for one in self.classes)
