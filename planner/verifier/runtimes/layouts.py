"""Deployments of layouts: each by the request of the model or variant that it serves."""

from collections.abc import Iterator
from dataclasses import replace

from planner.results.deployments import Deployment
from planner.results.phase_deployments import PhaseDeployment
from planner.results.plans import AnyDeployment, VariantReport
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Targets
from planner.specs.files.tables import Provenance
from planner.specs.records.runtimes import ROOFLINE
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.layouts.deployments import Context, layout_deployment
from planner.verifier.layouts.meshes import is_counted_off_twice
from planner.verifier.layouts.phase_deployments import phase_deployment
from planner.verifier.quantities import broken_limits, served_requests

CHECKS = (
    "every constraint of the unscreened program holds",
    "seconds and bytes recounted by an independent scalar model",
    "targets hold by that recount",
)
OF_A_FLEET = "every replica put in a place of its own, and the demand served by all of them"


class LayoutCounting:
    """See `Counting`.

    Args:
        request: of the model that is asked for; its variants follow from it.
    """

    runtime = ROOFLINE.name

    def __init__(self, request: Request) -> None:
        self._request = request
        self._by_model = {one.model.name: one for one in served_requests(request)}

    @property
    def checks(self) -> tuple[str, ...]:
        is_fleet = self._request.targets.demand_tokens_per_s is not None
        return (CHECKS[0], *((OF_A_FLEET,) if is_fleet else ()), *CHECKS[1:])

    @property
    def variants(self) -> tuple[VariantReport, ...]:
        return tuple(
            from_fields(
                VariantReport, each.model.variant, name=each.model.name, title=each.model.title
            )
            for name, each in self._by_model.items()
            if name != self._request.model.name and each.model.variant is not None
        )

    @property
    def may_lack(self) -> bool:
        """Where degrees are fixed, variants that cannot have them are left out."""
        return bool(self._request.targets.degrees.fixed())

    def counted(self, says: Deployment, path: Path) -> tuple[Deployment, list[Finding]]:
        request = self.request_of(says)
        if request is None:
            fact = "is no variant that may be served"
            return says, [Finding(path=(*path, "variant"), says=says.variant, fact=fact)]
        deployment, wrong = counted_deployment(request, says, path)
        return deployment, [*wrong, *broken_targets(request.targets, deployment, path)]

    def request_of(self, deployment: Deployment) -> Request | None:
        """The request of the model that a deployment serves."""
        own = self._request.model.name
        if not deployment.variant:
            return self._by_model[own]
        return self._by_model.get(deployment.variant) if deployment.variant != own else None

    def way(self, it: Deployment) -> tuple[object, ...]:
        """Devices, formats and how weights rest.

        Where a switch is counted off along two axes, also how prefill uses them: either phase
        may be the one for whose sake there are two.
        """
        resting = (it.storage, it.copied_axes, it.sliced_axes)
        formats = (it.variant, it.weights_format, it.kv_format, it.activation_format)
        before = (it.prefill.gathered_axes, it.prefill.attention, it.prefill.batch)
        for_whom = before if is_counted_off_twice(it.mesh) else ()
        return (it.mesh.label, it.mesh.axes, it.mesh.n_stages, *formats, *resting, *for_whom)

    def error(self, objective: str, best: Deployment) -> float:
        return 0.0

    def provenance(self, best: Deployment | None = None) -> tuple[Provenance, ...]:
        served = (best and self.request_of(best)) or self._request
        model, cluster = served.model, served.cluster
        return (*model.provenance, *cluster.provenance, *cluster.device.provenance)


def counted_deployment(
    request: Request, says: Deployment, path: Path, *, ground: Context | None = None
) -> tuple[Deployment, list[Finding]]:
    """A deployment that is true of its choice; itself where that cannot be."""
    try:
        deployment, wrong = layout_deployment(request, says.choice, ground=ground)
    except Invalid as refused:
        return says, [refused.at(path)]
    return replace(deployment, variant=says.variant), [one.below(path) for one in wrong]


def counted_single_phase(
    request: Request, says: PhaseDeployment, path: Path, *, ground: Context
) -> tuple[PhaseDeployment, list[Finding]]:
    """A replica of one phase that is true of its choice; itself where that cannot be."""
    try:
        phase, wrong = phase_deployment(request, says.choice, ground)
    except Invalid as refused:
        return says, [refused.at(path)]
    return phase, [one.below(path) for one in wrong]


def broken_targets(
    targets: Targets, deployment: AnyDeployment, path: Path = (), *, tolerance: float = TOLERANCE
) -> list[Finding]:
    """Targets that do not hold by the recount of a deployment, of whatever runtime."""
    return [
        Finding(path=path, says=deployment.summary, fact=f"breaks a limit: {fact}")
        for fact in broken_limits(targets, deployment, tolerance)
    ]


Pool = tuple[int, int]
"""Devices of a pool, and of a node of it."""


def unplaceable(targets: Targets, pool: Pool, n_devices: int, n_replicas: int) -> Iterator[Finding]:
    """Another number of replicas than was asked for, or more than have devices of their own.

    One that fits a node stays in it; a larger one begins with a node of its own.

    Args:
        n_devices: of one replica.
    """
    count = targets.n_replicas
    if count is not None and n_replicas != count:
        yield Finding(path=("n_replicas",), says=n_replicas, fact=f"are not {count}")
    places = n_places(pool, n_devices)
    if not 1 <= n_replicas <= places:
        yield Finding(path=("n_replicas",), says=n_replicas, fact=f"have {places} places")


def n_places(pool: Pool, n_devices: int) -> int:
    """Replicas of so many devices that are dealt out; one wherever it fits at all."""
    whole_pool, node = pool
    step = node if n_devices <= node else -(-n_devices // node) * node
    sizes = (min(step, whole_pool - first) for first in range(0, whole_pool, step))
    whole = sum(size // n_devices if n_devices <= node else size == step for size in sizes)
    return max(whole, n_devices <= whole_pool)
