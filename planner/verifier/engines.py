"""The deployment of an engine's replica counted anew, on the devices that it counts on.

Chosen are degrees, formats, batch and chunk: each has to be a choice that there is. Times and
bytes are counted kernel by kernel in scalars (`planner.verifier.serving`), money and rates from
them; what is held has to fit the engine's share of the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.results.engines import EngineDeployment
from planner.results.placements import Recipe
from planner.results.predictions import Interval
from planner.specs.architecture import Architecture, Experts
from planner.specs.kernels import EngineSpec, EngineTables
from planner.specs.placement_request import PlacementRequest, Serve
from planner.specs.records import ClusterSpec
from planner.specs.roles import DECODE, PREFILL, ROLES
from planner.verifier.findings import TOLERANCE, Finding, Refused
from planner.verifier.quality import offered_formats, quality_words
from planner.verifier.serving.checkpoints import loaded
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.held import copies_of
from planner.verifier.serving.kernels import Kernels
from planner.verifier.serving.links import Links
from planner.verifier.serving.models import layers_of
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import (
    Served,
    deviations_planned,
    felt,
    held_by,
    planned_place_s,
)
from planner.verifier.serving.starting import unstartable


def counted_engine(
    request: PlacementRequest, one: Serve, cluster: ClusterSpec, recipe: Recipe
) -> tuple[EngineDeployment, list[Finding]]:
    """The deployment that is true of the choice and its times, and what of it cannot be.

    Args:
        cluster: that devices of the recipe's ability make.

    Raises:
        Refused: there is no such engine, or the record is of no engine.
    """
    says = recipe.deployment
    if not isinstance(says, EngineDeployment):
        raise Refused("is of layouts", path=("deployment",), says=recipe.engine)
    tables = tables_of(request, recipe.engine, cluster)
    model, n_devices = layers_of(one.model), says.n_tensor * says.n_data * says.n_stages
    work = one.workload or request.workload
    wrong = [
        *_unoffered(request, one, model, says),
        *_out_of_role(request, says, work.n_input_tokens),
        *_unstarted(tables.engine, model, cluster, says),
    ]
    if wrong:  # of what cannot be there is nothing to count
        return says, wrong
    rank, served = (
        rank_of_recipe(model, says, cluster, tables),
        served_by(request, one, says, tables, cluster),
    )
    held = held_by(rank, served)
    times = felt(rank, served, held.largest_batch)
    beyond = deviations_planned(request.confidence, times)
    tpot, ttft = (
        value * (1 + beyond * error)
        for value, error in (
            (times.tpot_s, times.tpot_error),
            (times.ttft_s, times.ttft_error),
        )
    )
    in_flight, rent = says.batch * says.n_data, n_devices * cluster.usd_per_hour
    each_s = planned_place_s(times, served, beyond) / served.n_output_tokens
    cached = times.n_running * held.sequence_bytes + held.shared_bytes
    found = replace(
        says,
        engine=recipe.engine,
        model=one.model.name,
        variant="",
        quality_loss_fraction=0.0,
        quality=quality_words(model, says.formats.weights, says.formats.cache),
        tpot_s=_interval(times.tpot_s, times.tpot_error),
        ttft_s=_interval(times.ttft_s, times.ttft_error),
        planned_tpot_s=tpot,
        planned_ttft_s=ttft,
        usd_per_hour=rent,
        usd_per_token=rent / 3600.0 * each_s / in_flight,
        output_tokens_per_s=in_flight / each_s,
        n_replicas=1,  # all of them stand in the placement, which a demand is asked of
        demand_tokens_per_s=None,
        weights_bytes=held.weights_bytes + held.drafter_bytes,
        used_bytes=held.limit_bytes - held.room_bytes - held.shared_bytes + cached,
        capacity_bytes=held.limit_bytes,
        outside=times.outside,
        redundant_experts=copies_of(rank),
    )
    return found, [*_broken(request, one, found)]


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
    raise Refused(fact, path=("engine",), says=engine)


def rank_of_recipe(
    model: Architecture, says: EngineDeployment, cluster: ClusterSpec, tables: EngineTables
) -> Rank:
    has_experts = any(isinstance(layer.ffn, Experts) for layer in model.layers)
    return Rank(
        model=model,
        formats=loaded(model, says.formats, tables.engine),
        kernels=Kernels(cluster.device, tables.kernels, tables.engine),
        links=Links(cluster.fabric),
        n_small_kernels=tables.engine.n_small_kernels,
        n_tensor=says.n_tensor,
        n_data=says.n_data,
        n_stages=says.n_stages,
        n_expert_parallel=says.n_expert_parallel,
        n_expert_tensor=says.n_expert_tensor,
        n_redundant=says.n_redundant_experts,
        exchanges=has_experts and says.n_data > 1 and says.n_expert_parallel > 1,
    )


def served_by(
    request: PlacementRequest,
    one: Serve,
    says: EngineDeployment,
    tables: EngineTables,
    cluster: ClusterSpec,
) -> Served:
    """What a deployment is to serve of a wish."""
    workload = one.workload or request.workload
    return Served(
        engine=tables.engine,
        hbm_bytes=cluster.device.hbm_bytes,
        batch=says.batch,
        chunk_tokens=says.chunk_tokens,
        overlaps=False,
        n_input_tokens=float(workload.n_input_tokens),
        n_output_tokens=float(workload.n_output_tokens),
        hit_fraction=0.0,
        draft=draft_of(layers_of(one.model), "", 0, ()),
        role=says.role,
    )


def _interval(value: float, error: float) -> Interval:
    """The range two times out of three; a ratio, as errors are."""
    return Interval(value=value, low=value / (1 + error), high=value * (1 + error))


def _unoffered(
    request: PlacementRequest, one: Serve, model: Architecture, says: EngineDeployment
) -> Iterator[Finding]:
    """Formats and batches that nobody offered."""
    weights = one.weights_formats or offered_formats(model, one.targets or request.targets)
    for name, value, offered in (
        ("weights", says.formats.weights, weights),
        ("experts", says.formats.experts, weights),
        ("cache", says.formats.cache, one.kv_formats or (model.kv_format,)),
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


def _out_of_role(
    request: PlacementRequest, says: EngineDeployment, n_input_tokens: int
) -> Iterator[Finding]:
    """Batches that were not offered, or that a worker of one phase cannot have in its passes."""
    if says.role not in ROLES:
        yield Finding(path=("role",), says=says.role, fact=f"is none of {', '.join(ROLES)}")
    if says.role == PREFILL:
        shared = max(1, says.chunk_tokens // n_input_tokens) * says.n_stages
        if not 1 <= says.batch <= shared:
            fact = f"is none of 1 to {shared} prompts that share passes"
            yield Finding(path=("batch",), says=says.batch, fact=fact)
        return
    if says.batch not in request.batches:
        yield Finding(path=("batch",), says=says.batch, fact="is no batch that was offered")
    if says.role == DECODE and says.chunk_tokens < says.batch:
        fact = f"has no room for {says.batch} that decode"
        yield Finding(path=("chunk_tokens",), says=says.chunk_tokens, fact=fact)


def _unstarted(
    engine: EngineSpec, model: Architecture, cluster: ClusterSpec, says: EngineDeployment
) -> Iterator[Finding]:
    """Degrees that there are not, and rules of the engine that the deployment breaks."""
    degrees = (says.n_tensor, says.n_data, says.n_stages, says.n_expert_parallel)
    if min(*degrees, says.n_expert_tensor, says.batch) < 1:
        yield Finding(path=("n_tensor",), says=says.n_tensor, fact="has a degree below one")
        return
    formats = loaded(model, says.formats, engine)
    yield from unstartable(
        engine, model, cluster, says, loaded=formats, overlaps=False, balances=True
    )


def _broken(request: PlacementRequest, one: Serve, found: EngineDeployment) -> Iterator[Finding]:
    """Targets of a replica and the memory of a device that are exceeded."""
    targets = one.targets or request.targets
    for name, used, most in (
        ("used_bytes", found.used_bytes, found.capacity_bytes),
        ("weights_bytes", found.weights_bytes, found.used_bytes),
        ("planned_tpot_s", found.planned_tpot_s, targets.tpot_s),
        ("planned_ttft_s", found.planned_ttft_s, targets.ttft_s),
    ):
        if most is not None and used > most * (1 + 2 * TOLERANCE):
            yield Finding(path=(name,), says=used, fact=f"exceeds {most!r}")
    least = targets.min_batch
    if least is not None and found.role != PREFILL and found.batch * found.n_data < least:
        yield Finding(path=("batch",), says=found.batch, fact=f"is below the {least} asked for")
