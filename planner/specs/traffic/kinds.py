"""The kinds of devices that a request for a fleet names: what they hang on, and at what rent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from planner.errors import Problem, SpecError
from planner.specs.ask.prices import ALL, priced
from planner.specs.files.patterns import patterns
from planner.specs.files.places import Kind, exists
from planner.specs.files.pools import AnyFabric, load_site, pool_of
from planner.specs.files.reading import load_cluster, load_device
from planner.specs.files.state import State, load_state
from planner.specs.files.tables import read_table, value_at
from planner.specs.files.what_if import supposed
from planner.specs.records.devices import NodesFabric
from planner.specs.traffic.arrivals import Arrivals
from planner.specs.traffic.distributions import AnyTokens
from planner.specs.traffic.records import FREE_CUTS, SuppliedKind
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.validation.problems import Problems
from planner.specs.validation.values import NOT_EMPTY, FaultError, Reader, Share, line, positive


def read_kind(entry: KindEntry, shown: str, key: str) -> SuppliedKind:
    """One kind, with all that its entry names.

    Args:
        shown: the file of the entry.
        key: of the entry in it.

    Raises:
        SpecError: something that it names is not there, or does not fit; all faults.
    """
    wrong = Problems(problems=list(_entry_problems(entry, shown, key)))
    hardware = None if wrong.problems else wrong.collect(partial(_hardware, entry, shown, key))
    state = wrong.collect(partial(_state, entry, shown))
    if hardware is not None and entry.count and entry.count > hardware.n_devices:
        fact = f"is more than the {hardware.n_devices} devices of `{entry.topology}`"
        count = str(entry.count)
        wrong.problems.append(Problem(where=shown, key=f"{key}.count", value=count, fact=fact))
    wrong.settle()
    assert hardware is not None  # or something is wrong with the entry
    price = supposed(entry, is_part=True).price
    if price is not None:
        hardware = priced(hardware, {ALL: price})
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


def _hardware(entry: KindEntry, shown: str, key: str) -> AnyFabric:
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
    fabric = cluster.fabric
    assert isinstance(fabric, NodesFabric)
    n_nodes = -(-(entry.count or cluster.n_devices) // fabric.n_devices_per_node)
    return pool_of(replace(cluster, fabric=replace(fabric, n_nodes=n_nodes)))


def usual_servers(device: str, *, fabric: str = "nodes") -> str | None:
    """A topology of nodes of a device by name, one joined by NVLink first; None where none is.

    Args:
        fabric: `nodes`, or `torus` of a device that has one.
    """
    servers = []
    for path, pattern in patterns(Kind.CLUSTER):
        table, _ = read_table(path, path.name)
        if fabric in table and value_at(table, "cluster", "device") == device:
            servers.append(pattern.fill(next(pattern.instances())))
    return min(servers, key=lambda name: ("-nvl" not in name, name), default=None)


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


_T = TypeVar("_T")


def _read(reader: Callable[[str], _T], example: str) -> Callable[[object], _T]:
    def read(raw: object) -> _T:
        if isinstance(raw, bool) or not isinstance(raw, str | int):
            fact = "is neither a number of tokens nor a text"
            raise FaultError(fact, f"write `{example}`")
        return reader(str(raw) if isinstance(raw, str) or abs(raw) < 10**18 else "1" * 19)

    return read


def _models(raw: object) -> tuple[str, ...]:
    names = [raw] if isinstance(raw, str) else raw
    if not isinstance(names, list) or not names:
        raise FaultError("is empty" if names == [] else "is not a list", 'write ["llama-3.1-8b"]')
    return tuple(map(line, names))


def _cuts(raw: object) -> tuple[int, ...] | str:
    remedy = f'write "{FREE_CUTS}", or tokens in ascending order like [2048, 8192]'
    if raw == FREE_CUTS:
        return FREE_CUTS
    if not isinstance(raw, list) or not all(type(one) is int and one > 0 for one in raw):
        raise FaultError("is no list of tokens", remedy)
    if sorted(set(raw)) != raw:
        raise FaultError("is not in ascending order", remedy)
    return tuple(raw)


Tokens = Annotated[AnyTokens, Reader(_read(tokens_of, "lognormal:1500:p99=8000"))]
Pattern = Annotated[Arrivals, Reader(_read(arrivals_of, "poisson"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassEntry:
    """A class of traffic as a file has it."""

    name: str
    model: Annotated[tuple[str, ...], Reader(_models)]
    rate: Annotated[float, positive("request/s")] | None = None
    input: Tokens | None = None
    output: Tokens | None = None
    total: Tokens | None = None
    input_share: Share | None = None
    trace: str | None = None
    arrivals: Pattern | None = None
    targets: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    cuts: Annotated[tuple[int, ...] | str, Reader(_cuts)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEntry:
    """Devices of a kind as a file has them."""

    name: str | None = None
    device: str | None = None
    topology: str | None = None
    count: int | None = None
    price: Annotated[float, positive("USD/h")] | None = None
    site: str = "one"
    busy: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFile:
    """A request for a fleet as a file has it."""

    connector: str | None = None
    classes: Annotated[tuple[ClassEntry, ...], NOT_EMPTY]
    kind: tuple[KindEntry, ...] = ()
