"""A prediction of layouts counted anew: its plan, and what is told of it besides."""

from dataclasses import replace
from math import ceil

from planner.results.audits import LayoutPrediction, ToyModel, Traffic
from planner.results.deployments import Deployment
from planner.results.erdil2025 import Split as ErdilWay
from planner.results.plans import AnyPlan
from planner.specs.ask.request import Request
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.findings import Finding, Invalid, with_differences
from planner.verifier.layouts.deployments import Context, ground_mesh, tokens_of
from planner.verifier.layouts.names import axes_text
from planner.verifier.layouts.phases import AnyPhase, counted, resting
from planner.verifier.plans import judge_plan
from planner.verifier.runtimes.erdil_passes import count_bytes
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.sends import HALF, Tokens, layer_sends
from planner.verifier.scalar.shapes import Layout, stage_layers

_KINDS = {
    "weights": "weight-gather",
    "gather": "all-gather",
    "scatter": "reduce-scatter",
    "exchange": "all-to-all",
}
"""What collectives are called; of two halves of an all-reduce the gather comes first."""

HOP_S, REDUCES = 1e-6, 4
"""Of an all-reduce on the toy model's ring, and of them in a layer: [Erdil2025] §2.2.1, Eq. 6."""


def judge_layout_prediction(answer: LayoutPrediction) -> tuple[LayoutPrediction, list[Finding]]:
    """The prediction that is true of its request, and everything in this one that is not so."""
    plan, wrong = judge_plan(answer.plan)
    wrong = [one.below(("plan",)) for one in wrong]
    try:
        truth = layout_prediction(plan)
    except Invalid:
        return answer, wrong  # which says of the plan why
    return truth, with_differences(wrong, answer, truth)


def layout_prediction(plan: AnyPlan) -> LayoutPrediction:
    """The account of a plan of which everything was given, or of the rest the fastest.

    Raises:
        Refused: the deployment cannot be.
    """
    request, deployment = plan.request, plan.deployment
    if isinstance(request, EconomicsRequest):
        return LayoutPrediction(plan=plan, toy=_toy(request))
    assert isinstance(request, Request)
    assert isinstance(deployment, Deployment)
    mesh, _ = ground_mesh(request, deployment.mesh, Context())
    formats = (deployment.weights_format, deployment.kv_format)
    rests = resting(request.model, request.cluster, mesh, formats, deployment.choice)
    traffic = {}
    for name, way in (("prefill", deployment.prefill), ("decode", deployment.decode)):
        tokens = tokens_of(request)[name]
        layout = counted(rests, way, tokens).layout
        traffic[name] = _traffic(
            layout,
            way,
            Tokens(
                n_sequences=ceil(way.batch / way.n_microbatches),
                n_new=tokens.n_new,
                n_context=tokens.n_context,
            ),
        )
    return LayoutPrediction(
        plan=plan,
        longest_context=_longest_context(request, deployment, layout),
        prefill_traffic=traffic["prefill"],
        decode_traffic=traffic["decode"],
    )


def _traffic(layout: Layout, way: AnyPhase, tokens: Tokens) -> tuple[Traffic, ...]:
    """Bytes that the busiest device receives in a pass, by the kind and the axes of what sends."""
    sums: dict[tuple[str, str], float] = {}
    for layers in stage_layers(layout):
        seen = replace(tokens, n_context=layers.seen(tokens.n_context, tokens.n_new))
        gathers = True
        for send in layer_sends(layers.layout, seen, has_experts=layers.has_experts):
            kind = send.kind
            if kind == HALF:
                kind, gathers = ("gather" if gathers else "scatter"), not gathers
            received = send.n_bytes * (send.n_shards - 1) / send.n_shards
            key = _KINDS[kind], axes_text(send.group, layout.mesh)
            sums[key] = sums.get(key, 0.0) + received * layers.n_layers * way.n_microbatches
    return tuple(
        Traffic(kind=kind, axes=axes, received_bytes=n_bytes)
        for (kind, axes), n_bytes in sorted(sums.items())
        if n_bytes
    )


def _longest_context(request: Request, deployment: Deployment, layout: Layout) -> int:
    """The most tokens of each sequence that a decode pass leaves room for."""
    device, phase = request.cluster.device, deployment.decode

    def fits(n_tokens: int) -> bool:
        new, kept = (n_tokens, 0) if request.model.n_diffusion_passes else (1, n_tokens)
        held = held_bytes(layout, batch=phase.batch, n_new_tokens=new, n_cached_tokens=kept)
        parts = (held.weights_bytes, held.kv_bytes, held.activation_bytes, held.gather_bytes)
        others = device.reserve_bytes + deployment.memory.draft_bytes
        return sum(parts) + others <= device.hbm_bytes

    longest = 0
    for step in (2**power for power in reversed(range(40))):
        longest += step * fits(longest + step)
    return longest


def _toy(request: EconomicsRequest) -> ToyModel:
    """Eqs. 9 to 17, by the bytes W of all parameters; M and F of one device at their peaks."""
    model, device = request.served[0].target.model, request.device
    alone = ErdilWay(n_stages=1, n_tensor=1, n_expert=1, n_attention=1)
    weights, _ = count_bytes(model, alone, 1, n_cached_tokens=0.0, rule="one-microbatch")
    read_s = weights / device.peak_hbm_bytes_per_s
    compute_s = 2 * weights / model.weight_bytes / device.peak_flop_per_s[8 * model.weight_bytes]
    steps_s = model.n_layers * REDUCES * 2 * HOP_S
    n_devices = max(1.0, (2 * read_s / steps_s) ** (2 / 3))
    token_s = steps_s * (n_devices**0.5 - 1) + read_s / n_devices
    n_requests = read_s / compute_s
    return ToyModel(
        n_devices=n_devices,
        n_requests=n_requests,
        token_s=token_s,
        usd_per_token=n_devices * token_s / n_requests * request.usd_per_hour / 3600,
    )
