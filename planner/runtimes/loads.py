"""What a deployment does at the rate that arrives: asked of the simulation, as fleets are."""

from __future__ import annotations

from planner.estimates.serving.choices import traffic_of
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.drafting import rounds_of
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.results.arrivals import Load
from planner.results.engines import EngineDeployment
from planner.runtimes.simulation import simulate
from planner.specs.engine_request import EngineRequest
from planner.verifier.simulation.rates import load_at


def load_of(
    serving: Serving,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    hbm_bytes: float,
    requests_per_s: float,
    n_shared_tokens: float = 0.0,
    drafts: Drafts | None = None,
    slower: tuple[float, float] = (1.0, 1.0),
    n_replicas: int = 1,
    seed: int = 0,
) -> Load:
    """What replicas of one deployment do where so many requests arrive at all of them together.

    Args:
        table: of that one deployment.
        hbm_bytes: of one device.
        slower: times that passes which decode take longer than predicted, and those that read.
    """
    n_input = round(traffic.n_new_tokens)
    n_output = int(traffic.n_output_tokens)
    yields = drafts.yields if drafts else 1.0
    requests = RequestShape(
        n_input_tokens=float(n_input),
        n_longest_tokens=n_input + n_output / yields,
        n_past_tokens=traffic.n_input_tokens - n_input,
        n_shared_tokens=n_shared_tokens,
        drafts=drafts,
    )
    (station,) = stations(
        serving, table, requests, names=[""], hbm_bytes=hbm_bytes, role=traffic.role
    )
    decode, reading = slower
    return load_at(
        station.slowed(decode=decode, reading=reading),
        requests_per_s,
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        yields=yields,
        n_replicas=n_replicas,
        seed=seed,
        simulation=simulate,
    )


def load_of_plan(request: EngineRequest, best: EngineDeployment) -> Load:
    """What replicas do at the demand that they were planned for, in passes as long as planned."""
    records, drafting = request.records, request.drafting
    assert best.demand_tokens_per_s is not None
    model = next(one for one in records.models if one.name == best.model)
    device, acceptance = records.cluster.device, drafting.acceptance if drafting else ()
    clock = KernelClock(
        device=device,
        table=records.kernels,
        engine=records.engine,
        network=serving_network(records.cluster.fabric),
    )
    table = deployments(
        formats=best.formats,
        n_tensor=best.n_tensor,
        n_data=best.n_data,
        n_stages=best.n_stages,
        n_expert_parallel=best.n_expert_parallel,
        n_expert_tensor=best.n_expert_tensor,
        n_redundant=best.n_redundant_experts,
        batch=best.batch,
        chunk_tokens=best.chunk_tokens,
        overlaps=best.overlap != "none",
    )
    return load_of(
        Serving(model=model, formats=best.formats, engine=records.engine, clock=clock),
        table,
        traffic_of(request),
        hbm_bytes=device.hbm_bytes,
        requests_per_s=best.demand_tokens_per_s / request.workload.n_output_tokens,
        drafts=rounds_of(model, best.drafter or None, best.n_drafted, acceptance),
        slower=(best.planned_tpot_s / best.tpot_s.value, best.planned_ttft_s / best.ttft_s.value),
        n_replicas=best.n_replicas,
        seed=request.options.seed,
    )
