"""Rents that users say, by group, by device, or of all."""

from __future__ import annotations

from dataclasses import replace

from planner.specs.ask.prices import ALL, kinds_of, priced, unknown_kinds
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_cluster

POOL = load_pool("h100-a100-x64")
FIRST, SECOND = POOL.groups


def rents(prices):
    return [one.cluster.usd_per_hour for one in priced(POOL, prices).groups]


def test_a_group_goes_before_its_device_and_both_before_all():
    usual = [one.cluster.usd_per_hour for one in POOL.groups]
    assert rents({}) == usual
    assert rents({ALL: 1.0}) == [1.0, 1.0]
    assert rents({ALL: 1.0, SECOND.cluster.device.name: 2.0}) == [1.0, 2.0]
    named = replace(POOL, groups=(replace(FIRST, name="mine"), SECOND))
    both = priced(named, {FIRST.cluster.device.name: 2.0, "mine": 3.0})
    assert [one.cluster.usd_per_hour for one in both.groups] == [3.0, usual[1]]


def test_a_cluster_has_the_rent_of_its_device():
    cluster = load_cluster("h100-nvl8-x1")
    assert priced(cluster, {"h100-sxm": 2.5}).usd_per_hour == 2.5
    assert priced(cluster, {"a100-sxm": 2.5}) == cluster


def test_a_kind_that_no_site_has_is_told_with_those_that_there_are():
    sites = [POOL, load_cluster("l40s-x4")]
    (found,) = unknown_kinds({"h100-sxn": 2.0, ALL: 1.0, "l40s": 1.0}, sites)
    assert (found.where, found.value) == ("--price", "h100-sxn")
    assert "h100-sxm" in found.remedy
    assert [*unknown_kinds(dict.fromkeys(kinds_of(POOL), 1.0), sites)] == []
