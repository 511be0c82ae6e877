"""What a family of kernels is: a closed form, the work it cannot go below, what may be fitted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import sharp_roofline_s
from planner.quantities.tables import packaged_table

Columns = Mapping[str, object]
"""Dimensions of rows: arrays of one length, or numbers that hold for all rows."""


TABLE = packaged_table("equations/kernels/families.toml")
"""What `families.toml` says: families, and ranges of constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A constant that a fit may choose.

    Args:
        name: keyword of the function.
        start: where the search begins.
        low: least value that physics allows.
        high: greatest.
    """

    name: str
    start: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A closed form and how to fit it.

    Args:
        name: as kernel files write it.
        title: in words.
        function: dimensions, rates and constants to seconds.
        work: dimensions to (FLOP, bytes) that any program must do or move.
        dimensions: arguments that describe a row; columns of tables have the same names.
        optional: dimensions that have a usual value.
        parameters: constants that a fit may choose.
        forms: rival forms, by name: which parameters each of them fits. A fit tries all, and
            keeps the one that describes rows best that it did not see.
        shape: dimensions that tell one shape of a model from another; fits are judged on shapes
            left out.
        fixed: keywords that belong to the family and to no file.
        completing: constants that no form fits, as a fit writes them.
        spare: constants that every form fits, and that older fits left out.
        rates: of the device that the function takes.
        is_block: it is of whole blocks, beside those of single kernels.
    """

    name: str
    title: str
    function: Callable[..., FloatArray]
    work: Callable[..., tuple[FloatArray, FloatArray]]
    dimensions: tuple[str, ...]
    optional: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...]
    forms: Mapping[str, tuple[str, ...]]
    shape: tuple[str, ...]
    fixed: Mapping[str, object] = field(default_factory=dict)
    completing: Mapping[str, float] = field(default_factory=dict)
    spare: tuple[str, ...] = ()
    rates: tuple[str, ...] = ("peak_flop_per_s", "hbm_bytes_per_s")
    is_block: bool = False

    def seconds(
        self, columns: Columns, rates: Mapping[str, float], constants: Mapping[str, float]
    ) -> FloatArray:
        """Time of each row [s].

        Args:
            columns: dimensions of the rows.
            rates: of the device; those that the family does not know are left out.
            constants: of the form.
        """
        known = {name: rates[name] for name in self.rates}
        return self.function(**columns, **known, **self.fixed, **constants)

    def roofline_s(self, columns: Columns, rates: Mapping[str, float]) -> FloatArray:
        """The least time that datasheet rates allow for each row [s]."""
        flop, traffic = self.work(**columns)
        memory = traffic / rates["hbm_bytes_per_s"]
        if "peak_flop_per_s" not in self.rates:
            return memory
        return sharp_roofline_s(flop / rates["peak_flop_per_s"], memory)

    def parameter(self, name: str) -> Parameter:
        return next(one for one in self.parameters if one.name == name)


@cache
def arguments_of(function: Callable[..., object]) -> frozenset[str]:
    """Names that a function takes, those of a record that it unpacks among them."""
    taken = signature(function).parameters
    unpacked = {name for name, one in taken.items() if one.kind is one.VAR_KEYWORD}
    names = set(taken) - unpacked
    if unpacked:
        hints = get_type_hints(function)
        records = [record for name in unpacked for record in get_args(hints[name])]
        names.update(*(get_type_hints(record) for record in records))
    return frozenset(names)


def floats(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """The same numbers as arrays of floats, each of its own shape."""
    return tuple(np.asarray(one, dtype=np.float64) for one in values)
