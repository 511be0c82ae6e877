"""What `traffic.toml` may say; see `planner.specs.validation`. None of it needs a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from planner.specs.traffic.arrivals import Arrivals
from planner.specs.traffic.distributions import AnyTokens
from planner.specs.traffic.records import FREE_CUTS
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.validation.layouts import Section, lay_out
from planner.specs.validation.values import NOT_EMPTY, FaultError, Reader, Share, line, positive

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


lay_out(TrafficFile, Section("", "connector class=classes kind", sourced=False))
