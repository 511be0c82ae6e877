"""A choice as a deployment, evaluated again by `planner.runtimes.predicting`.

The figures of a deployment are those of that evaluation, of one deployment by itself and with
errors added up line by line; the arrays that the program was made of have to agree with it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.errors import SolverError
from planner.estimates.serving.choices import EngineChoices, traffic_of
from planner.quantities import further_of
from planner.report.launch.telling import with_commands
from planner.results.engines import EngineDeployment
from planner.results.predictions import Interval, Prediction
from planner.runtimes.predicting import Machines, Speculating, predict
from planner.specs.architecture import Architecture
from planner.specs.engine_request import EngineRequest
from planner.specs.quality import quality_words
from planner.specs.roles import DECODE, PREFILL

TOLERANCE = 1e-9


def describe_choice(
    model: Architecture,
    machines: Machines,
    request: EngineRequest,
    choices: EngineChoices,
    column: int,
) -> EngineDeployment:
    """The deployment of one choice, by the figures of its own evaluation.

    Raises:
        SolverError: the arrays say otherwise.
    """
    table = choices.table.take(np.array([column]))
    asked = request.models[int(choices.model_index[column])]
    formats = table.formats[int(table.format_index[0])]
    n_drafted, drafting = int(choices.n_drafted[column]), request.drafting
    speculating = None
    if n_drafted and drafting:
        speculating = Speculating(
            kind=drafting.kind, n_drafted=n_drafted, acceptance=drafting.acceptance
        )
    answer = predict(
        model, machines, table, traffic_of(request, choices.role), speculating=speculating
    )
    _agree(choices, column, answer)
    beyond = float(choices.beyond[column])
    tpot, ttft = (_at(times, beyond) for times in (answer.tpot_s, answer.ttft_s))
    in_flight, n_output = answer.batch * int(table.n_data[0]), request.workload.n_output_tokens
    each_s = _place_s(answer, tpot, ttft) / n_output  # for a token
    rent = answer.n_devices * request.cluster.usd_per_hour
    memory = answer.memory
    found = EngineDeployment(
        engine=request.engine,
        model=asked.name,
        variant="" if asked == request.model else asked.name,
        quality_loss_fraction=asked.quality_loss_fraction,
        formats=formats,
        quality=quality_words(model, formats.weights, formats.cache),
        n_tensor=int(table.n_tensor[0]),
        n_data=int(table.n_data[0]),
        n_stages=int(table.n_stages[0]),
        n_expert_parallel=int(table.n_expert_parallel[0]),
        n_expert_tensor=int(table.n_expert_tensor[0]),
        batch=answer.batch,
        chunk_tokens=int(table.chunk_tokens[0]),
        overlap=answer.overlap,
        n_drafted=n_drafted,
        drafter=speculating.kind if speculating else "",
        tpot_s=answer.tpot_s,
        ttft_s=answer.ttft_s,
        planned_tpot_s=tpot,
        planned_ttft_s=ttft,
        usd_per_hour=rent,
        usd_per_token=rent / 3600.0 * each_s / in_flight,
        output_tokens_per_s=in_flight / each_s,
        weights_bytes=memory.weights_bytes + memory.drafter_bytes,
        used_bytes=_used_bytes(answer),
        capacity_bytes=memory.limit_bytes,
        command="",
        launch=None,
        role=choices.role,
        outside=answer.outside,
        redundant_experts=answer.redundant_experts,
    )
    return with_commands(request, found)


def _place_s(answer: Prediction, tpot_s: float, ttft_s: float) -> float:
    """How long a place is taken at the planned times: from prompt to last token, or of a role."""
    if answer.request.role == DECODE:
        return answer.n_output_tokens * tpot_s
    if answer.request.role == PREFILL:  # passes err as the first token does
        in_flight = answer.n_running * answer.degrees["data"]
        prompts_per_s = answer.total_tokens_per_s / answer.n_output_tokens
        return in_flight / prompts_per_s * ttft_s / answer.ttft_s.value
    return ttft_s + (answer.n_output_tokens - 1) * tpot_s


def as_fleet(
    request: EngineRequest, one: EngineDeployment, *, n_replicas: int, demand: float | None
) -> EngineDeployment:
    """So many replicas of a deployment, for a demand if there is one; money is of all of them."""
    rent = n_replicas * one.usd_per_hour
    output = n_replicas * one.output_tokens_per_s
    found = replace(
        one,
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        usd_per_hour=rent,
        output_tokens_per_s=output,
        usd_per_token=one.usd_per_token if demand is None else rent / 3600.0 / demand,
    )
    limits = request.targets.limits()
    return replace(found, further=further_of(limits, found, request.cluster))


def _at(times: Interval, beyond: float) -> float:
    """The end of an interval of as many standard deviations, from the one of its own [s]."""
    return times.value + beyond * (times.high - times.value)


def _used_bytes(answer: Prediction) -> float:
    memory = answer.memory
    held = memory.weights_bytes + memory.drafter_bytes + memory.longest_cache_bytes
    return held + memory.activation_bytes + memory.workspace_bytes


def _agree(choices: EngineChoices, column: int, answer: Prediction) -> None:
    held = choices.fixed_bytes[column] + choices.moving_bytes[column]
    figures = (
        ("TPOT", choices.tpot_s[column], answer.tpot_s.value),
        ("TTFT", choices.ttft_s[column], answer.ttft_s.value),
        ("error of TPOT", 1.0 + choices.tpot_error[column], _spread(answer.tpot_s)),
        ("error of TTFT", 1.0 + choices.ttft_error[column], _spread(answer.ttft_s)),
        ("memory", held, _used_bytes(answer)),
        ("batch", choices.table.batch[column], answer.n_running),
    )
    wrong = [
        f"{name} {float(found)!r} is {counted!r}"
        for name, found, counted in figures
        if not math.isclose(found, counted, rel_tol=TOLERANCE)
    ]
    if wrong:
        raise SolverError("the evaluation disagrees with the plan: " + "; ".join(wrong))


def _spread(times: Interval) -> float:
    return times.high / times.value if times.value else 1.0
