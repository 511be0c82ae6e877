"""Bandwidths of groups as the account reads them off a site, against paths in the graph."""

from __future__ import annotations

from random import Random

import pytest

from planner.specs.files.pools import load_pool, pool_of
from planner.specs.files.reading import load_cluster
from planner.specs.files.state import LinkState, State
from planner.topology.graph import SCALE_OUT, SPINE
from planner.topology.pools import pool_graph, with_state
from planner.topology.widest import bottleneck
from planner.verifier.placing.grounds import SiteIndex
from planner.verifier.placing.parts import Widths
from planner.verifier.placing.sites import site_of

NARROW = LinkState(part="nic", names=("node0/gpu1",), bandwidth_fraction=0.5)
STATES = {
    "well": State(),
    "narrow": State(links=(NARROW,)),
    "failed": State(failed=("node1/gpu0",)),
}
POOLS = {
    "servers": pool_of(load_cluster("h100-nvl8-x4")),
    "leaves": load_pool("h100-fat-tree-x16"),
}


def fair_shares(graph):
    """Links above leaves as wide as one device's share; failed devices forward nothing."""

    def n_adapters(name):
        return sum(edge.get("tier") == SCALE_OUT for edge in graph[name].values())

    shares = graph.copy()
    for a, b, edge in shares.edges(data=True):
        if edge.get("tier") == SPINE:
            edge["bytes_per_s"] /= edge.get("n_sharing") or max(n_adapters(a), n_adapters(b), 1)
    shares.remove_nodes_from(
        [name for name, at in graph.nodes(data=True) if at.get("state") == "failed"]
    )
    return shares


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", STATES)
def test_a_group_is_as_wide_as_the_widest_paths_that_join_it(pool, name):
    state, draw = STATES[name], Random(pool)
    shares = fair_shares(with_state(pool_graph(POOLS[pool]), state))
    site = site_of(POOLS[pool], state)
    widths = Widths(site.vertices, SiteIndex(site).fair_edges())
    devices = [one for one in site.devices if one in shares]
    groups = [tuple(draw.sample(devices, n)) for n in (2, 2, 2, 4, 8)]
    groups.append(("node0/gpu0", "node0/gpu1"))
    met = {widths.of(group).bytes_per_s for group in groups}
    assert len(met) > 1
    for group in groups:
        width = bottleneck(shares, group)[0]
        assert widths.of(group).bytes_per_s == pytest.approx(width, rel=1e-12)
