"""A request of `plan` in the reference model's records.

Rates of collectives are half of what a device sends in one direction; the rate of arithmetic goes
by the bits of a weight alone; launches take what the published program says of every GPU. Of our
own calibration the attainable fractions, the memory and the price are kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.errors import Problem, RequestError
from planner.estimates.economics.degrees import expert_degrees, stage_counts, tensor_degrees
from planner.programs.economics import KNOWN
from planner.quantities.table import objective_of, uncountable
from planner.specs.ask.quality import diffusion_problems, quality_words
from planner.specs.ask.request import Request
from planner.specs.ask.targets import DEGREE_OPTIONS, OBJECTIVES
from planner.specs.files.ledger import ECONOMICS, timed_by
from planner.specs.options.meanings import misplaced
from planner.specs.records import devices
from planner.specs.records.economics import (
    MEMORY_RULES,
    DecodePass,
    Drafting,
    EconomicsDevice,
    EconomicsModel,
    EconomicsRequest,
    LatentAttention,
    QuantizedModel,
)
from planner.specs.records.runtimes import ERDIL2025
from planner.specs.validation.hints import from_fields

REFUSED = {"ttft": "the reference model has no time to first token"}
"""Why its plans cannot be held to a limit."""


def economics_request(request: Request, *, memory: str = MEMORY_RULES[0]) -> EconomicsRequest:
    """What is asked, as the reference model can be asked it.

    Raises:
        RequestError: it knows no prefill, no cache in a format of its own, and no such pool.
    """
    RequestError.raise_if_any(_problems(request, memory))
    speculation = request.speculation
    drafts = speculation.draft.published_weights if speculation else ()
    device = economics_device(request.cluster, (*request.weights_formats, *drafts))
    RequestError.raise_if_any(_degree_problems(request, device))
    models = (request.model, *((speculation.draft,) if speculation else ()))
    return from_fields(
        EconomicsRequest,
        request,
        served=tuple(_quantized(request, name, device) for name in request.weights_formats),
        n_devices=request.cluster.n_devices,
        n_cached_tokens=float(request.workload.n_cached_tokens),
        drafting=from_fields(Drafting, speculation),
        memory=memory,
        notes=tuple(f"{it.name}: {phrase}" for it in models for phrase in left_out(it)),
        provenance=(
            *request.model.provenance,
            *request.cluster.provenance,
            *request.cluster.device.provenance,
        ),
    )


def _quantized(request: Request, weights_format: str, device: EconomicsDevice) -> QuantizedModel:
    """The model in a format; its draft as published, in the same format if that is one of those."""
    target = _pass(request, request.model, weights_format, device)
    quality = quality_words(request.model, weights_format, request.model.kv_format)
    model = QuantizedModel(weights_format=weights_format, quality=quality, target=target)
    if request.speculation is None:
        return model
    draft = request.speculation.draft
    names = draft.published_weights
    draft_format = weights_format if weights_format in names else names[0]
    drafts = _pass(request, draft, draft_format, device)
    return replace(model, draft=drafts, draft_format=draft_format)


def _pass(
    request: Request, model: devices.ModelSpec, weights_format: str, device: EconomicsDevice
) -> DecodePass:
    return DecodePass(
        model=economics_model(model, weights_format),
        device=device,
        n_context_tokens=request.workload.mean_decode_context,
    )


def _degree_problems(request: Request, device: EconomicsDevice) -> Iterator[Problem]:
    """Degrees that no layout has: neither shares of a node nor whole nodes, empty stages."""
    n_devices = request.cluster.n_devices
    model = economics_model(request.model, request.weights_formats[0])
    degrees = request.targets.degrees
    known = {
        "tensor": tensor_degrees(n_devices, device.n_devices_per_node),
        "pipeline": stage_counts(model.n_layers, n_devices),
        "expert": expert_degrees(model, degrees.tensor or n_devices),
    }
    for name, degree in degrees.fixed().items():
        if name in known and degree not in known[name]:
            option = DEGREE_OPTIONS[name]
            near = sorted(known[name], key=lambda value: abs(value - degree))[:2]
            remedy = "nearest: " + " or ".join(f"`{option} {one}`" for one in sorted(near))
            fact = f"is no degree of {request.model.name} on {n_devices} devices"
            yield Problem(where=option, value=str(degree), fact=fact, remedy=remedy)


def _problems(request: Request, memory: str) -> Iterator[Problem]:
    known = [name for name in OBJECTIVES if objective_of(name).program in KNOWN]
    if request.objective not in known:
        remedy = "one of " + ", ".join(f"`{name}`" for name in known)
        fact = "the reference model knows decode only"
        yield Problem(where="--objective", value=request.objective, fact=fact, remedy=remedy)
    yield from _unlike_layers(request)
    yield from diffusion_problems(request.model)
    yield from uncountable(request.targets.limits(), KNOWN, "the reference model", REFUSED)
    yield from misplaced(request.targets.said(), (ERDIL2025.name,))
    width = devices.FORMAT_BYTES[request.model.activation_format]
    for name in request.kv_formats:
        if devices.FORMAT_BYTES[name] != width and name != request.model.kv_format:
            fact = "the reference model keeps the cache in the format of activations"
            remedy = f"write `{request.model.activation_format}`, or leave it out"
            yield Problem(where="--kv", value=name, fact=fact, remedy=remedy)
    if memory not in MEMORY_RULES:
        remedy = "one of " + ", ".join(f"`{name}`" for name in MEMORY_RULES)
        yield Problem(where="--memory", value=memory, fact="no such rule", remedy=remedy)


def _unlike_layers(request: Request) -> Iterator[Problem]:
    """Models of more than one kind of layers."""
    draft = request.speculation.draft if request.speculation else None
    for option, model in (("--model", request.model), ("--draft", draft)):
        if model is not None and model.layers:
            fact = f"has layers unlike each other, {'; '.join(one.name for one in model.layers)}"
            remedy = "the reference model knows one kind; write `--engine roofline`"
            yield Problem(where=option, value=model.name, fact=fact, remedy=remedy)


KERNEL_LAUNCH_S = 4e-6
"""Of one kernel, on every GPU. Source: [Erdil2025] §3.4 and the published program."""


def economics_model(model: devices.ModelSpec, weights_format: str) -> EconomicsModel:
    """A model of identical layers; see `left_out` for what it is not.

    Shared experts are active experts that are always chosen, and first layers without
    experts do not exist, as in the published program's DeepSeek-V3.
    """
    moe, mla = model.moe, model.mla
    latent = None
    if mla:
        latent = LatentAttention(d_kv=mla.d_kv_latent, d_query=mla.d_q_latent or model.d_model)
    return from_fields(
        EconomicsModel,
        model,
        n_layers=model.n_moe_layers if moe else model.n_layers,
        d_ff=moe.d_expert if moe else model.d_ff,
        n_ffn_in=model.n_ffn_inputs,
        n_ffn_out=model.n_ffn_matrices - model.n_ffn_inputs,
        n_experts=moe.n_experts if moe else 1,
        n_active_experts=moe.n_active_experts + moe.n_shared_experts if moe else 1,
        n_heads=model.n_heads_served,
        n_heads_per_group=1 if mla else model.n_heads_served / model.n_kv_heads,
        d_head=mla.d_nope if mla else model.d_head,
        weight_bytes=devices.FORMAT_BYTES[weights_format],
        activation_bytes=devices.FORMAT_BYTES[model.activation_format],
        is_parallel_block=model.is_parallel,
        latent=latent,
    )


def left_out(model: devices.ModelSpec) -> tuple[str, ...]:
    """What the reference model cannot say of a model, one phrase each."""
    moe = model.moe
    facts = (
        (moe and moe.n_dense_layers, "first layers without experts"),
        (moe and moe.n_shared_experts, "shared experts apart from routed ones"),
        (model.mla, "the rotated part of latent attention"),
        (model.window, "windows of attention"),
        (model.tied_embeddings, "tied embeddings"),
        (model.is_parallel, "parallel blocks"),
        (model.kv_format != model.activation_format, "a cache in another format than activations"),
    )
    return tuple(phrase for holds, phrase in facts if holds)


def economics_device(
    cluster: devices.ClusterSpec, weights_formats: Sequence[str]
) -> EconomicsDevice:
    """A device of a pool of nodes, with a FLOP rate for each format of weights.

    Raises:
        RequestError: the pool is a torus, or a list of links.
    """
    timed_by(ECONOMICS)
    device, fabric = cluster.device, cluster.fabric
    if not isinstance(fabric, devices.NodesFabric):
        fact = "is not made of nodes, and the reference model knows no other pools"
        remedy = "name a pool of nodes, like `h100-nvl8-x4`, or leave out `--engine`"
        raise RequestError(
            [Problem(where="--engine", value=cluster.name, fact=fact, remedy=remedy)]
        )
    rates = {8 * devices.FORMAT_BYTES[name]: _peak_of(device, name) for name in weights_formats}
    return from_fields(
        EconomicsDevice,
        device,
        peak_flop_per_s=rates,
        hbm_bytes=device.hbm_bytes - device.reserve_bytes,
        peak_hbm_bytes_per_s=device.hbm_bytes_per_s,
        scale_up_all_reduce_bytes_per_s=fabric.scale_up_bytes_per_s / 2,
        scale_out_all_reduce_bytes_per_s=fabric.scale_out_bytes_per_s / 2,
        n_devices_per_node=fabric.n_devices_per_node,
        usd_per_hour=cluster.usd_per_hour,
        kernel_launch_s=KERNEL_LAUNCH_S,
    )


def _peak_of(device: devices.DeviceSpec, weights_format: str) -> float:
    """The rate of the narrowest numbers, of those no narrower than a weight, that it multiplies.

    Source: [Erdil2025], published program: four-bit weights at the rate of eight bits.
    """
    needed = int(8 * devices.FORMAT_BYTES[weights_format])
    bits = {name: int(8 * devices.FORMAT_BYTES[name]) for name in device.formats}
    wide = [name for name in device.formats if bits[name] >= needed] or list(device.formats)
    narrowest = min(bits[name] for name in wide)
    return max(device.peak_flop_per_s[name] for name in wide if bits[name] == narrowest)
