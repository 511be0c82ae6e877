"""Layers on mixed machines counted anew: who holds what, and how much flows through it.

Which machine holds which layers is chosen. All else follows from the request: rates from the
tables of the machines, links by region, by machine or from the matrix, and from them the most
tokens a second that flow from the coordinator through all layers and back.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from planner.results.staging import LayerPlacement, MachineLine
from planner.specs.ask.stages import LayersRequest
from planner.specs.files.layer_files import LayersSpec, MachineType
from planner.verifier.certificates import Counts, certified
from planner.verifier.findings import Finding, Path, with_differences

CHECKS = ("every layer held within what machines can hold", "replayed by maximum flow")

OF_LAYERS = Counts(reasons={}, adds_up=lambda says: (says.n_candidates, says.n_solved))
"""Every span of layers that a machine may hold is solved for."""

UNITS = 10**6
"""Whole numbers a token/s: capacities are rounded down to them."""

MOST_TOKENS_PER_S = 1e12
_OUT, _BACK = "out of the coordinator", "into the coordinator"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """One machine of a type, by its place among all."""

    index: int
    name: str
    of: MachineType


def judge_layers(placement: LayerPlacement) -> tuple[LayerPlacement, list[Finding]]:
    """The placement that is true of its machines, and everything in this one that is not so."""
    request = placement.request
    wrong = [*_senseless(request)]
    machines = {} if wrong else {one.name: one for one in _machines(request.layers)}
    if not wrong:
        wrong += _impossible(request.layers, machines, placement.machines)
    if wrong:
        return placement, wrong
    types = [machines[one.machine].of for one in placement.machines]
    lines = tuple(
        replace(machine, type=of.type, tokens_per_s=of.rates_tokens_per_s[machine.n_layers - 1])
        for machine, of in zip(placement.machines, types, strict=True)
    )
    rate = _flow(request.layers, machines, lines)
    if rate <= 0:
        fact = "carry nothing from the coordinator through all layers and back"
        return placement, [Finding(path=("machines",), says=len(lines), fact=fact)]
    certificate, findings = certified(
        placement.certificate,
        objective_name="throughput",
        objective=rate,
        dimension="token/s",
        is_rate=True,
        gap=request.gap,
        checks=CHECKS,
        counts=OF_LAYERS,
    )
    used = {one.machine for one in lines}
    truth = replace(
        placement,
        tokens_per_s=rate,
        machines=lines,
        idle=tuple(name for name in machines if name not in used),
        certificate=certificate,
    )
    return truth, with_differences([*wrong, *findings], placement, truth)


def _machines(layers: LayersSpec) -> Iterator[_Machine]:
    """All machines in their order, numbered by type: `A100 1`, `A100 2`, …"""
    n_before: dict[str, int] = {}
    index = 0
    for machine in layers.machines:
        for _ in range(machine.count):
            n_before[machine.type] = n_before.get(machine.type, 0) + 1
            yield _Machine(index=index, name=f"{machine.type} {n_before[machine.type]}", of=machine)
            index += 1


def _flow(layers: LayersSpec, machines: dict[str, _Machine], lines: Sequence[MachineLine]) -> float:
    """Tokens a second through a placement, each capacity rounded down."""
    network = Network(
        (tail, head, math.floor(min(rate, MOST_TOKENS_PER_S) * UNITS))
        for tail, head, rate in _edges(layers, machines, lines)
    )
    return network.most(_OUT, _BACK) / UNITS


def _edges(
    layers: LayersSpec, machines: dict[str, _Machine], lines: Sequence[MachineLine]
) -> Iterator[tuple[Hashable, Hashable, float]]:
    """A machine carries its rate; its tokens go on to whoever can serve the layer that is next."""
    usual = layers.coordinator_tokens_per_s
    from_it, to_it = layers.from_coordinator_tokens_per_s, layers.to_coordinator_tokens_per_s
    serving: dict[int, list[_Machine]] = {}
    for line in lines:
        n_entered = line.n_layers if layers.enters_within else 1
        for layer in range(line.first_layer, line.first_layer + n_entered):
            serving.setdefault(layer, []).append(machines[line.machine])
    for line in lines:
        machine, end = machines[line.machine], line.first_layer + line.n_layers
        m = machine.index
        yield (m, "in"), (m, "out"), line.tokens_per_s
        if line.first_layer == 0:
            yield _OUT, (m, "in"), from_it[m] if from_it else usual
        if end == layers.n_layers:
            yield (m, "out"), _BACK, to_it[m] if to_it else usual
        for other in serving.get(end, ()):
            yield (m, "out"), (other.index, "in"), _link(layers, machine, other)


def _link(layers: LayersSpec, machine: _Machine, other: _Machine) -> float:
    """What a pair of machines carries, in this direction."""
    if layers.matrix_tokens_per_s:
        return layers.matrix_tokens_per_s[machine.index][other.index]
    is_near = machine.of.region == other.of.region
    return layers.between_tokens_per_s if is_near else layers.across_tokens_per_s


def _impossible(
    layers: LayersSpec, machines: dict[str, _Machine], lines: Sequence[MachineLine]
) -> Iterator[Finding]:
    """Machines that are not there or hold twice, and layers that they cannot hold, or nobody."""
    seen: set[str] = set()
    held: set[int] = set()
    for i, line in enumerate(lines):
        here: Path = ("machines", str(i))
        if line.machine not in machines:
            yield Finding(path=(*here, "machine"), says=line.machine, fact="is no machine")
            continue
        if line.machine in seen:
            yield Finding(path=(*here, "machine"), says=line.machine, fact="holds layers twice")
        seen.add(line.machine)
        most = len(machines[line.machine].of.rates_tokens_per_s)
        if not 1 <= line.n_layers <= most:
            fact = f"are not 1 to {most} layers, as it can hold"
            yield Finding(path=(*here, "n_layers"), says=line.n_layers, fact=fact)
            continue
        end = line.first_layer + line.n_layers
        if line.first_layer < 0 or end > layers.n_layers:
            fact = f"does not begin {line.n_layers} of {layers.n_layers} layers"
            yield Finding(path=(*here, "first_layer"), says=line.first_layer, fact=fact)
            continue
        held.update(range(line.first_layer, end))
    missing = [layer for layer in range(layers.n_layers) if layer not in held]
    if missing:
        fact = f"leave layer {missing[0]} to nobody"
        yield Finding(path=("machines",), says=len(lines), fact=fact)


def _senseless(request: LayersRequest) -> Iterator[Finding]:
    """What of a request no placement could be asked with."""
    layers = request.layers

    def of(name: str, says: object, fact: str) -> Finding:
        return Finding(path=("request", *name.split(".")), says=says, fact=fact)

    if not 0 <= request.gap < math.inf:
        yield of("gap", request.gap, "is no gap")
    if layers.n_layers < 1 or not layers.machines:
        yield of("layers.n_layers", layers.n_layers, "are no layers on machines")
    for i, machine in enumerate(layers.machines):
        if machine.count < 1:
            yield of(f"layers.machines.{i}.count", machine.count, "is below one")
        if not machine.rates_tokens_per_s or not all(map(_is_rate, machine.rates_tokens_per_s)):
            fact = "has no rates, or some that are none"
            yield of(f"layers.machines.{i}.rates_tokens_per_s", machine.type, fact)
    for name in ("between", "across", "coordinator"):
        rate = getattr(layers, f"{name}_tokens_per_s")
        if not _is_rate(rate):
            yield of(f"layers.{name}_tokens_per_s", rate, "is no rate")
    rows = {
        "from_coordinator_tokens_per_s": (layers.from_coordinator_tokens_per_s,),
        "to_coordinator_tokens_per_s": (layers.to_coordinator_tokens_per_s,),
        "matrix_tokens_per_s": layers.matrix_tokens_per_s,
    }
    for name, values in rows.items():
        n_rows = layers.n_machines if name.startswith("matrix") else 1
        is_whole = len(values) == n_rows and all(len(row) == layers.n_machines for row in values)
        if any(values) and not (is_whole and all(_is_rate(rate) for row in values for rate in row)):
            fact = f"is not one rate of each of {layers.n_machines} machines"
            yield of(f"layers.{name}", len(values), fact)


def _is_rate(value: float) -> bool:
    return value >= 0


class Network:
    """Capacities between nodes, and what of them is left; each node is known by any name.

    Args:
        edges: tail, head and capacity, whole and not negative.
    """

    def __init__(self, edges: Iterable[tuple[Hashable, Hashable, int]]) -> None:
        self._left: dict[Hashable, dict[Hashable, int]] = {}
        for tail, head, capacity in edges:
            for start, end, n in ((tail, head, capacity), (head, tail, 0)):  # and the way back
                ends = self._left.setdefault(start, {})
                ends[end] = ends.get(end, 0) + n

    def most(self, source: Hashable, sink: Hashable) -> int:
        """The maximum flow from one node to another; 0 where one of them has no edge."""
        total = 0
        while sink in (level := self._levels(source)):
            onward = {
                node: [end for end in self._left[node] if level.get(end) == step + 1]
                for node, step in level.items()
            }
            while sent := self._along(source, sink, onward):
                total += sent
        return total

    def _levels(self, source: Hashable) -> dict[Hashable, int]:
        """Steps from the source to each node that it reaches where something is left."""
        level, queue = {source: 0}, [source]
        for node in queue:
            for end, left in self._left.get(node, {}).items():
                if left and end not in level:
                    level[end] = level[node] + 1
                    queue.append(end)
        return level

    def _along(
        self, source: Hashable, sink: Hashable, onward: dict[Hashable, list[Hashable]]
    ) -> int:
        """Send along one way, a level further with each edge; 0 where none is left.

        Args:
            onward: ends of each node's edges that may lead on; fewer of them afterwards.
        """
        way = [source]
        while way[-1] != sink:
            node = way[-1]
            while onward[node] and not self._left[node][onward[node][-1]]:
                onward[node].pop()
            if onward[node]:
                way.append(onward[node][-1])
            elif len(way) > 1:
                way.pop()
                onward[way[-1]].pop()
            else:
                return 0
        sent = min(self._left[tail][head] for tail, head in pairwise(way))
        for tail, head in pairwise(way):
            self._left[tail][head] -= sent
            self._left[head][tail] += sent
        return sent
