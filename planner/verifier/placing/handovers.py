"""Caches that replicas hand over, counted anew: who may feed whom, when, and over which links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from planner.results.engines import EngineDeployment
from planner.results.placements import Handover, Recipe, Replica
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER, AskedRoles
from planner.verifier.findings import TOLERANCE, Finding, Path
from planner.verifier.serving.evaluation import layers_of
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
    recipes: Sequence[Recipe]
    handed_bytes: Sequence[float]
    wishes: Mapping[str, Serve]
    request: PlacementRequest
    wires: Wires

    def recipe(self, name: str) -> Recipe:
        return self.recipes[self.replicas[name].recipe]

    def n_output(self, name: str) -> int:
        wish = self.wishes[self.replicas[name].model]
        return (wish.workload or self.request.workload).n_output_tokens

    def wire_bytes_per_s(self, name: str) -> float:
        """Of all links of a replica."""
        one = self.recipe(name)
        return one.deployment.n_devices * self.wires.wire_bytes_per_s(one.kind)

    def most_requests_per_s(self, name: str) -> float:
        """What a replica reads or writes, or its links carry, whichever is less."""
        number = self.replicas[name].recipe
        one = self.recipes[number]
        rate = one.deployment.output_tokens_per_s / self.n_output(name)
        own = one.deployment.n_devices * self.wires.own_bytes_per_s(one.kind)
        return min(rate, own / self.handed_bytes[number])


def judged_handovers(
    says: Sequence[Handover], ends: Ends
) -> tuple[tuple[Handover, ...], list[Finding]]:
    """The hand-overs that are true of who hands over to whom, and what is wrong with them."""
    wrong: list[Finding] = []
    found: list[Handover] = []
    for i, one in enumerate(says):
        path = ("handovers", str(i))
        refused = list(_strangers(one, ends, path))
        wrong += refused
        found.append(one if refused else _counted(one, ends))
        wrong += [] if refused else _late(found[-1], ends, path)
    good = [one for one in found if one.source in ends.replicas and one.target in ends.replicas]
    wrong += [*_overworked(good, ends), *_full(good, ends), *_unasked(ends)]
    return tuple(found), wrong


def _strangers(one: Handover, ends: Ends, path: Path) -> Iterator[Finding]:
    """Ends that are no replicas, or that do not fit each other."""
    for name, says in (("source", one.source), ("target", one.target)):
        if says not in ends.replicas:
            yield Finding(path=(*path, name), says=says, fact="is no replica")
            return
    if not (math.isfinite(one.requests_per_s) and one.requests_per_s > 0):
        fact = "is no rate"
        yield Finding(path=(*path, "requests_per_s"), says=one.requests_per_s, fact=fact)
    source, target = ends.recipe(one.source), ends.recipe(one.target)
    for name, recipe, role in (("source", source, PREFILL), ("target", target, DECODE)):
        if recipe.role != role:
            fact = f"does {recipe.role}, not {role}"
            yield Finding(path=(*path, name), says=getattr(one, name), fact=fact)
    kinds = [(it.model, it.engine, it.deployment.kv_format) for it in (source, target)]
    if kinds[0] != kinds[1]:
        fact = f"is of {kinds[1]}, and takes a cache of {kinds[0]}"
        yield Finding(path=(*path, "target"), says=one.target, fact=fact)
        return
    for fact in _unpaired(source, target, ends):
        yield Finding(path=(*path, "target"), says=one.target, fact=fact)


def _unpaired(source: Recipe, target: Recipe, ends: Ends) -> Iterator[str]:
    """Rules of their engine that two replicas break together."""
    ours, theirs = source.deployment, target.deployment
    if isinstance(ours, EngineDeployment) and isinstance(theirs, EngineDeployment):
        engines = {it.engine.name: it.engine for it in ends.request.tables}
        model = layers_of(ends.wishes[source.model].model)
        yield from unpaired(engines[source.engine], model, ours, theirs)


def _counted(one: Handover, ends: Ends) -> Handover:
    """The bytes of a cache, and when it is there."""
    connector = ends.request.roles.connector
    assert connector is not None
    size = ends.handed_bytes[ends.replicas[one.source].recipe]
    rates = [ends.wire_bytes_per_s(one.source), ends.wire_bytes_per_s(one.target)]
    if connector.bytes_per_s is not None:
        rates.append(connector.bytes_per_s)
    seconds = connector.latency_s + size / min(rates)
    return Handover(
        source=one.source,
        target=one.target,
        requests_per_s=one.requests_per_s,
        request_bytes=size,
        seconds=seconds,
        ttft_s=ends.recipe(one.source).ttft_s + seconds,
    )


def _late(one: Handover, ends: Ends, path: Path) -> Iterator[Finding]:
    """First tokens after they are due."""
    wish = ends.wishes[ends.replicas[one.source].model]
    most = (wish.targets or ends.request.targets).ttft_s
    if most is not None and one.ttft_s > most * (1 + TOLERANCE):
        yield Finding(path=(*path, "ttft_s"), says=one.ttft_s, fact=f"exceeds {most!r}")


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
    shares = {name: _leaves(replica, ends.wires) for name, replica in ends.replicas.items()}
    for leaf, most in ends.wires.uplinks_bytes_per_s().items():
        for way, near, far in (("up", "source", "target"), ("down", "target", "source")):
            load = math.fsum(
                one.bytes_per_s
                * shares[getattr(one, near)].get(leaf, 0.0)
                * (1.0 - shares[getattr(one, far)].get(leaf, 0.0))
                for one in handed
            )
            if load > most * (1 + CLOSE):
                fact = f"bytes/s are more than the links {way} of {leaf} carry, {most!r}"
                yield Finding(path=("handovers",), says=load, fact=fact)


def _leaves(replica: Replica, wires: Wires) -> dict[str, float]:
    """The share of a replica's devices in each leaf."""
    found: dict[str, float] = {}
    for rank in replica.ranks:
        leaf = wires.leaf_name(rank.device)
        found[leaf] = found.get(leaf, 0.0) + 1.0 / len(replica.ranks)
    return found


def _unasked(ends: Ends) -> Iterator[Finding]:
    """Roles that were not asked for, and devices that a role was not to have."""
    asked: AskedRoles = ends.request.roles
    for i, recipe in enumerate(ends.recipes):
        path = ("recipes", str(i))
        if recipe.role not in asked.roles:
            fact = f"is not asked for: {', '.join(asked.roles)}"
            yield Finding(path=(*path, "role"), says=recipe.role, fact=fact)
        wanted = asked.n_devices(recipe.role) if recipe.role != TOGETHER else None
        if wanted is not None and recipe.deployment.n_devices != wanted:
            fact = f"are not the {wanted} devices that were asked for"
            yield Finding(path=path, says=recipe.deployment.n_devices, fact=fact)
