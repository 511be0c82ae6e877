"""One phase of a deployment: its layout, and the time, memory and words of its pass."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from math import ceil, prod

from planner.results import deployments
from planner.specs.ask.request import Request
from planner.specs.records.devices import ClusterSpec, DeviceSpec, ModelSpec
from planner.specs.records.roles import PREFILL
from planner.specs.records.runtimes import MeasuredErrors, ModelKind, judged_on
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Invalid, refused_in
from planner.verifier.layouts.names import axes_text, layout_name, mask_of, stored_axes
from planner.verifier.model_errors import deviations, roofline_deviation
from planner.verifier.scalar.memory import ScalarBytes, held_bytes
from planner.verifier.scalar.parts import expert_ways
from planner.verifier.scalar.shapes import OVER_HEADS, Layout, ScalarMesh
from planner.verifier.scalar.times import ScalarTime, peak_flop_per_s, step_time

AnyPhase = deployments.PhaseChoice | deployments.PhasePlan
"""How a phase uses weights at rest, as an answer says it."""

OVER_BATCH = "batch"
MOST_PARTS, PARTS_PER_STAGE = 64, 4
"""Micro-batches of a pass, at most, and of each stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A model at rest on a mesh.

    Args:
        stored, data, sliced: masks of axes that cut E, have copies of all but experts, and cut
            the FFN dimension of each expert.
        weights_format, kv_format, activation_format: number formats.
    """

    model: ModelSpec
    cluster: ClusterSpec
    mesh: ScalarMesh
    stored: int
    data: int
    sliced: int
    weights_format: str
    kv_format: str
    activation_format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of each sequence of a pass: that enter, that these attend to, that are kept.

    Args:
        n_found: of those kept, how many were before the phase.
        n_logits: positions whose next token is wanted.
        n_times: passes that each of its tokens takes.
    """

    n_new: float
    n_context: float
    n_cached: float
    n_found: float = 0.0
    n_logits: float = 1.0
    n_times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A pass of a phase, counted."""

    layout: Layout
    way: AnyPhase
    tokens: Tokens
    time: ScalarTime
    held: ScalarBytes

    @property
    def all_bytes(self) -> float:
        """What it needs of the busiest device, by itself."""
        held = self.held
        return held.weights_bytes + held.kv_bytes + held.activation_bytes + held.gather_bytes

    @property
    def step(self) -> deployments.StepTime:
        return from_fields(deployments.StepTime, self.time)


def resting(
    model: ModelSpec,
    cluster: ClusterSpec,
    mesh: ScalarMesh,
    formats: tuple[str, str],
    kept: deployments.LayoutChoice | deployments.DraftChoice | deployments.DraftPlan,
) -> Resting:
    """A model at rest, from the words of an answer.

    Args:
        formats: of weights, and of the KV cache.
        kept: how weights rest, and the axes with copies and slices: `E_x F_yz`, `z`, ``.

    Raises:
        Refused: weights cannot rest so.
    """
    masks = []
    for field, read, text in (
        ("storage", stored_axes, kept.storage),
        ("copied_axes", mask_of, kept.copied_axes),
        ("sliced_axes", mask_of, kept.sliced_axes),
    ):
        with refused_in(field):
            masks.append(read(text, mesh))
    stored, data, cuts = masks
    if (data or cuts) and model.moe is None:
        raise Invalid(
            "are of models with experts only", path=("copied_axes",), says=kept.copied_axes
        )
    if stored & data or stored & cuts:
        fact = "says of an axis that it cuts weights in two ways"
        raise Invalid(fact, path=("storage",), says=kept.storage)
    return Resting(
        model=model,
        cluster=cluster,
        mesh=mesh,
        stored=stored,
        data=data,
        sliced=cuts,
        weights_format=formats[0],
        kv_format=formats[1],
        activation_format=getattr(kept, "activation_format", ""),
    )


def counted(rests: Resting, way: AnyPhase, tokens: Tokens, planned: float = 1.0) -> Counted:
    """A pass, counted in plain scalar arithmetic.

    Args:
        planned: its planned time over what is predicted, see `planned_over_predicted`.

    Raises:
        Refused: the phase cannot use the weights so.
    """
    mesh = rests.mesh
    with refused_in("gathered_axes"):
        gathered = mask_of(way.gathered_axes, mesh)
    for fact, name in _impossible(rests, way, gathered):
        raise Invalid(fact, path=(name,), says=getattr(way, name))
    layout = from_fields(
        Layout, rests, gathered=gathered, attention=way.attention, n_microbatches=way.n_microbatches
    )
    time = step_time(
        layout,
        rests.cluster.device,
        rests.cluster.fabric,
        batch=way.batch,
        n_new_tokens=tokens.n_new,
        n_context_tokens=tokens.n_context,
        n_logits=tokens.n_logits,
    )
    held = held_bytes(
        layout,
        batch=way.batch,
        n_new_tokens=tokens.n_new,
        n_cached_tokens=tokens.n_cached,
        n_found_tokens=tokens.n_found,
    )
    # every part of a pass so many times as long, and as often
    planned *= tokens.n_times
    parts = {one.name: planned * getattr(time, one.name) for one in fields(time)}
    return Counted(layout=layout, way=way, tokens=tokens, time=ScalarTime(**parts), held=held)


def planned_over_predicted(request: Request, phase: str, n_devices: int) -> float:
    """Of a pass: 1 where what is predicted is planned, else what holds in a share of cases.

    Decode on more devices than any that was measured is longer by what is known of these.

    Raises:
        Refused: a share is asked for, and no interval is known.
    """
    # whole sequences pass a diffusion decoder as prompts do
    is_prefill = phase == PREFILL or request.model.n_diffusion_passes > 0.0
    quantity = "TTFT" if is_prefill else "TPOT"
    kind: ModelKind = "dense" if request.model.moe is None else "mixture"
    device, share = request.cluster.device, request.confidence
    error = roofline_deviation(device, kind, quantity)
    judged = judged_on("roofline", device.name, kind)
    beyond = 1.0 if is_prefill else _beyond(judged, n_devices)
    if share is None:
        errors = [it for it in judged if it.quantity == quantity]
        return beyond * max([1.0, *(1 / (1 + it.bias_fraction) for it in errors)])
    if share <= 0.5:
        return 1.0
    if error is None:
        raise Invalid("has no interval, as nothing was measured", says=share)
    return beyond * (1.0 + deviations(2 * share - 1) * error)


def _beyond(judged: Iterable[MeasuredErrors], n_devices: int) -> float:
    """How much longer decode is on so many devices, if they are more than any measured ones."""
    return prod(1 / (1 + it.beyond_fraction) for it in judged if not it.has(n_devices))


def _impossible(rests: Resting, way: AnyPhase, gathered: int) -> Iterator[tuple[str, str]]:
    """What of a way no layout does, and the field that says it."""
    mesh, parts = rests.mesh, way.n_microbatches
    if way.batch < 1:
        yield "is no batch", "batch"
    most = min(MOST_PARTS, PARTS_PER_STAGE * mesh.n_stages) if mesh.n_stages > 1 else 1
    if not 1 <= parts <= most or parts & (parts - 1):
        yield f"is no power of two up to {most}", "n_microbatches"
    if gathered & rests.data:
        yield "are gathered and have copies", "gathered_axes"
    if rests.model.moe is not None and rests.stored and gathered:
        yield "are gathered, though the weights are cut in two dimensions", "gathered_axes"
    used, cut = mesh.members(7), mesh.members(gathered | rests.data)
    # heads are cut along axes that neither gather weights nor hold copies, if any is left
    allowed = [OVER_HEADS] * (len(cut) < len(used) or not used) + [OVER_BATCH] * bool(used)
    if way.attention not in allowed:
        yield f"is not {' or '.join(allowed)}", "attention"


def phase_plan(phase: str, pass_: Counted, device: DeviceSpec) -> deployments.PhasePlan:
    """The record of a phase that is true of its pass.

    The published FLOP of its tokens, two for each parameter, over the peak of all devices.
    """
    layout, way = pass_.layout, pass_.way
    model, mesh = layout.model, layout.mesh
    n_tokens = way.batch * int(pass_.tokens.n_new)
    active = model.n_active_params_published or model.n_params_published
    peak = peak_flop_per_s(device, layout.product_format) * mesh.n_devices * mesh.n_stages
    return from_fields(
        deployments.PhasePlan,
        way,
        phase=phase,
        layout=layout_name(model, layout),
        n_kv_ways=_n_kv_ways(pass_),
        step=pass_.step,
        n_tokens=n_tokens,
        mfu_fraction=2.0 * active * n_tokens * pass_.tokens.n_times / (peak * pass_.time.total_s),
        gathered_axes=axes_text(layout.gathered, mesh),
        divisions=_divisions(pass_),
    )


def _attention_cut(pass_: Counted) -> tuple[int, int]:
    """Devices over which attention cuts a micro-batch, and that share each of its sequences."""
    layout, way = pass_.layout, pass_.way
    cut = layout.batch_axes(ceil(way.batch / way.n_microbatches))
    return layout.mesh.size(cut), layout.mesh.size(~cut & 7)


def _n_kv_ways(pass_: Counted) -> int:
    """Ways in which the cache is cut: by sequences, and by whole heads."""
    n_batch, n_sharing = _attention_cut(pass_)
    return n_batch * min(n_sharing, _n_cached_heads(pass_.layout.model))


def _n_cached_heads(model: ModelSpec) -> int:
    """Pieces that the cache of a token falls into: a latent is whole."""
    return 1 if model.mla else model.n_kv_heads


def _divisions(pass_: Counted) -> tuple[deployments.Division, ...]:
    """Whole things that do not come out even."""
    layout = pass_.layout
    model, (_, n_sharing) = layout.model, _attention_cut(pass_)
    dealt = [
        ("query heads", model.n_heads_served, n_sharing),
        ("latents" if model.mla else "KV heads", _n_cached_heads(model), n_sharing),
        ("layers", model.n_layers, layout.mesh.n_stages),
    ]
    if model.moe is not None:
        dealt.append(("experts", model.moe.n_experts, expert_ways(layout)))
    return tuple(
        deployments.Division(things=things, n_things=n, n_parts=parts)
        for things, n, parts in dealt
        if n % parts
    )
