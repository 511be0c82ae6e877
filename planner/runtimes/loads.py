"""What a deployment does at the rate that arrives: asked of the simulation, as fleets are."""

from dataclasses import replace

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.drafting import rounds_of
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.serving import Serving, fetch_s
from planner.estimates.serving.stations import RequestShape, stations
from planner.estimates.serving.traffic import Traffic
from planner.results.arrivals import Load
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyDeployment, AnyRequest
from planner.runtimes.simulation import simulate
from planner.specs.ask.engine import EngineRequest, PredictionRequest
from planner.specs.validation.hints import from_fields
from planner.verifier.loads import load_of_account
from planner.verifier.simulation.fleets import load_at


def load_of(
    given: PredictionRequest,
    requests_per_s: float,
    *,
    slower: float = 1.0,
    later: float = 1.0,
    n_replicas: int = 1,
    seed: int = 0,
) -> Load:
    """What replicas of one deployment do where so many requests arrive at all of them together.

    Args:
        slower: times that all passes take as long as predicted.
        later: times that first tokens take as long as these passes make them.
    """
    records, (model,) = given.records, given.records.models
    device = records.cluster.device
    drafts = rounds_of(model, given.drafter or None, given.n_drafted, given.acceptance)
    yields = drafts.yields if drafts else 1.0
    n_block, link = records.engine.n_block_tokens, device.host_bytes_per_s
    traffic = from_fields(Traffic, given, n_block_tokens=n_block, host_bytes_per_s=link)
    n_input = round(traffic.n_new_tokens)
    clock = KernelClock(
        device=device,
        table=records.kernels,
        engine=records.engine,
        network=serving_network(records.cluster.fabric),
    )
    degrees = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    table = deployments(
        formats=given.formats,
        n_redundant=given.n_redundant_experts,
        batch=given.batch,
        chunk_tokens=given.chunk_tokens,
        overlaps=given.overlaps,
        n_expert_devices=given.n_expert_devices,
        n_microbatches=given.n_microbatches,
        **{name: getattr(given, name) for name in degrees},
    )
    serving = Serving(model=model, formats=given.formats, engine=records.engine, clock=clock)
    (station,) = stations(
        serving,
        table,
        RequestShape(
            n_input_tokens=float(n_input),
            n_longest_tokens=n_input + given.n_output_tokens / yields,
            n_past_tokens=float(given.n_input_tokens - n_input),
            **traffic.sharing(),
            drafts=drafts,
        ),
        names=[""],
        hbm_bytes=device.hbm_bytes,
        role=given.role,
    )
    fetched_s = float(fetch_s(serving, table, traffic)[0])
    station = replace(station, request_s=station.request_s + fetched_s)
    return load_at(
        station.slowed(decode=slower, reading=slower),
        requests_per_s,
        n_input_tokens=n_input,
        n_output_tokens=given.n_output_tokens,
        yields=yields,
        later=later,
        n_replicas=n_replicas,
        seed=seed,
        simulation=simulate,
    )


def load_of_plan(request: AnyRequest, best: AnyDeployment) -> Load:
    """What replicas do at the demand that they were planned for, in passes as long as planned.

    TPOT has others' prompts in it, so that all passes are longer by what TPOT is planned longer:
    full batches then write what the plan counts. First tokens are later by what TTFT is planned
    longer than that; prompts slowed by it would take their time of TPOT twice.
    """
    if not (isinstance(request, EngineRequest) and isinstance(best, EngineDeployment)):
        return load_of_account(request, best, simulate)
    assert best.demand_tokens_per_s is not None
    model = next(one for one in request.records.models if one.name == best.model)
    slower = best.planned_tpot_s / best.tpot_s.value
    return load_of(
        best.alone(request, model),
        best.demand_tokens_per_s / request.workload.n_written_tokens,
        slower=slower,
        later=best.planned_ttft_s / best.ttft_s.value / slower,
        n_replicas=best.n_replicas,
        seed=request.options.seed,
    )
