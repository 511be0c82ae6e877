"""What caches are handed over on: the links of devices, and those that a leaf has to others."""

import math
from collections.abc import Mapping, Sequence

from planner.placing.fabrics.domains import DomainContext
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.handing import Uplink, Wire
from planner.placing.program import Objective
from planner.specs.records.devices import NodesFabric
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.topology.graph import SCALE_OUT, SPINE, Graph, links_of
from planner.topology.inventory import Inventory, Kind


def wire_of(ground: DomainContext, kind: Kind) -> Wire:
    """What the links of a device of a kind carry, one way, as attained; the narrowest counts.

    To other nodes that is its adapter, and its share of the links up where there are other leaves;
    where there is but one node, its links there. Two replicas that share a node may be quicker.
    """
    inventory, fabric = ground.inventory, ground.bases[kind].fabric
    assert isinstance(fabric, NodesFabric)
    able = inventory.abilities(kind)
    homes = [node for node in inventory.nodes if node.free]
    if len({node.name for node in homes}) == 1:
        least = min((one.scale_up_bytes_per_s for one in able), default=0.0)
        inside = least * fabric.scale_up_fraction
        return Wire(own_bytes_per_s=inside, far_bytes_per_s=inside)
    own = min((one.nic_bytes_per_s for one in able), default=0.0)
    far = own
    if len({node.leaf for node in homes}) > 1:
        far = min([own, *(one.spine_bytes_per_s for one in able)])
    fraction = fabric.scale_out_fraction
    return Wire(own_bytes_per_s=own * fraction, far_bytes_per_s=far * fraction)


def uplinks_of(graph: Graph, ground: DomainContext) -> dict[int, Uplink]:
    """The links of each leaf with free devices to others; none where there is one leaf."""
    inventory = ground.inventory
    switches: dict[int, set[str]] = {}
    fraction: dict[int, float] = {}
    for node in inventory.nodes:
        fabric = ground.bases[node.kind].fabric
        assert isinstance(fabric, NodesFabric)
        for name, _ in node.free:
            lead = (switch for switch, _ in links_of(graph, name, SCALE_OUT))
            switches.setdefault(node.leaf, set()).update(lead)
            least = fraction.get(node.leaf, 1.0)
            fraction[node.leaf] = min(least, fabric.scale_out_fraction)
    if len(switches) < 2:
        return {}
    return {
        leaf: Uplink(
            name=inventory.leaf_names[leaf],
            bytes_per_s=fraction[leaf]
            * sum(
                float(edge["bytes_per_s"])
                for switch in sorted(links)
                for _, edge in links_of(graph, switch, SPINE)
            ),
        )
        for leaf, links in switches.items()
    }


def tight_uplinks(
    uplinks: Mapping[int, Uplink],
    configurations: Sequence[NodeConfiguration],
    inventory: Inventory,
    aim: Objective,
) -> dict[int, Uplink]:
    """Leaves whose links up may be full: caches that their devices hand over, or take, fill them.

    No more is handed over than all demands come to, where there are such, nor than the devices
    of the leaf can, were they all of the best configuration. Of others no row could bind.
    """
    apart = [one for one in configurations if one.role != TOGETHER]
    tokens = [one.n_output_tokens for one in aim.wanted]
    most_each: dict[str, dict[Kind, float]] = {PREFILL: {}, DECODE: {}}
    per_token: dict[int, float] = {}
    for config in apart:
        bytes_per_token = config.handed_bytes / tokens[config.model]
        per_token[config.model] = max(per_token.get(config.model, 0.0), bytes_per_token)
        kind, of_kind = config.pattern.kind, most_each[config.role]
        each = config.output_tokens_per_s * bytes_per_token / config.n_handing
        of_kind[kind] = max(of_kind.get(kind, 0.0), each)
    need = math.inf
    if aim.objective not in ("throughput", "share"):
        demands = (one.demand_tokens_per_s or 0.0 for one in aim.wanted)
        need = math.fsum(rate * per_token.get(m, 0.0) for m, rate in enumerate(demands))
    return {
        leaf: link
        for leaf, link in uplinks.items()
        if min(need, _most_sent(inventory, leaf, most_each)) > link.bytes_per_s
    }


def _most_sent(
    inventory: Inventory, leaf: int, most_each: Mapping[str, Mapping[Kind, float]]
) -> float:
    """Bytes a second that devices of a leaf hand over, or take, were all of them to do that."""
    nodes = [node for node in inventory.nodes if node.leaf == leaf]
    return max(
        sum(len(node.free) * of_kind.get(node.kind, 0.0) for node in nodes)
        for of_kind in most_each.values()
    )
