"""A deployment counted anew from the request and from what was chosen.

Chosen are the axes and stages of the mesh, number formats, how weights rest, the batches and
micro-batches of both phases, the axes they gather weights over, what attention is cut over, how
far is drafted, and the number of replicas. Each has to be a choice that the request and the pool
allow. Everything else is counted: `recounted` answers the record that is true of the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from planner.results import Deployment, DraftPlan, Memory, Mesh, PhasePlan
from planner.specs.request import Request, Speculation
from planner.specs.workload import Workload
from planner.verifier.findings import TOLERANCE, Finding, Path, Refused
from planner.verifier.layout_names import axes_text, layout_name, storage_of
from planner.verifier.meshes import Handing, Opening, mesh_of
from planner.verifier.phases import (
    Counted,
    Resting,
    Tokens,
    Way,
    counted,
    phase_plan,
    planned_over_predicted,
    resting,
    unoffered,
    with_mfu,
)
from planner.verifier.quantities import further_of, limits_of
from planner.verifier.scalar import ScalarMesh, fleet_usd_per_token, places
from planner.verifier.scalar.experts import expert_ways
from planner.verifier.scalar.shapes import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
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
class Drafted:
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
    draft: Drafted | None

    def token_s(self, n_drafted: int) -> float:
        """Mean time of an output token; with a draft, a round over what it yields."""
        round_s = self.decode.time.total_s
        if self.draft is None:
            return round_s
        return (round_s + n_drafted * self.draft.pass_.time.total_s) / self.draft.n_yielded


def recounted(
    request: Request, chosen: Deployment, *, ground: Ground | None = None
) -> tuple[Deployment, list[Finding]]:
    """The deployment that is true of what was chosen, and what is wrong with the choice.

    Args:
        request: what was asked of the model that is served.
        chosen: the deployment that is judged.
        ground: of a placement's.

    Raises:
        Refused: the choice cannot be, so that nothing of it can be counted.
    """
    mesh, record = ground_mesh(request, chosen.mesh, ground or Ground())
    if ground is not None:
        record = replace(record, n_positions=ground.n_alike)
    wrong = _unoffered(request, chosen)
    formats = (chosen.weights_format, chosen.kv_format)
    names = (chosen.storage, chosen.copied_axes, chosen.sliced_axes)
    rests = resting(request.model, request.cluster, mesh, formats, names)
    both = _phases(request, chosen, rests)
    found = _assembled(request, chosen, record, rests, both)
    wrong += unfit(chosen.memory, found.memory)
    wrong += _unserved(request, chosen, mesh, found)
    wrong += undivided(request, both.decode.layout)
    phases = {"prefill": found.prefill, "decode": found.decode}
    wrong += unasked_layouts(request, phases, {name: (name,) for name in phases})
    return found, wrong


def ground_mesh(request: Request, says: Mesh, ground: Ground) -> tuple[ScalarMesh, Mesh]:
    """The mesh that a deployment says, on what it stands on, and the record that is true of it.

    Raises:
        Refused: there is none.
    """
    opening, handing = ground.opening, ground.handing
    with refused_in("mesh"):
        mesh, record = mesh_of(request.cluster, says, opening=opening, handing=handing)
    if mesh.n_stages > request.model.n_layers:
        raise Refused("are more than layers", path=("mesh", "n_stages"), says=mesh.n_stages)
    return mesh, record


@contextmanager
def refused_in(name: str) -> Iterator[None]:
    """What is refused inside is so of a part of the record."""
    try:
        yield
    except Refused as refused:
        raise Refused(refused.fact, path=(name, *refused.path), says=refused.says) from None


def _unoffered(request: Request, chosen: Deployment) -> list[Finding]:
    """Formats and batches that the request does not offer."""
    return [
        *unoffered(("weights_format",), chosen.weights_format, request.weights_formats),
        *unoffered(("kv_format",), chosen.kv_format, request.kv_formats),
        *unoffered(("prefill", "batch"), chosen.prefill.batch, request.prefill_batches),
        *unoffered(("decode", "batch"), chosen.decode.batch, request.batches),
    ]


def _phases(request: Request, chosen: Deployment, rests: Resting) -> _Both:
    """Both phases."""
    of = tokens_of(request.workload)
    before, after = of["prefill"], of["decode"]
    draft = None
    if chosen.draft is not None:
        with refused_in("draft"):
            draft = drafted(request, chosen, chosen.draft, rests.mesh, after)
    scored = after if draft is None else replace(after, n_new=float(draft.n_scored))
    passes = []
    for phase, tokens in ((chosen.prefill, before), (chosen.decode, scored)):
        way = Way(
            batch=phase.batch,
            n_microbatches=phase.n_microbatches,
            attention=phase.attention,
            gathered_axes=phase.gathered_axes,
        )
        name = "decode" if phase is chosen.decode else "prefill"
        with refused_in(name):
            passes.append(counted(rests, way, tokens, planned_over_predicted(request, name)))
    return _Both(prefill=passes[0], decode=passes[1], draft=draft)


def tokens_of(workload: Workload) -> dict[str, Tokens]:
    """Tokens of a pass of each phase; decode is taken at its mean context."""
    n_input = float(workload.n_input_tokens)
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
    request: Request, chosen: Deployment, plan: DraftPlan, mesh: ScalarMesh, tokens: Tokens
) -> Drafted:
    """The draft on the devices of its target, one token of each sequence at a time."""
    asked = request.speculation
    if asked is None:
        raise Refused("was not offered", path=("model",), says=plan.model)
    if plan.n_drafted not in asked.lookaheads:
        raise Refused("is none of what was offered", path=("n_drafted",), says=plan.n_drafted)
    draft = asked.draft
    has_format = chosen.weights_format in draft.published_weights
    weights = chosen.weights_format if has_format else draft.published_weights[0]
    names = (plan.storage, plan.copied_axes, plan.sliced_axes)
    rests = resting(draft, request.cluster, mesh, (weights, draft.kv_format), names)
    way = Way(
        batch=chosen.decode.batch,
        n_microbatches=1,
        attention=plan.attention,
        gathered_axes=plan.gathered_axes,
    )
    # the target scores what was drafted and, in the usual convention, one position more, each
    # of which is reached if all before it were accepted
    n_scored = plan.n_drafted + (asked.convention == "usual")
    n_yielded = sum(asked.acceptance**n for n in range(n_scored))
    return Drafted(
        pass_=counted(rests, way, tokens, planned_over_predicted(request, "decode")),
        n_scored=n_scored,
        n_yielded=n_yielded,
        speculation=asked,
    )


def _assembled(
    request: Request, chosen: Deployment, mesh: Mesh, rests: Resting, both: _Both
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
    before, after = phase_plan("prefill", both.prefill), phase_plan("decode", both.decode)
    found = Deployment(
        mesh=mesh,
        weights_format=chosen.weights_format,
        kv_format=chosen.kv_format,
        storage=storage_of(rests.stored, rests.mesh),
        prefill=with_mfu(before, both.prefill, device),
        decode=with_mfu(after, both.decode, device),
        memory=_memory(request, both),
        usd_per_hour=n_replicas * mesh.n_devices * request.cluster.usd_per_hour,
        usd_per_token=usd_per_token,
        prefill_usd_per_token=usd_per_token * prefill_s / request_s,
        request_s=request_s,
        n_output_tokens=workload.n_output_tokens,
        draft=None if both.draft is None else _draft_plan(both.draft, n_drafted),
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        variant=chosen.variant,
        copied_axes=axes_text(rests.data, rests.mesh),
        sliced_axes=axes_text(rests.sliced, rests.mesh),
    )
    return replace(found, further=further_of(limits_of(request.targets), found, device))


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
    return Memory(
        fullest="decode" if during is after else "prefill",
        weights_bytes=after.weights_bytes,
        decode_kv_bytes=after.kv_bytes,
        prefill_kv_bytes=before.kv_bytes,
        written_kv_bytes=after.written_bytes,
        activation_bytes=during.activation_bytes,
        gather_bytes=during.gather_bytes,
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
        draft_bytes=0.0 if both.draft is None else both.draft.pass_.all_bytes,
    )


def _draft_plan(draft: Drafted, n_drafted: int) -> DraftPlan:
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


def unfit(says: Memory, found: Memory) -> Iterator[Finding]:
    """A peak beyond the memory."""
    if found.used_bytes > found.capacity_bytes * (1 + TOLERANCE):
        fact = f"is less than the {found.used_bytes!r} that are needed in {found.fullest}"
        yield Finding(path=("memory", "capacity_bytes"), says=says.capacity_bytes, fact=fact)


def _unserved(
    request: Request, chosen: Deployment, mesh: ScalarMesh, found: Deployment
) -> Iterator[Finding]:
    """Replicas that have no place of their own, or serve less than is asked for."""
    if found.n_replicas < 1:
        yield Finding(path=("n_replicas",), says=chosen.n_replicas, fact="are no replicas")
        return
    if found.n_replicas > 1:
        room = places(request.cluster.fabric, mesh)[: found.n_replicas]
        taken = [device for place in room for device in place]
        each = prod(mesh.axes) * mesh.n_stages
        if not len(taken) == len({*taken}) == found.n_replicas * each:
            fact = f"have {len(room)} places"
            yield Finding(path=("n_replicas",), says=chosen.n_replicas, fact=fact)
    asked = request.targets.n_replicas
    if asked is not None and found.n_replicas != asked:
        yield Finding(path=("n_replicas",), says=chosen.n_replicas, fact=f"are not {asked}")
    demand, served = found.demand_tokens_per_s, found.output_tokens_per_s
    if demand is not None and served * request.targets.max_utilisation < demand * (1 - TOLERANCE):
        fact = f"serve {served!r} of {demand!r} token/s"
        yield Finding(path=("n_replicas",), says=chosen.n_replicas, fact=fact)


def unasked_layouts(
    request: Request, phases: Mapping[str, PhasePlan], paths: Mapping[str, Path]
) -> Iterator[Finding]:
    """Layouts of phases other than the request names."""
    for phase, asked in request.targets.layouts.fixed().items():
        plan = phases.get(phase)
        if plan is not None and not asked.is_met(plan.layout, plan.attention, plan.n_microbatches):
            fact = f"is not `{asked.text}`, which was asked for"
            yield Finding(path=(*paths[phase], "layout"), says=plan.layout, fact=fact)


def undivided(request: Request, layout: Layout) -> Iterator[Finding]:
    """Degrees that the request fixes and the layout does not have."""
    mesh, n_copies = layout.mesh, layout.mesh.size(layout.data)
    degrees = {
        "tensor": mesh.n_devices // n_copies,
        "pipeline": mesh.n_stages,
        "data": n_copies,
        **({"expert": expert_ways(layout)} if layout.model.moe else {}),
    }
    for name, asked in request.targets.degrees.fixed().items():
        if degrees.get(name) != asked:
            fact = f"has a {name} degree of {degrees.get(name, 1)}, not {asked}"
            yield Finding(path=("storage",), says=storage_of(layout.stored, mesh), fact=fact)
