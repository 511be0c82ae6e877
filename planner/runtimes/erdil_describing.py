"""A choice under the reference model as the account writes it."""

from __future__ import annotations

from planner.errors import SolverError
from planner.estimates.economics.choices import Choices
from planner.estimates.economics.passes import Ways
from planner.results.erdil2025 import EconomicsChoice, EconomicsDeployment, Way
from planner.runtimes.agreeing import agree
from planner.specs.economics.request import EconomicsRequest
from planner.verifier.findings import Refused
from planner.verifier.runtimes.erdil2025 import economics_deployment


def describe_choice(
    choices: Choices, request: EconomicsRequest, column: int, n_replicas: int = 1
) -> EconomicsDeployment:
    """Replicas of one choice, by the account.

    Raises:
        SolverError: the arrays say otherwise, or the account refuses the choice.
    """
    n_drafted = int(choices.n_drafted[column])
    choice = EconomicsChoice(
        weights_format=request.served[int(choices.served[column])].weights_format,
        layout=_way(choices.ways, column),
        batch=int(choices.batch[column]),
        n_drafted=n_drafted,
        draft_layout=_way(choices.draft_ways, column) if n_drafted else None,
        n_replicas=n_replicas,
    )
    try:
        found, _ = economics_deployment(request, choice)
    except Refused as refused:
        raise SolverError(f"the account refuses the choice: {refused.at(())}") from None
    agree(
        {
            "time of a token": (choices.token_s[column], found.tpot_s),
            "memory": (choices.held_bytes[column], found.used_bytes),
        }
    )
    return found


def _way(ways: Ways, column: int) -> Way:
    return Way(
        n_stages=int(ways.n_stages[column]),
        n_tensor=int(ways.n_tensor[column]),
        n_expert=int(ways.n_expert[column]),
        n_attention=int(ways.n_attention[column]),
    )
