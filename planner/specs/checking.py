"""Everything in a request that cannot be planned for, whatever the program says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.errors import Problem
from planner.quantities import lacking, objective_of
from planner.specs.contexts import context_problems
from planner.specs.ledger import remark
from planner.specs.model_errors import why_unmeasured
from planner.specs.quality import quality_problems
from planner.specs.targets import (
    DEGREE_OPTIONS,
    OBJECTIVES,
    Targets,
)
from planner.specs.variants import diffusion_problems

if TYPE_CHECKING:
    from planner.specs.request import Request

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
        *_decoding_problems(request),
        *_confidence_problems(request),
    ]
    wrong_formats = list(_format_problems(request))
    if wrong_formats:
        return [*problems, *wrong_formats]
    lossy = quality_problems(
        request.model, request.targets, request.weights_formats, request.kv_formats
    )
    return [*problems, *lossy]


def _record_problems(request: Request) -> Iterator[Problem]:
    """What no file could say of the model, the cluster or a draft: records may be altered."""
    from planner.specs.record_coherence import cluster_problems, model_problems

    yield from model_problems(request.model, "model")
    yield from cluster_problems(request.cluster, "cluster")
    if request.speculation is not None:
        yield from model_problems(request.speculation.draft, "speculation.draft")


def _format_problems(request: Request) -> Iterator[Problem]:
    """Formats that the model's file does not list, or that the device cannot work in."""
    model, device = request.model, request.cluster.device
    asked = (
        ("--weights", request.weights_formats, model.weights_formats),
        ("--kv", request.kv_formats, model.kv_formats),
    )
    for option, names, known in asked:
        for name in sorted(set(names) - set(known)):
            fact = f"`{model.name}` is not served in this format"
            if option == "--weights" and name not in device.formats:
                fact += f", nor does `{device.name}` multiply it"
            remedy = "write " + " or ".join(f"`{one}`" for one in known)
            yield Problem(where=option, value=name, fact=fact, remedy=remedy)
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
    """Requests that the model, or its draft, cannot attend to."""
    tokens = request.workload.n_input_tokens, request.workload.n_output_tokens
    yield from context_problems(request.model, *tokens)
    if request.speculation:
        yield from context_problems(request.speculation.draft, *tokens, asked_by="--draft")


def _decoding_problems(request: Request) -> Iterator[Problem]:
    """Models that do not decode one token after the other, which is what layouts time."""
    yield from diffusion_problems(request.model, "--model")
    if request.speculation:
        yield from diffusion_problems(request.speculation.draft, "--draft")


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
