"""A choice as a deployment, counted again by code that did not find it.

The figures of a deployment are those of the scalar recount; the arrays that the program was
made of have to agree with it, and the limits to hold by it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from planner.equations.speculation import expected_tokens, n_scored
from planner.errors import SolverError
from planner.estimates.economics.choices import Choices
from planner.estimates.economics.passes import Ways
from planner.quantities import further_of
from planner.results.erdil2025 import EconomicsDeployment, EconomicsDraft, Way
from planner.specs.economics.request import EconomicsRequest
from planner.verifier.runtimes.erdil_passes import count_bytes, count_pass

TOLERANCE = 1e-9


def describe_choice(
    choices: Choices, request: EconomicsRequest, column: int
) -> EconomicsDeployment:
    """The deployment of one choice, counted by the scalar model.

    Raises:
        SolverError: the arrays say otherwise.
    """
    served = request.served[int(choices.served[column])]
    way, batch = _way(choices.ways, column), int(choices.batch[column])
    n_drafted, decode = int(choices.n_drafted[column]), served.target
    draft, n_yielded = None, 1.0
    if n_drafted:
        convention = request.drafting.convention
        scored = float(n_scored(n_drafted, convention=convention))
        decode = replace(decode, n_scored_tokens=scored)
        acceptance = request.drafting.acceptance
        n_yielded = expected_tokens(n_drafted, acceptance, convention=convention)
        draft = _draft(choices, request, column, n_yielded)
    step = count_pass(decode, way, batch)
    round_s = step.total_s + (n_drafted * draft.step.total_s if draft else 0.0)
    weights, caches = count_bytes(
        decode.model,
        way,
        batch,
        n_cached_tokens=request.n_cached_tokens,
        rule=request.memory,
    )
    drafted = draft.held_bytes if draft else 0.0
    used = sum((weights, caches, drafted))
    if request.memory != "in-flight":  # then a draft meets the memory by itself
        used = max(weights + caches, drafted)
    rent, token_s = way.n_devices * request.usd_per_hour, round_s / n_yielded
    deployment = EconomicsDeployment(
        weights_format=served.weights_format,
        layout=way,
        batch=batch,
        step=step,
        tpot_s=token_s,
        usd_per_hour=rent,
        usd_per_token=rent / 3600.0 * token_s / batch,
        weights_bytes=weights,
        kv_bytes=caches,
        used_bytes=used,
        capacity_bytes=request.hbm_bytes,
        draft=draft,
    )
    _agree(choices, column, deployment)
    return deployment


def as_fleet(
    request: EconomicsRequest, one: EconomicsDeployment, *, n_replicas: int, demand: float | None
) -> EconomicsDeployment:
    """So many replicas of a deployment, for a demand if there is one; money is of all of them."""
    rent = n_replicas * one.usd_per_hour
    found = replace(
        one,
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        usd_per_hour=rent,
        usd_per_token=one.usd_per_token if demand is None else rent / 3600.0 / demand,
    )
    limits = request.targets.limits()
    return replace(found, further=further_of(limits, found, request.device))


def _way(ways: Ways, column: int) -> Way:
    return Way(
        n_stages=int(ways.n_stages[column]),
        n_tensor=int(ways.n_tensor[column]),
        n_expert=int(ways.n_expert[column]),
        n_attention=int(ways.n_attention[column]),
    )


def _draft(
    choices: Choices, request: EconomicsRequest, column: int, n_yielded: float
) -> EconomicsDraft:
    served = request.served[int(choices.served[column])]
    assert served.draft is not None
    way, batch = _way(choices.draft_ways, column), int(choices.batch[column])
    held = count_bytes(
        served.draft.model,
        way,
        batch,
        n_cached_tokens=request.n_cached_tokens,
        rule=request.memory,
    )
    return EconomicsDraft(
        model=served.draft.model.title,
        weights_format=served.draft_format,
        layout=way,
        step=count_pass(served.draft, way, batch),
        n_drafted=int(choices.n_drafted[column]),
        n_yielded=n_yielded,
        held_bytes=sum(held),
    )


def _agree(choices: Choices, column: int, deployment: EconomicsDeployment) -> None:
    figures = (
        ("time of a token", float(choices.token_s[column]), deployment.tpot_s),
        ("memory", float(choices.held_bytes[column]), deployment.used_bytes),
    )
    wrong = [
        f"{name} {found!r} is {counted!r}"
        for name, found, counted in figures
        if not math.isclose(found, counted, rel_tol=TOLERANCE)
    ]
    if deployment.draft and deployment.draft.layout.n_devices != deployment.n_devices:
        wrong.append("the draft runs on other devices than its target")
    if wrong:
        raise SolverError("the recount disagrees with the plan: " + "; ".join(wrong))
