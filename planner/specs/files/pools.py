"""What replicas are placed on: servers, a torus, or fabrics side by side, read from their files.

    [cluster]
    name = "tpu-and-gpu"

    [[part]]                        # a fabric that no replica leaves
    name = "tpu"                    # opens the names of its devices: `tpu/0,3,0`
    topology = "tpu-v5e-4x4"        # a torus, a topology of nodes, a file of groups or of parts

    [[part]]
    name = "gpu"
    topology = "h100-nvl8-x2"

`tpu-v5e-4x4+h100-nvl8-x2` is the same without a file, each part by the name of its topology.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

from planner.errors import Problem, SpecError
from planner.specs.files.patterns import fill
from planner.specs.files.places import Kind, exists
from planner.specs.files.reading import load_cluster, read_named
from planner.specs.files.servers import (
    TOPOLOGY,
    GroupSpec,
    PoolSpec,
    beside,
    fabric_file,
    is_fabric,
    load_pool,
    name_problems,
    pool_of,
)
from planner.specs.records.devices import ClusterSpec, Provenance, TorusFabric
from planner.specs.records.graphs import GraphSpec
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.hints import computed
from planner.specs.validation.problems import Problems
from planner.specs.validation.values import NOT_EMPTY

__all__ = ["GroupSpec", "PoolSpec", "load_pool", "pool_of"]
"""Of `servers`, for those who have them from here."""

_Fabric = TypeVar("_Fabric", GroupSpec, ClusterSpec)

BESIDE = "+"
"""Between the names of topologies that are one pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedPoolSpec:
    """Servers and tori side by side; a replica lies in one of these fabrics.

    Args:
        servers: all of them; of no group where there are none.
        tori: each by its name in the pool, which opens the names of its devices.
    """

    name: str
    title: str
    servers: PoolSpec
    tori: Annotated[tuple[ClusterSpec, ...], NOT_EMPTY]

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        of_tori = (value for it in self.tori for value in (*it.provenance, *it.device.provenance))
        return (*self.servers.provenance, *of_tori)

    @computed
    def n_devices(self) -> int:
        return self.servers.n_devices + sum(torus.n_devices for torus in self.tori)


AnyFabric = ClusterSpec | PoolSpec | MixedPoolSpec
"""What a topology's name stands for where replicas are placed."""

SiteSpec = AnyFabric | GraphSpec
"""Whatever replicas are placed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEntry:
    """A fabric of a pool as its file has it."""

    name: str
    topology: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsFile:
    """A pool of several fabrics as its file has it."""

    name: str
    title: str = ""
    description: str = ""
    examples: tuple[str, ...] = ()
    part: Annotated[tuple[PartEntry, ...], NOT_EMPTY]


@arguments_checked()
def is_placed_on(name_or_path: str) -> bool:
    """Whether a name or a path is of what is more than a topology: leaves, or several fabrics.

    Raises:
        SpecError: as `is_fabric`.
    """
    return BESIDE in name_or_path or is_fabric(name_or_path)


@arguments_checked()
def load_site(
    name_or_path: str, *, asked_by: str = TOPOLOGY, inside: tuple[str, ...] = ()
) -> AnyFabric:
    """Load a fabric file, a topology of nodes, a torus, or several of them side by side.

    Args:
        inside: files that it is a part of.

    Raises:
        SpecError: as `load_pool`; or a file is a part of itself.
    """
    if BESIDE in name_or_path and not exists(Path(name_or_path)):
        return _named_together(name_or_path, asked_by, inside)
    source = fabric_file(name_or_path)
    if source is not None and source.shown in inside:
        fact, remedy = "is the file that this part is of", "name what it is made of"
        raise SpecError([Problem(where=asked_by, value=name_or_path, fact=fact, remedy=remedy)])
    if source is None:
        cluster = load_cluster(name_or_path, asked_by=asked_by)
        return cluster if isinstance(cluster.fabric, TorusFabric) else pool_of(cluster)
    table, problems = read_named(source, "cluster", Kind.FABRIC)
    if "part" not in table:
        return load_pool(name_or_path, asked_by=asked_by)
    file, faults = validate(PartsFile, table, source.shown)
    SpecError.raise_if_any([*problems, *faults])
    assert file is not None  # or it has faults
    names, shown = [one.name for one in file.part], source.shown
    wrong = Problems(problems=list(name_problems(names, shown, "part")))
    inside = (*inside, shown)
    parts = [replace(it, topology=beside(source.path, it.topology)) for it in file.part]
    sites: Sequence[AnyFabric] = wrong.each(
        partial(_part, shown=shown, inside=inside), parts, key="part"
    )
    wrong.settle()
    pool = side_by_side(file.name, file.title or file.name, names, sites)
    return replace(pool, title=fill(pool.title, {"n_devices": pool.n_devices}))


def _part(part: PartEntry, *, shown: str, inside: tuple[str, ...], key: str) -> AnyFabric:
    return load_site(part.topology, asked_by=f"{shown}: {key}.topology", inside=inside)


def _named_together(names: str, asked_by: str, inside: tuple[str, ...]) -> AnyFabric:
    wrong = Problems()
    sites: Sequence[AnyFabric] = wrong.each(
        partial(load_site, asked_by=asked_by, inside=inside), names.split(BESIDE)
    )
    wrong.settle()
    title = f" {BESIDE} ".join(one.title for one in sites)
    return side_by_side(names, title, [one.name for one in sites], sites)


def side_by_side(
    name: str, title: str, names: Sequence[str], sites: Sequence[AnyFabric]
) -> PoolSpec | MixedPoolSpec:
    """Fabrics by their names as one pool; of a part that is several, each is named `part-own`.

    Raises:
        SpecError: two have the same name.
    """
    named = [_named(part, _mixed(site)) for part, site in zip(names, sites, strict=True)]
    groups = tuple(chain.from_iterable(own.servers.groups for own in named))
    tori = tuple(chain.from_iterable(own.tori for own in named))
    own_names = [*(it.name for it in groups), *(it.name for it in tori)]
    SpecError.raise_if_any(_misnamed(name, own_names, own_names[len(groups) :]))
    sources = dict.fromkeys(chain.from_iterable(own.servers.provenance for own in named))
    pool = PoolSpec(name=name, title=title, groups=groups, provenance=tuple(sources))
    return MixedPoolSpec(name=name, title=title, servers=pool, tori=tori) if tori else pool


def _misnamed(pool: str, names: Sequence[str], tori: Sequence[str]) -> list[Problem]:
    """Names of two fabrics, and of tori that would open the names of servers' nodes too."""
    remedy = "give each a name of its own: `[[part]]` in a file"
    twice = sorted({name for name in names if names.count(name) > 1})
    taken = [name for name in tori if re.fullmatch(r"(node|leaf)\d+|spine", name)]
    facts = [
        *((it, "is named twice") for it in twice),
        *((it, "is what nodes are called") for it in taken),
    ]
    return [Problem(where=pool, value=it, fact=fact, remedy=remedy) for it, fact in facts]


def _named(part: str, own: MixedPoolSpec) -> MixedPoolSpec:
    """The fabrics of a part by its name; of several, by theirs behind it."""
    alone = len(own.servers.groups) + len(own.tori) == 1

    def named(it: _Fabric) -> _Fabric:
        return replace(it, name=part if alone else f"{part}-{it.name}")

    servers = replace(own.servers, groups=tuple(map(named, own.servers.groups)))
    return replace(own, servers=servers, tori=tuple(map(named, own.tori)))


def parts_of(site: AnyFabric) -> tuple[PoolSpec, tuple[ClusterSpec, ...]]:
    """The servers of a site, and its tori; of either there may be none."""
    mixed = _mixed(site)
    return mixed.servers, mixed.tori


def _mixed(site: AnyFabric) -> MixedPoolSpec:
    """A site as servers and tori, of either of which there may be none."""
    if isinstance(site, MixedPoolSpec):
        return site
    tori: tuple[ClusterSpec, ...] = ()
    if isinstance(site, ClusterSpec) and isinstance(site.fabric, TorusFabric):
        tori, servers = (site,), PoolSpec(name=site.name, title=site.title, groups=())
    else:
        servers = site if isinstance(site, PoolSpec) else pool_of(site)
    return MixedPoolSpec(name=site.name, title=site.title, servers=servers, tori=tori)
