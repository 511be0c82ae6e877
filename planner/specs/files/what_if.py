"""Machines with more or less of something than their files say, `--what-if hbm_bandwidth=1.3x`.

Devices and pools that are loaded within have their fields multiplied, and say so; constants of the
engines and kernels that time them follow what the device says, wherever they are loaded. So an
answer is that of files with other values: `what_if.toml` lists which.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError, show
from planner.specs.records.devices import ClusterSpec, DeviceSpec, NodesFabric
from planner.specs.records.kernels import Kernel
from planner.specs.validation.problems import did_you_mean

_T = TypeVar("_T")
_S = TypeVar("_S", DeviceSpec, ClusterSpec)

OPTION, EACH = "--what-if", "each"
USUAL_FACTOR = 1.1
LEAST, MOST = 0.01, 100.0
"""Factors beyond which closed forms that were fitted to kernels say nothing [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What a machine may have more or less of.

    Args:
        words: for people.
        scales: fields of records that are multiplied.
        aliases: other names.
        shows: where a pool, or else a device, has it, the first that it has.
        unit: of that.
        commands: in which it has no effect.
        idle: why it may have none.
    """

    words: str
    scales: tuple[str, ...]
    aliases: tuple[str, ...]
    shows: tuple[str, ...] = ()
    unit: str = ""
    commands: tuple[str, ...] = ()
    idle: str = "has no effect on what is asked"


@cache
def resources() -> Mapping[str, Resource]:
    """What may be supposed, by name."""
    lists = ("scales", "aliases", "shows", "commands")
    rows = packaged_table("specs/files/what_if.toml")
    return {
        name: Resource(**{**row, **{key: tuple(row.get(key, "").split()) for key in lists}})
        for name, row in rows.items()
    }


Read = Callable[[str], Any]


def gathered(texts: Sequence[str], read: Callable[[str, Read], Any]) -> dict[str, float]:
    """Factors by name of `nvlink=2x,flops=1.3x`, one or several texts of it."""
    factors: dict[str, float] = {}
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        name, factor = read(text, _factor) or ("", 1.0)
        if name in factors:
            read(text, _refusing("is given twice"))
        elif name:
            factors[name] = factor
    if EACH in factors and len(factors) > 1:
        read(EACH, _refusing("stands alone: it is every name by itself"))
    return factors


def _refusing(fact: str) -> Read:
    def refuse(text: str) -> None:
        raise UnitError(text, fact, "leave one out")

    return refuse


def _factor(text: str) -> tuple[str, float]:
    word, equals, said = (part.strip() for part in text.partition("="))
    known = {alias: name for name, row in resources().items() for alias in (name, *row.aliases)}
    name = {**known, EACH: EACH}.get(word.lower().replace("-", "_"))
    if name is None:
        remedy = did_you_mean(word, known, otherwise=f"there are {', '.join(resources())}")
        raise UnitError(text, "is nothing that a machine has" if word else "is empty", remedy)
    if not equals and name == EACH:
        return name, USUAL_FACTOR
    try:
        factor = float(said.removesuffix("x"))
    except ValueError:
        fact = "is no factor" if equals else "has no factor"
        raise UnitError(text, fact, f"write `{word}=1.3x`") from None
    if not LEAST <= factor <= MOST or factor == 1.0:
        fact = "changes nothing" if factor == 1.0 else f"is not from {LEAST:g}x to {MOST:g}x"
        raise UnitError(text, fact, f"write `{word}=1.3x`")
    return name, factor


def text_of(factors: Mapping[str, float]) -> str:
    """Factors as they are written, each by its name."""
    return ",".join(f"{name}={factor:.12g}x" for name, factor in factors.items())


def factors_of(text: str) -> dict[str, float]:
    """Factors by name of what `text_of` wrote."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name: float(factor.removesuffix("x")) for name, _, factor in pairs}


@dataclass(slots=True, kw_only=True)
class Assumption:
    """Factors of machines that are loaded, and which of them changed something."""

    factors: Mapping[str, float]
    has_loaded: bool = False
    effective: set[str] = field(default_factory=set)


_ASSUMED: ContextVar[Assumption | None] = ContextVar("what if", default=None)


@contextmanager
def what_if(factors: Mapping[str, float]) -> Iterator[Assumption]:
    """Devices and pools that are loaded within have so many times what their files say.

    Args:
        factors: by names of `resources` [1].
    """
    assumption = Assumption(factors={n: x for n, x in factors.items() if n != EACH})
    token = _ASSUMED.set(assumption)
    try:
        yield assumption
    finally:
        _ASSUMED.reset(token)


def factor_of(name: str) -> float:
    """By how much a resource is multiplied within [1]."""
    assumption = _ASSUMED.get()
    return assumption.factors.get(name, 1.0) if assumption else 1.0


def supposed(record: _S, *, is_part: bool = False) -> _S:
    """A device or a pool as it is supposed to be within; as it is where nothing is.

    Args:
        is_part: a pool is servers of a larger one.
    """
    assumption = _ASSUMED.get()
    if assumption is None or not assumption.factors:
        return record
    assumption.has_loaded = True
    assumption.effective |= {
        name for name in assumption.factors if _has_effect(record, name, is_part=is_part)
    }
    text = text_of(assumption.factors)
    changed = multiplied(record, text)
    if isinstance(changed, ClusterSpec):
        return replace(changed, device=replace(changed.device, what_if=text))
    return replace(changed, what_if=text)


def _has_effect(record: DeviceSpec | ClusterSpec, name: str, *, is_part: bool) -> bool:
    fabric = getattr(record, "fabric", None)
    if name.startswith("scale_out"):
        return isinstance(fabric, NodesFabric) and (is_part or fabric.n_nodes > 1)
    if name.startswith("scale_up"):
        n_joined = getattr(fabric, "n_devices_per_node", getattr(fabric, "n_devices", 1))
        return int(n_joined) > 1
    return True


def idle(command: str) -> Iterator[Problem]:
    """What is supposed and changes nothing of what was loaded; nothing before a machine was."""
    assumption = _ASSUMED.get()
    for name, factor in assumption.factors.items() if assumption else ():
        row = resources()[name]
        is_idle = assumption and assumption.has_loaded and name not in assumption.effective
        if is_idle or command in row.commands:
            text = text_of({name: factor})
            yield Problem(where=OPTION, value=text, fact=row.idle, remedy="leave it out")


def multiplied(record: _T, text: str) -> _T:
    """A record, and those in it, with the fields multiplied that a text says.

    Args:
        text: as `text_of` writes it; nothing changes where it is empty.
    """
    factors = {
        scaled: factor
        for name, factor in factors_of(text).items()
        for scaled in resources()[name].scales
    }
    return _times(record, 1.0, "", factors) if factors else record


def _times(value: Any, factor: float, path: str, factors: Mapping[str, float]) -> Any:  # noqa: ANN401
    """A value of a record, multiplied, or with what is in it multiplied."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | float):
        return value * factor if factor != 1.0 else value
    if isinstance(value, Mapping):
        own = {key: f"{path}.{key}" for key in value}
        return {
            k: _times(v, factors.get(own[k], factor), own[k], factors) for k, v in value.items()
        }
    if isinstance(value, tuple):
        return tuple(_times(one, factor, path, factors) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    is_message = isinstance(value, Kernel) and "scale_up_bytes_per_s" in value.constants
    name = "Messages" if is_message else type(value).__name__
    own = {one.name: f"{name}.{one.name}" for one in fields(value)}
    changes = {
        key: _times(getattr(value, key), factors.get(path, 1.0), path, factors)
        for key, path in own.items()
    }
    return replace(value, **changes)


def what_if_words(record: DeviceSpec | ClusterSpec) -> str:
    """`HBM bandwidth 1.3 times that of h100-sxm (4.36 TB/s)`; empty where nothing is supposed."""
    device = record.device if isinstance(record, ClusterSpec) else record
    pool = {"device": device, "fabric": getattr(record, "fabric", None), "pool": record}
    texts = []
    for name, factor in factors_of(device.what_if).items():
        row = resources()[name]
        values = (_at(pool, path) for path in row.shows)
        value = next((it for it in values if it is not None), None)
        figure = "" if value is None else f" ({show(value, row.unit)})"
        texts.append(f"{row.words} {factor:.12g} times that of {device.name}{figure}")
    return ", ".join(texts)


def _at(record: object, path: str) -> float | None:
    """The number at a path of names, `device.hbm_bytes`; None where there is none."""
    for name in path.split("."):
        known = record if isinstance(record, Mapping) else None
        record = getattr(record, name, None) if known is None else known.get(name)
    return record if isinstance(record, float) else None
