"""What kernel files may say: their shape, and what no single value of it shows.

Families, formats and constants are those of the closed forms; what a fit says of itself has to
agree. Each check reads the raw table and speaks only of values that are sound, so that a file with
a fault elsewhere is still checked in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeGuard

from pydantic import BeforeValidator, Field

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import kernel_faults
from planner.errors import Problem
from planner.specs.provenance import ASSUMED
from planner.specs.schemas import Sourced, Strict
from planner.specs.tables import Table, literal, value_at
from planner.specs.values import Count, SpareCount, Text, did_you_mean, fault

EXPERTS = "experts"
"""The family of which engines have several programs, by a name of their own: `backend`."""

MOST_ERROR = 10.0
"""A closed form that misses its rows by more than this factor describes nothing [1]."""


def _constant(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise fault("is not a number", "write it in the SI unit of its name")
    if not 0 <= raw < 1e300:  # larger integers are no floats
        raise fault("is negative or not finite", "write a number from 0")
    return float(raw)


def _error(raw: object) -> float:
    value = _constant(raw)
    if value > MOST_ERROR:
        raise fault(f"is above {MOST_ERROR:g}", "write a share, like `0.05` for 5 %")
    return value


_Constant = Annotated[float, BeforeValidator(_constant)]
_Error = Annotated[float, BeforeValidator(_error)]


class TableHead(Strict):
    name: Text
    device: Text
    engine: Text
    version: Text
    n_sms: Sourced[Count] | None = None
    description: Text = ""


class FitEntry(Strict):
    source: Text
    n_rows: SpareCount
    median_error: _Error
    p90_error: _Error
    left_out_median_error: _Error | None = None
    left_out_p90_error: _Error | None = None
    left_out: Text = "shapes"


class KernelEntry(Strict):
    family: Text
    format: Text
    backend: Text = ""
    constants: dict[str, _Constant] = Field(min_length=1)
    fit: FitEntry


class KernelFile(Strict):
    table: TableHead
    kernel: list[KernelEntry] = Field(min_length=1)


def kernel_problems(table: Table, shown: str) -> Iterator[Problem]:
    """What is wrong with kernels beyond their shape; of values that are sound."""
    entries = table.get("kernel")
    n_sms = value_at(table, "table", "n_sms")
    n_sms = n_sms if isinstance(n_sms, int) else 0
    seen: set[tuple[str, str, str]] = set()
    for place, one in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(one, dict):
            continue
        key, family, form = f"kernel[{place}]", one.get("family"), one.get("format")
        for problem in (*_kernel_faults(one, n_sms), *_fit_faults(one.get("fit"))):
            inside, value, fact, remedy = problem
            yield Problem(
                where=shown, key=f"{key}.{inside}", value=literal(value), fact=fact, remedy=remedy
            )
        backend = one.get("backend", "")
        if isinstance(family, str) and isinstance(form, str) and isinstance(backend, str):
            if (family, form, backend) in seen:
                fact, remedy = "has this format already", "keep one of the two"
                yield Problem(where=shown, key=key, value=family, fact=fact, remedy=remedy)
            seen.add((family, form, backend))


_Faults = Iterator[tuple[str, object, str, str]]
"""Key, value, fact, remedy."""


def _kernel_faults(entry: Table, n_sms: int) -> _Faults:
    name, form, constants = entry.get("family"), entry.get("format"), entry.get("constants")
    yield from _backend_faults(entry)
    if isinstance(name, str) and name.strip() and name not in FAMILIES:
        otherwise = f"there are {', '.join(f'`{known}`' for known in FAMILIES)}"
        yield "family", name, "unknown family", did_you_mean(name, FAMILIES, otherwise=otherwise)
    elif isinstance(name, str) and isinstance(form, str) and isinstance(constants, dict):
        # what is no number is told of by the schema, and stands for one here
        sound = {key: value for key, value in constants.items() if _is_number(value)}
        stood_for = dict.fromkeys(constants.keys() - sound.keys(), None)
        yield from kernel_faults(FAMILIES[name], form, {**sound, **stood_for}, n_sms=n_sms)


def _backend_faults(entry: Table) -> _Faults:
    backend, family = entry.get("backend"), entry.get("family")
    if isinstance(backend, str) and backend.strip() and family in FAMILIES and family != EXPERTS:
        yield "backend", backend, f"is of `{EXPERTS}` alone", "leave it out"


def _fit_faults(fit: object) -> _Faults:
    """Errors that contradict each other; half of a pair; rows of what is assumed."""
    if not isinstance(fit, dict):
        return
    for before in ("", "left_out_"):
        median, p90 = (fit.get(f"{before}{which}_error") for which in ("median", "p90"))
        if _is_number(median) and _is_number(p90) and p90 < median:
            fact = f"is below the median, {median:g}"
            yield f"fit.{before}p90_error", p90, fact, "nine rows in ten are within it"
        for one, other in (("median", p90), ("p90", median)):
            if before and f"{before}{one}_error" not in fit and other is not None:
                fact, remedy = "is missing", "write both errors of what was left out, or none"
                yield f"fit.{before}{one}_error", "", fact, remedy
    if "left_out" in fit and "left_out_median_error" not in fit:
        remedy = "write the errors of what was left out, or leave it out"
        yield "fit.left_out", fit["left_out"], "says what no error is of", remedy
    if fit.get("source") == ASSUMED and _is_number(fit.get("n_rows")) and fit["n_rows"] > 0:
        fact, remedy = "are rows of what was not measured", "name their source, or write `0`"
        yield "fit.n_rows", fit["n_rows"], fact, remedy


def _is_number(value: object) -> TypeGuard[float]:
    """A number that a constant may be, as far as its kind goes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e300
