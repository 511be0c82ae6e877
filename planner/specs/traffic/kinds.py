"""The kinds of devices that a request for a fleet names: what they hang on, and at what rent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.finding import patterns
from planner.specs.places import Kind, exists
from planner.specs.pools import PoolSpec, load_site, pool_of
from planner.specs.prices import ALL, priced
from planner.specs.reading import load_cluster, load_device
from planner.specs.records import ClusterSpec, NodesFabric
from planner.specs.state import State, load_state
from planner.specs.tables import read_table
from planner.specs.traffic.records import SuppliedKind
from planner.specs.traffic.schemas import KindEntry


def read_kind(entry: KindEntry, shown: str, key: str) -> SuppliedKind:
    """One kind, with all that its entry names.

    Args:
        shown: the file of the entry.
        key: of the entry in it.

    Raises:
        SpecError: something that it names is not there, or does not fit; all faults.
    """
    problems = list(_entry_problems(entry, shown, key))
    hardware = state = None
    try:
        hardware = _hardware(entry, shown, key) if not problems else None
    except SpecError as error:
        problems += error.problems
    try:
        state = _state(entry, shown)
    except SpecError as error:
        problems += error.problems
    if hardware is not None and entry.count and entry.count > hardware.n_devices:
        fact = f"is more than the {hardware.n_devices} devices of `{entry.topology}`"
        count = str(entry.count)
        problems.append(Problem(where=shown, key=f"{key}.count", value=count, fact=fact))
    if hardware is None or problems:
        raise SpecError(problems)
    if entry.price is not None:
        hardware = priced(hardware, {ALL: entry.price})
    return SuppliedKind(
        name=name_of(entry),
        hardware=hardware,
        n_devices=entry.count or hardware.n_devices,
        site=entry.site,
        state=state,
    )


def name_of(entry: KindEntry) -> str:
    """What a kind is called where it has no name."""
    return entry.name or entry.device or entry.topology or ""


def _entry_problems(entry: KindEntry, shown: str, key: str) -> Iterator[Problem]:
    if (entry.device is None) == (entry.topology is None):
        fact = "names a device and a topology" if entry.device else "names no devices"
        remedy = 'write `device = "h100-sxm"` and a count, or `topology = "h100-nvl8-x4"`'
        yield Problem(where=shown, key=key, fact=fact, remedy=remedy)
    if entry.device is not None and entry.topology is None and entry.count is None:
        remedy = "say how many devices there are: `count = 16`"
        yield Problem(where=shown, key=f"{key}.count", fact="is missing", remedy=remedy)
    if entry.state is not None and (entry.busy or entry.failed):
        fact = "says what is busy and failed already"
        remedy = "leave `busy` and `failed` out, or write them there"
        yield Problem(where=shown, key=f"{key}.state", value=entry.state, fact=fact, remedy=remedy)


def _hardware(entry: KindEntry, shown: str, key: str) -> PoolSpec | ClusterSpec:
    if entry.topology is not None:
        return load_site(entry.topology, asked_by=f"{shown}: {key}.topology")
    name, asked_by = str(entry.device), f"{shown}: {key}.device"
    device = load_device(name, asked_by=asked_by)
    servers = usual_servers(device.name)
    if servers is None:
        fact = "no servers of this device are known, so its network is not"
        remedy = "name a topology of it, see `plan topologies`"
        raise SpecError([Problem(where=asked_by, value=name, fact=fact, remedy=remedy)])
    cluster = replace(load_cluster(servers, asked_by=asked_by), device=device)
    return pool_of(_with_devices(cluster, entry.count or cluster.n_devices))


def usual_servers(device: str) -> str | None:
    """A topology of nodes of a device by name, one joined by NVLink first; None where none is."""
    found = []
    for path, pattern in patterns(Kind.CLUSTER):
        table, _ = read_table(path, path.name)
        head = table.get("cluster")
        if "nodes" in table and isinstance(head, dict) and head.get("device") == device:
            found.append(pattern.fill(next(pattern.instances())))
    return min(found, key=lambda name: ("-nvl" not in name, name), default=None)


def _with_devices(cluster: ClusterSpec, n_devices: int) -> ClusterSpec:
    """As many nodes as hold the devices."""
    fabric = cluster.fabric
    assert isinstance(fabric, NodesFabric)
    return replace(
        cluster, fabric=replace(fabric, n_nodes=-(-n_devices // fabric.n_devices_per_node))
    )


def _state(entry: KindEntry, shown: str) -> State | None:
    if entry.state is not None:
        return load_state(beside(Path(shown), entry.state), asked_by=shown)
    if not entry.busy and not entry.failed:
        return None
    return State(busy=tuple(entry.busy), failed=tuple(entry.failed), shown=shown)


def beside(file: Path, named: str) -> Path:
    """The path of a name in a file: beside the file if it is there, else as it stands."""
    near = file.parent / named
    return near if exists(near) else Path(named)
