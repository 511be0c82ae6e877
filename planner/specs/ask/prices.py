"""Rents that the user says, by kind of device, in place of those of the files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from planner.errors import Problem
from planner.specs.ask.request import repriced
from planner.specs.files.pools import MixedPoolSpec, PoolSpec, SiteSpec
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.graphs import GraphSpec

S = TypeVar("S", bound=SiteSpec)

ALL = ""
"""The kind that a rent is of which names none."""


def kinds_of(site: SiteSpec) -> tuple[str, ...]:
    """Names that a rent may be of: of the devices of a site, and of its groups."""
    if isinstance(site, MixedPoolSpec):
        of_tori = (name for one in site.tori for name in (one.name, one.device.name))
        names = (*kinds_of(site.servers), *of_tori)
    elif isinstance(site, PoolSpec):
        groups = (one.name for one in site.groups)
        names = (*groups, *(one.cluster.device.name for one in site.groups))
    else:
        names = tuple(site.devices) if isinstance(site, GraphSpec) else (site.device.name,)
    return tuple(dict.fromkeys(filter(None, names)))


def unknown_kinds(prices: Mapping[str, float], sites: Sequence[SiteSpec]) -> Iterator[Problem]:
    """Rents of kinds that no site has."""
    known = list(dict.fromkeys(name for site in sites for name in kinds_of(site)))
    for name in prices:
        if name not in (ALL, *known) and known:
            from planner.specs.validation.problems import did_you_mean

            remedy = did_you_mean(name, known, otherwise=f"there is {' and '.join(known)}")
            fact = "is no kind of device there"
            yield Problem(where="--price", value=name, fact=fact, remedy=remedy)


def priced(site: S, prices: Mapping[str, float]) -> S:
    """A site at other rents per device.

    Args:
        prices: by a group, a device, or for all kinds by `ALL` [USD/h]; the first of these counts.
    """
    site_priced: SiteSpec = site
    if isinstance(site, MixedPoolSpec):
        tori = tuple(_priced(one, prices, one.name) for one in site.tori)
        site_priced = replace(site, servers=priced(site.servers, prices), tori=tori)
    elif isinstance(site, PoolSpec):
        groups = tuple(
            replace(one, cluster=_priced(one.cluster, prices, one.name)) for one in site.groups
        )
        site_priced = replace(site, groups=groups)
    elif isinstance(site, GraphSpec):
        devices = {
            name: replace(device, usd_per_hour=_rent(prices, (name,), device.usd_per_hour))
            for name, device in site.devices.items()
        }
        site_priced = replace(site, devices=devices)
    else:
        site_priced = _priced(site, prices)
    return cast("S", site_priced)


def _priced(cluster: ClusterSpec, prices: Mapping[str, float], group: str = ALL) -> ClusterSpec:
    rent = _rent(prices, (group, cluster.device.name), cluster.usd_per_hour)
    return cluster if rent == cluster.usd_per_hour else repriced(cluster, rent)


def _rent(prices: Mapping[str, float], names: Sequence[str], usual: float) -> float:
    known = [prices[name] for name in (*filter(None, names), ALL) if name in prices]
    return next(iter(known), usual)
