"""What `traffic.toml` may say; see `planner.specs.schemas`. None of it needs a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from planner.specs.schemas import Strict
from planner.specs.traffic.arrivals import Arrivals
from planner.specs.traffic.distributions import AnyTokens
from planner.specs.traffic.records import FREE_CUTS
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.values import (
    Count,
    Fraction,
    RequestsPerSecond,
    SpareCount,
    Text,
    UsdPerHour,
    fault,
    not_empty,
)
from planner.units import UnitError

_T = TypeVar("_T")


def _read(reader: Callable[[str], _T], example: str) -> Callable[[object], _T]:
    def read(raw: object) -> _T:
        if isinstance(raw, bool) or not isinstance(raw, str | int):
            raise fault("is neither a number of tokens nor a text", f"write `{example}`")
        try:
            return reader(str(raw) if isinstance(raw, str) or abs(raw) < 10**18 else "1" * 19)
        except UnitError as error:
            raise fault(error.fact, error.remedy) from None

    return read


def _models(raw: object) -> object:
    return [raw] if isinstance(raw, str) else raw


def _cuts(raw: object) -> tuple[int, ...] | str:
    remedy = f'write "{FREE_CUTS}", or tokens in ascending order like [2048, 8192]'
    if raw == FREE_CUTS:
        return FREE_CUTS
    if not isinstance(raw, list) or not all(type(one) is int and one > 0 for one in raw):
        raise fault("is no list of tokens", remedy)
    if sorted(set(raw)) != raw:
        raise fault("is not in ascending order", remedy)
    return tuple(raw)


Tokens = Annotated[AnyTokens, PlainValidator(_read(tokens_of, "lognormal:1500:p99=8000"))]
Pattern = Annotated[Arrivals, PlainValidator(_read(arrivals_of, "poisson"))]
Models = Annotated[list[Text], BeforeValidator(_models), AfterValidator(not_empty)]
Cuts = Annotated[tuple[int, ...] | str, PlainValidator(_cuts)]


class ClassEntry(Strict):
    name: Text
    model: Models
    rate: RequestsPerSecond | None = None
    input: Tokens | None = None
    output: Tokens | None = None
    total: Tokens | None = None
    input_share: Fraction | None = None
    trace: Text | None = None
    arrivals: Pattern | None = None
    targets: dict[str, Any] = Field(default={})
    priority: SpareCount = 0
    cuts: Cuts = ()


class KindEntry(Strict):
    name: Text | None = None
    device: Text | None = None
    topology: Text | None = None
    count: Count | None = None
    price: UsdPerHour | None = None
    site: Text = "one"
    busy: list[Text] = Field(default=[])
    failed: list[Text] = Field(default=[])
    state: Text | None = None


class TrafficFile(Strict):
    connector: Text | None = None
    classes: Annotated[list[ClassEntry], AfterValidator(not_empty)] = Field(alias="class")
    kind: list[KindEntry] = Field(default=[])
