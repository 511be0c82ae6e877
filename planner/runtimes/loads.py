"""What a deployment does at the rate that arrives: asked of the simulation, as fleets are."""

from __future__ import annotations

from planner.estimates.serving.choices import traffic_of
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.drafting import rounds_of
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.results.arrivals import Load
from planner.results.engines import EngineDeployment
from planner.runtimes.simulation import simulate
from planner.specs.architecture import Architecture
from planner.specs.engine_request import EngineRequest
from planner.specs.serving_records import PredictionRequest, ServingRecords
from planner.specs.stations import Station
from planner.verifier.simulation.rates import load_at


def load_of(request: PredictionRequest, traffic: Traffic, drafts: Drafts | None) -> Load:
    """What one deployment does where as many requests arrive as its request says."""
    assert request.requests_per_s is not None
    model, shared = request.records.models[0], float(request.n_shared_tokens)
    shape = _shape(traffic, drafts, shared)
    one = _station(request.records, model, request, traffic.role, shape, request.overlaps)
    return load_at(
        one,
        request.requests_per_s,
        n_input_tokens=int(shape.n_input_tokens),
        n_output_tokens=int(traffic.n_output_tokens),
        yields=shape.yields,
        simulation=simulate,
    )


def load_of_plan(request: EngineRequest, best: EngineDeployment) -> Load:
    """What replicas do at the demand that they were planned for, in passes as long as planned."""
    assert best.demand_tokens_per_s is not None
    model = next(one for one in request.records.models if one.name == best.model)
    acceptance = request.drafting.acceptance if request.drafting else ()
    drafts = rounds_of(model, best.drafter or None, best.n_drafted, acceptance)
    shape = _shape(traffic_of(request), drafts, 0.0)
    one = _station(request.records, model, best, best.role, shape, best.overlap != "none")
    slower, later = (
        best.planned_tpot_s / best.tpot_s.value,
        best.planned_ttft_s / best.ttft_s.value,
    )
    return load_at(
        one.slowed(decode=slower, reading=later),
        best.demand_tokens_per_s / request.workload.n_output_tokens,
        n_input_tokens=int(shape.n_input_tokens),
        n_output_tokens=request.workload.n_output_tokens,
        yields=shape.yields,
        n_replicas=best.n_replicas,
        seed=request.options.seed,
        simulation=simulate,
    )


def _shape(traffic: Traffic, drafts: Drafts | None, n_shared_tokens: float) -> RequestShape:
    """Requests that are all alike: a whole number of tokens of each prompt is read."""
    n_input = round(traffic.n_new_tokens)
    yields = drafts.yields if drafts else 1.0
    return RequestShape(
        n_input_tokens=float(n_input),
        n_longest_tokens=n_input + traffic.n_output_tokens / yields,
        n_past_tokens=traffic.n_input_tokens - n_input,
        n_shared_tokens=n_shared_tokens,
        drafts=drafts,
    )


def _station(
    records: ServingRecords,
    model: Architecture,
    one: PredictionRequest | EngineDeployment,
    role: str,
    shape: RequestShape,
    overlaps: bool,
) -> Station:
    """One rank of a deployment."""
    device = records.cluster.device
    clock = KernelClock(
        device=device,
        table=records.kernels,
        engine=records.engine,
        network=serving_network(records.cluster.fabric),
    )
    names = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    table = deployments(
        formats=one.formats,
        n_redundant=one.n_redundant_experts,
        batch=one.batch,
        chunk_tokens=one.chunk_tokens,
        overlaps=overlaps,
        **{name: getattr(one, name) for name in names},
    )
    serving = Serving(model=model, formats=one.formats, engine=records.engine, clock=clock)
    hbm_bytes = device.hbm_bytes
    return stations(serving, table, shape, names=[""], hbm_bytes=hbm_bytes, role=role)[0]
