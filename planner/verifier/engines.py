"""The deployment of an engine's replica counted anew, on the devices that it counts on.

Chosen are degrees, formats, batch and chunk: each has to be a choice that there is. All else is
the account of the deployment, on its devices by themselves.
"""

from collections.abc import Iterator
from dataclasses import replace

from planner.results.engines import EngineDeployment
from planner.results.placements import RunConfig
from planner.specs.ask.engine import (
    EngineRequest,
    ModelOption,
    PoolOptions,
    PredictionRequest,
    ServingRecords,
)
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import Targets
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import DECODE, MICROBATCHES, PREFILL, ROLES
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid
from planner.verifier.quantities import offered_formats
from planner.verifier.runtimes.engines import engine_deployment, unfit
from planner.verifier.serving.evaluation import evaluation, layers_of
from planner.verifier.serving.ranks import kind_of
from planner.verifier.serving.starting import unstartable


def counted_engine(
    request: PlacementRequest, demand: Serve, cluster: ClusterSpec, recipe: RunConfig
) -> tuple[EngineDeployment, list[Finding]]:
    """The deployment that is true of the choice and its times, and what of it cannot be.

    Args:
        cluster: that devices of the recipe's ability make.

    Raises:
        Refused: there is no such engine, the record is of none, or nothing has such degrees.
    """
    says = recipe.deployment
    if not isinstance(says, EngineDeployment):
        raise Invalid("is of layouts", path=("deployment",), says=recipe.engine)
    for_engine, given = asked_of(request, demand, cluster, recipe.engine, says)
    wrong = [
        *_unoffered(request, demand, layers_of(demand.model), says),
        *_out_of_role(request, says),
    ]
    if wrong:  # of what cannot be there is nothing to count
        return says, wrong
    counted, engine = evaluation(given), for_engine.records.engine
    true = engine_deployment(for_engine, given, counted)
    true = replace(true, command=says.command, launch=says.launch)
    wrong += unstartable(
        engine,
        counted.rank.model,
        cluster,
        says,
        loaded=counted.rank.formats,
        overlaps=False,
        balances=True,
    )
    return true, [*wrong, *unfit(true, counted), *_broken(request, demand, true)]


def asked_of(
    request: PlacementRequest,
    demand: Serve,
    cluster: ClusterSpec,
    engine: str,
    says: EngineDeployment,
) -> tuple[EngineRequest, PredictionRequest]:
    """What is asked of a replica by itself, and the replica as a given deployment.

    Raises:
        Refused: nothing was measured of the engine on the devices.
    """
    model, tables = layers_of(demand.model), tables_of(request, engine, cluster)
    for_engine = from_fields(
        EngineRequest,
        request,
        model=ModelOption(name=model.name, title=model.title, kind=kind_of(model)),
        cluster=from_fields(
            PoolOptions,
            cluster,
            device=cluster.device.name,
            n_devices_per_node=cluster.n_devices,
        ),
        engine=engine,
        workload=demand.workload or request.workload,
        targets=Targets(),
        formats=(says.formats,),
        chunks=(says.chunk_tokens,),
        prefer="objective",
        records=ServingRecords(
            models=(model,), cluster=cluster, engine=tables.engine, kernels=tables.kernels
        ),
    )
    return for_engine, says.alone(for_engine, model)


def n_block_tokens(request: PlacementRequest, engine: str) -> int:
    """Tokens of a block of an engine's cache; 1 of what has no kernels."""
    blocks = [it.engine.n_block_tokens for it in request.tables if it.engine.name == engine]
    return blocks[0] if blocks else 1


def tables_of(request: PlacementRequest, engine: str, cluster: ClusterSpec) -> EngineTables:
    """What was measured of an engine on a device, as the request has it.

    Raises:
        Refused: nothing was.
    """
    for one in request.tables:
        if (one.engine.name, one.kernels.device) == (engine, cluster.device.name):
            return one
    fact = f"has no kernels of {cluster.device.name}"
    raise Invalid(fact, path=("engine",), says=engine)


def _unoffered(
    request: PlacementRequest, demand: Serve, model: Architecture, says: EngineDeployment
) -> Iterator[Finding]:
    """Formats and batches that nobody offered."""
    weights = demand.weights_formats or offered_formats(model, demand.targets or request.targets)
    for name, value, offered in (
        ("weights", says.formats.weights, weights),
        ("experts", says.formats.experts, weights),
        ("cache", says.formats.cache, demand.kv_formats or (model.kv_format,)),
    ):
        if value not in offered:
            fact = f"is none of {', '.join(offered)}"
            yield Finding(path=("formats", name), says=value, fact=fact)
    if says.chunk_tokens < 1:
        yield Finding(path=("chunk_tokens",), says=says.chunk_tokens, fact="is below one")
    if says.overlap != "none":
        yield Finding(path=("overlap",), says=says.overlap, fact="was not asked for")
    if says.n_drafted or says.drafter:
        yield Finding(path=("n_drafted",), says=says.n_drafted, fact="were not asked for")


def _out_of_role(request: PlacementRequest, says: EngineDeployment) -> Iterator[Finding]:
    """Batches that were not offered, or that a worker of one phase cannot have in its passes."""
    if says.role not in ROLES:
        yield Finding(path=("role",), says=says.role, fact=f"is none of {', '.join(ROLES)}")
    parts, apart = says.n_microbatches, request.roles.expert_devices
    if says.n_expert_devices and (apart is None or parts not in MICROBATCHES):
        fact = "have experts apart, which nobody offered so"
        yield Finding(path=("n_microbatches",), says=parts, fact=fact)
    if says.role != PREFILL and says.batch not in request.batches:
        yield Finding(path=("batch",), says=says.batch, fact="is no batch that was offered")
    if says.role == DECODE and says.chunk_tokens < says.batch:
        fact = f"has no room for {says.batch} that decode"
        yield Finding(path=("chunk_tokens",), says=says.chunk_tokens, fact=fact)


def _broken(request: PlacementRequest, demand: Serve, true: EngineDeployment) -> Iterator[Finding]:
    """Targets of a replica that are exceeded."""
    targets = demand.targets or request.targets
    for name, used, most in (
        ("planned_tpot_s", true.planned_tpot_s, targets.tpot_s),
        ("planned_ttft_s", true.planned_ttft_s, targets.ttft_s),
    ):
        if most is not None and used > most * (1 + 2 * TOLERANCE):
            yield Finding(path=(name,), says=used, fact=f"exceeds {most!r}")
    least = targets.min_batch
    if least is not None and true.role != PREFILL and true.batch * true.n_data < least:
        yield Finding(path=("batch",), says=true.batch, fact=f"is below the {least} asked for")
