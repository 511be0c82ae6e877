"""One given deployment of an engine, evaluated: the rank, what it serves, holds and takes."""

from collections import Counter
from dataclasses import dataclass, replace

from planner.specs.ask.engine import PredictionRequest
from planner.specs.records.architecture import Architecture, Ffn, LayerClass
from planner.specs.records.mixers import LatentAttention, Mixer
from planner.specs.records.models import ModelSpec
from planner.specs.records.roles import PREFILL
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Invalid
from planner.verifier.scalar.shapes import ffn_of
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.kernels import STATIC, STORED, Kernels
from planner.verifier.serving.ranks import Links, Rank, has_experts, loaded
from planner.verifier.serving.rounds import Demand, MemoryUse, UserTimes, memory_use, user_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One attention rank of a deployment, with what it is to serve, and its bytes and seconds."""

    rank: Rank
    served: Demand
    held: MemoryUse
    times: UserTimes


def evaluation(given: PredictionRequest) -> Evaluation:
    """A deployment, kernel by kernel.

    Raises:
        Refused: a degree, batch, chunk or format that nothing has, or drafts that cannot be.
    """
    rank, served = rank_of(given), served_by(given)
    held = memory_use(rank, served)
    times = user_times(rank, served, held.largest_batch)
    return Evaluation(rank=rank, served=served, held=held, times=times)


def rank_of(given: PredictionRequest) -> Rank:
    """One attention rank.

    Raises:
        Refused: a degree, batch, chunk or format that nothing has.
    """
    degrees = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    for name in (*degrees, "batch", "chunk_tokens", "n_samples"):
        if getattr(given, name) < 1:
            raise Invalid("is below one", path=(name,), says=getattr(given, name))
    if given.role != PREFILL and given.batch % max(1, given.n_samples):
        fact = f"is no multiple of the {given.n_samples} samples of a request"
        raise Invalid(fact, path=("batch",), says=given.batch)
    if (copies := given.n_redundant_experts) < 0:
        raise Invalid("is below zero", path=("n_redundant_experts",), says=copies)
    for name in ("weights", "experts", "cache"):
        number_format = getattr(given.formats, name)
        if number_format.removesuffix(STATIC) not in STORED:
            raise Invalid("is no number format", path=("formats", name), says=number_format)
    records = given.records
    (model,) = records.models
    _check_pools(given, model)
    return from_fields(
        Rank,
        given,
        model=model,
        formats=loaded(model, given.formats, records.engine),
        kernels=Kernels(records.cluster.device, records.kernels, records.engine),
        links=Links(records.cluster.fabric),
        n_small_kernels=records.engine.n_small_kernels,
        n_redundant=given.n_redundant_experts,
    )


def _check_pools(given: PredictionRequest, model: Architecture) -> None:
    """See that what has experts on devices of their own can have them.

    Layers go to and fro between two pools in whole: what decodes has one stage, and no drafts.

    Raises:
        Refused: it cannot, or it has parts of a batch and no pools between which they go.
    """
    n, parts = given.n_expert_devices, given.n_microbatches
    if n < 0 or not 1 <= parts <= given.batch or (parts > 1 and not n):
        fact = "are no parts of a batch between two pools"
        raise Invalid(fact, path=("n_microbatches",), says=parts)
    can = given.role == "decode" and given.n_stages == given.n_expert_tensor == 1
    more = given.n_drafted or given.overlaps
    if n and (more or not can or not has_experts(model)):
        fact = (
            "is of mixtures that decode whole experts in one stage, and draft and overlap nothing"
        )
        raise Invalid(fact, path=("n_expert_devices",), says=n)


def served_by(given: PredictionRequest) -> Demand:
    """What a deployment is to serve.

    Raises:
        Refused: the model cannot be drafted so.
    """
    (model,) = given.records.models
    link, client = given.records.cluster.device.host_bytes_per_s, given.client
    n_input, n_output = float(given.n_input_tokens), float(given.n_output_tokens)
    client_s, named = 0.0, None
    if client is not None:
        named = n_input, n_output
        n_input, n_output = n_input * client.mean_length, n_output * client.mean_length
        client_s = client.request_s + client.request_token_s * n_input
    return from_fields(
        Demand,
        given,
        engine=given.records.engine,
        hbm_bytes=given.records.cluster.device.hbm_bytes,
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        client_s=client_s,
        named=named,
        n_shared_tokens=float(given.n_shared_tokens),
        host_bytes_per_s=link if given.offload == "host" else None,
        draft=draft_of(model, given.drafter, given.n_drafted, given.acceptance),
    )


_Layer = tuple[Mixer, Ffn]


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    """The model layer by layer, as it is served.

    Sums over layers do not ask what a class of them is called, so classes have numbers for names.
    """
    if isinstance(model, Architecture):
        return model
    if model.layers:
        return from_fields(Architecture, model, is_parallel_block=model.block == "parallel")
    n_windowed = model.window.n_layers if model.window else 0
    layers: list[_Layer] = []
    for i in range(model.n_layers):
        # windows are spread evenly, the first layer among them: `ceil` of each layer's share
        begun, ended = (-(-(i + k) * n_windowed // model.n_layers) for k in (0, 1))
        layers.append((_attention(model, windowed=ended > begun), ffn_of(model, i)))
    of = {layer: i for i, layer in enumerate(dict.fromkeys(layers))}
    numbers = Counter(layers)
    last = LayerClass(
        name="predictor",
        n_layers=model.mtp.n_modules if model.mtp else 0,
        mixer=layers[-1][0],
        ffn=layers[-1][1],
        n_other_params=2 * model.d_model * model.d_model,  # joins an input to what was predicted
    )
    return from_fields(
        Architecture,
        model,
        layers=tuple(
            LayerClass(name=str(i), n_layers=numbers[layer], mixer=layer[0], ffn=layer[1])
            for layer, i in of.items()
        ),
        order=tuple(of[layer] for layer in layers),
        predictors=last if model.mtp else None,
        is_parallel_block=model.block == "parallel",
    )


def _attention(model: ModelSpec, *, windowed: bool) -> Mixer:
    mixer = model.mixer_of(model.n_heads)
    if not windowed or model.window is None or isinstance(mixer, LatentAttention):
        return mixer
    return replace(mixer, span="window", n_span_tokens=model.window.n_tokens)
