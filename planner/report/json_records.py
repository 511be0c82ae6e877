"""How records are written as JSON, whatever answer they are in: `as_json` and `saved` agree.

A record is an object of its fields; what it computes from them stands beside them, so that no
reader has to. Records that stand in the same place say which they are.
"""

import dataclasses
import operator
from collections.abc import Mapping
from functools import cache, reduce
from importlib import import_module
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from planner.quantities.tables import packaged_table
from planner.results.arrivals import Load
from planner.results.experts import RedundantExperts
from planner.results.placements import Placement
from planner.results.predictions import Interval, Launch
from planner.specs.ask.engine import ServingRecords
from planner.specs.ask.placement import PlacementRequest
from planner.specs.records.roles import Station
from planner.specs.traffic.arrivals import Trace
from planner.specs.validation.hints import Computed


def _record(name: str) -> type:
    module, _, last = name.rpartition(".")
    record: type = getattr(import_module(f"planner.{module}"), last)
    return record


KINDS: Mapping[type, tuple[str, str]] = {
    _record(name): (key, value)
    for name, (key, value) in packaged_table("report/answers.toml")["records"].items()
}
"""Key and value that tell records apart that stand in the same place."""

RANGES = frozenset({"batches", "prefill_batches", "chunks"})
"""Integers that are written as [first, last, step] of each run."""

COLUMNS: Mapping[type, Mapping[str, str]] = {
    Trace: {"arrival_s": "d", "n_input": "q", "n_output": "q"}
}
"""Arrays, by their type codes: each is one text, of numbers with a space between."""

JOINT = "/"
"""Joins the parts of a key that is several names: `gemm/bf16`."""


@cache
def computed_of(record: type) -> tuple[str, ...]:
    """Names of what a record computes from its fields and a reader should not have to."""
    return tuple(name for name, what in vars(record).items() if isinstance(what, Computed))


_LATE: Mapping[str, type] = {
    record.__name__: record
    for record in (
        *(Placement, PlacementRequest, Load, Station),
        *(Interval, Launch, RedundantExperts, ServingRecords),
    )
}
"""Types that records name and do not import, for the sake of a light start."""


@cache
def record_hints(record: type) -> Mapping[str, Any]:
    """The types of a record's fields, of what is generic the bounds."""
    return {name: _bounded(hint) for name, hint in get_type_hints(record, localns=_LATE).items()}


def _bounded(hint: Any) -> Any:  # noqa: ANN401
    if isinstance(hint, TypeVar):
        return hint.__bound__
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        return origin
    if origin is tuple:
        return tuple[tuple(_bounded(one) for one in inner)]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return reduce(operator.or_, [_bounded(one) for one in inner])
    return hint
