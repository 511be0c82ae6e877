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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import Use
from planner.specs.files.places import exists
from planner.specs.files.tables import literal, read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import NOT_EMPTY, Share

STATES = FREE, BUSY, FAILED, RESERVED = "free", "busy", "failed", "reserved"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDevices:
    """Devices, as written, that work at a fraction of their speed."""

    devices: Annotated[tuple[str, ...], NOT_EMPTY]
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
class LinkEntry:
    """Links as a file has them."""

    nic: tuple[str, ...] = ()
    scale_up: tuple[str, ...] = ()
    uplink: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    down: bool = False
    bandwidth: Share | None = None

    def parts(self) -> list[tuple[str, tuple[str, ...]]]:
        """What the entry names, by the part of the fabric."""
        names = ("nic", "scale_up", "uplink", "between")
        return [(name, named) for name in names if (named := getattr(self, name))]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """A state as its file has it."""

    busy: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    slow: tuple[SlowDevices, ...] = ()
    link: tuple[LinkEntry, ...] = ()


@arguments_checked()
def load_state(path: str | Path, *, asked_by: str = "--state") -> State:
    """Read a state file; its names are looked up by `naming.resolve_state`.

    Raises:
        SpecError: no such file, or it has faults; all are listed.
    """
    shown = str(path)
    if not exists(Path(path)):
        raise SpecError([Problem(where=asked_by, value=literal(shown), fact="no such file")])
    table, problems = read_table(Path(path), shown, use=Use(kind="state"))
    SpecError.raise_if_any(problems, hint=_keys() if not table else "")
    file, faults = validate(StateFile, table, shown)
    if file is None:
        raise SpecError(faults, hint=_keys())
    SpecError.raise_if_any(_link_faults(file, shown))
    return from_fields(
        State,
        file,
        links=tuple(
            LinkState(
                part=part,
                names=names,
                bandwidth_fraction=0.0 if link.down else (link.bandwidth or 1.0),
            )
            for link in file.link
            for part, names in link.parts()
        ),
        owners=tuple(file.owners.items()),
        shown=shown,
    )


def _keys() -> str:
    """What a state may say, and a line that does."""
    *others, last = (f"`{name}`" for name in (one.name for one in fields(StateFile)))
    line = 'busy = ["node0", "node1/gpu{0..3}"]'
    return f"a state has {', '.join(others)} and {last}, or some of them, like `{line}`"


def _link_faults(file: StateFile, shown: str) -> Iterator[Problem]:
    for i, link in enumerate(file.link):
        key = f"link[{i}]"
        if not link.parts():
            remedy = "write `nic`, `scale_up`, `uplink` or `between`"
            yield Problem(where=shown, key=key, fact="names no link", remedy=remedy)
        if link.down == (link.bandwidth is not None):
            remedy = 'write `down = true` or `bandwidth = "50%"`'
            fact = "is down and has a bandwidth" if link.down else "says nothing of the link"
            yield Problem(where=shown, key=key, fact=fact, remedy=remedy)
        if link.between and len(link.between) != 2:
            fact = f"names {len(link.between)} ends of a link"
            yield Problem(where=shown, key=f"{key}.between", fact=fact, remedy="write two names")
