"""What replicas do at a rate, served again: the station point by point, the requests one by one."""

from dataclasses import replace

from planner.results.arrivals import Load
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.plans import AnyDeployment, AnyRequest
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.findings import Finding, Invalid, differences
from planner.verifier.fleets.stations import StationContext, counted_station
from planner.verifier.layouts.stations import economics_station, layout_station, prompt_tokens
from planner.verifier.runtimes.engines import model_of
from planner.verifier.runtimes.layouts import LayoutCounting
from planner.verifier.serving.evaluation import rank_of, served_by
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import Demand
from planner.verifier.simulation.fleets import Simulation, load_at, simulate


def counted_load(
    says: Load | None,
    rank: Rank,
    served: Demand,
    requests_per_s: float,
    *,
    slower: float = 1.0,
    later: float = 1.0,
    n_replicas: int = 1,
    seed: int = 0,
) -> tuple[Load | None, list[Finding]]:
    """The load that is true of replicas, and what of its station cannot be.

    Args:
        slower: how many times longer than predicted all passes are planned.
        later: how many times later than by these passes first tokens are planned.
    """
    if says is None:
        fact = f"of {requests_per_s:g} requests a second is left out"
        return None, [Finding(path=("load",), says=None, fact=fact)]
    n_input, n_output = round(served.n_new_tokens), int(served.n_output_tokens)
    ground = StationContext(
        rank=rank,
        served=served,
        n_input_tokens=float(n_input),
        n_longest_tokens=n_input + n_output / served.n_yielded,
        slower=slower,
        later=slower,
    )
    station, wrong = counted_station(says.station, ground)
    if wrong or any(differences(says.station, station)):  # nothing is served by what is not so
        truth = replace(says, requests_per_s=requests_per_s, station=station)
        return truth, [one.below(("load", "station")) for one in wrong]
    load = load_at(
        says.station,
        requests_per_s,
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        yields=served.n_yielded,
        later=later,
        n_replicas=n_replicas,
        seed=seed,
    )
    return load, []


def judged_load(
    says: Load, request: AnyRequest, best: AnyDeployment
) -> tuple[Load | None, list[Finding]]:
    """What a plan that was counted does at its demand."""
    try:
        if not (isinstance(request, EngineRequest) and isinstance(best, EngineDeployment)):
            return load_of_account(request, best), []
        demand = best.demand_tokens_per_s or 0.0
        given = best.alone(request, model_of(request, best))
        slower = best.planned_tpot_s / best.tpot_s.value  # in which others' prompts are
        return counted_load(
            says,
            rank_of(given),
            served_by(given),
            demand / request.workload.n_written_tokens,
            slower=slower,
            later=best.planned_ttft_s / (slower * best.ttft_s.value),
            n_replicas=best.n_replicas,
            seed=request.options.seed,
        )
    except Invalid as refused:
        return says, [refused.at(())]


def load_of_account(
    request: AnyRequest, best: AnyDeployment, simulation: Simulation = simulate
) -> Load:
    """What replicas of layouts, or of the reference model, do at the demand of their plan.

    Raises:
        Refused: the deployment cannot be.
    """
    if isinstance(request, EconomicsRequest) and isinstance(best, EconomicsDeployment):
        station, n_input = economics_station(request, best), prompt_tokens(request)
        n_output = request.n_cached_tokens - n_input
    elif isinstance(request, Request) and isinstance(best, Deployment):
        served = LayoutCounting(request).request_of(best) or request
        n_output, n_input = request.workload.n_output_tokens, request.workload.n_input_tokens
        station = layout_station(served, best)
    else:
        raise Invalid("is of no runtime that was asked", says=best.summary)
    return load_at(
        station,
        (best.demand_tokens_per_s or 0.0) / n_output,
        n_input_tokens=round(n_input),
        n_output_tokens=round(n_output),
        yields=best.draft.n_yielded if best.draft else 1.0,
        n_replicas=best.n_replicas,
        seed=request.options.seed,
        simulation=simulation,
    )
