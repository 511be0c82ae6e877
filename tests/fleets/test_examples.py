"""The examples of fleets: one is run, the other is a request that can be asked."""

from __future__ import annotations

import runpy
from pathlib import Path

from planner.placing.fleets.asking import fleet_request
from planner.specs.traffic.reading import load_traffic

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_finds_a_fleet_within_its_targets(capsys):
    found = runpy.run_path(str(EXAMPLES / "fleet.py"))["found"]
    assert found.is_whole
    assert all(one.is_met for one in found.classes[0].percentiles)
    rate, most = 20.0, min(pool.replica_rate_per_s for pool in found.pools)
    assert sum(pool.n_replicas for pool in found.pools) == -(-rate // most)
    assert "none costs less than" in capsys.readouterr().out


def test_the_example_of_traffic_can_be_asked():
    traffic = load_traffic(EXAMPLES / "traffic.toml")
    request = fleet_request(traffic, engines="vllm")
    assert [one.name for one in request.classes] == ["chat", "summaries"]
    assert request.counts == {}
    assert [group.cluster.usd_per_hour for group in request.site.groups] == [2.1, 0.8]
    assert request.roles.name == "free"
