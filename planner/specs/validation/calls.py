"""What callers of the library pass, held against type hints and against what names say.

A caller may pass anything, and a record takes whatever it is given. What conforms is handed on as
it is, with the numbers of numpy as Python's; what does not is a problem that names the argument,
and the field in it.
"""

import dataclasses
import reprlib
from collections.abc import Callable, Mapping, Sequence, Sized
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args

from pydantic_core import CoreSchema, ValidationError, core_schema

from planner.errors import Problem
from planner.quantities.table import limited
from planner.quantities.tables import packaged_table
from planner.specs.options.table import set_by
from planner.specs.validation.borders import Border
from planner.specs.validation.hints import (
    hints_of,
    is_array,
    is_list,
    is_mapping,
    kind_of,
    looks_like,
    unboxed,
)
from planner.specs.validation.problems import OPTION, Fault, did_you_mean, dotted, faults_of
from planner.specs.validation.values import FaultError, fault_of

MOST_ITEMS = 2_000_000

_LIMITS = {one.name: one.option for one in limited()}
FIELDS = {
    **set_by(),
    **{f"PlanOptions.{name}": option for name, option in set_by().items() if "." not in name},
    **{f"PlanOptions.{name}": name for name in ("speculation", "drafting")},
    "Targets.degrees": "degrees",
    **dict.fromkeys(("Layouts.prefill", "Layouts.decode"), "--layout"),
    **dict.fromkeys(
        (f"PhaseLayout.{n}" for n in ("name", "attention", "n_microbatches")), "--layout"
    ),
}
"""Fields of records by the option that says the same."""

MAKERS: Mapping[str, str] = packaged_table("specs/validation/values.toml")["makers"]
"""Records by what makes one of what people have in hand."""

_ANSWERS = "planner.results."
"""Opens the names of modules whose records are answers: what they count may be anything."""

_OPAQUE = ("kernels", "networks", "deployments")
"""Ends of the names of modules whose records only the planner makes: they are not looked into."""

_WORDS = {int: "whole number", float: "number", str: "word", bool: "yes or no, True or False"}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "words"}
_EXAMPLES = {int: "[1, 2, 4]", float: "[0.5, 1.0]", str: '["bf16"]'}


class Conformed(NamedTuple):
    """Arguments as they are to be used, and what is wrong with them: types, and ranges."""

    arguments: dict[str, Any]
    misfits: list[Problem]
    faults: list[Problem]


Seen = dict[tuple[int, Any], object]
"""Arguments that conform, by identity, which each keeps as long as it is in here, and hint."""


class _Changes:
    """Values of an argument that are handed on as another type than they came in."""

    n = 0


class Calls(Border):
    """Holds arguments against their hints, and keeps records and lists in which nothing changes.

    Args:
        fields: of records, `Targets.tpot_s`, the option that says the same.
        makers: of records, what makes one.
    """

    def __init__(
        self, *, fields: Mapping[str, str] = FIELDS, makers: Mapping[str, str] = MAKERS
    ) -> None:
        super().__init__()
        self._fields, self._makers = fields, makers
        self._has_ranges = True

    def conform(
        self,
        arguments: Mapping[str, object],
        hints: Mapping[str, Any],
        options: Mapping[str, str],
        known: Seen | None = None,
    ) -> Conformed:
        """Arguments as they are to be used, and what is wrong with them.

        Args:
            hints: of arguments by name; what has none may be anything.
            options: of arguments, the option that says the same.
            known: arguments that conform and are not looked into again; others are added.
        """
        result, known = Conformed({**arguments}, [], []), {} if known is None else known
        for name, value in arguments.items():
            hint, changes = hints.get(name, Any), _Changes()
            if (id(value), hint) in known:
                continue
            try:
                validator = self.validator(hint, name)
                result.arguments[name] = validator.validate_python(value, context=changes)
            except ValidationError as error:
                for fault in faults_of(error):
                    problem = _problem(fault, options.get(name, name))
                    (result.misfits if fault.is_misfit else result.faults).append(problem)
            else:
                if not changes.n:
                    known[id(value), hint] = value
        return result

    def schema(self, hint: Any, name: str) -> CoreSchema:  # noqa: ANN401
        inside = super().schema(hint, name)
        if kind_of(hint) in (Any, Annotated, Union, UnionType):
            return inside
        fact, remedy = f"is no {_called(hint)}", self._remedy(hint, name)
        is_sized = is_list(kind_of(hint)) or is_mapping(kind_of(hint))

        def check(value: Any, handler: Callable[[object], object], info: Any) -> object:  # noqa: ANN401
            if not looks_like(value, hint):
                raise FaultError(fact, remedy, is_misfit=True)
            if is_sized and isinstance(value, Sized) and len(value) > MOST_ITEMS:
                raise FaultError(f"has more than {MOST_ITEMS:,} entries", is_misfit=True)
            n_before = info.context.n
            result = handler(value)
            return value if info.context.n == n_before else result

        return core_schema.with_info_wrap_validator_function(check, inside)

    def _remedy(self, hint: Any, name: str) -> str:  # noqa: ANN401
        maker, inner = self._makers.get(getattr(hint, "__name__", "")), get_args(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return f"`{maker}` makes one of a name" if maker else f"write `{hint.__name__}(...)`"
        example = _EXAMPLES.get(inner[0]) if inner and is_list(kind_of(hint)) else None
        return f"write `{name}={example}`" if example else ""

    def scalar(self, kind: type, name: str) -> CoreSchema:
        def plain(value: object, info: Any) -> object:  # noqa: ANN401
            number = _plain(unboxed(value), kind)
            fact = fault_of(name, number) if has_ranges else ""
            if fact:
                raise FaultError(fact)
            info.context.n += number is not value
            return number

        has_ranges = self._has_ranges
        if kind not in (int, float):
            return core_schema.any_schema()
        return core_schema.with_info_plain_validator_function(plain)

    def noted(self, hint: Any, note: object, name: str) -> CoreSchema:  # noqa: ANN401
        return super().noted(hint, note if self._has_ranges else None, name)

    def literal(self, words: Sequence[Any]) -> CoreSchema:
        known = {word: str(word) for word in words}

        def sound(word: object) -> object:
            if word not in known:
                otherwise = f"it is {', '.join(known.values())}"
                remedy = did_you_mean(str(word), known.values(), otherwise=otherwise)
                raise FaultError("is none that is known", remedy)
            return word

        plain = core_schema.no_info_plain_validator_function(sound)
        return plain if self._has_ranges else core_schema.any_schema()

    def mapping(self, keys: CoreSchema, values: CoreSchema) -> CoreSchema:
        inside = super().mapping(keys, values)
        return core_schema.no_info_before_validator_function(dict, inside)

    def list(self, items: CoreSchema) -> CoreSchema:
        return core_schema.no_info_before_validator_function(tuple, items)

    def record(self, record: type) -> CoreSchema:
        if record.__module__.endswith(_OPAQUE):
            return core_schema.any_schema()
        had_ranges, keys, schemas = self._has_ranges, {}, {}
        self._has_ranges = had_ranges and not record.__module__.startswith(_ANSWERS)
        for name, hint in hints_of(record).items():
            option = self._fields.get(f"{record.__name__}.{name}")
            key = keys[name] = f"{name}{OPTION}{option}" if option else name
            schemas[key] = core_schema.typed_dict_field(self.schema(hint, name))
        self._has_ranges = had_ranges

        def rebuilt(value: Any, handler: Callable[[object], Any], info: Any) -> object:  # noqa: ANN401
            n_before = info.context.n
            result = handler({key: getattr(value, name) for name, key in keys.items()})
            if info.context.n == n_before:
                return value
            return dataclasses.replace(value, **{n: result[key] for n, key in keys.items()})

        whole = core_schema.typed_dict_schema(schemas)
        return core_schema.with_info_wrap_validator_function(rebuilt, whole)

    def named(self, record: type) -> str:
        return f"{super().named(record)}{'' if self._has_ranges else ' as answered'}"

    def no_choice(self, hints: Sequence[Any]) -> dict[str, str | int | float]:
        *some, last = [_called(hint) for hint in hints]
        makers = [m for hint in hints if (m := self._makers.get(getattr(hint, "__name__", "")))]
        remedy = f"{' or '.join(f'`{maker}`' for maker in makers)} makes one" if makers else ""
        return {"fact": f"is no {', '.join(some)} or {last}", "remedy": remedy}


def _problem(fault: Fault, where: str) -> Problem:
    """A fault of an argument, or of the option that says the same as a field of a record."""
    way = fault.way[:-2] if fault.way[-1:] == ("[key]",) else fault.way
    for i, part in enumerate(way):
        if isinstance(part, str) and OPTION in part:
            return _problem(fault._replace(way=way[i + 1 :]), part.partition(OPTION)[2])
    if way[-2:-1] == ("further",):  # limits by the names of their quantities
        where, way = _LIMITS.get(str(way[-1]), where), ()
    value = _shown(fault.value)
    if isinstance(fault.value, str) and not fault.is_misfit:  # a word, which no number is
        value = value.strip("'\"")
    return Problem(where=where, key=dotted(way), value=value, fact=fault.fact, remedy=fault.remedy)


def _plain(value: Any, kind: type) -> Any:  # noqa: ANN401
    """A number as Python's own.

    Raises:
        FaultError: it has too many digits to compute with.
    """
    try:
        float(value)
    except OverflowError:
        fact = "has hundreds of digits, too many to compute with"
        raise FaultError(fact, is_misfit=True) from None
    return value if type(value) is kind else kind(value)


def _called(hint: Any) -> str:  # noqa: ANN401
    """What a hint asks for, in words."""
    kind, inside = kind_of(hint), get_args(hint)
    if is_mapping(kind):
        return "mapping"
    if is_array(kind):
        return "array of numbers"
    if is_list(kind):
        return f"list of {_SEVERAL.get(inside[0], 'such records')}" if inside else "list"
    if kind is Callable:
        return "function"
    if kind is Literal:
        return "word"
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def _shown(value: object) -> str:
    """A value in short, whatever it is."""
    try:
        return _SHORT.repr(unboxed(value))[:60]
    except Exception:  # of a stranger's own, or of a number of thousands of digits
        return f"a {type(value).__name__}"


CALLS = Calls()
"""Of the functions and records of the planner."""
