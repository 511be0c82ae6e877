"""Deployments of layouts: each by the request of the model or variant that it serves.

Of a replica of one phase its role, the axes and stages of the mesh, number formats, how weights
rest, and the batch, micro-batches, gathered axes and attention of the phase are chosen. What hands
over to what is no matter of one replica.
"""

from collections.abc import Iterator
from dataclasses import replace

from planner.results.deployments import Deployment, LayoutChoice, Memory
from planner.results.phase_deployments import PhaseDeployment
from planner.results.plans import AnyDeployment, VariantReport
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Targets
from planner.specs.files.tables import Provenance
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.runtimes import ROOFLINE
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path, refused_in
from planner.verifier.layouts import deployments
from planner.verifier.layouts.deployments import Context, layout_deployment
from planner.verifier.layouts.meshes import is_counted_off_twice
from planner.verifier.layouts.names import axes_text, storage_of
from planner.verifier.layouts.phases import (
    Counted,
    Resting,
    counted,
    phase_plan,
    planned_over_predicted,
    resting,
)
from planner.verifier.quantities import (
    MEASURES,
    broken_limits,
    further_of,
    limits_of,
    served_requests,
)
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import OVER_HEADS, Layout

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


OWN_TARGETS = {PREFILL: ("ttft",), DECODE: ("tpot", "batch")}
"""Targets that a replica keeps by itself. The TTFT has the hand-over too: it may take no more."""


def phase_deployment(
    request: Request, chosen: LayoutChoice, ground: deployments.Context
) -> tuple[PhaseDeployment, list[Finding]]:
    """The account of a replica of one phase, and what is wrong with the choice.

    Args:
        request: what was asked of the model that is served.
        ground: what it stands on.

    Raises:
        Refused: the choice cannot be, so that nothing of it can be counted.
    """
    ((role, way),) = chosen.phases.items()
    if role not in OWN_TARGETS:
        raise Invalid("does no phase by itself", path=("role",), says=role)
    mesh, record = deployments.ground_mesh(request, chosen.mesh, ground)
    formats = (chosen.weights_format, chosen.kv_format)
    rests = resting(request.model, request.cluster, mesh, formats, chosen)
    with refused_in("phase"):
        tokens = deployments.tokens_of(request)
        planned = planned_over_predicted(request, role, rests.mesh.n_devices)
        pass_ = counted(rests, way, tokens[role], planned)
    device, workload = request.cluster.device, request.workload
    phase = from_fields(
        PhaseDeployment,
        chosen,
        role=role,
        mesh=record,
        storage=storage_of(rests.stored, rests.mesh),
        phase=phase_plan(role, pass_, device),
        memory=_memory(request, role, pass_),
        usd_per_hour=record.n_devices * request.cluster.usd_per_hour,
        n_output_tokens=workload.n_output_tokens,
        n_passes=1 if role == PREFILL else workload.n_decode_steps,
        handed_bytes=_handed_bytes(request, rests),
        copied_axes=axes_text(rests.data, rests.mesh),
        sliced_axes=axes_text(rests.sliced, rests.mesh),
    )
    phase = replace(phase, further=further_of(limits_of(request.targets), phase, device))
    wrong = [*deployments.unoffered(request, chosen, request.prefill_batches_apart, ("phase",))]
    wrong += deployments.unfit(phase.memory)
    wrong += deployments.undivided(request, pass_.layout)
    wrong += deployments.unasked_layouts(request, {role: phase.phase}, ("phase",))
    wrong += _broken_targets(request, phase)
    return phase, wrong


def _memory(request: Request, role: str, pass_: Counted) -> Memory:
    """What the one phase holds: of a decode batch all of its cache, of prompts their own."""
    device, held = request.cluster.device, pass_.held
    cache = {role: held.kv_bytes}
    return from_fields(
        Memory,
        held,
        fullest=role,
        decode_kv_bytes=cache.get(DECODE, 0.0),
        prefill_kv_bytes=cache.get(PREFILL, 0.0),
        written_kv_bytes=held.written_bytes if role == DECODE else 0.0,
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
    )


def _handed_bytes(request: Request, rests: Resting) -> float:
    """The cache of one request at its input: what a single device would hold of it."""
    n_input = float(request.workload.n_input_tokens)
    one_device = replace(rests.mesh, axes=(1, 1, 1), n_stages=1)
    whole = dict.fromkeys(("stored", "gathered", "data", "sliced"), 0)
    layout = from_fields(
        Layout, rests, mesh=one_device, attention=OVER_HEADS, n_microbatches=1, **whole
    )
    return held_bytes(layout, batch=1, n_new_tokens=n_input, n_cached_tokens=n_input).kv_bytes


def _broken_targets(request: Request, phase: PhaseDeployment) -> Iterator[Finding]:
    """Targets of the phase that do not hold by the recount."""
    limits = limits_of(request.targets)
    for name in OWN_TARGETS[phase.role]:
        measure, limit = MEASURES[name], limits.get(name)
        if limit is None:
            continue
        value = measure.of(phase)
        if not measure.is_kept(value, limit, TOLERANCE):
            fact = f"has {name} {value!r}, beyond {limit!r}"
            yield Finding(path=(), says=phase.summary, fact=fact)
