"""What of a cluster is in use or broken: `--state state.toml`, and what its names stand for.

    busy = ["node0", "node{4..7}/gpu{0..3}"]      # in use by others
    failed = ["node3/gpu5"]
    reserved = ["leaf1"]

    [owners]                                      # optional: whose a busy device is
    "node0" = "training"

    [[slow]]
    devices = ["node9/*"]
    speed = "80%"                                 # of computing and of memory

    [[link]]
    nic = ["node2/gpu1"]                          # or scale_up, uplink, or
    down = true                                   # between = ["0,0,0", "0,0,1"]
                                                  # or bandwidth = "50%"

A name stands for a device, or for all devices below it: `node3` for `node3/gpu0` and the rest.
`*` and `?` stand for any characters of a name, `{0..15}` for a run of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.fabric_schemas import StateFile
from planner.specs.faults import validate
from planner.specs.finding import exists
from planner.specs.tables import literal, read_table

FREE, BUSY, FAILED, RESERVED = "free", "busy", "failed", "reserved"
TAKEN = (BUSY, FAILED, RESERVED)
_RUN = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_IN_RUN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDevices:
    """Devices, as written, that work at a fraction of their speed."""

    devices: tuple[str, ...]
    speed_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """Links, as written, at a fraction of their bandwidth; 0 is down.

    Args:
        part: `nic`, `scale_up`: of the named devices; `uplink`: of the named switches;
            `between`: the link of the two names.
    """

    part: str
    names: tuple[str, ...]
    bandwidth_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state file, its names as written.

    Args:
        shown: the file as the user knows it; opens every message.
    """

    busy: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    slow: tuple[SlowDevices, ...] = ()
    links: tuple[LinkState, ...] = ()
    owners: tuple[tuple[str, str], ...] = ()
    shown: str = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStates:
    """What a state says of each device and link of one cluster; what is not named is well.

    Args:
        taken: `busy`, `failed` or `reserved`, by device.
        speed_fraction: of slow devices.
        nic_fraction, scale_up_fraction: of the bandwidth of a device's links.
        uplink_fraction: of the bandwidth of a switch's links towards the core.
        between: pairs of vertices, and the fraction of their link's bandwidth.
        owner: of busy devices, where it is said.
    """

    taken: Mapping[str, str] = field(default_factory=dict)
    speed_fraction: Mapping[str, float] = field(default_factory=dict)
    nic_fraction: Mapping[str, float] = field(default_factory=dict)
    scale_up_fraction: Mapping[str, float] = field(default_factory=dict)
    uplink_fraction: Mapping[str, float] = field(default_factory=dict)
    between: tuple[tuple[str, str, float], ...] = ()
    owner: Mapping[str, str] = field(default_factory=dict)
    shown: str = "state"


def load_state(path: str, *, asked_by: str = "--state") -> State:
    """Read a state file; its names are looked up by `resolve_state`.

    Raises:
        SpecError: no such file, or it has faults; all are listed.
    """
    if not exists(Path(path)):
        raise SpecError([Problem(where=asked_by, value=literal(path), fact="no such file")])
    table, problems = read_table(Path(path), path)
    if problems:
        raise SpecError(problems)
    file, faults = validate(StateFile, table, path)
    if file is None:
        raise SpecError(faults)
    faults = list(_link_faults(file, path))
    if faults:
        raise SpecError(faults)
    return State(
        busy=tuple(file.busy),
        failed=tuple(file.failed),
        reserved=tuple(file.reserved),
        slow=tuple(
            SlowDevices(devices=tuple(one.devices), speed_fraction=one.speed) for one in file.slow
        ),
        links=tuple(
            LinkState(
                part=part,
                names=tuple(names),
                bandwidth_fraction=0.0 if one.down else (one.bandwidth or 1.0),
            )
            for one in file.link
            for part, names in one.parts()
        ),
        owners=tuple(file.owners.items()),
        shown=path,
    )


def _link_faults(file: StateFile, shown: str) -> Iterator[Problem]:
    for i, one in enumerate(file.link):
        key = f"link[{i}]"
        if not one.parts():
            remedy = "write `nic`, `scale_up`, `uplink` or `between`"
            yield Problem(where=shown, key=key, fact="names no link", remedy=remedy)
        if one.down == (one.bandwidth is not None):
            remedy = 'write `down = true` or `bandwidth = "50%"`'
            fact = "is down and has a bandwidth" if one.down else "says nothing of the link"
            yield Problem(where=shown, key=key, fact=fact, remedy=remedy)
        if one.between and len(one.between) != 2:
            fact = f"names {len(one.between)} ends of a link"
            yield Problem(where=shown, key=f"{key}.between", fact=fact, remedy="write two names")


def resolve_state(
    state: State,
    devices: Sequence[str],
    switches: Sequence[str] = (),
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> DeviceStates:
    """What the names of a state stand for among the devices and switches of a cluster.

    Args:
        state: as it was read.
        devices, switches: names of the cluster's vertices.
        groups: names that stand for several devices, beside the beginnings of their names:
            `leaf1` for all that hang on it.

    Raises:
        SpecError: unknown names, names given twice, and contradictions; all are listed.
    """
    return _Resolver(state, devices, switches, groups or {}).resolved()


class _Resolver:
    """Looks names up, and collects what is wrong with them."""

    def __init__(
        self,
        state: State,
        devices: Sequence[str],
        switches: Sequence[str],
        groups: Mapping[str, Sequence[str]],
    ) -> None:
        self._state = state
        self._switches = list(switches)
        self._below: dict[str, list[str]] = {name: [*below] for name, below in groups.items()}
        for name in devices:
            parts = name.split("/")
            for n_parts in range(1, len(parts) + 1):
                self._below.setdefault("/".join(parts[:n_parts]), []).append(name)
        self._devices = set(devices)
        self._problems: list[Problem] = []

    def resolved(self) -> DeviceStates:
        state = self._state
        taken = self._taken()
        slow: dict[str, float] = {}
        for i, one in enumerate(state.slow):
            names = self._named(f"slow[{i}].devices", one.devices)
            self._merge(slow, names, one.speed_fraction, f"slow[{i}].devices")
        failed = sorted(name for name in slow if taken.get(name) == FAILED)
        if failed:
            self._fault("slow", failed[0], "is failed, not slow", "name it once")
        owner: dict[str, str] = {}
        for name, who in state.owners:
            for device in self._named("owners", (name,)):
                owner[device] = who
                if taken.get(device) != BUSY:
                    self._fault("owners", name, "owns what is not busy", "add it to `busy`")
                    break
        parts = self._links()
        if self._problems:
            raise SpecError(self._problems)
        between = tuple(
            (one.names[0], one.names[1], one.bandwidth_fraction)
            for one in state.links
            if one.part == "between"
        )
        return DeviceStates(
            taken=taken,
            speed_fraction=slow,
            nic_fraction=parts["nic"],
            scale_up_fraction=parts["scale_up"],
            uplink_fraction=parts["uplink"],
            between=between,
            owner=owner,
            shown=state.shown,
        )

    def _taken(self) -> dict[str, str]:
        taken: dict[str, str] = {}
        for what, written in (
            (BUSY, self._state.busy),
            (FAILED, self._state.failed),
            (RESERVED, self._state.reserved),
        ):
            both: dict[str, str] = {}
            for device in self._named(what, written):
                if taken.setdefault(device, what) != what:
                    both.setdefault(taken[device], device)
            for before, device in both.items():
                self._fault(what, device, f"is {before} too", "name it in one list")
        return taken

    def _links(self) -> dict[str, dict[str, float]]:
        parts: dict[str, dict[str, float]] = {"nic": {}, "scale_up": {}, "uplink": {}}
        for i, one in enumerate(self._state.links):
            key = f"link[{i}].{one.part}"
            if one.part == "between":
                known = [*self._devices, *self._switches]
                for name in one.names:
                    if name not in known:
                        self._unknown(key, name, known)
                continue
            names = self._named(key, one.names, switches=one.part == "uplink")
            self._merge(parts[one.part], names, one.bandwidth_fraction, key)
        return parts

    def _merge(self, into: dict[str, float], names: list[str], value: float, key: str) -> None:
        for name in names:
            if into.setdefault(name, value) != value:
                self._fault(key, name, "was given another value before", "keep one of them")
                return

    def _named(self, key: str, written: Sequence[str], *, switches: bool = False) -> list[str]:
        """The devices, or switches, that names stand for, each once, in the order written."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        for text in written:
            if text in seen:
                self._fault(key, text, "is listed twice", "keep one of them")
                continue
            seen.add(text)
            for name in _expanded(text):
                matching = self._matching(name, switches=switches)
                if not matching:
                    self._unknown(key, name, self._switches if switches else list(self._below))
                found |= dict.fromkeys(matching)
        return list(found)

    def _matching(self, name: str, *, switches: bool) -> list[str]:
        if switches:
            below = [one for one in self._switches if one == name or one.startswith(f"{name}/")]
            return below or [one for one in self._switches if fnmatchcase(one, name)]
        if name in self._below:
            return self._below[name]
        if not any(sign in name for sign in "*?["):
            return []
        hits = (self._below[one] for one in self._below if fnmatchcase(one, name))
        return list(dict.fromkeys(device for devices in hits for device in devices))

    def _unknown(self, key: str, name: str, known: Sequence[str]) -> None:
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        remedy = f"did you mean `{close[0]}`?" if close else ""
        fact = "no such device, node or switch of the cluster"
        self._fault(key, name, fact, remedy)

    def _fault(self, key: str, value: str, fact: str, remedy: str) -> None:
        self._problems.append(
            Problem(where=self._state.shown, key=key, value=value, fact=fact, remedy=remedy)
        )


def _expanded(text: str) -> list[str]:
    """A name with its runs of numbers written out: `node{0..2}` as three names."""
    pieces = _RUN.split(text)
    runs = [
        range(int(low), int(high) + 1) for low, high in zip(pieces[1::3], pieces[2::3], strict=True)
    ]
    if any(len(run) > _MOST_IN_RUN for run in runs):
        return [text]
    fixed = pieces[0::3]
    names = [
        "".join(
            piece for pair in zip(fixed, [*map(str, numbers), ""], strict=True) for piece in pair
        )
        for numbers in product(*runs)
    ]
    return names or [text]
