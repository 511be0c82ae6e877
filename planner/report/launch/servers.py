"""Servers that an answer starts: how many, each with which devices, behind which address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.report.launch.expected import (
    Bands,
    bands_of_fleet,
    bands_of_handover,
    bands_of_replicas,
)
from planner.report.launch.flags import Command, Flags, commands_of
from planner.report.launch.words import CHECKPOINT, DRAFTER
from planner.results.engines import EngineDeployment
from planner.results.predictions import Launch, Prediction
from planner.specs.records.devices import NodesFabric
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.validation.hints import from_fields

if TYPE_CHECKING:
    from planner.results.fleets import FleetPlan, FleetPool
    from planner.results.placements import Placement, Replica
    from planner.results.plans import AnyPlan

MARKS: Mapping[str, str] = {CHECKPOINT: "MODEL_PATH", DRAFTER: "DRAFTER_PATH"}
"""What stands in files, in <>, for a variable that the user has to say."""


class Seat(NamedTuple):
    """Devices that a server has on one node, by their numbers there."""

    node: str
    devices: tuple[int, ...]


UNNAMED = re.compile(r"node-?\d+")
"""Names of nodes that graphs of topologies give them."""


@dataclass(frozen=True, kw_only=True)
class ServerPool:
    """Servers that are alike.

    Args:
        name: of the pool, each once: a label of DNS.
        model, engine, role: what runs, and what it does of a request.
        kind: of devices, by the name of the device.
        launch: how one is started.
        seats: of each server, node by node.
        is_placed: the answer says which nodes these are; else they are any that are alike.
        command: that evaluates one replica; empty where the answer is that evaluation.
        n_replicas: that the servers are, each of `launch.n_servers`.
        deployment: that figures are of; None where the answer is one itself.
        rate: of what the plan sends them, to be held against that of pools of its role.
    """

    name: str
    model: str
    engine: str
    role: str
    kind: str
    launch: Launch
    seats: tuple[tuple[Seat, ...], ...]
    is_placed: bool = False
    command: str = ""
    n_replicas: int = 1
    deployment: EngineDeployment | None = None
    rate: float = 0.0

    @cached_property
    def started(self) -> Command:
        """The command of the plan, read."""
        return commands_of(self.launch.command)[0]

    @cached_property
    def marks(self) -> dict[str, str]:
        """What stands for variables of its command, by the variable: `<MODEL_PATH>`."""
        of = "_OF_" + self.name.upper().replace("-", "_") if self.is_placed else ""
        said = self.launch.variables
        return {f"${name}": f"<{mark}{of}>" for name, mark in MARKS.items() if name in said}

    @cached_property
    def flags(self) -> Flags:
        """Its flags, with what the user has to say as files have it."""
        return {flag: self.marks.get(str(it), it) for flag, it in self.started.flags.items()}

    @property
    def source(self) -> str:
        """The model as it is loaded: a repository or a folder."""
        word = self.started.model or str(self.started.flags["--model-path"])
        return self.marks.get(word, word)

    @property
    def n_devices(self) -> int:
        return sum(len(seat.devices) for seats in self.seats for seat in seats)

    @property
    def n_node_devices(self) -> int:
        """Of a server, on each of its nodes."""
        return len(self.seats[0][0].devices)

    @property
    def nodes(self) -> tuple[str, ...]:
        """On which servers are, each once, in their order."""
        return tuple(dict.fromkeys(seat.node for seats in self.seats for seat in seats))

    @property
    def hosts(self) -> dict[str, str]:
        """What each node is called; what stands for it where the topology does not name nodes."""
        return {
            node: f"<ADDRESS_OF_{label_of(node).upper().replace('-', '_')}>"
            if UNNAMED.fullmatch(node)
            else node
            for node in self.nodes
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """One address for requests, and the servers behind it.

    Args:
        name: a label of DNS.
        pools: servers that do both phases; or those that read prompts, and those that answer.
        requests: which ones come here, where others go elsewhere; empty where all do.
        bands: of a load test; None where the answer says nothing that one could measure.
    """

    name: str
    pools: tuple[ServerPool, ...]
    requests: str = ""
    bands: Bands | None = None

    @property
    def engine(self) -> str:
        return self.pools[0].engine

    @property
    def is_apart(self) -> bool:
        return self.pools[0].role != TOGETHER

    def of_role(self, role: str) -> tuple[ServerPool, ...]:
        return tuple(pool for pool in self.pools if pool.role == role)


def is_uneven(pools: Iterable[ServerPool]) -> bool:
    """Whether a router that takes turns is none for them: some servers are to get more."""
    rates = [pool.rate / len(pool.seats) for pool in pools]
    return max(rates, default=0.0) > 1.01 * min(rates, default=0.0)


def label_of(name: str, *words: str) -> str:
    """A label of DNS, short enough for what controllers add to it.

    >>> label_of("llama-3.1-70b", "decode")
    'llama-3-1-70b-decode'
    """
    parts = (re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in (name[:36], *words))
    return re.sub(r"^(?=\d)", "m-", "-".join(filter(None, parts)))


def of_prediction(answer: Prediction) -> tuple[Entrance, ...]:
    """The server of a deployment that was given."""
    fabric = answer.request.records.cluster.fabric
    most = fabric.n_devices_per_node if isinstance(fabric, NodesFabric) else answer.n_devices
    if answer.launch is None:
        return ()
    seats = packed(1, answer.launch, answer.n_devices, most)
    n_running = answer.batch * answer.degrees["data"]
    bands = bands_of_replicas(answer, answer.request, n_running, answer.load)
    name = label_of(answer.model)
    pool = from_fields(ServerPool, answer, name=name, kind=answer.device, seats=seats)
    return (Entrance(name=name, pools=(pool,), bands=bands),)


def of_plan(answer: AnyPlan) -> tuple[Entrance, ...]:
    """Replicas of one deployment."""
    best = answer.deployment
    if not isinstance(best, EngineDeployment) or best.launch is None:
        return ()
    requests: tuple[Any, ...] = (answer.request, *answer.other_requests)
    request = next(it for it in requests if getattr(it, "engine", "") == best.engine)
    cluster, name = request.cluster, label_of(best.model)
    most = cluster.n_devices_per_node
    pool = from_fields(
        ServerPool,
        best,
        name=name,
        kind=cluster.device,
        seats=packed(best.n_replicas, best.launch, best.n_replica_devices, most),
        deployment=best,
    )
    n_running = best.n_sequences * best.n_replicas
    bands = bands_of_replicas(best, request.workload, n_running, answer.load)
    return (Entrance(name=name, pools=(pool,), bands=bands),)


def packed(n: int, launch: Launch, n_devices: int, most: int) -> tuple[tuple[Seat, ...], ...]:
    """Seats of so many replicas on nodes that are alike, filled one after the other.

    Args:
        n_devices: of a replica.
        most: devices of a node.
    """
    each = n_devices // launch.n_servers // launch.n_nodes
    seats: list[Seat] = []
    node, first = 0, 0
    for _ in range(n * launch.n_servers * launch.n_nodes):
        if first + each > most:
            node, first = node + 1, 0
        seats.append(Seat(f"node-{node}", tuple(range(first, first + each))))
        first += each if launch.n_nodes == 1 else most
    starts = range(0, len(seats), launch.n_nodes)
    return tuple(tuple(seats[i : i + launch.n_nodes]) for i in starts)


def of_placement(answer: Placement) -> tuple[Entrance, ...]:
    """Replicas where they are: of each model those that hand over, and each sort of others."""
    groups: dict[tuple[str, str], list[ServerPool]] = {}
    for pool in _placed(answer, answer.replicas):
        sort = pool.name if pool.role == TOGETHER else pool.engine
        groups.setdefault((pool.model, sort), []).append(pool)
    models = [model for model, _ in groups]
    return tuple(
        Entrance(
            name=label_of(model, str(number) * is_shared),
            pools=tuple(pools),
            requests=_share_of(pools) * is_shared,
            bands=_bands(answer, pools),
        )
        for number, ((model, _), pools) in enumerate(groups.items())
        for is_shared in [models.count(model) > 1]
    )


def _share_of(pools: Sequence[ServerPool]) -> str:
    """Which requests the pools behind one address get, where others serve the same model."""
    bests = [(it.n_replicas, it.deployment) for it in pools if it.role != DECODE and it.deployment]
    most = sum(n * best.output_tokens_per_s for n, best in bests)
    return f"up to {most:.3g} token/s, and its share of fewer"


def _bands(answer: Placement, pools: Sequence[ServerPool]) -> Bands | None:
    """Of replicas behind one address that are all alike, or of one sort for each phase."""
    bests = {pool.role: pool.deployment for pool in pools if pool.deployment}
    (serve,) = (it for it in answer.request.models if it.model.name == pools[0].model)
    workload = serve.workload or answer.request.workload
    if len(bests) == len(pools) == 1 and (best := bests.get(TOGETHER)):
        return bands_of_replicas(best, workload, best.n_sequences * pools[0].n_replicas)
    is_pair = bests.keys() == {PREFILL, DECODE} and len(pools) == 2
    return bands_of_handover(answer, bests, workload) if is_pair else None


def _placed(answer: Placement | FleetPlan, replicas: Sequence[Replica]) -> Iterator[ServerPool]:
    """Pools of the recipes that engines run; of others none."""
    devices = {it.kind: it.device for it in answer.kinds}
    for number, recipe in enumerate(answer.recipes):
        best, mine = recipe.deployment, [it for it in replicas if it.recipe == number]
        if mine and isinstance(best, EngineDeployment) and best.launch:
            yield from_fields(
                ServerPool,
                best,
                name=label_of(recipe.model, recipe.role.replace(TOGETHER, ""), str(number)),
                role=recipe.role,
                kind=devices[recipe.kind],
                seats=tuple(seats for it in mine for seats in _seats(it, best.launch)),
                is_placed=True,
                n_replicas=len(mine),
                deployment=best,
                rate=_handed(answer, mine) or len(mine) * best.output_tokens_per_s,
            )


def _handed(answer: Placement | FleetPlan, mine: Sequence[Replica]) -> float:
    """Requests a second that some replicas hand over, or are handed."""
    names = {it.name for it in mine}
    ways = [it for it in answer.handovers if names & {it.source, it.target}]
    return sum(it.requests_per_s for it in ways)


def _seats(replica: Replica, launch: Launch) -> Iterator[tuple[Seat, ...]]:
    """Of a replica's servers, in the order of its ranks; devices are numbered by their names."""
    each = len(replica.ranks) // launch.n_servers
    for first in range(0, len(replica.ranks), each):
        by_node = groupby(replica.ranks[first : first + each], key=lambda rank: rank.node)
        yield tuple(
            Seat(node, tuple(int((re.findall(r"\d+", it.device) or "0")[-1]) for it in ranks))
            for node, ranks in by_node
        )


def of_fleet(answer: FleetPlan) -> tuple[Entrance, ...]:
    """Pools of a fleet: those that read prompts with the one that goes on with them."""
    made: dict[str, ServerPool] = {}
    groups: dict[str, list[FleetPool]] = {}
    for number, pool in enumerate(answer.pools):
        mine = [answer.replicas[i] for i in pool.replicas]
        for each in _placed(answer, mine):
            name = label_of(pool.name, str(number))
            made[pool.name] = replace(each, name=name, rate=pool.rate_per_s)
            if each.role != DECODE:
                groups.setdefault(pool.then or pool.name, []).append(pool)
    return tuple(
        Entrance(
            name=made[pools[0].name].name,
            pools=tuple(made[it] for it in dict.fromkeys((*(it.name for it in pools), last))),
            requests="; ".join(map(_requests_of, pools)) * (len(groups) > 1),
            bands=bands_of_fleet(answer) if len(groups) == 1 else None,
        )
        for last, pools in groups.items()
    )


def _requests_of(pool: FleetPool) -> str:
    """Which requests a pool gets, in words."""
    above, upto = f"{pool.above_tokens:.0f}", f"{pool.upto_tokens:.0f}"
    words = f"{pool.rate_per_s:.3g} req/s of {', '.join(pool.classes)}"
    return words if (above, upto) == ("0", "inf") else f"{words}, prompts of {above} to {upto}"


def entrances_of(answer: object) -> tuple[Entrance, ...]:
    """Addresses that an answer gives requests, with their servers; none where it starts none."""
    makers: dict[str, Any] = {"Prediction": of_prediction, "Plan": of_plan}
    makers |= {"Placement": of_placement, "FleetPlan": of_fleet}
    made: tuple[Entrance, ...] = makers.get(type(answer).__name__, lambda _: ())(answer)
    return made
