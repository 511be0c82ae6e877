"""What kernel files may say: constants with their ranges, and number formats, of each family.

A constant means the same in every family that has it. Its range is what a real kernel may be
found to have, wider than what a fit searches: outside of it a file holds a slip of the keyboard.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import Parameter as Argument, signature
from typing import NamedTuple, get_args, get_type_hints

from planner.equations.kernels.families import TABLE, Family, arguments_of
from planner.specs.records.served_formats import NUMBER_FORMATS


class Range(NamedTuple):
    """From and to which a constant may be, both included, in the SI unit of its name."""

    low: float
    high: float

    @property
    def words(self) -> str:
        return f"{self.low:g} to {self.high:g}"


RANGES: Mapping[str, Range] = {name: Range(*limits) for name, limits in TABLE["ranges"].items()}
"""Every constant of every family."""

WHOLE = frozenset({"n_sms"})
"""Constants that are counts of things."""

ANY = "any"
_NUMBERS = (*NUMBER_FORMATS, "mxfp4_mxfp8", ANY)
_STATES = ("delta", "kda", "lightning", "mamba1", "mamba2", ANY)
_CACHES = (*_NUMBERS, "fp8_fp8")
"""Formats of the cache; `fp8_fp8` where queries are in 8 bits too."""


def formats_of(family: Family) -> tuple[str, ...]:
    """Formats that a family's kernels may be of.

    Number formats; of a recurrence what it keeps, of a block that of its weights and its cache,
    joined by `+`.
    """
    if family.name.startswith("recurrence"):
        return _STATES
    if "_block_" in family.name:
        numbers = _NUMBERS[:-1]
        return (*(f"{weights}+{cache}" for weights in numbers for cache in numbers), ANY)
    return _CACHES if "attention" in family.name or "latent" in family.name else _NUMBERS


def constants_of(family: Family) -> frozenset[str]:
    """Every constant that a family's kernel may have."""
    return arguments_of(family.function) & RANGES.keys()


def required_of(family: Family) -> frozenset[str]:
    """Constants without which a family says nothing of time.

    Those that its function cannot do without, and those that every form fits, but for what it
    once did not.
    """
    fitted = frozenset.intersection(*(frozenset(form) for form in family.forms.values()))
    return (constants_of(family) & (_needed(family.function) | fitted)) - frozenset(family.spare)


@cache  # a table has dozens of kernels, and hints are slow to read
def _needed(function: Callable[..., object]) -> frozenset[str]:
    """Arguments of a function that have no usual value."""
    taken = signature(function).parameters
    names = {name for name, one in taken.items() if one.default is Argument.empty}
    hints = get_type_hints(function)
    for name, parameter in taken.items():
        if parameter.kind is Argument.VAR_KEYWORD:
            names.discard(name)
            names.update(*(record.__required_keys__ for record in get_args(hints[name])))
    return frozenset(names)


class Fault(NamedTuple):
    """What is wrong with a kernel of a file: where in it, what stands there, what to write."""

    key: str
    value: object
    fact: str
    remedy: str


def kernel_faults(
    family: Family, number_format: str, constants: Mapping[str, float | None], *, n_sms: int
) -> Iterator[Fault]:
    """Everything that is wrong with a kernel.

    Args:
        family: as the file names it.
        number_format: of the kernel.
        constants: as the file has them; None where it has no number.
        n_sms: multiprocessors, as the table says; 0 if it does not.
    """
    if number_format not in formats_of(family):
        yield _format_fault(family, number_format)
    known, required = constants_of(family), required_of(family)
    unknown = [name for name in constants if name not in known]
    meant = {name: _nearest(name, known - constants.keys()) for name in unknown}
    for name in unknown:
        remedy = f"did you mean `{meant[name]}`?" if meant[name] else _listed(known)
        yield Fault(f"constants.{name}", constants[name], "unknown constant", remedy)
    for name in sorted(required - constants.keys() - set(meant.values())):
        remedy = f"write a number from {RANGES[name].words}"
        yield Fault(f"constants.{name}", "", "is missing", remedy)
    for name in sorted(constants.keys() & known):
        yield from _range_faults(name, constants[name])
    yield from _tile_faults(constants, n_sms)


def _range_faults(name: str, value: float | None) -> Iterator[Fault]:
    low, high = RANGES[name]
    if value is None:
        return
    if not low <= value <= high:
        fact = f"is below {low:g}" if value < low else f"is above {high:g}"
        yield Fault(f"constants.{name}", value, fact, f"it is {RANGES[name].words}")
    elif name in WHOLE and not float(value).is_integer():
        yield Fault(f"constants.{name}", value, "is not a whole number", f"write `{value:.0f}`")


def _tile_faults(constants: Mapping[str, float | None], n_sms: int) -> Iterator[Fault]:
    """Tiles are counted over multiprocessors, of which a table has one number."""
    own = constants.get("n_sms")
    if own is not None and n_sms and own != n_sms:
        fact = f"is not what the table says, {n_sms}"
        yield Fault("constants.n_sms", own, fact, "keep one of the two")
    if "n_sms" not in constants and not n_sms:
        for name in ("prologue_k", "narrow_n"):
            if name in constants:
                fact, remedy = "counts tiles of no multiprocessors", "say `n_sms` in [table]"
                yield Fault(f"constants.{name}", constants[name], fact, remedy)


def _format_fault(family: Family, number_format: str) -> Fault:
    known = formats_of(family)
    near = _nearest(number_format, frozenset(known))
    listed = "a format of weights and one of the cache, like `fp8_block+bf16`"
    otherwise = listed if "_block_" in family.name else _listed(known)
    remedy = f"did you mean `{near}`?" if near else otherwise
    return Fault("format", number_format, "unknown number format", remedy)


def _nearest(word: str, known: frozenset[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(word, sorted(known), n=1)), "")


def _listed(names: frozenset[str] | tuple[str, ...]) -> str:
    return f"there are {', '.join(f'`{name}`' for name in sorted(names))}"
