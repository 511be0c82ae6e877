"""Pools of servers below leaves and a spine, of one kind or of several; read from fabric files.

    [cluster]
    name = "h100-fat-tree-x{n}"

    [[group]]                       # servers of one kind
    name = "h100"
    topology = "h100-nvl8-x1"       # what a node is: any topology of nodes
    n_nodes = "{n}"
    n_nodes_per_leaf = 32           # nodes that one leaf, or one set of rails, joins
    n_rails = 8                     # leaf switches of such a set: device i is on rail i
    oversubscription = 2            # links down over links up of a leaf switch
    spine_latency = "1 us"          # more, from leaf to leaf

A topology of nodes by itself is a pool of one group whose nodes hang on one leaf.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from planner.errors import Problem, SpecError
from planner.specs.files.finding import SpecFile, find, find_named
from planner.specs.files.ledger import remark
from planner.specs.files.patterns import fill
from planner.specs.files.places import Kind, exists, folders, is_as_shipped, is_path, shown_path
from planner.specs.files.reading import load_cluster, read_named
from planner.specs.files.tables import Table, read_table
from planner.specs.files.what_if import supposed
from planner.specs.records.devices import ClusterSpec, NodesFabric, Provenance
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.hints import from_fields
from planner.specs.validation.layouts import provenance
from planner.specs.validation.problems import Problems
from planner.specs.validation.values import NOT_EMPTY, between

TOPOLOGY = "--topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """Servers of one kind, and the switches above them.

    Args:
        name: opens the names of its nodes where a pool has several groups.
        cluster: the nodes; its fabric is of nodes.
        n_nodes_per_leaf: nodes that one leaf joins; the last leaf may have fewer.
        n_rails: switches of a leaf; device i of every node is on rail i modulo their number.
        oversubscription: bandwidth of a leaf switch's links down over that of its links up.
        spine_latency_s: from leaf to leaf, more than within one.
    """

    name: str
    cluster: ClusterSpec
    n_nodes_per_leaf: int
    n_rails: int = 1
    oversubscription: float = 1.0
    spine_latency_s: float = 0.0

    @property
    def fabric(self) -> NodesFabric:
        assert isinstance(self.cluster.fabric, NodesFabric)
        return self.cluster.fabric

    @property
    def n_leaves(self) -> int:
        return -(-self.fabric.n_nodes // self.n_nodes_per_leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """A pool of servers to place on."""

    name: str
    title: str
    groups: tuple[GroupSpec, ...]
    provenance: tuple[Provenance, ...] = ()

    @property
    def n_devices(self) -> int:
        return sum(group.cluster.n_devices for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry:
    """A group as a file has it: its servers are named."""

    name: str
    topology: str
    n_nodes: int
    n_nodes_per_leaf: int
    n_rails: int
    oversubscription: Annotated[float, between(1, 64)]
    spine_latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricFile:
    """A pool as its file has it."""

    name: str
    title: str
    description: str = ""
    examples: tuple[str, ...] = ()
    group: Annotated[tuple[GroupEntry, ...], NOT_EMPTY]


def pool_of(cluster: ClusterSpec) -> PoolSpec:
    """A cluster of nodes as a pool of one group, all on one leaf.

    Raises:
        SpecError: the cluster is not of nodes.
    """
    fabric = _nodes_of(cluster, Problem(where=TOPOLOGY, value=cluster.name, fact=""))
    group = GroupSpec(name="", cluster=cluster, n_nodes_per_leaf=fabric.n_nodes)
    sources = (*cluster.provenance, *cluster.device.provenance)
    return from_fields(PoolSpec, cluster, groups=(group,), provenance=sources)


@arguments_checked()
def is_fabric(name_or_path: str) -> bool:
    """Whether a name or a path is that of a fabric file.

    Raises:
        SpecError: there is no file at the path, or the name fits a pattern with wrong values.
    """
    return fabric_file(name_or_path) is not None


@arguments_checked()
def load_pool(name_or_path: str, *, asked_by: str = TOPOLOGY) -> PoolSpec:
    """Load a fabric file, or a topology of nodes as `pool_of` sees it.

    Raises:
        SpecError: no such file, or it or a topology that it names has faults; all are listed.
    """
    source = fabric_file(name_or_path)
    if source is None:
        return pool_of(load_cluster(name_or_path, asked_by=asked_by))
    table, problems = read_named(source, "cluster", Kind.FABRIC)
    if "part" in table:
        fact, remedy = "makes it several fabrics side by side", "load it with `load_site`"
        raise SpecError([Problem(where=source.shown, key="part", fact=fact, remedy=remedy)])
    file, faults = validate(FabricFile, table, source.shown) if table else (None, [])
    problems += faults
    if file is None:
        raise SpecError(problems)
    collected = Problems(problems=problems)
    entries = [replace(it, topology=beside(source.path, it.topology)) for it in file.group]
    n_nodes = Counter[str]()
    for it in entries:
        n_nodes[it.topology] += it.n_nodes
    read = partial(_group, shown=source.shown, n_nodes=n_nodes)
    groups = collected.each(read, entries, key="group")
    collected.problems += name_problems([it.name for it in file.group], source.shown, "group")
    collected.settle()
    if not is_as_shipped(source.path):
        _remark_spine(groups, source.shown)
    n_devices = sum(group.cluster.n_devices for group in groups)
    return PoolSpec(
        name=file.name,
        title=fill(file.title, {"n_devices": n_devices}),
        groups=groups,
        provenance=tuple(_sources(file, table, groups)),
    )


def fabric_file(name_or_path: str) -> SpecFile | None:
    """The fabric file of a name or a path, be it of groups or of parts; None of a topology's."""
    if is_path(name_or_path):
        file = find(Kind.CLUSTER, name_or_path, asked_by=TOPOLOGY)
        return file if _has_groups(file.path) else None
    for folder in folders(Kind.CLUSTER):  # beside topologies, where one may well put it
        path = folder / f"{name_or_path}.toml"
        if exists(path) and _has_groups(path):
            return SpecFile(path=path, shown=shown_path(path), name=name_or_path)
    return find_named(Kind.FABRIC, name_or_path, asked_by=TOPOLOGY)


def _has_groups(path: Path) -> bool:
    table, problems = read_table(path, str(path))
    return not problems and ("group" in table or "part" in table)


def beside(file: Path, name_or_path: str) -> str:
    """A topology that a file names: by a path from where the file is, if there is one."""
    path = file.parent / name_or_path
    return str(path) if is_path(name_or_path) and exists(path) else name_or_path


def _group(group: GroupEntry, shown: str, n_nodes: Mapping[str, int], key: str) -> GroupSpec:
    key = f"{key}.topology"
    place = Problem(where=shown, key=key, value=group.topology, fact="no such file")
    if is_path(group.topology) and not exists(Path(group.topology)):
        raise SpecError([place])
    cluster = load_cluster(group.topology, asked_by=f"{shown}: {key}")
    nodes = _nodes_of(cluster, place)
    _remark_nodes(group, nodes, n_nodes[group.topology], shown)
    fabric = replace(nodes, n_nodes=group.n_nodes)
    group = supposed(group, is_part=True)
    return from_fields(GroupSpec, group, cluster=replace(cluster, fabric=fabric))


def _nodes_of(cluster: ClusterSpec, place: Problem) -> NodesFabric:
    """The nodes of a cluster; a problem at that place where it has none."""
    if not isinstance(cluster.fabric, NodesFabric):
        fact, remedy = "is not a fabric of nodes", "name a topology of servers"
        raise SpecError([replace(place, fact=fact, remedy=remedy)])
    return cluster.fabric


def _remark_nodes(group: GroupEntry, nodes: NodesFabric, n_nodes: int, shown: str) -> None:
    """A topology that the user wrote says how many nodes there are, and its groups do too.

    Args:
        n_nodes: of all groups of the topology.
    """
    named = find(Kind.CLUSTER, group.topology, asked_by=shown)
    if not is_as_shipped(named.path) and nodes.n_nodes != n_nodes:
        fact = f"has no effect: group `{group.name}` of `{shown}` has {group.n_nodes}"
        value = str(nodes.n_nodes)
        remark(Problem(where=named.shown, key="nodes.n_nodes", value=value, fact=fact))


def _remark_spine(groups: Sequence[GroupSpec], shown: str) -> None:
    """A pool of one leaf has nothing that crosses a spine."""
    if len(groups) > 1 or groups[0].n_leaves > 1:
        return
    keys = "group[0].oversubscription, group[0].spine_latency"
    fact = f"have no effect: one leaf joins all of the {groups[0].fabric.n_nodes} nodes"
    remark(Problem(where=shown, key=keys, fact=fact))


def name_problems(names: Sequence[str], shown: str, key: str) -> Iterator[Problem]:
    """Names that are given twice, or hold what parts names of devices.

    Args:
        key: of the list in the file that they are of.
    """
    for i, name in enumerate(names):
        at = f"{key}[{i}].name"
        if name in names[:i]:
            fact, remedy = f"is the name of another {key}", f"name each {key} once"
            yield Problem(where=shown, key=at, value=name, fact=fact, remedy=remedy)
        elif "/" in name:
            fact, remedy = "holds a `/`, which parts names of devices", "leave it out"
            yield Problem(where=shown, key=at, value=name, fact=fact, remedy=remedy)


def _sources(file: FabricFile, table: Table, groups: Sequence[GroupSpec]) -> Iterator[Provenance]:
    for group, entry, spec in zip(file.group, table["group"], groups, strict=True):
        yield from provenance(GroupEntry, entry, f"group.{group.name}.")
        yield from spec.cluster.provenance
        yield from spec.cluster.device.provenance
