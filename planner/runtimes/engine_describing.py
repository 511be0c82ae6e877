"""A choice of an engine's deployments as the account writes it, with commands that start it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.estimates.serving.choices import EngineChoices, traffic_of
from planner.report.launch.telling import with_commands
from planner.results.engines import EngineDeployment
from planner.runtimes.describe import agree
from planner.runtimes.predicting import Machines, Speculating, account, given_deployment
from planner.specs.architecture import Architecture
from planner.specs.engine_request import EngineRequest
from planner.verifier.engine_deployments import engine_deployment


def describe_choice(
    model: Architecture,
    machines: Machines,
    request: EngineRequest,
    choices: EngineChoices,
    column: int,
    n_replicas: int = 1,
) -> EngineDeployment:
    """Replicas of one choice, by the account.

    Args:
        choices: timed on the machines, planned for a confidence of their own.

    Raises:
        SolverError: the arrays say otherwise.
    """
    table, drafting = choices.table.take(np.array([column])), request.drafting
    speculating = None
    if drafting and (n_drafted := int(choices.n_drafted[column])):
        speculating = Speculating(
            kind=drafting.kind, n_drafted=n_drafted, acceptance=drafting.acceptance
        )
    traffic = traffic_of(request, choices.role)
    given = given_deployment(model, machines, table, traffic, speculating)
    counted = account(given, machines)
    believed = replace(request, confidence=choices.confidence)
    found = engine_deployment(believed, given, counted, n_replicas)
    times = counted.times
    place_s = found.n_replicas * found.n_sequences / found.output_tokens_per_s
    held = choices.fixed_bytes[column] + choices.moving_bytes[column]
    agree(
        {
            "TPOT": (choices.tpot_s[column], times.tpot_s),
            "TTFT": (choices.ttft_s[column], times.ttft_s),
            "error of TPOT": (choices.tpot_error[column], times.tpot_error),
            "error of TTFT": (choices.ttft_error[column], times.ttft_error),
            "planned TPOT": (choices.tpot_high_s[column], found.planned_tpot_s),
            "planned TTFT": (choices.ttft_high_s[column], found.planned_ttft_s),
            "time of a token": (choices.place_s[column], place_s),
            "memory": (held, found.used_bytes),
            "sequences that run": (table.batch[0], times.n_running),
        }
    )
    return with_commands(request, found)
