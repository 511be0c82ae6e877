"""What kernel files may say: their shape, and what no single value of it shows.

Families, formats and constants are those of the closed forms; what a fit says of itself has to
agree. Each check reads the raw table and speaks only of values that are sound, so that a file with
a fault elsewhere is still checked in full.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import kernel_faults
from planner.specs.files.tables import ASSUMED
from planner.specs.records.kernels import Kernel
from planner.specs.validation.problems import Finding
from planner.specs.validation.values import NOT_EMPTY, one_of

EXPERTS = "experts"
"""The family of which engines have several programs, by a name of their own: `backend`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry(Kernel):
    """A kernel as a file has it.

    Args:
        backend: of several programs for experts, in the engine's own words.
    """

    family: Annotated[str, one_of("family", FAMILIES)]
    backend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """The kernels of one device under one engine, as a file has them."""

    name: str
    device: str
    engine: str
    version: str
    n_sms: int = 0
    description: str = ""
    kernel: Annotated[tuple[KernelEntry, ...], NOT_EMPTY]


def file_faults(said: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with kernels beyond their shape; of values that are sound."""
    seen: set[tuple[str, str, str]] = set()
    for place, entry in enumerate(said.get("kernel", ())):
        field = f"kernel[{place}]"
        for inside, fact, remedy in (*_kernel_faults(entry, said), *_fit_faults(entry.fit)):
            yield Finding(f"{field}.{inside}", fact, remedy)
        key = (entry.family, entry.format, entry.backend)
        if entry.family and entry.format and key in seen:
            fact, remedy = "has this format already", "keep one of the two"
            yield Finding(field, fact, remedy, value=entry.family)
        seen.add(key)


_Faults = Iterator[tuple[str, str, str]]
"""Key, fact, remedy."""


def _kernel_faults(entry: Any, said: Mapping[str, Any]) -> _Faults:  # noqa: ANN401
    family = entry.family
    if entry.backend and family in FAMILIES.keys() - {EXPERTS}:
        yield "backend", f"is of `{EXPERTS}` alone", "leave it out"
    if family and entry.format and entry.constants:
        n_sms = said.get("n_sms") or 0
        faults = kernel_faults(FAMILIES[family], entry.format, entry.constants, n_sms=n_sms)
        yield from ((inside, fact, remedy) for inside, _, fact, remedy in faults)


def _fit_faults(fit: Any) -> _Faults:  # noqa: ANN401
    """Errors that contradict each other; half of a pair; rows of what is assumed."""
    if not fit:
        return
    for before in ("", "left_out_"):
        median = getattr(fit, f"{before}median_error")
        p90 = getattr(fit, f"{before}p90_error")
        if _is_number(median) and _is_number(p90) and p90 < median:
            fact = f"is below the median, {median:g}"
            yield f"fit.{before}p90_error", fact, "nine rows in ten are within it"
    errors = [fit.left_out_median_error, fit.left_out_p90_error]
    if errors.count(None) == 1:
        lacking = ("median", "p90")[errors.index(None)]
        remedy = "write both errors of what was left out, or none"
        yield f"fit.left_out_{lacking}_error", "is missing", remedy
    if fit.left_out != "shapes" and fit.left_out_median_error is None:
        remedy = "write the errors of what was left out, or leave it out"
        yield "fit.left_out", "says what no error is of", remedy
    if fit.source == ASSUMED and fit.n_rows:
        fact, remedy = "are rows of what was not measured", "name their source, or write `0`"
        yield "fit.n_rows", fact, remedy


def _is_number(value: object) -> bool:
    return isinstance(value, float)
