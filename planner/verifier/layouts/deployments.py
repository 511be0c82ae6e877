"""The account of a deployment of layouts, from the request and from what was chosen.

Chosen are the axes and stages of the mesh, number formats, how weights rest, the batches and
micro-batches of both phases, the axes they gather weights over, what attention is cut over, how
far is drafted, and the number of replicas. Each has to be a choice that the request and the pool
allow; everything else follows from it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from planner.results.deployments import (
    Deployment,
    DraftChoice,
    DraftPlan,
    LayoutChoice,
    Memory,
    Mesh,
    PhaseChoice,
    PhasePlan,
)
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Speculation
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path, refused_in
from planner.verifier.layouts.meshes import Handing, Opening, mesh_of
from planner.verifier.layouts.names import axes_text, layout_name, storage_of
from planner.verifier.layouts.phases import (
    Counted,
    Resting,
    Tokens,
    counted,
    phase_plan,
    planned_over_predicted,
    resting,
)
from planner.verifier.quantities import further_of, limits_of
from planner.verifier.scalar.parts import expert_ways
from planner.verifier.scalar.replicas import fleet_usd_per_token, places
from planner.verifier.scalar.shapes import Layout, ScalarMesh


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a deployment of a placement stands on, beside the cluster that its devices make.

    Args:
        opening: of a slice among others.
        handing: of stages in several leaves.
        n_alike: replicas on such a mesh.
    """

    opening: Opening | None = None
    handing: Handing | None = None
    n_alike: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedDraft:
    """The draft of a deployment, counted."""

    pass_: Counted
    n_scored: int
    n_yielded: float
    speculation: Speculation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    """Both phases, and the draft where there is one."""

    prefill: Counted
    decode: Counted
    draft: CountedDraft | None

    def token_s(self, n_drafted: int) -> float:
        """Mean time of an output token; with a draft, a round over what it yields."""
        round_s = self.decode.time.total_s
        if self.draft is None:
            return round_s
        return (round_s + n_drafted * self.draft.pass_.time.total_s) / self.draft.n_yielded


def layout_deployment(
    request: Request, chosen: LayoutChoice, *, ground: Context | None = None
) -> tuple[Deployment, list[Finding]]:
    """The account of a layout of both phases, and what is wrong with the choice.

    Args:
        request: what was asked of the model that is served.
        ground: of a placement's.

    Raises:
        Refused: the choice cannot be, so that nothing of it can be counted.
    """
    mesh, record = ground_mesh(request, chosen.mesh, ground)
    formats = (chosen.weights_format, chosen.kv_format)
    rests = resting(request.model, request.cluster, mesh, formats, chosen)
    both = _phases(request, chosen, rests)
    deployment = _assembled(request, chosen, record, rests, both)
    wrong = [*unoffered(request, chosen, request.prefill_batches), *unfit(deployment.memory)]
    wrong += _unserved(request, mesh, deployment)
    wrong += undivided(request, both.decode.layout)
    wrong += unasked_layouts(request, {"prefill": deployment.prefill, "decode": deployment.decode})
    return deployment, wrong


def ground_mesh(request: Request, says: Mesh, ground: Context | None) -> tuple[ScalarMesh, Mesh]:
    """The mesh that a deployment says, on what it stands on, and the record that is true of it.

    Raises:
        Refused: there is none.
    """
    on = ground or Context()
    with refused_in("mesh"):
        mesh, record = mesh_of(request.cluster, says, opening=on.opening, handing=on.handing)
    if mesh.n_stages > request.model.n_layers:
        raise Invalid("are more than layers", path=("mesh", "n_stages"), says=mesh.n_stages)
    return mesh, record if ground is None else replace(record, n_positions=ground.n_alike)


def unoffered(
    request: Request, chosen: LayoutChoice, prefill_batches: Collection[int], at: Path = ()
) -> Iterator[Finding]:
    """Formats and batches that the request does not offer.

    Args:
        at: of the phase, where it is the only one.
    """
    offered = {"prefill": prefill_batches, "decode": request.batches}
    # eight bits of one kind are not multiplied with eight of another
    clashing = {"int8": "fp8", "fp8": "int8"}.get(chosen.weights_format)
    sent = [name for name in request.activation_formats or ("",) if name != clashing]
    for path, says, known in (
        (("weights_format",), chosen.weights_format, request.weights_formats),
        (("kv_format",), chosen.kv_format, request.kv_formats),
        (("activation_format",), chosen.activation_format, sent),
        *(
            ((*(at or (role,)), "batch"), phase.batch, offered[role])
            for role, phase in chosen.phases.items()
        ),
    ):
        if says not in known:
            yield Finding(path=path, says=says, fact="is none of what was offered")


def _phases(request: Request, chosen: LayoutChoice, rests: Resting) -> _Both:
    of, draft = tokens_of(request), None
    if chosen.draft is not None:
        with refused_in("draft"):
            draft = drafted(request, chosen, chosen.draft, rests.mesh, of["decode"])
        of["decode"] = replace(of["decode"], n_new=float(draft.n_scored))
    passes = {}
    for name, tokens in of.items():
        with refused_in(name):
            planned = planned_over_predicted(request, name, rests.mesh.n_devices)
            passes[name] = counted(rests, chosen.phases[name], tokens, planned)
    return _Both(prefill=passes["prefill"], decode=passes["decode"], draft=draft)


def tokens_of(request: Request) -> dict[str, Tokens]:
    """Tokens of a pass of each phase; decode is taken at its mean context.

    Of a diffusion decoder all of a sequence passes each time, so often for each token, with
    nothing kept in between.
    """
    workload, variant = request.workload, request.model.variant
    n_input = float(workload.n_input_tokens)
    if variant is not None and variant.n_denoising_steps and variant.n_block_tokens:
        n = n_input + workload.n_output_tokens
        times = variant.n_denoising_steps / variant.n_block_tokens
        first = Tokens(n_new=n, n_context=n, n_cached=0.0, n_logits=n)
        return {"prefill": first, "decode": replace(first, n_times=times)}
    return {
        "prefill": Tokens(n_new=n_input, n_context=n_input, n_cached=n_input),
        "decode": Tokens(
            n_new=1.0,
            n_context=workload.mean_decode_context,
            n_cached=float(workload.n_cached_tokens),
            n_found=n_input,
        ),
    }


def drafted(
    request: Request,
    chosen: LayoutChoice,
    plan: DraftChoice | DraftPlan,
    mesh: ScalarMesh,
    tokens: Tokens,
) -> CountedDraft:
    """The draft on the devices of its target, one token of each sequence at a time."""
    speculation = request.speculation
    if speculation is None:
        raise Invalid("was not offered", path=("n_drafted",), says=plan.n_drafted)
    if plan.n_drafted not in speculation.lookaheads:
        raise Invalid("is none of what was offered", path=("n_drafted",), says=plan.n_drafted)
    draft = speculation.draft
    has_format = chosen.weights_format in draft.published_weights
    weights = chosen.weights_format if has_format else draft.published_weights[0]
    rests = resting(draft, request.cluster, mesh, (weights, draft.kv_format), plan)
    way = PhaseChoice(
        batch=chosen.phases["decode"].batch,
        n_microbatches=1,
        attention=plan.attention,
        gathered_axes=plan.gathered_axes,
    )
    # the target scores what was drafted and, in the usual convention, one position more, each
    # of which is reached if all before it were accepted
    n_scored = plan.n_drafted + (speculation.convention == "usual")
    planned = planned_over_predicted(request, "decode", mesh.n_devices)
    n_yielded = sum(speculation.acceptance**n for n in range(n_scored))
    return CountedDraft(
        pass_=counted(rests, way, tokens, planned),
        n_scored=n_scored,
        n_yielded=n_yielded,
        speculation=speculation,
    )


def _assembled(
    request: Request, chosen: LayoutChoice, mesh: Mesh, rests: Resting, both: _Both
) -> Deployment:
    """The record of what was counted."""
    device, workload = request.cluster.device, request.workload
    demand = request.targets.demand_tokens_per_s
    is_fleet = demand is not None or request.targets.n_replicas is not None
    n_replicas = chosen.n_replicas if is_fleet else 1
    n_drafted = chosen.draft.n_drafted if chosen.draft else 0
    prefill_s = both.prefill.time.total_s / both.prefill.way.batch
    decode_s = workload.n_decode_steps * both.token_s(n_drafted) / both.decode.way.batch
    request_s = prefill_s + decode_s
    usd_per_token = fleet_usd_per_token(
        n_replicas=n_replicas,
        n_devices_each=mesh.n_devices,
        usd_per_device_hour=request.cluster.usd_per_hour,
        request_s=request_s,
        n_output_tokens=workload.n_output_tokens,
        demand_tokens_per_s=demand,
    )
    deployment = from_fields(
        Deployment,
        chosen,
        mesh=mesh,
        storage=storage_of(rests.stored, rests.mesh),
        prefill=phase_plan("prefill", both.prefill, device),
        decode=phase_plan("decode", both.decode, device),
        memory=_memory(request, both),
        usd_per_hour=n_replicas * mesh.n_devices * request.cluster.usd_per_hour,
        usd_per_token=usd_per_token,
        prefill_usd_per_token=usd_per_token * prefill_s / request_s,
        request_s=request_s,
        n_output_tokens=workload.n_output_tokens,
        draft=None if both.draft is None else _draft_plan(both.draft, n_drafted),
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        copied_axes=axes_text(rests.data, rests.mesh),
        sliced_axes=axes_text(rests.sliced, rests.mesh),
    )
    return replace(deployment, further=further_of(limits_of(request.targets), deployment, device))


def _memory(request: Request, both: _Both) -> Memory:
    """The busiest device at its fullest: no sequence is in both phases at once.

    In a prefill there is the cache of the decode batch, or that of the sequences of the prefill
    and what decode wrote since they came; in a decode pass that of its batch.
    """
    device, before, after = request.cluster.device, both.prefill.held, both.decode.held
    cache = max(after.kv_bytes, before.kv_bytes + after.written_bytes)
    in_prefill = cache + before.activation_bytes + before.gather_bytes
    in_decode = after.kv_bytes + after.activation_bytes + after.gather_bytes
    during = after if in_decode > in_prefill else before
    return from_fields(
        Memory,
        during,
        fullest="decode" if during is after else "prefill",
        weights_bytes=after.weights_bytes,
        decode_kv_bytes=after.kv_bytes,
        prefill_kv_bytes=before.kv_bytes,
        written_kv_bytes=after.written_bytes,
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
        draft_bytes=0.0 if both.draft is None else both.draft.pass_.all_bytes,
    )


def _draft_plan(draft: CountedDraft, n_drafted: int) -> DraftPlan:
    layout, pass_ = draft.pass_.layout, draft.pass_
    return DraftPlan(
        model=layout.model.name,
        n_drafted=n_drafted,
        acceptance=draft.speculation.acceptance,
        n_yielded=draft.n_yielded,
        weights_format=layout.weights_format,
        layout=layout_name(layout.model, layout),
        attention=layout.attention,
        storage=storage_of(layout.stored, layout.mesh),
        step=pass_.step,
        held_bytes=pass_.all_bytes,
        gathered_axes=axes_text(layout.gathered, layout.mesh),
        copied_axes=axes_text(layout.data, layout.mesh),
        sliced_axes=axes_text(layout.sliced, layout.mesh),
    )


def unfit(memory: Memory) -> Iterator[Finding]:
    """A peak beyond the memory."""
    if memory.used_bytes > memory.capacity_bytes * (1 + TOLERANCE):
        fact = f"is less than the {memory.used_bytes!r} that are needed in {memory.fullest}"
        yield Finding(path=("memory", "capacity_bytes"), says=memory.capacity_bytes, fact=fact)


def _unserved(request: Request, mesh: ScalarMesh, deployment: Deployment) -> Iterator[Finding]:
    """Replicas that have no place of their own, or serve less than is asked for."""
    if deployment.n_replicas < 1:
        yield Finding(path=("n_replicas",), says=deployment.n_replicas, fact="are no replicas")
        return
    if deployment.n_replicas > 1:
        room = places(request.cluster.fabric, mesh)[: deployment.n_replicas]
        taken = [device for place in room for device in place]
        each = prod(mesh.axes) * mesh.n_stages
        if not len(taken) == len({*taken}) == deployment.n_replicas * each:
            fact = f"have {len(room)} places"
            yield Finding(path=("n_replicas",), says=deployment.n_replicas, fact=fact)
    least = request.targets.n_replicas
    if least is not None and deployment.n_replicas != least:
        yield Finding(path=("n_replicas",), says=deployment.n_replicas, fact=f"are not {least}")
    demand, served = deployment.demand_tokens_per_s, deployment.output_tokens_per_s
    if demand is not None and served * request.targets.max_utilisation < demand * (1 - TOLERANCE):
        fact = f"serve {served!r} of {demand!r} token/s"
        yield Finding(path=("n_replicas",), says=deployment.n_replicas, fact=fact)


def unasked_layouts(
    request: Request, phases: Mapping[str, PhasePlan], at: Path = ()
) -> Iterator[Finding]:
    """Layouts of phases other than the request names.

    Args:
        at: of the phase, where it is the only one.
    """
    for phase, layout in request.targets.layouts.fixed().items():
        plan = phases.get(phase)
        if plan is not None and not layout.is_met(plan.layout, plan.attention, plan.n_microbatches):
            fact = f"is not `{layout.text}`, which was asked for"
            yield Finding(path=(*(at or (phase,)), "layout"), says=plan.layout, fact=fact)


def undivided(request: Request, layout: Layout) -> Iterator[Finding]:
    """Degrees that the request fixes and the layout does not have."""
    mesh, n_copies = layout.mesh, layout.mesh.size(layout.data)
    degrees = {
        "tensor": mesh.n_devices // n_copies,
        "pipeline": mesh.n_stages,
        "data": n_copies,
        **({"expert": expert_ways(layout)} if layout.model.moe else {}),
    }
    for name, degree in request.targets.degrees.fixed().items():
        if degrees.get(name) != degree:
            fact = f"has a {name} degree of {degrees.get(name, 1)}, not {degree}"
            yield Finding(path=("storage",), says=storage_of(layout.stored, mesh), fact=fact)
