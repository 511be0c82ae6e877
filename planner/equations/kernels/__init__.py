"""Closed forms of the time of kernels: one file a family, each a pure function on arrays.

Constants are data: `kernels/*.toml` holds them by device and serving engine, each with the rows
it was fitted to, `calibration.kernel_files` reads them, and `plan calibrate` makes them from tables
of measured kernels.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from planner.equations.kernels.families import TABLE, Family, Parameter

_ROWS: Mapping[str, Mapping[str, Any]] = TABLE["families"]
_LISTS = ("dimensions", "optional", "shape", "spare", "rates")


def _function(words: str) -> Callable[..., Any]:
    module, _, name = words.partition(".")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function


def _said_of(name: str) -> dict[str, Any]:
    """What a family says, and what that says which it is like."""
    row = dict(_ROWS[name])
    if "like" not in row:
        return row
    base = _said_of(row.pop("like"))
    parameters = {**base["parameters"], **row.get("parameters", {})}
    return {**base, **row, "parameters": parameters}


def _family(name: str) -> Family:
    said = _said_of(name)
    parameters = tuple(
        Parameter(name=constant, start=start, low=low, high=high)
        for constant, (start, low, high) in said["parameters"].items()
    )
    made: dict[str, Any] = {
        **{key: tuple(said[key].split()) for key in _LISTS if key in said},
        **{key: _function(said[key]) for key in ("function", "work")},
        "forms": {form: tuple(names.split()) for form, names in said["forms"].items()},
    }
    return Family(**{**said, **made, "name": name, "parameters": parameters})


FAMILIES: Mapping[str, Family] = {name: _family(name) for name in _ROWS}
"""Every family, by the name that kernel files give it."""
