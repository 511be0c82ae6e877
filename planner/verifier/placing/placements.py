"""A placement counted anew: ranks on the graph, groups' links, recipes, totals, certificate.

The cluster is built from the request and its state. Each recipe is a deployment on the cluster
that devices of its ability make; each replica is laid on the graph rank by rank.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from planner.results.engines import EngineDeployment
from planner.results.phase_deployments import LayoutDeployment, PhaseDeployment, TableDeployment
from planner.results.placements import (
    AnyDeployment,
    Handover,
    KindUse,
    Placed,
    Placement,
    Replica,
    RunConfig,
    ServedModel,
)
from planner.specs.ask.defaults import NEAR_SHARE
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.ask.request import Request
from planner.specs.files.pools import MixedPoolSpec
from planner.specs.records.architecture import Experts
from planner.specs.records.certificates import LEAST_MOVED, OPTIMAL, UNCONFIRMED
from planner.specs.records.devices import ClusterSpec, Provenance
from planner.specs.records.roles import TOGETHER
from planner.specs.records.runtimes import ROOFLINE
from planner.verifier.beliefs import judged_others
from planner.verifier.certificates import RECOUNTED, STATUSES, Counts, certified, judged_sorts
from planner.verifier.engines import counted_engine, n_block_tokens, tables_of
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path, with_differences
from planner.verifier.layouts.deployments import Context as Standing
from planner.verifier.placing.fabrics import FabricStand
from planner.verifier.placing.handovers import Ends, judged_handovers
from planner.verifier.placing.parts import pieces_of
from planner.verifier.placing.sites import Site, site_of
from planner.verifier.placing.table_rows import counted_row
from planner.verifier.placing.tori import TorusStand
from planner.verifier.quantities import MEASURES, further_of
from planner.verifier.runtimes.layouts import (
    broken_targets,
    counted_deployment,
    counted_single_phase,
)
from planner.verifier.serving.evaluation import layers_of
from planner.verifier.serving.held import handed_bytes
from planner.verifier.serving.measured import engine_deviation

DIMENSIONS = {
    "throughput": "token/s",
    "share": "1",
    "rent": "USD/h",
    "devices": "1",
    "latency": "s",
    "cost": "USD/token",
}
RATES = ("throughput", "share")


def stand_of(request: PlacementRequest) -> Stand:
    """The cluster of a request in its state."""
    spec, site = request.site, site_of(request.site, request.state)
    if isinstance(spec, ClusterSpec):
        return TorusStand(request, spec, site)
    if not isinstance(spec, MixedPoolSpec):
        return FabricStand(request, spec, site)
    parts = _parted(site, [torus.name for torus in spec.tori])
    stands: list[Stand] = [
        TorusStand(request, torus, parts[torus.name], kind=torus.name) for torus in spec.tori
    ]
    if spec.servers.groups:
        stands.insert(0, FabricStand(request, spec.servers, parts[""]))
    return MixedStand(request, spec, stands)


def _parted(site: Site, names: Sequence[str]) -> dict[str, Site]:
    """What names of parts open the names of, by these, and by an empty one the rest."""
    parts = {name: Site() for name in ("", *names)}
    for vertex, at in site.vertices.items():
        before = vertex.partition("/")[0]
        own = parts[before if before in names else ""]
        own.vertices[vertex], own.links[vertex] = at, site.links[vertex]
    return parts


class MixedStand:
    """Servers and tori side by side: each replica is judged by the fabric that it lies on.

    Args:
        spec: all of them.
        stands: each in the state of the request.
    """

    def __init__(
        self, request: PlacementRequest, spec: MixedPoolSpec, stands: Sequence[Stand]
    ) -> None:
        self.name, self.title, self._stands = spec.name, spec.title, stands
        self._of_kind = {kind.kind: stand for stand in stands for kind in stand.kinds({})}
        self._on_tori = {torus.name for torus in spec.tori}
        self._is_by_layouts = {*request.engines} == {ROOFLINE.name}
        # of parts together nothing adds up: places, ways and columns are each of some
        reasons = ChainMap(*(dict(stand.counts.reasons) for stand in stands))
        self.counts: Counts = Counts(reasons=reasons, adds_up=lambda says: (0, 0))
        checks = dict.fromkeys(check for stand in stands for check in stand.checks)
        self.checks: tuple[str, ...] = tuple(checks)
        values = (value for stand in stands for value in stand.provenance)
        self.provenance: tuple[Provenance, ...] = tuple(values)

    def _on(self, device: str) -> Stand:
        """What a device is of; of what is no device, any."""
        knows = (it for it in self._stands if it.is_free(device) is not None)
        return next(knows, self._stands[0])

    def is_free(self, device: str) -> bool | None:
        return self._on(device).is_free(device)

    def kind_name(self, device: str) -> str:
        return self._on(device).kind_name(device)

    def leaf_name(self, device: str) -> str:
        return self._on(device).leaf_name(device)

    def loads_bytes_per_s(self, device: str) -> float:
        return self._on(device).loads_bytes_per_s(device)

    def own_bytes_per_s(self, kind: str) -> float:
        return self._of_kind[kind].own_bytes_per_s(kind)

    def wire_bytes_per_s(self, kind: str) -> float:
        return self._of_kind[kind].wire_bytes_per_s(kind)

    def uplinks_bytes_per_s(self) -> Mapping[str, float]:
        """None: caches stay in the replica that makes them."""
        return {}

    def kinds(self, used: Mapping[str, int]) -> tuple[KindUse, ...]:
        return tuple(kind for stand in self._stands for kind in stand.kinds(used))

    def cluster_of(self, recipe: RunConfig, demand: Serve) -> tuple[ClusterSpec, Standing]:
        """The cluster of its fabric, if that times it so: layouts leave servers to others."""
        if recipe.kind not in self._of_kind:
            raise Invalid("is no kind of the cluster", path=("kind",), says=recipe.kind)
        is_on_torus = self._is_by_layouts or recipe.kind in self._on_tori
        if recipe.engine == ROOFLINE.name and not is_on_torus:
            raise Invalid("times tori only, beside others", path=("engine",), says=recipe.engine)
        if _role(recipe.deployment) != TOGETHER:
            fact = "hands caches over between fabrics"
            raise Invalid(fact, path=("role",), says=recipe.role)
        return self._of_kind[recipe.kind].cluster_of(recipe, demand)

    def replica(
        self, says: Replica, recipe: RunConfig, name: str, wrong: list[Finding], path: Path
    ) -> Replica:
        """The replica on the fabric of its recipe, on which all of its ranks have to be."""
        stand = self._of_kind.get(recipe.kind)
        for j, rank in enumerate(says.ranks):
            if stand is None or stand.is_free(rank.device) is None:
                at = ("ranks", str(j), "device")
                raise Invalid(f"is none of {recipe.kind}", path=at, says=rank.device)
        assert stand is not None  # or a replica has no rank
        return stand.replica(says, recipe, name, wrong, path)


Stand = FabricStand | TorusStand | MixedStand
"""What replicas stand on: servers, a torus, or both."""


def judge_placement(placement: Placement) -> tuple[Placement, list[Finding]]:
    """The placement that is true of its choice, and everything in this one that is not so."""
    stand, name = stand_of(placement.request), placement.request.objective
    truth, wrong = true_placement(placement, stand)
    truth, more = judged_others(
        placement, truth, partial(true_placement, stand=stand), is_rate=name in RATES
    )
    return truth, with_differences([*wrong, *more], placement, truth)


def true_placement(
    placement: Placement, stand: Stand, *, is_repaired: bool = False
) -> tuple[Placement, list[Finding]]:
    """The placement that is true of its choice, and everything in it that is not so.

    Args:
        stand: its cluster in its state.
        is_repaired: whether it was chosen to move little.
    """
    request = placement.request
    wishes = {one.model.name: one for one in request.models}
    wrong: list[Finding] = []
    n_alike = Counter(replica.recipe for replica in placement.replicas)
    recipes = tuple(
        counted_config(request, stand, wishes, recipe, n_alike[i], wrong, ("recipes", str(i)))
        for i, recipe in enumerate(placement.recipes)
    )
    wrong += _orderly(placement)
    wrong += misplaced_devices(placement, stand)
    replicas = tuple(_replicas(placement, recipes, stand, wrong))
    known = [one for one in replicas if 0 <= one.recipe < len(recipes)]
    ends = Ends(
        replicas={one.name: one for one in known},
        recipes=recipes,
        handed_bytes=[_handed_bytes(request, wishes, one) for one in recipes],
        wishes=wishes,
        request=request,
        wires=stand,
    )
    handovers, more = judged_handovers(placement.handovers, ends)
    wrong += more
    served = tuple(_served_model(one, ends, handovers) for one in request.models)
    further = further_used(request, known, recipes, stand, wishes)
    wrong += _unserved(request, served)
    wrong += _above_limits(request, served, recipes, known, further)
    counts, statuses, options = stand.counts, STATUSES, request.options
    if is_repaired:  # what moves least may be of any number of sorts, and is no optimum
        counts, options = counts.of_a_repair(), replace(options, most_sorts=None)
        statuses = (OPTIMAL, UNCONFIRMED, LEAST_MOVED)
    certificate, found_wrong = certified(
        placement.certificate,
        objective_name=request.objective,
        objective=_reached(request, served, recipes, known),
        dimension=DIMENSIONS[request.objective],
        is_rate=request.objective in RATES,
        gap=max(request.options.gap, NEAR_SHARE, _error(request, stand, wishes, recipes, known)),
        checks=checks_of(stand.checks, recipes),
        counts=counts,
        statuses=statuses,
    )
    wrong += found_wrong
    certificate, of_sorts = judged_sorts(
        certificate,
        recipes,
        options,
        is_rate=request.objective in RATES,
        prefer=request.prefer,
    )
    wrong += of_sorts
    truth = replace(
        placement,
        pool=stand.name,
        title=stand.title,
        recipes=recipes,
        replicas=replicas,
        served=served,
        kinds=stand.kinds(devices_used(placement, stand)),
        certificate=certificate,
        provenance=_provenance(request, stand),
        further=further,
        handovers=handovers,
    )
    return truth, with_differences(wrong, placement, truth)


def _provenance(request: PlacementRequest, stand: Stand) -> tuple[Provenance, ...]:
    """Where values of the cluster, of what caches are handed over by, and of models come from."""
    connector = request.roles.connector
    handing = connector.provenance if connector else ()
    models = (value for one in request.models for value in one.model.provenance)
    return tuple(dict.fromkeys((*stand.provenance, *handing, *models)))


def checks_of(checks: Sequence[str], recipes: Sequence[RunConfig]) -> tuple[str, ...]:
    """The checks that were made: rows of tables say their seconds, and nobody recounts them."""
    listed = [isinstance(one.deployment, TableDeployment) for one in recipes]
    of_rows = ["each replica of a table is a row of it, word for word"] * any(listed)
    others = [one for one in checks if one != RECOUNTED or not all(listed)]
    return (*others, *of_rows)


def counted_config(
    request: PlacementRequest,
    stand: Stand,
    wishes: Mapping[str, Serve],
    says: RunConfig,
    n_alike: int,
    wrong: list[Finding],
    path: Path,
) -> RunConfig:
    """The recipe with the deployment that is true of its choice."""
    demand = wishes.get(says.model)
    if demand is None:
        fact = "is no model that was asked for"
        wrong.append(Finding(path=(*path, "model"), says=says.model, fact=fact))
        return says
    here = (*path, "deployment")
    if _runtime_name(says) not in request.engines:
        fact = f"is none of {', '.join(request.engines)}"
        wrong.append(Finding(path=(*path, "engine"), says=says.engine, fact=fact))
        return says
    try:
        cluster, standing = stand.cluster_of(says, demand)
        if not isinstance(says.deployment, LayoutDeployment):
            is_row = isinstance(says.deployment, TableDeployment)
            listed, more = (counted_row if is_row else counted_engine)(
                request, demand, cluster, says
            )
            wrong += [replace(it, path=(*here, *it.path)) for it in more]
            return replace(says, pieces=pieces_of(says), deployment=listed, role=_role(listed))
    except Invalid as refused:
        wrong.append(refused.at(path))
        return says
    if says.engine != ROOFLINE.name:
        fact = f"is of layouts, and not of {says.engine}"
        wrong.append(Finding(path=here, says=says.deployment.summary, fact=fact))
        return says
    for_layouts = layout_request(request, demand, cluster)
    true, more = _counted_layout(
        for_layouts, says.deployment, replace(standing, n_alike=n_alike), here
    )
    wrong += more
    pieces = () if says.deployment.mesh.is_torus else pieces_of(says)
    return replace(says, pieces=pieces, deployment=true, role=_role(true))


def _counted_layout(
    request: Request, says: LayoutDeployment, ground: Standing, path: Path
) -> tuple[LayoutDeployment, list[Finding]]:
    """The layout that is true of its choice, and the targets that it does not keep."""
    if isinstance(says, PhaseDeployment):
        return counted_single_phase(request, says, path, ground=ground)
    both, wrong = counted_deployment(request, says, path, ground=ground)
    both = replace(both, variant="")
    return both, [*wrong, *broken_targets(request.targets, both, path)]


def _role(deployment: AnyDeployment) -> str:
    """What replicas do of a request; deployments that have no role do all of it."""
    return getattr(deployment, "role", TOGETHER)


def _handed_bytes(
    request: PlacementRequest, wishes: Mapping[str, Serve], recipe: RunConfig
) -> float:
    """Of the cache that a replica of the recipe hands over, or takes; 0 where it does neither."""
    if recipe.role == TOGETHER or recipe.model not in wishes:
        return 0.0
    if isinstance(recipe.deployment, PhaseDeployment):
        return recipe.deployment.handed_bytes
    wish = wishes[recipe.model]
    n_input = float((wish.workload or request.workload).n_input_tokens)
    is_listed = isinstance(recipe.deployment, TableDeployment)
    block = 1 if is_listed else n_block_tokens(request, recipe.engine)
    return handed_bytes(layers_of(wish.model), recipe.deployment.kv_format, n_input, block)


def _runtime_name(recipe: RunConfig) -> str:
    """Who timed a recipe: its engine, or the table that lists it."""
    deployment = recipe.deployment
    return deployment.table if isinstance(deployment, TableDeployment) else recipe.engine


def _orderly(placement: Placement) -> Iterator[Finding]:
    """Recipes stand in the order in which replicas use them, and each is used and another's."""
    met: list[int] = []
    for i, replica in enumerate(placement.replicas):
        if not 0 <= replica.recipe < len(placement.recipes):
            fact = f"is none of the {len(placement.recipes)} recipes"
            yield Finding(path=("replicas", str(i), "recipe"), says=replica.recipe, fact=fact)
        elif replica.recipe not in met:
            met.append(replica.recipe)
    if met != sorted(met) or len(met) != len(placement.recipes):
        fact = "are not those that replicas use, in their order"
        yield Finding(path=("recipes",), says=len(placement.recipes), fact=fact)
    models = [placement.recipes[number].model for number in met]
    for i, replica in enumerate(placement.replicas):
        if replica.recipe in met and replica.model != models[met.index(replica.recipe)]:
            fact = "is not the model of its recipe"
            yield Finding(path=("replicas", str(i), "model"), says=replica.model, fact=fact)


def misplaced_devices(placed: Placed, stand: Stand) -> Iterator[Finding]:
    """Ranks on what is no device, is not free, or has another rank."""
    seen: set[str] = set()
    for i, replica in enumerate(placed.replicas):
        for j, rank in enumerate(replica.ranks):
            path = ("replicas", str(i), "ranks", str(j), "device")
            free = stand.is_free(rank.device)
            fact = "is no device of the cluster" if free is None else "" if free else "is not free"
            if rank.device in seen:
                fact = "has another rank"
            seen.add(rank.device)
            if fact:
                yield Finding(path=path, says=rank.device, fact=fact)


def _replicas(
    placement: Placement, recipes: Sequence[RunConfig], stand: Stand, wrong: list[Finding]
) -> Iterator[Replica]:
    """Each replica as its devices make it; names count the replicas of a model."""
    numbers: dict[str, int] = {}
    for i, says in enumerate(placement.replicas):
        name = f"{says.model}/{numbers.get(says.model, 0)}"
        numbers[says.model] = numbers.get(says.model, 0) + 1
        path = ("replicas", str(i))
        known = all(stand.is_free(rank.device) is not None for rank in says.ranks)
        if not 0 <= says.recipe < len(recipes) or not known:
            yield replace(says, name=name)
            continue
        try:
            yield stand.replica(says, recipes[says.recipe], name, wrong, path)
        except Invalid as refused:
            wrong.append(refused.at(path))
            yield replace(says, name=name)


def _served_model(wish: Serve, ends: Ends, handed: Sequence[Handover]) -> ServedModel:
    """What a model gets, replica by replica; of those that do one phase, what is handed over."""
    name = wish.model.name
    of_it = [ends.recipes[one.recipe] for one in ends.replicas.values() if one.model == name]
    mine = [one.deployment for one in of_it]
    rates = [one.deployment.output_tokens_per_s for one in of_it if one.role == TOGETHER]
    rates += [
        handover.requests_per_s * ends.n_output(handover.source)
        for handover in handed
        if handover.source in ends.replicas and ends.replicas[handover.source].model == name
    ]
    return ServedModel(
        model=wish.model.name,
        demand_tokens_per_s=wish.demand_tokens_per_s,
        output_tokens_per_s=math.fsum(rates),
        n_replicas=len(mine),
        n_devices=sum(one.n_devices for one in mine),
        usd_per_hour=math.fsum(one.usd_per_hour for one in mine),
    )


def further_used(
    request: PlacementRequest,
    replicas: Sequence[Replica],
    recipes: Sequence[RunConfig],
    stand: Stand,
    wishes: Mapping[str, Serve],
) -> dict[str, float]:
    """Limited quantities that no field tells, of all replicas together, device by device."""
    used = dict.fromkeys((name for name in request.limits if not MEASURES[name].fields), 0.0)
    for replica in replicas if used else ():
        recipe = recipes[replica.recipe]
        with suppress(Invalid, KeyError):  # which is told of the recipe
            cluster, _ = stand.cluster_of(recipe, wishes[recipe.model])
            more = further_of(used, recipe.deployment, cluster.device)
            used = {name: value + more[name] for name, value in used.items()}
    return used


def devices_used(placed: Placed, stand: Stand) -> dict[str, int]:
    """Devices in use, by the name of their kind."""
    names = {rank.device for replica in placed.replicas for rank in replica.ranks}
    return Counter(stand.kind_name(name) for name in names if stand.is_free(name) is not None)


def _reached(
    request: PlacementRequest,
    served: Sequence[ServedModel],
    recipes: Sequence[RunConfig],
    replicas: Sequence[Replica],
) -> float:
    """What the replicas come to in the objective, SI."""
    shares = [one.share for one in served if one.share is not None]
    return {
        "throughput": math.fsum(one.output_tokens_per_s for one in served),
        "share": min(shares, default=math.inf),
        "rent": math.fsum(one.usd_per_hour for one in served),
        "devices": float(sum(one.n_devices for one in served)),
        "latency": math.fsum(recipes[one.recipe].tpot_s for one in replicas),
        "cost": math.fsum(map(_usd_per_token, served)),
    }[request.objective]


def _error(
    request: PlacementRequest,
    stand: Stand,
    wishes: Mapping[str, Serve],
    recipes: Sequence[RunConfig],
    replicas: Sequence[Replica],
) -> float:
    """What simpler replicas may lose of an objective: its relative standard deviation.

    Replicas err together; what all deployments of a model err alike by is none of it.
    """
    if request.prefer != "simplest":
        return 0.0
    sums = [0.0, 0.0]
    for recipe in (recipes[it.recipe] for it in replicas):
        best = recipe.deployment
        assert isinstance(best, EngineDeployment)
        layers = layers_of(wishes[recipe.model].model).layers
        kind = "mixture" if any(isinstance(it.ffn, Experts) for it in layers) else "dense"
        alike = [it.deviation_fraction for it in best.outside]
        with suppress(Invalid):  # which is told of the recipe
            cluster, _ = stand.cluster_of(recipe, wishes[recipe.model])
            engine = tables_of(request, recipe.engine, cluster).engine
            alike.append(engine_deviation(engine, kind, "TPOT"))
        own = (best.tpot_s.high / best.tpot_s.value - 1) ** 2 - math.fsum(it**2 for it in alike)
        weight = recipe.tpot_s if request.objective == "latency" else best.output_tokens_per_s
        sums = [sums[0] + weight, sums[1] + weight * math.sqrt(max(0.0, own))]
    return sums[1] / sums[0] if sums[0] else 0.0


def _usd_per_token(model: ServedModel) -> float:
    """Of an output token; of nothing served there is none."""
    rate = model.output_tokens_per_s
    return model.usd_per_hour / 3600.0 / rate if rate else math.inf


def _unserved(request: PlacementRequest, served: Sequence[ServedModel]) -> Iterator[Finding]:
    """Demands and numbers of replicas of models that the replicas do not keep."""
    for i, (wish, model) in enumerate(zip(request.models, served, strict=True)):
        path = ("served", str(i))
        sold = (wish.targets or request.targets).max_utilisation
        short = model.share is not None and model.share * sold < 1 - 2 * TOLERANCE
        if short and request.objective != "share":
            fact = f"is {model.share!r} of the demand"
            rate = model.output_tokens_per_s
            yield Finding(path=(*path, "output_tokens_per_s"), says=rate, fact=fact)
        if wish.replicas is not None and model.n_replicas != wish.replicas:
            fact = f"are not the {wish.replicas} that were asked for"
            yield Finding(path=(*path, "n_replicas"), says=model.n_replicas, fact=fact)


def _above_limits(
    request: PlacementRequest,
    served: Sequence[ServedModel],
    recipes: Sequence[RunConfig],
    replicas: Sequence[Replica],
    further: Mapping[str, float],
) -> Iterator[Finding]:
    """Limits of all replicas together, and the devices that each may have."""
    totals = {
        "rent": math.fsum(one.usd_per_hour for one in served),
        "devices": float(sum(one.n_devices for one in served)),
        **further,
    }
    for name, most in request.limits.items():
        if totals[name] > most * (1 + TOLERANCE):
            fact = f"have {name} {totals[name]!r}, which exceeds {most!r}"
            yield Finding(path=("served",), says=len(served), fact=fact)
    most_each = request.most_devices
    for i, replica in enumerate(replicas):
        n_devices = recipes[replica.recipe].deployment.n_devices
        if most_each is not None and n_devices > most_each:
            fact = f"are more than the {most_each} devices that a replica may have"
            yield Finding(path=("replicas", str(i), "ranks"), says=n_devices, fact=fact)
