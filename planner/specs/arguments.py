"""Arguments of the library that have another type than they should: found before they are used.

The command line turns text into numbers, and finds what is none. A caller of the library may
pass anything; what has the right type is judged by `checking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from numbers import Integral, Real

from planner.errors import Problem
from planner.specs.models import ModelSpec
from planner.specs.records import ClusterSpec, Workload
from planner.specs.targets import DEGREE_OPTIONS, Degrees, SolverOptions, Speculation, Targets

_RECORDS: Mapping[str, tuple[type, bool]] = {
    "model": (ModelSpec, False),
    "cluster": (ClusterSpec, False),
    "workload": (Workload, False),
    "targets": (Targets, False),
    "options": (SolverOptions, False),
    "speculation": (Speculation, True),
}
"""Arguments that are records, and whether they may be left out."""

_NUMBERS = {
    "targets": {
        "tpot_s": "--latency-target",
        "ttft_s": "--ttft-target",
        "usd_per_token": "--max-cost",
        "demand_tokens_per_s": "--demand",
        "quality_loss_fraction": "--max-quality-loss",
    },
    "options": {"time_limit_s": "--time-limit", "gap": "--gap"},
    "speculation": {"acceptance": "--acceptance"},
}
_COUNTS = {
    "workload": {"n_input_tokens": "--input", "n_output_tokens": "--output"},
    "targets": {"n_devices": "--max-devices", "min_batch": "--min-batch"},
    "options": {"threads": "--threads", "seed": "--seed"},
}
_MAY_BE_NONE = frozenset({"time_limit_s"})
_LISTS = {
    "batches": ("--batch", Integral, "whole numbers", "[1, 2, 4]"),
    "prefill_batches": ("--prefill-batch", Integral, "whole numbers", "[1, 2, 4]"),
    "weights_formats": ("--weights", str, "names of formats", '["bf16"]'),
    "kv_formats": ("--kv", str, "names of formats", '["bf16"]'),
}


def argument_problems(said: Mapping[str, object]) -> list[Problem]:
    """Everything in the arguments of a request that has a wrong type.

    Args:
        said: argument by name, as `make_request` takes them.
    """
    problems = list(_record_problems(said))
    if not problems:
        problems += _field_problems(said)
    problems += _list_problems(said)
    problems += _word_problems(said)
    return problems


def _record_problems(said: Mapping[str, object]) -> Iterator[Problem]:
    for name, (kind, may_be_none) in _RECORDS.items():
        value = said[name]
        if isinstance(value, kind) or (may_be_none and value is None):
            continue
        loader = {"model": "load_model", "cluster": "load_cluster"}.get(name)
        remedy = f"`{loader}` makes one of a name" if loader else f"write `{kind.__name__}(...)`"
        yield _wrong(name, value, f"is no {kind.__name__}", remedy)


def _field_problems(said: Mapping[str, object]) -> Iterator[Problem]:
    """Numbers in records: dataclasses take whatever they are given."""
    for kind, table, fact in (
        (Real, _NUMBERS, "is not a number"),
        (Integral, _COUNTS, "is not a whole number"),
    ):
        for record, options in table.items():
            for name, option in options.items():
                value = getattr(said[record], name, None)
                may_be_none = record == "targets" or said[record] is None or name in _MAY_BE_NONE
                if not _is(value, kind) and not (may_be_none and value is None):
                    yield _wrong(option, value, fact)
    degrees = getattr(said["targets"], "degrees", None)
    if not isinstance(degrees, Degrees):
        yield _wrong("degrees", degrees, "is no Degrees", "write `Degrees(tensor=8)`")
        return
    for field in fields(degrees):
        value = getattr(degrees, field.name)
        if value is not None and not _is(value, Integral):
            yield _wrong(DEGREE_OPTIONS[field.name], value, "is not a whole number")


def _list_problems(said: Mapping[str, object]) -> Iterator[Problem]:
    for name, (option, kind, what, example) in _LISTS.items():
        values = said[name]
        if values is None:
            continue
        remedy = f"write `{name}={example}`"
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            yield _wrong(option, values, f"is no list of {what}", remedy)
            continue
        if iter(values) is values:  # it could be read only once
            yield _wrong(option, values, f"is no list of {what}", remedy)
            continue
        for value in values:
            if not _is(value, kind):
                fact = "is not a whole number" if kind is Integral else "is no name of a format"
                yield _wrong(option, value, fact, remedy)


def _word_problems(said: Mapping[str, object]) -> Iterator[Problem]:
    for name in ("prefill", "objective"):
        value = said[name]
        if not isinstance(value, str) and not (name == "prefill" and value is None):
            yield _wrong(f"--{name}", value, "is no word")
    solver = getattr(said["options"], "solver", "")
    if not isinstance(solver, str):
        yield _wrong("--solver", solver, "is no word")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _wrong(where: str, value: object, fact: str, remedy: str = "") -> Problem:
    return Problem(where=where, value=repr(value)[:60], fact=fact, remedy=remedy)
