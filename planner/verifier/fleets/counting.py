"""Parts of a fleet that are true of what was chosen: deployments, replicas, pools, classes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.fleets import FleetHandover, FleetPlan, FleetPool, Round, ServedClass
from planner.results.phase_deployments import PhaseDeployment, TableDeployment
from planner.results.placements import Replica, RunConfig
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.files.tables import Provenance
from planner.specs.records.roles import Station
from planner.verifier.engines import asked_of, n_block_tokens
from planner.verifier.findings import Finding, Invalid, Path
from planner.verifier.fleets.routes import sent_per_s
from planner.verifier.fleets.stations import StationContext, counted_station
from planner.verifier.layouts.stations import layout_station, table_station
from planner.verifier.placing.placements import Stand, counted_config
from planner.verifier.placing.table_rows import row_of
from planner.verifier.serving.evaluation import layers_of, rank_of, served_by
from planner.verifier.serving.held import handed_bytes
from planner.verifier.serving.starting import unpaired

FAR_BLOCKS = 1024
"""Up to which many blocks the cache that is handed over is a line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counting:
    """A fleet that is counted, and what it is counted from.

    Args:
        asked: what a placement would be asked that has the same devices, engines and formats.
        stand: the cluster in its state.
        wishes: of each recipe, its model and the request that its figures are of.
        wrong: what was found so far; grows.
    """

    says: FleetPlan
    asked: PlacementRequest
    stand: Stand
    wishes: Sequence[Serve]
    wrong: list[Finding]


def true_config(it: Counting, number: int) -> RunConfig:
    """A recipe with the deployment that is true of its choice."""
    says, wish, roles = it.says.recipes[number], it.wishes[number], it.asked.roles.roles
    path: Path = ("recipes", str(number))
    if isinstance(says.deployment, PhaseDeployment):
        fact = "does one phase, which in a fleet engines do"
        it.wrong.append(Finding(path=(*path, "engine"), says=says.engine, fact=fact))
        return says
    if says.role not in roles:
        fact = f"is not asked for: {', '.join(roles)}"
        it.wrong.append(Finding(path=(*path, "role"), says=says.role, fact=fact))
    chunks, chunk = it.says.request.chunks, getattr(says.deployment, "chunk_tokens", None)
    if chunks is not None and chunk is not None and chunk not in chunks:
        here = (*path, "deployment", "chunk_tokens")
        it.wrong.append(Finding(path=here, says=chunk, fact="is no chunk that was offered"))
    wishes = {wish.model.name: wish}
    n_alike = sum(one.recipe == number for one in it.says.replicas)
    return counted_config(it.asked, it.stand, wishes, says, n_alike, it.wrong, path)


def true_replicas(it: Counting, recipes: Sequence[RunConfig]) -> Iterator[Replica]:
    """Each replica as its devices make it; names count those of a pool."""
    pool_of_each = {number: pool for pool in it.says.pools for number in pool.replicas}
    numbers: dict[str, int] = {}
    for i, replica in enumerate(it.says.replicas):
        pool = pool_of_each[i].name
        numbers[pool] = numbers.get(pool, -1) + 1
        named = replace(
            replica, name=f"{pool}/{numbers[pool]}", model=recipes[replica.recipe].model
        )
        path: Path = ("replicas", str(i))
        if any(it.stand.is_free(rank.device) is None for rank in replica.ranks):
            yield named
            continue
        try:
            yield it.stand.replica(named, recipes[replica.recipe], named.name, it.wrong, path)
        except Invalid as refused:
            it.wrong.append(refused.at(path))
            yield named


def true_pool(it: Counting, number: int, recipe: RunConfig) -> FleetPool:
    """A pool with the rent of its replicas, and the station that one of them is."""
    pool, deployment = it.says.pools[number], recipe.deployment
    true = replace(pool, usd_per_hour=pool.n_replicas * deployment.usd_per_hour)
    try:
        if isinstance(deployment, EngineDeployment):
            ground = _context(it, pool, recipe, deployment)
            station, more = counted_station(pool.station, ground)
            it.wrong.extend(one.below(("pools", str(number), "station")) for one in more)
        else:
            station = _account(it, pool, recipe)
    except Invalid as refused:
        it.wrong.append(refused.at(("recipes", str(pool.recipe))))
        return true
    return replace(true, station=replace(station, name=pool.name))


def _account(it: Counting, pool: FleetPool, recipe: RunConfig) -> Station:
    """The station of layouts, or of the row of a table, which is of requests of their lengths.

    Raises:
        Refused: there is no such deployment, or its requests are of other lengths.
    """
    wish, deployment = it.wishes[pool.recipe], recipe.deployment
    if isinstance(deployment, TableDeployment):
        classes = [one for one in it.says.request.classes if one.name in pool.classes]
        is_cut = pool.above_tokens > 0.0 or not math.isinf(pool.upto_tokens)
        if [one.lengths.usual for one in classes] != [pool.usual] or is_cut:
            fact = "is of requests of other lengths than those of its class"
            raise Invalid(fact, path=("deployment", "line"), says=deployment.line)
        return table_station(*row_of(it.asked, deployment))
    assert isinstance(deployment, Deployment)
    cluster, standing = it.stand.cluster_of(recipe, wish)
    timed, longest = pool.station.decode, it.says.n_longest_tokens(pool)
    upto = timed.context_tokens[-1] if timed else 0.0
    if upto < longest:
        raise Invalid(f"has no passes up to {longest} tokens", path=("deployment",), says=upto)
    request = layout_request(it.asked, wish, cluster)
    return layout_station(request, deployment, upto, ground=standing)


def _context(
    it: Counting, pool: FleetPool, recipe: RunConfig, deployment: EngineDeployment
) -> StationContext:
    """What the station of a pool is of.

    Raises:
        Refused: the cluster has no such devices, or the engine no kernels of them.
    """
    wish = it.wishes[pool.recipe]
    cluster, _ = it.stand.cluster_of(recipe, wish)
    _, given = asked_of(it.asked, wish, cluster, recipe.engine, deployment)
    return StationContext(
        rank=rank_of(given),
        served=served_by(given),
        slower=deployment.planned_tpot_s / (deployment.tpot_s.value or 1.0),
        later=deployment.planned_ttft_s / (deployment.ttft_s.value or 1.0),
        n_input_tokens=float(pool.usual.n_input_tokens),
        n_longest_tokens=float(it.says.n_longest_tokens(pool)),
    )


def true_handover(
    it: Counting, handover: FleetHandover, recipes: Sequence[RunConfig]
) -> FleetHandover:
    """What a cache takes from one pool to another: the connector's word, and the links'."""
    connector = it.says.request.roles.connector
    assert connector is not None
    pools = {pool.name: pool for pool in it.says.pools}
    ends = [recipes[pools[name].recipe] for name in (handover.source, handover.target)]
    ours, model = ends[0].deployment, layers_of(it.wishes[pools[handover.source].recipe].model)
    theirs = ends[1].deployment
    assert isinstance(ours, EngineDeployment)
    assert isinstance(theirs, EngineDeployment)
    engine = next(t.engine for t in it.asked.tables if t.engine.name == ends[0].engine)
    for fact in unpaired(engine, model, ours, theirs):
        path = ("handovers", str(it.says.handovers.index(handover)), "target")
        it.wrong.append(Finding(path=path, says=handover.target, fact=fact))
    block = n_block_tokens(it.asked, ends[0].engine)
    first, last = (
        handed_bytes(model, ours.formats.cache, float(n), block)
        for n in (block, FAR_BLOCKS * block)
    )
    each = (last - first) / ((FAR_BLOCKS - 1.0) * block)
    wires = [end.deployment.n_devices * it.stand.own_bytes_per_s(end.kind) for end in ends]
    most = connector.bytes_per_s
    return replace(
        handover,
        sequence_bytes=max(0.0, first - each * block),
        token_bytes=each,
        latency_s=connector.latency_s,
        bytes_per_s=math.inf if most is None else most,
        wire_bytes_per_s=min(wires),
    )


def true_class(says: FleetPlan, outcome: ServedClass, pools: Sequence[FleetPool]) -> ServedClass:
    """What was asked for a class, and its part of the rents: shared by requests, as they come."""
    traffic = next(it for it in says.request.classes if it.name == outcome.name)
    sent = sent_per_s(says)
    limits = {(it.quantity, it.share): it.at_most_s for it in traffic.targets}
    return replace(
        outcome,
        rate_per_s=traffic.rate_per_s,
        n_input_tokens=traffic.lengths.mean_input_tokens,
        n_output_tokens=traffic.lengths.mean_output_tokens,
        percentiles=tuple(
            replace(it, at_most_s=limits.get((it.quantity, it.share))) for it in outcome.percentiles
        ),
        usd_per_hour=math.fsum(
            it.usd_per_hour * of_pool[outcome.name] / (math.fsum(of_pool.values()) or math.inf)
            for it, of_pool in zip(pools, sent, strict=True)
            if outcome.name in of_pool
        ),
    )


def true_rounds(says: FleetPlan, rent: float, n_devices: int) -> tuple[Round, ...]:
    """The last of them is the answer."""
    if not says.rounds:
        return says.rounds
    last = replace(says.rounds[-1], usd_per_hour=rent, n_devices=n_devices)
    return (*says.rounds[:-1], last)


def true_provenance(says: FleetPlan, stand: Stand) -> tuple[Provenance, ...]:
    """Sources of the devices, of what hands caches over, and of the models of what is served."""
    connector = says.request.roles.connector
    served = {one.name for one in says.classes if one.served_fraction > 0.0}
    models = (
        value
        for traffic in says.request.classes
        if traffic.name in served
        for it in traffic.models
        for value in it.provenance
    )
    of_connector = connector.provenance if connector else ()
    return tuple(dict.fromkeys((*stand.provenance, *of_connector, *models)))
