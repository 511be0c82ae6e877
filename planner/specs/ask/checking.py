"""Everything in a request that cannot be planned for, whatever the program says.

A record that was altered (`dataclasses.replace`) has passed no loader. What its values cannot be
one by one its types say; what does not fit together is told as of files.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from planner.errors import Problem
from planner.quantities.table import lacking, objective_of
from planner.specs.ask.quality import context_problems, diffusion_problems, quality_problems
from planner.specs.ask.request import Request
from planner.specs.ask.targets import DEGREE_OPTIONS, OBJECTIVES, Targets
from planner.specs.files.coherence import cluster_faults, device_faults
from planner.specs.files.ledger import remark
from planner.specs.files.model_coherence import shape_faults
from planner.specs.records.architecture import Architecture, Experts, LayerClass
from planner.specs.records.devices import ClusterSpec, LinkedFabric, NodesFabric, TorusFabric
from planner.specs.records.mixers import GroupedAttention
from planner.specs.records.model_errors import why_unmeasured
from planner.specs.records.models import ModelSpec
from planner.specs.records.served_formats import product_format
from planner.specs.validation.arguments import record_problems
from planner.specs.validation.problems import Finding

MOST_PADDING = 128
"""Rows that two vocabularies of one tokenizer may differ by: Qwen2.5 has 151,936 and 152,064.

Source: llama.cpp, `SPEC_VOCAB_MAX_SIZE_DIFFERENCE`. vLLM demands equal sizes.
"""


def request_problems(request: Request) -> list[Problem]:
    """Everything in a request that cannot be planned for, whatever the program says."""
    problems = [
        *_record_problems(request),
        *lacking(request.targets.limits(), request.cluster.device),
        *_vocabulary_problems(request),
        *_degree_problems(request),
        *demand_problems(request.targets, request.objective),
        *_context_problems(request),
        *_confidence_problems(request),
    ]
    wrong_formats = list(_format_problems(request))
    if wrong_formats:
        return [*problems, *wrong_formats]
    formats = request.weights_formats, request.kv_formats, request.activation_formats
    return [*problems, *quality_problems(request.model, request.targets, *formats)]


def _record_problems(request: Request) -> Iterator[Problem]:
    """What no file could say of the model, the cluster or a draft: records may be altered."""
    yield from model_problems(request.model, "model")
    yield from cluster_problems(request.cluster, "cluster")
    if request.speculation is not None:
        yield from model_problems(request.speculation.draft, "speculation.draft")


def _format_problems(request: Request) -> Iterator[Problem]:
    """Formats that the model's file does not list, or that the device cannot work in."""
    model, device = request.model, request.cluster.device
    options = (
        ("--weights", request.weights_formats, model.weights_formats),
        ("--kv", request.kv_formats, model.kv_formats),
    )
    for option, names, known in options:
        for name in sorted(set(names) - set(known)):
            fact = f"`{model.name}` is not served in this format"
            if option == "--weights" and name not in device.formats:
                fact += f", nor does `{device.name}` multiply it"
            remedy = "write " + " or ".join(f"`{one}`" for one in known)
            yield Problem(where=option, value=name, fact=fact, remedy=remedy)
    for name in request.activation_formats:
        if not any(product_format(it, name) for it in request.weights_formats):
            fact = f"has no product with weights in {' or '.join(request.weights_formats)}"
            remedy = f"add `--weights {name}`"
            yield Problem(where="--activations", value=name, fact=fact, remedy=remedy)
    if device.multiplies(model.activation_format) is None:
        alone, sixteen = ", ".join(device.formats), model.activation_format
        fact = f"`{device.name}` multiplies {alone} alone, and activations are in {sixteen}"
        yield Problem(where="--topology", value=request.cluster.name, fact=fact)


def _confidence_problems(request: Request) -> Iterator[Problem]:
    """An interval of times of which nobody measured how far off they are."""
    fact = why_unmeasured(request.cluster.device)
    if request.confidence and fact:
        value, remedy = f"{request.confidence:g}", "leave it out, or name an engine"
        yield Problem(where="--confidence", value=value, fact=fact, remedy=remedy)


def _degree_problems(request: Request) -> Iterator[Problem]:
    """Degrees that are no counts, or that a dense model does not have."""
    for name, degree in request.targets.degrees.fixed().items():
        option = DEGREE_OPTIONS[name]
        if request.model.moe is None and name == "expert":
            fact = f"`{request.model.name}` is dense, it has no experts to divide"
            yield Problem(where=option, value=str(degree), fact=fact, remedy="leave it out")
        elif request.model.moe is None and name == "data" and degree > 1:
            fact = f"`{request.model.name}` is dense: copies of its attention are whole replicas"
            remedy = "leave it out; `--demand` decides how many replicas there are"
            yield Problem(where=option, value=str(degree), fact=fact, remedy=remedy)


def demand_problems(targets: Targets, objective: str) -> Iterator[Problem]:
    """A demand beside an objective that it leaves nothing of."""
    demand = targets.demand_tokens_per_s
    is_rate = objective in OBJECTIVES and objective_of(objective).is_rate
    if demand is not None and is_rate:
        fact = "is all that a plan is credited with, so throughput cannot be the objective"
        remedy = "leave one of them out"
        yield Problem(where="--demand", value=f"{demand:g}tok/s", fact=fact, remedy=remedy)


def _context_problems(request: Request) -> Iterator[Problem]:
    """Requests that the model, or its draft, cannot attend to, or does not decode in turn."""
    tokens = request.workload.n_input_tokens, request.workload.n_output_tokens
    yield from context_problems(request.model, *tokens)
    if request.speculation:
        draft = request.speculation.draft
        yield from context_problems(draft, *tokens, asked_by="--draft")
        yield from diffusion_problems(request.model, "--draft")
        yield from diffusion_problems(draft, "--draft")


def _vocabulary_problems(request: Request) -> Iterator[Problem]:
    """A draft whose tokens are not those of the model: what it proposes says nothing there.

    Vocabularies of one tokenizer may be padded to different sizes. Up to as many rows apart they
    are taken for the same, and it is said, since not every engine does.
    """
    if request.speculation is None:
        return
    model, draft = request.model, request.speculation.draft
    apart = abs(model.vocab_size - draft.vocab_size)
    both = f"{draft.vocab_size} tokens, `{model.name}` of {model.vocab_size}"
    if apart > MOST_PADDING:
        fact = f"has a vocabulary of {both}: it proposes other tokens"
        remedy = "name a draft of the same tokenizer"
        yield Problem(where="--draft", value=draft.name, fact=fact, remedy=remedy)
    elif apart:
        fact = f"has a vocabulary of {both}: taken for one, padded differently; vLLM refuses it"
        remark(Problem(where="--draft", value=draft.name, fact=fact))


def model_problems(model: ModelSpec, where: str) -> list[Problem]:
    """What cannot be in a model, and what does not fit together.

    Args:
        where: the argument that holds it.
    """
    return [*record_problems(model, where), *_problems(_said(model), where, shape_faults)]


def cluster_problems(cluster: ClusterSpec, where: str) -> list[Problem]:
    """What cannot be in a cluster and in its device, and what does not fit together.

    Args:
        where: the argument that holds it.
    """
    fabric = cluster.fabric
    said: dict[str, object] = {_KINDS[type(fabric)]: fabric}
    if isinstance(fabric, LinkedFabric):
        said["link"] = fabric.links
    return [
        *record_problems(cluster, where),
        *_problems(_said(cluster.device), f"{where}.device", device_faults),
        *_problems(said, where, cluster_faults),
    ]


def _said(record: Any) -> dict[str, object]:  # noqa: ANN401
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _problems(
    said: Mapping[str, object], where: str, faults: Callable[[Mapping[str, Any]], Iterator[Finding]]
) -> list[Problem]:
    problems = []
    for it in faults(said):
        name, _, inner = it.field.partition(".")
        value = getattr(said.get(name), inner, "") if inner else said.get(name, "")
        shown = str(value if it.value is None else it.value)
        problem = Problem(where=where, key=it.field, value=shown, fact=it.fact, remedy=it.remedy)
        problems.append(problem)
    return problems


_KINDS = {TorusFabric: "torus", NodesFabric: "nodes", LinkedFabric: "linked"}


def architecture_problems(model: Architecture, where: str) -> Iterator[Problem]:
    """What cannot be in a model of classes of layers, of which no file of ours says one."""
    yield from record_problems(model, where)
    counts = [0] * len(model.layers)
    for i, index in enumerate(model.order):
        if index < len(counts):
            counts[index] += 1
        else:
            fact = f"is no class of layers: there are {len(counts)}, from 0"
            yield Problem(where=where, key=f"order[{i}]", value=str(index), fact=fact)
    if not model.order:
        yield Problem(where=where, key="order", fact="names no layer")
    for i, (layer, n_layers) in enumerate(zip(model.layers, counts, strict=True)):
        key = f"layers[{i}]"
        if layer.n_layers != n_layers:
            fact = f"is not how often `order` names the class, {n_layers}"
            yield Problem(where=where, key=f"{key}.n_layers", value=str(layer.n_layers), fact=fact)
        for part, number, of, fact in _misfits(layer):
            yield Problem(where=where, key=f"{key}.{part}", value=str(number), fact=f"{fact} {of}")


def _misfits(layers: LayerClass) -> Iterator[tuple[str, int, int, str]]:
    """Numbers of a layer that do not fit each other: which, how many, the other, and why not."""
    mixer, ffn = layers.mixer, layers.ffn
    if isinstance(mixer, GroupedAttention):
        if mixer.n_heads % mixer.n_kv_heads:
            yield "mixer.n_heads", mixer.n_heads, mixer.n_kv_heads, "is no multiple of n_kv_heads,"
        if mixer.span != "all" and mixer.n_span_tokens is None:
            yield "mixer.n_span_tokens", 0, 1, "is missing, and has to be at least"
    if isinstance(ffn, Experts) and ffn.n_active > ffn.n_experts:
        yield "ffn.n_active", ffn.n_active, ffn.n_experts, "is more than n_experts,"
