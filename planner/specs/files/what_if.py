"""Machines with more or less of something than their files say, `--what-if hbm_bandwidth=1.3x`.

Devices and pools that are loaded within have their fields multiplied, and say so; constants of the
engines and kernels that time them follow what the device says, wherever they are loaded. So an
answer is that of files with other values: `what_if.toml` lists which.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from planner.errors import Problem, RequestError
from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError, parse
from planner.running import meanwhile
from planner.specs.ask.targets import WHAT_IF
from planner.specs.records.devices import DeviceSpec, NodesFabric
from planner.specs.records.kernels import Kernel
from planner.specs.validation.problems import did_you_mean

_T = TypeVar("_T")

EACH = "each"
USUAL_FACTOR = 1.1
LEAST, MOST = 0.01, 100.0
"""Factors beyond which closed forms that were fitted to kernels say nothing [1]."""


@cache
def resources() -> Mapping[str, Mapping[str, Any]]:
    """What may be supposed, by name: rows of `what_if.toml`, which says what is what in them."""
    return packaged_table("specs/options/what_if.toml")


def factor(text: str) -> float:
    """A factor, `1.3x`; the usual one of `each`."""
    value = USUAL_FACTOR if text == EACH else parse(text.removesuffix("x"), "1", example="1.3x")
    if not LEAST <= value <= MOST or value == 1.0:
        raise UnitError(text, f"is 1, or not from {LEAST:g} to {MOST:g}", "write `1.3x`")
    return value


def named(said: Mapping[str, float]) -> dict[str, float]:
    """Factors by names of `resources`, from those by what people call them.

    Raises:
        RequestError: a name is of nothing, two are of the same, or others stand beside `each`.
    """
    known, problems = {EACH: EACH, "": EACH}, []
    for name, row in resources().items():
        known |= dict.fromkeys((name, *row["aliases"].split()), name)
    factors = {known.get(word.lower().replace("-", "_"), word): said[word] for word in said}
    for word in (it for it in factors if it not in known):
        remedy = did_you_mean(word, known, otherwise=f"there are {', '.join(resources())}")
        fact = "is nothing that a machine has"
        problems.append(Problem(where=WHAT_IF, value=word, fact=fact, remedy=remedy))
    if len(factors) < len(said) or (EACH in factors and len(said) > 1):
        fact, value = f"says something twice, or more than `{EACH}`", ", ".join(said).strip(", ")
        problems.append(Problem(where=WHAT_IF, value=value, fact=fact, remedy="leave one out"))
    RequestError.raise_if_any(problems)
    return factors


def each_by(factor: float) -> dict[str, float]:
    """The factor of every resource; of what is better where there is less of it, its inverse."""
    return {n: 1.0 / factor if "is_less" in row else factor for n, row in resources().items()}


def text_of(factors: Mapping[str, float]) -> str:
    """Factors as they are written, each by its name."""
    return ",".join(f"{name}={value:.12g}x" for name, value in factors.items())


_NOTHING: tuple[Mapping[str, float], set[str]] = {}, set()
_ASSUMED = ContextVar("what if", default=_NOTHING)
"""Factors by name, and the names that nothing loaded has; `""` among them before any is."""


def what_if(**factors: float) -> AbstractContextManager[None]:
    """Devices and pools that are loaded within have so many times [1] what their files say."""
    return meanwhile(_ASSUMED, (factors, {"", *factors}))


def supposed(record: _T, *, is_part: bool = False) -> _T:
    """A device or a pool, perhaps part of a larger one, as it is supposed to be within."""
    factors, unmet = _ASSUMED.get()
    unmet.difference_update({"", *(name for name in factors if is_part or has(record, name))})
    return multiplied(record, factors)


def has(record: object, name: str) -> bool:
    """Whether a device or a pool has something of a resource."""
    fabric = getattr(record, "fabric", None)
    if name.startswith("scale_out"):
        return isinstance(fabric, NodesFabric) and fabric.n_nodes > 1
    n_joined = getattr(fabric, "n_devices_per_node", getattr(fabric, "n_devices", 1))
    return int(n_joined) > 1 or not name.startswith("scale_up")


def idle(command: str) -> Iterator[Problem]:
    """What is supposed and changes nothing of what was loaded; nothing before a machine was."""
    factors, unmet = _ASSUMED.get()
    said_to_command = said_to(command, factors)
    for name, value in factors.items():
        if name not in said_to_command or (name in unmet and "" not in unmet):
            text, fact = text_of({name: value}), resources()[name].get("idle", "has no effect")
            yield Problem(where=WHAT_IF, value=text, fact=fact, remedy="leave it out")


def said_to(command: str, factors: Mapping[str, float]) -> dict[str, float]:
    """Of what is supposed what changes something of a command."""
    rows = resources()
    return {n: x for n, x in factors.items() if command not in rows[n].get("commands", ())}


def multiplied(record: _T, said: Mapping[str, float]) -> _T:
    """A record and those in it, with fields multiplied by factors by name; devices say so."""
    factors = {path: said[name] for name in said for path in resources()[name]["scales"].split()}
    changed: _T = _times(record, 1.0, "", {**factors, "": said}) if said else record
    return changed


def _times(value: Any, factor: float, path: str, factors: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """A value of a record, multiplied, or with what is in it multiplied."""
    if isinstance(value, int | float):
        return value if factor == 1.0 else value * factor
    if isinstance(value, tuple):
        return tuple(_times(one, factor, path, factors) for one in value)
    if isinstance(value, Mapping):
        return _each(value, factor, path, factors)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    is_message = isinstance(value, Kernel) and "scale_up_bytes_per_s" in value.constants
    name = "Messages" if is_message else type(value).__name__
    changed = _each({it.name: getattr(value, it.name) for it in fields(value)}, 1.0, name, factors)
    if isinstance(value, DeviceSpec):
        more = {key: value.what_if.get(key, 1.0) * x for key, x in factors[""].items()}
        changed["what_if"] = {**value.what_if, **more}
    return replace(value, **changed)


def _each(
    inner: Mapping[Any, Any], usual: float, path: str, factors: Mapping[str, Any]
) -> dict[Any, Any]:
    paths = {key: f"{path}.{key}" for key in inner}
    return {k: _times(inner[k], factors.get(at, usual), at, factors) for k, at in paths.items()}
