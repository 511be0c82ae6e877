"""Formulas in files: arithmetic over named values, and fields of answers by their path.

    answer.deployment.ttft_s + output_len * answer.deployment.tpot_s
    1 / answer.curves[0].frontier.points[-1].x

Names, numbers, `.field`, `[place]`, `+ - * / % **` and parentheses; `sum`, `min` and `max` of a
list, whose fields are lists: `sum(answer.passes[0].operations.total_s)`, and `min` and `max` of
several numbers. Fields are keys of tables, or of records. Nothing else is evaluated.
"""

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import Any

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_OF_LISTS: Mapping[str, Callable[[Any], Any]] = {"sum": sum, "min": min, "max": max}


class FormulaError(ValueError):
    """A formula that cannot be read, or that has no value where it is asked; the text says why."""


def value_of(formula: str, names: Mapping[str, object]) -> float:
    """The number that a formula is.

    Raises:
        FormulaError: it is no formula, or has no number under these names.

    >>> value_of("1 / step.total_s", {"step": {"total_s": 0.5}})
    2.0
    >>> value_of("sum(parts.seconds)", {"parts": [{"seconds": 1.0}, {"seconds": 2.0}]})
    3.0
    """
    value = item_of(formula, names)
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise FormulaError(f"the formula `{formula}` has no number here: {error}") from None


def item_of(formula: str, names: Mapping[str, object]) -> Any:  # noqa: ANN401 as JSON has it
    """What stands where a path leads, a number or not; the number that another formula is.

    Raises:
        FormulaError: it is no formula, or has no value under these names.
    """
    try:
        return _value(ast.parse(formula.strip(), mode="eval").body, names)
    except FormulaError:
        raise
    except (SyntaxError, RecursionError, MemoryError):
        raise FormulaError(f"the formula `{formula}` cannot be read") from None
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise FormulaError(f"the formula `{formula}` has no number here: {error}") from None


def names_in(formula: str) -> frozenset[str]:
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except SyntaxError:
        return frozenset()
    return frozenset(one.id for one in ast.walk(tree) if isinstance(one, ast.Name))


def _value(node: ast.expr, names: Mapping[str, object]) -> Any:  # noqa: ANN401 as JSON has it
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)  # of integers a power may take for ever
        case ast.Name(id=name):
            return names[name]
        case ast.Attribute(value=inner, attr=field):
            return _field(_value(inner, names), field)
        case ast.Subscript(value=inner, slice=place):
            return _value(inner, names)[int(_value(place, names))]
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _OF_LISTS:
            return _OF_LISTS[name](_value(inner, names))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=some, keywords=[]):
            return _OF_LISTS[name](_value(inner, names) for inner in some)
    return _arithmetic(node, names)


def _arithmetic(node: ast.expr, names: Mapping[str, object]) -> Any:  # noqa: ANN401 as JSON has it
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=how, right=right) if type(how) in _BINARY:
            return _BINARY[type(how)](_value(left, names), _value(right, names))
    raise FormulaError(f"a formula has no `{ast.unparse(node)}`")


def _field(of: Any, field: str) -> Any:  # noqa: ANN401 as JSON has it
    """A field of a record or a table; of a list, that of each."""
    if isinstance(of, list | tuple):
        return [_field(one, field) for one in of]
    if dataclasses.is_dataclass(of) and not field.startswith("_"):
        return getattr(of, field, None)
    return of[field]
