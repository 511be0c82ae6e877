"""A request of `plan` in the reference model's records."""

from __future__ import annotations

from planner.errors import Problem, RequestError
from planner.estimates.economics.conversion import economics_device, economics_model, left_out
from planner.estimates.economics.degrees import expert_degrees, stage_counts, tensor_degrees
from planner.programs.economics import KNOWN
from planner.quantities import objective_of, refused
from planner.specs.economics.records import DecodePass, EconomicsDevice
from planner.specs.economics.request import (
    MEMORY_RULES,
    Drafting,
    EconomicsRequest,
    Served,
)
from planner.specs.meanings import misplaced
from planner.specs.quality import quality_words
from planner.specs.records import FORMAT_BYTES, ModelSpec
from planner.specs.request import OBJECTIVES, Request
from planner.specs.runtimes import ERDIL2025
from planner.specs.targets import DEGREE_OPTIONS

REFUSED = {
    "ttft": "the reference model has no time to first token",
}
"""Why its plans cannot be held to a limit."""


def economics_request(request: Request, *, memory: str = MEMORY_RULES[0]) -> EconomicsRequest:
    """What is asked, as the reference model can be asked it.

    Raises:
        RequestError: it knows no prefill, no cache in a format of its own, and no such pool.
    """
    problems = _problems(request, memory)
    if problems:
        raise RequestError(problems)
    speculation = request.speculation
    drafts = speculation.draft.published_weights if speculation else ()
    device = economics_device(request.cluster, (*request.weights_formats, *drafts))
    problems = _degree_problems(request, device)
    if problems:
        raise RequestError(problems)
    notes = [f"{request.model.name}: {phrase}" for phrase in left_out(request.model)]
    drafting = Drafting()
    if speculation:
        notes += [f"{speculation.draft.name}: {phrase}" for phrase in left_out(speculation.draft)]
        drafting = Drafting(
            acceptance=speculation.acceptance,
            lookaheads=speculation.lookaheads,
            convention=speculation.convention,
        )
    return EconomicsRequest(
        served=tuple(_served(request, name, device) for name in request.weights_formats),
        n_devices=request.cluster.n_devices,
        batches=request.batches,
        n_cached_tokens=float(request.workload.n_cached_tokens),
        drafting=drafting,
        targets=request.targets,
        objective=request.objective,
        memory=memory,
        options=request.options,
        notes=tuple(notes),
        provenance=(
            *request.model.provenance,
            *request.cluster.provenance,
            *request.cluster.device.provenance,
        ),
    )


def _served(request: Request, weights_format: str, device: EconomicsDevice) -> Served:
    """The model in a format; its draft as published, in the same format if that is one of those."""
    target = _pass(request, request.model, weights_format, device)
    quality = quality_words(request.model, weights_format, request.model.kv_format)
    if request.speculation is None:
        return Served(weights_format=weights_format, quality=quality, target=target)
    draft = request.speculation.draft
    names = draft.published_weights
    draft_format = weights_format if weights_format in names else names[0]
    return Served(
        weights_format=weights_format,
        quality=quality,
        target=target,
        draft=_pass(request, draft, draft_format, device),
        draft_format=draft_format,
    )


def _pass(
    request: Request, model: ModelSpec, weights_format: str, device: EconomicsDevice
) -> DecodePass:
    return DecodePass(
        model=economics_model(model, weights_format),
        device=device,
        n_context_tokens=request.workload.mean_decode_context,
    )


def _degree_problems(request: Request, device: EconomicsDevice) -> list[Problem]:
    """Degrees that no layout has: neither shares of a node nor whole nodes, empty stages."""
    n_devices = request.cluster.n_devices
    model = economics_model(request.model, request.weights_formats[0])
    degrees = request.targets.degrees
    known = {
        "tensor": tensor_degrees(n_devices, device.n_devices_per_node),
        "pipeline": stage_counts(model.n_layers, n_devices),
        "expert": expert_degrees(model, degrees.tensor or n_devices),
    }
    problems = []
    for name, degree in degrees.fixed().items():
        if name in known and degree not in known[name]:
            option = DEGREE_OPTIONS[name]
            near = sorted(known[name], key=lambda one: abs(one - degree))[:2]
            remedy = "nearest: " + " or ".join(f"`{option} {one}`" for one in sorted(near))
            fact = f"is no degree of {request.model.name} on {n_devices} devices"
            problems.append(Problem(where=option, value=str(degree), fact=fact, remedy=remedy))
    return problems


def _problems(request: Request, memory: str) -> list[Problem]:
    problems = []
    known = [name for name in OBJECTIVES if objective_of(name).program in KNOWN]
    if request.objective not in known:
        remedy = "one of " + ", ".join(f"`{name}`" for name in known)
        fact = "the reference model knows decode only"
        problems.append(
            Problem(where="--objective", value=request.objective, fact=fact, remedy=remedy)
        )
    targets = request.targets
    problems += refused(targets.limits(), KNOWN, "the reference model", REFUSED)
    problems += misplaced(targets.said(), (ERDIL2025.name,))
    width = FORMAT_BYTES[request.model.activation_format]
    for name in request.kv_formats:
        if FORMAT_BYTES[name] != width and name != request.model.kv_format:
            fact = "the reference model keeps the cache in the format of activations"
            remedy = f"write `{request.model.activation_format}`, or leave it out"
            problems.append(Problem(where="--kv", value=name, fact=fact, remedy=remedy))
    if memory not in MEMORY_RULES:
        remedy = "one of " + ", ".join(f"`{name}`" for name in MEMORY_RULES)
        problems.append(Problem(where="--memory", value=memory, fact="no such rule", remedy=remedy))
    return problems
