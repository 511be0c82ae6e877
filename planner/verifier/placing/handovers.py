"""Caches that replicas hand over, counted anew: who may feed whom, when, and over which links."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.results.engines import EngineDeployment
from planner.results.placements import Handover, Replica, RunConfig
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER, RoleOptions
from planner.verifier.findings import TOLERANCE, Finding, Path
from planner.verifier.serving.evaluation import layers_of
from planner.verifier.serving.ranks import has_experts
from planner.verifier.serving.starting import unpaired

CLOSE = 1e-8  # of sums of what solvers say


class Wires(Protocol):
    """What caches are handed over on."""

    def own_bytes_per_s(self, kind: str) -> float:
        """What the links of a device of a kind carry, one way."""

    def wire_bytes_per_s(self, kind: str) -> float:
        """Of that, to wherever a cache may go."""

    def uplinks_bytes_per_s(self) -> Mapping[str, float]:
        """What the links of each leaf to all others carry, each way, by the name of the leaf."""

    def leaf_name(self, device: str) -> str:
        """The leaf of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The replicas of a placement, by name, with what is true of their recipes.

    Args:
        handed_bytes: of the cache of one request, by number of the recipe.
    """

    replicas: Mapping[str, Replica]
    recipes: Sequence[RunConfig]
    handed_bytes: Sequence[float]
    wishes: Mapping[str, Serve]
    request: PlacementRequest
    wires: Wires

    def recipe(self, name: str) -> RunConfig:
        return self.recipes[self.replicas[name].recipe]

    def n_output(self, name: str) -> int:
        wish = self.wishes[self.replicas[name].model]
        return (wish.workload or self.request.workload).n_written_tokens

    def wire_bytes_per_s(self, name: str) -> float:
        """Of all links of a replica."""
        recipe = self.recipe(name)
        return self.n_handing(recipe) * self.wires.wire_bytes_per_s(recipe.kind)

    def n_handing(self, recipe: RunConfig) -> int:
        """Devices of a replica that hold its cache: those of experts alone hold none."""
        return recipe.deployment.n_devices - recipe.n_expert_devices

    def most_requests_per_s(self, name: str) -> float:
        """What a replica reads or writes, or its links carry, whichever is less."""
        number = self.replicas[name].recipe
        recipe = self.recipes[number]
        rate = recipe.deployment.output_tokens_per_s / self.n_output(name)
        own = self.n_handing(recipe) * self.wires.own_bytes_per_s(recipe.kind)
        return min(rate, own / self.handed_bytes[number])


def judged_handovers(
    says: Sequence[Handover], ends: Ends
) -> tuple[tuple[Handover, ...], list[Finding]]:
    """The hand-overs that are true of who hands over to whom, and what is wrong with them."""
    wrong: list[Finding] = []
    handovers: list[Handover] = []
    for i, handover in enumerate(says):
        path = ("handovers", str(i))
        refused = list(_strangers(handover, ends, path))
        wrong += refused
        handovers.append(handover if refused else _counted(handover, ends))
        wrong += [] if refused else _late(handovers[-1], ends, path)
    good = [one for one in handovers if one.source in ends.replicas and one.target in ends.replicas]
    wrong += [*_overworked(good, ends), *_full(good, ends), *_unasked(ends)]
    return tuple(handovers), wrong


def _strangers(handover: Handover, ends: Ends, path: Path) -> Iterator[Finding]:
    """Ends that are no replicas, or that do not fit each other."""
    for name, says in (("source", handover.source), ("target", handover.target)):
        if says not in ends.replicas:
            yield Finding(path=(*path, name), says=says, fact="is no replica")
            return
    if not (math.isfinite(handover.requests_per_s) and handover.requests_per_s > 0):
        fact = "is no rate"
        yield Finding(path=(*path, "requests_per_s"), says=handover.requests_per_s, fact=fact)
    source, target = ends.recipe(handover.source), ends.recipe(handover.target)
    for name, recipe, role in (("source", source, PREFILL), ("target", target, DECODE)):
        if recipe.role != role:
            fact = f"does {recipe.role}, not {role}"
            yield Finding(path=(*path, name), says=getattr(handover, name), fact=fact)
    kinds = [(it.model, it.engine, it.deployment.kv_format) for it in (source, target)]
    if kinds[0] != kinds[1]:
        fact = f"is of {kinds[1]}, and takes a cache of {kinds[0]}"
        yield Finding(path=(*path, "target"), says=handover.target, fact=fact)
        return
    for fact in _unpaired(source, target, ends):
        yield Finding(path=(*path, "target"), says=handover.target, fact=fact)


def _unpaired(source: RunConfig, target: RunConfig, ends: Ends) -> Iterator[str]:
    """Rules of their engine that two replicas break together."""
    ours, theirs = source.deployment, target.deployment
    if isinstance(ours, EngineDeployment) and isinstance(theirs, EngineDeployment):
        engines = {it.engine.name: it.engine for it in ends.request.tables}
        model = layers_of(ends.wishes[source.model].model)
        yield from unpaired(engines[source.engine], model, ours, theirs)


def _counted(handover: Handover, ends: Ends) -> Handover:
    """The bytes of a cache, and when it is there."""
    connector = ends.request.roles.connector
    assert connector is not None
    size = ends.handed_bytes[ends.replicas[handover.source].recipe]
    rates = [ends.wire_bytes_per_s(handover.source), ends.wire_bytes_per_s(handover.target)]
    if connector.bytes_per_s is not None:
        rates.append(connector.bytes_per_s)
    seconds = connector.latency_s + size / min(rates)
    return Handover(
        source=handover.source,
        target=handover.target,
        requests_per_s=handover.requests_per_s,
        request_bytes=size,
        seconds=seconds,
        ttft_s=ends.recipe(handover.source).ttft_s + seconds,
    )


def _late(handover: Handover, ends: Ends, path: Path) -> Iterator[Finding]:
    """First tokens after they are due."""
    wish = ends.wishes[ends.replicas[handover.source].model]
    most = (wish.targets or ends.request.targets).ttft_s
    if most is not None and handover.ttft_s > most * (1 + TOLERANCE):
        yield Finding(path=(*path, "ttft_s"), says=handover.ttft_s, fact=f"exceeds {most!r}")


def _overworked(handed: Sequence[Handover], ends: Ends) -> Iterator[Finding]:
    """Replicas that hand over, or take over, more than they can."""
    for end in ("source", "target"):
        totals: dict[str, list[float]] = {}
        for one in handed:
            totals.setdefault(getattr(one, end), []).append(one.requests_per_s)
        for name, rates in totals.items():
            most = ends.most_requests_per_s(name)
            if math.fsum(rates) > most * (1 + CLOSE):
                fact = f"of {name} come to more than the {most!r} requests/s that it can"
                yield Finding(path=("handovers",), says=math.fsum(rates), fact=fact)


def _full(handed: Sequence[Handover], ends: Ends) -> Iterator[Finding]:
    """Links of leaves that carry more than they can."""
    names = {name for handover in handed for name in (handover.source, handover.target)}
    shares = {name: _leaves(name, ends) for name in names}
    for leaf, most in ends.wires.uplinks_bytes_per_s().items():
        for way, near, far in (("up", "source", "target"), ("down", "target", "source")):
            load = math.fsum(
                handover.bytes_per_s
                * shares[getattr(handover, near)].get(leaf, 0.0)
                * (1.0 - shares[getattr(handover, far)].get(leaf, 0.0))
                for handover in handed
            )
            if load > most * (1 + CLOSE):
                fact = f"bytes/s are more than the links {way} of {leaf} carry, {most!r}"
                yield Finding(path=("handovers",), says=load, fact=fact)


def _leaves(name: str, ends: Ends) -> dict[str, float]:
    """The share of a replica's devices in each leaf, of those that hold its cache."""
    by_leaf: dict[str, float] = {}
    ranks = ends.replicas[name].ranks[: ends.n_handing(ends.recipe(name))]
    for rank in ranks:
        leaf = ends.wires.leaf_name(rank.device)
        by_leaf[leaf] = by_leaf.get(leaf, 0.0) + 1.0 / len(ranks)
    return by_leaf


def _unasked(ends: Ends) -> Iterator[Finding]:
    """Roles that were not asked for, and devices that a role was not to have."""
    roles: RoleOptions = ends.request.roles
    for i, recipe in enumerate(ends.recipes):
        path = ("recipes", str(i))
        if recipe.role not in roles.roles:
            fact = f"is not asked for: {', '.join(roles.roles)}"
            yield Finding(path=(*path, "role"), says=recipe.role, fact=fact)
        wanted = roles.n_devices(recipe.role) if recipe.role != TOGETHER else None
        if wanted is not None and recipe.deployment.n_devices != wanted:
            fact = f"are not the {wanted} devices that were asked for"
            yield Finding(path=path, says=recipe.deployment.n_devices, fact=fact)
        apart, model = roles.expert_devices, ends.wishes[recipe.model].model
        is_of_it = recipe.role == DECODE and has_experts(layers_of(model))
        if apart and is_of_it and recipe.n_expert_devices != apart:
            fact = f"are not the {apart} devices of experts that were asked for"
            yield Finding(path=path, says=recipe.n_expert_devices, fact=fact)
