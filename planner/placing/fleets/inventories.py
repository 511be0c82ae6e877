"""Kinds of devices as one pool to place on: names, states and counts of each merged.

A torus stands by the kind's name, beside the servers. Servers of a kind are a group of the pool, by
the kind's name; of a kind that is a pool of several groups each is one, `east-h100` for the group
`h100` of the kind `east`. Names in its state get the name of the group before them, as those of the
pool's devices do.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, cast

from planner.errors import Problem, RequestError
from planner.placing.asking import is_torus
from planner.placing.fabrics.site import graph_in
from planner.specs.files.ledger import recording
from planner.specs.files.pools import (
    AnyFabric,
    GroupSpec,
    MixedPoolSpec,
    PoolSpec,
    SiteSpec,
    pool_of,
    side_by_side,
)
from planner.specs.files.state import FREE, State
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.graphs import GraphSpec
from planner.specs.traffic.records import DeviceInventory, SuppliedKind
from planner.specs.validation.problems import Problems
from planner.topology.graph import device_names
from planner.topology.pools import SPINE_SWITCH

_SEVERAL = "write each as a kind of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedInventory:
    """All kinds as one site.

    Args:
        site: of all devices.
        state: of all kinds; None where all is well.
        counts: most devices that replicas may have, of kinds of which not all may be used.
        places: the site of each kind, by its name in the pool.
    """

    site: SiteSpec
    state: State | None
    counts: Mapping[str, int]
    places: Mapping[str, str]


def merged(supply: DeviceInventory, *, shown: str) -> MergedInventory:
    """One site of all kinds.

    Args:
        shown: the file that names them; opens messages.

    Raises:
        RequestError: they cannot be one, or a state does not fit; every problem is listed.
    """
    kinds = supply.kinds
    wrong = Problems(problems=list(_kind_problems(kinds, shown)))
    wrong.settle(RequestError)
    n_taken = wrong.each(_n_taken, kinds)
    wrong.settle(RequestError)
    counts = {
        name: max(supplied.n_devices - n, 0)
        for supplied, n in zip(kinds, n_taken, strict=True)
        if supplied.n_devices < _n_devices(supplied.hardware)
        for name in _names(supplied)
    }
    is_alone = len(kinds) == 1
    return MergedInventory(
        site=_site(kinds),
        state=_state(kinds, is_alone=is_alone and not is_torus(kinds[0].hardware)),
        counts=counts,
        places={name: one.site for one in kinds for name in _names(one, is_alone=is_alone)},
    )


def _groups(kind: SuppliedKind) -> tuple[GroupSpec, ...]:
    """Of servers; none of a graph, or of a torus."""
    hardware = kind.hardware
    if isinstance(hardware, ClusterSpec) and not is_torus(hardware):
        hardware = pool_of(hardware)
    return hardware.groups if isinstance(hardware, PoolSpec) else ()


def _names(kind: SuppliedKind, *, is_alone: bool = True) -> tuple[str, ...]:
    """Of a kind's groups in the pool of all; of a graph, of its devices."""
    groups = _groups(kind)
    if is_torus(kind.hardware):
        return (kind.name,)
    if isinstance(kind.hardware, GraphSpec):
        by_group = (vertex.kind_of or vertex.device for vertex in kind.hardware.vertices)
        return tuple(dict.fromkeys(filter(None, by_group)))
    if len(groups) == 1:
        return (kind.name,)
    return tuple(group.name if is_alone else f"{kind.name}-{group.name}" for group in groups)


def _n_devices(hardware: SiteSpec) -> int:
    if isinstance(hardware, GraphSpec):
        return sum(vertex.kind == "device" for vertex in hardware.vertices)
    return hardware.n_devices


def _kind_problems(kinds: Sequence[SuppliedKind], shown: str) -> Iterator[Problem]:
    """Why kinds cannot be one pool."""
    if not kinds:
        fact, remedy = "names no kind of devices", 'write `[[kind]]`, `device = "h100-sxm"`'
        yield Problem(where=shown, key="kind", fact=fact, remedy=remedy)
    for name, n in Counter(one.name for one in kinds).items():
        if n > 1:
            fact, remedy = "is the name of another kind", "give each a name of its own"
            yield Problem(where=shown, key="kind.name", value=name, fact=fact, remedy=remedy)
    for i, one in enumerate(kinds):
        yield from _problems_of(one, shown, f"kind[{i}]", is_alone=len(kinds) == 1)
    yield from _mistakable(kinds, shown)


def _problems_of(kind: SuppliedKind, shown: str, key: str, *, is_alone: bool) -> Iterator[Problem]:
    hardware = kind.hardware
    if isinstance(hardware, MixedPoolSpec):
        fact = "is several fabrics side by side"
        yield Problem(where=shown, key=key, value=hardware.name, fact=fact, remedy=_SEVERAL)
        return
    if isinstance(hardware, GraphSpec) and not is_alone:
        fact, remedy = "is a graph beside other kinds", "bring one graph of all devices"
        yield Problem(where=shown, key=key, value=kind.name, fact=fact, remedy=remedy)
    if not kind.name or "/" in kind.name:
        fact = "holds a `/`, which parts names of devices" if kind.name else "has no name"
        yield Problem(where=shown, key=f"{key}.name", value=kind.name, fact=fact)
    yield from _count_problems(kind, shown, f"{key}.count")


def _count_problems(kind: SuppliedKind, shown: str, key: str) -> Iterator[Problem]:
    count, n_there = str(kind.n_devices), _n_devices(kind.hardware)
    if kind.n_devices < 1:
        yield Problem(where=shown, key=key, value=count, fact="is no positive number of devices")
    elif kind.n_devices > n_there:
        fact = f"is more than the {n_there} devices there are"
        yield Problem(where=shown, key=key, value=count, fact=fact)
    elif kind.n_devices < n_there and len(_names(kind)) > 1:
        fact = f"is of which of its {len(_names(kind))} sorts of servers?"
        yield Problem(where=shown, key=key, value=count, fact=fact, remedy=_SEVERAL)


def _mistakable(kinds: Sequence[SuppliedKind], shown: str) -> Iterator[Problem]:
    """Names that a pattern in a state of another kind might stand for."""
    names = [one.name for one in kinds]
    for kind in kinds if len(kinds) > 1 else ():
        if len(_groups(kind)) > 1:
            for other in (name for name in names if name.startswith(f"{kind.name}-")):
                fact = f"may be a sort of servers of the kind `{kind.name}`"
                yield Problem(where=shown, key="kind.name", value=other, fact=fact, remedy=_SEVERAL)


def _n_taken(kind: SuppliedKind) -> int:
    """Devices that are busy, failed or reserved, by the names that the kind's own file gives them.

    Raises:
        RequestError: names of the state are none of the kind.
    """
    hardware = kind.hardware
    if kind.state is None and not isinstance(hardware, GraphSpec):
        return 0
    with recording():  # what is to be said of the state is said of all kinds together
        graph = graph_in(hardware, kind.state)
    return sum(graph.nodes[name].get("state", FREE) != FREE for name in device_names(graph))


def _site(kinds: Sequence[SuppliedKind]) -> SiteSpec:
    first = kinds[0].hardware
    if isinstance(first, GraphSpec):
        return first
    names = [one.name for one in kinds]
    title = " + ".join(f"{one.n_devices:,} {_device_words(one)}" for one in kinds)
    fabrics = [cast("AnyFabric", one.hardware) for one in kinds]
    site = side_by_side(" + ".join(names), title, names, fabrics)
    if isinstance(first, PoolSpec) and isinstance(site, PoolSpec) and len(kinds) == 1:
        own = _names(kinds[0])
        pairs = zip(first.groups, own, strict=True)
        site = replace(site, groups=tuple(replace(one, name=name) for one, name in pairs))
    return site


def _device_words(kind: SuppliedKind) -> str:
    """What a kind's devices are, where its name does not say it."""
    hardware = kind.hardware
    clusters = (
        [hardware]
        if isinstance(hardware, ClusterSpec)
        else [group.cluster for group in _groups(kind)]
    )
    devices = dict.fromkeys(one.device.name for one in clusters)
    named = [name for name in devices if name != kind.name]
    return f"{' and '.join(devices)} ({kind.name})" if named else kind.name


def _state(kinds: Sequence[SuppliedKind], *, is_alone: bool) -> State | None:
    """The states of all kinds, as one."""
    said = [(one, one.state) for one in kinds if one.state is not None]
    if not said or is_alone:
        return said[0][1] if said else None
    n_groups = sum(map(len, map(_groups, kinds)))
    states = [_renamed(state, _renaming(one, n_groups)) for one, state in said]

    def joined(name: str) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(getattr(state, name) for state in states))

    lists = (field.name for field in fields(State) if field.name != "shown")
    shown = ", ".join(dict.fromkeys(state.shown for state in states))
    return State(**{name: joined(name) for name in lists}, shown=shown)


def _renaming(kind: SuppliedKind, n_groups: int) -> Callable[[str], str]:
    """Names of a kind's own to those in the pool of all, of so many groups of servers."""
    before = f"{kind.name}-" if len(_groups(kind)) > 1 else f"{kind.name}/"
    before = "" if n_groups == 1 and not is_torus(kind.hardware) else before
    return lambda name: name if name == SPINE_SWITCH else before + name


def _renamed(state: State, new: Callable[[str], str]) -> State:
    def each(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(new, names))

    return replace(
        state,
        busy=each(state.busy),
        failed=each(state.failed),
        reserved=each(state.reserved),
        slow=tuple(replace(one, devices=each(one.devices)) for one in state.slow),
        links=tuple(replace(one, names=each(one.names)) for one in state.links),
        owners=tuple((new(name), who) for name, who in state.owners),
    )
