"""What the names of a state stand for among the devices and switches of one cluster."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain, product

from planner.errors import Problem, SpecError
from planner.specs.files.state import BUSY, FAILED, RESERVED, State

_RUN = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}", re.ASCII)
_MOST_NAMES = 1_000_000  # of a state, written out
_MOST_WILD = 1_000  # names of a state with `*`, `?` or `[`: each is held against all of a cluster
_LONGEST_MEANT = 100
_MOST_MEANT = 20  # of a state, unknown names to which the nearest is told
_WILD = re.compile(r"[*?[]")


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
        self._n_names = self._n_wild = self._n_unknown = 0
        self._is_full = False

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
        SpecError.raise_if_any(self._problems)
        between = tuple(
            (link.names[0], link.names[1], link.bandwidth_fraction)
            for link in state.links
            if link.part == "between"
        )
        return DeviceStates(
            taken=taken,
            speed_fraction=slow,
            **{f"{part}_fraction": fractions for part, fractions in parts.items()},
            between=between,
            owner=owner,
            shown=state.shown,
        )

    def _taken(self) -> dict[str, str]:
        taken: dict[str, str] = {}
        for what in (BUSY, FAILED, RESERVED):
            both: dict[str, str] = {}
            for device in self._named(what, getattr(self._state, what)):
                if taken.setdefault(device, what) != what:
                    both.setdefault(taken[device], device)
            for before, device in both.items():
                self._fault(what, device, f"is {before} too", "name it in one list")
        return taken

    def _links(self) -> dict[str, dict[str, float]]:
        parts: dict[str, dict[str, float]] = {"nic": {}, "scale_up": {}, "uplink": {}}
        for i, link in enumerate(self._state.links):
            key = f"link[{i}].{link.part}"
            if link.part == "between":
                known = [*self._devices, *self._switches]
                for name in link.names:
                    if name not in known:
                        self._unknown(key, name, known)
                continue
            names = self._named(key, link.names, switches=link.part == "uplink")
            self._merge(parts[link.part], names, link.bandwidth_fraction, key)
        return parts

    def _merge(self, into: dict[str, float], names: list[str], value: float, key: str) -> None:
        for name in names:
            if into.setdefault(name, value) != value:
                self._fault(key, name, "was given another value before", "keep one of them")
                return

    def _named(self, key: str, written: Sequence[str], *, switches: bool = False) -> list[str]:
        """The devices, or switches, that names stand for, each once, in the order written."""
        resolved: dict[str, None] = {}
        seen: set[str] = set()
        for text in written:
            if text in seen:
                self._fault(key, text, "is listed twice", "keep one of them")
                continue
            seen.add(text)
            if not self._may_be_written_out(key, text):
                continue
            strangers = []
            names = _expanded(text)
            for name in names:
                matching = self._matching(name, switches=switches)
                if not matching:
                    strangers.append(name)
                resolved |= dict.fromkeys(matching)
            known = self._switches if switches else list(self._below)
            if len(strangers) == 1:
                self._unknown(key, strangers[0], known)
            elif strangers:
                fact = f"{len(strangers):,} of its {len(names):,} names are none of the cluster"
                remedy = f"`{strangers[0]}` is the first that is not"
                self._fault(key, text, fact, remedy)
        return list(resolved)

    def _may_be_written_out(self, key: str, text: str) -> bool:
        """Whether a name and all before it stand for no more than can be looked up."""
        n_names = math.prod(map(len, _runs(text)))
        self._n_names += n_names
        self._n_wild += n_names if _WILD.search(text) else 0
        for n, most, what in (
            (self._n_names, _MOST_NAMES, "names"),
            (self._n_wild, _MOST_WILD, "names with `*`, `?` or `[`"),
        ):
            if n > most:
                fact, remedy = f"makes more than {most:,} {what}", "name what is above them"
                if not self._is_full:
                    self._fault(key, text, fact, remedy)
                self._is_full = True
                return False
        return True

    def _matching(self, name: str, *, switches: bool) -> list[str]:
        if switches:
            below = [it for it in self._switches if f"{it}/".startswith(f"{name}/")]
            return below or [it for it in self._switches if fnmatchcase(it, name)]
        if name in self._below or not _WILD.search(name):
            return self._below.get(name, [])
        hits = (devices for place, devices in self._below.items() if fnmatchcase(place, name))
        return list(dict.fromkeys(chain.from_iterable(hits)))

    def _unknown(self, key: str, name: str, known: Sequence[str]) -> None:
        self._n_unknown += 1
        is_asked = self._n_unknown <= _MOST_MEANT and len(name) <= _LONGEST_MEANT
        close = get_close_matches(name, known, n=1, cutoff=0.5) if is_asked else []
        remedy = f"did you mean `{close[0]}`?" if close else ""
        fact = "no such device, node or switch of the cluster"
        self._fault(key, name, fact, remedy)

    def _fault(self, key: str, value: str, fact: str, remedy: str) -> None:
        self._problems.append(
            Problem(where=self._state.shown, key=key, value=value, fact=fact, remedy=remedy)
        )


def _expanded(text: str) -> list[str]:
    """A name with its runs of numbers written out: `node{0..2}` as three names."""
    fixed = _RUN.split(text)[0::3]
    written = ([*map(str, numbers), ""] for numbers in product(*_runs(text)))
    both = (zip(fixed, numbers, strict=True) for numbers in written)
    return ["".join(chain.from_iterable(pieces)) for pieces in both] or [text]


def _runs(text: str) -> list[range]:
    """The runs of numbers in a name, each with both its ends."""
    pieces = _RUN.split(text)
    return [
        range(int(low), int(high) + 1) for low, high in zip(pieces[1::3], pieces[2::3], strict=True)
    ]
