"""Type hints as schemas of pydantic, made on demand where values come in.

Values come in at three borders: files (`validation.files`), calls of the library
(`validation.calls`), and saved answers (`report.decoding`). Each says what a number, a text and a
record may be there; lists, mappings and choices among types are the same at all of them. Records
stay those of the standard library.
"""

import dataclasses
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Union, get_args

from pydantic_core import CoreSchema, SchemaValidator, core_schema

from planner.specs.validation.hints import is_list, is_mapping, kind_of, looks_like
from planner.specs.validation.values import Check, Named


class Border:
    """Makes validators of type hints, each once."""

    def __init__(self) -> None:
        self._validators: dict[Any, SchemaValidator] = {}
        self._records: dict[str, CoreSchema] = {}

    def validator(self, hint: Any, name: str = "") -> SchemaValidator:  # noqa: ANN401
        """What holds values against a hint.

        Args:
            name: of the argument or key that has the value.
        """
        return self.compiled((hint, name), lambda: self.schema(hint, name))

    def compiled(self, key: Any, make: Callable[[], CoreSchema]) -> SchemaValidator:  # noqa: ANN401
        """The validator of a schema, which is made once."""
        if key not in self._validators:
            self._validators[key] = SchemaValidator(self._with_records(make))
        return self._validators[key]

    def whole(self, hint: Any) -> CoreSchema:  # noqa: ANN401
        """The schema of a hint, with those of the records in it."""
        return self._with_records(lambda: self.schema(hint, ""))

    def _with_records(self, make: Callable[[], CoreSchema]) -> CoreSchema:
        self._records = {}
        schema = make()
        return core_schema.definitions_schema(schema, list(self._records.values()))

    def schema(self, hint: Any, name: str) -> CoreSchema:  # noqa: ANN401
        """The schema of a hint; numbers are held against their names."""
        kind, inner = kind_of(hint), get_args(hint)
        if kind is Annotated:
            note = inner[1]
            return self.noted(inner[0], note, note.name if isinstance(note, Named) else name)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._reference(kind)
        if kind in (Union, types.UnionType):
            return self._choice(inner, name)
        if kind in SCALARS:
            return self.scalar(kind, name)
        if kind is Literal:
            return self.literal(inner)
        return self._container(kind, inner, name) if inner else core_schema.any_schema()

    def _container(self, kind: Any, inner: Sequence[Any], name: str) -> CoreSchema:  # noqa: ANN401
        """The schema of a mapping or a list; what is neither may be anything."""
        if is_mapping(kind):
            return self.mapping(self.key(inner[0]), self.schema(inner[1], name))
        if not is_list(kind):
            return core_schema.any_schema()
        each = [self.schema(one, name) for one in inner if one is not Ellipsis]
        n_each = None if len(each) > 1 and Ellipsis not in inner else 0
        return self.list(core_schema.tuple_schema(each, variadic_item_index=n_each))

    def noted(self, hint: Any, note: object, name: str) -> CoreSchema:  # noqa: ANN401
        """The schema of a type of which a note says what its values may be."""
        inside = self.schema(hint, name)
        if isinstance(note, Check):
            return core_schema.no_info_after_validator_function(note.checked, inside)
        return inside

    def scalar(self, kind: type, name: str) -> CoreSchema:
        """The schema of `bool`, `int`, `float` or `str`."""
        raise NotImplementedError

    def record(self, record: type) -> CoreSchema:
        """The schema of a record."""
        raise NotImplementedError

    def literal(self, words: Sequence[Any]) -> CoreSchema:
        """The schema of one of a few words."""
        return core_schema.literal_schema(list(words))

    def key(self, hint: Any) -> CoreSchema:  # noqa: ANN401
        """The schema of a key of a mapping."""
        return self.schema(hint, "")

    def mapping(self, keys: CoreSchema, values: CoreSchema) -> CoreSchema:
        """The schema of a mapping of such keys and values."""
        return core_schema.dict_schema(keys, values, strict=True)

    def list(self, items: CoreSchema) -> CoreSchema:
        """The schema of a list of items that are in a tuple."""
        return items

    def likeliest(self, value: object, hints: Sequence[Any]) -> Any:  # noqa: ANN401
        """Of several hints the one that a value is meant to be of; None if it is of none."""
        return next((hint for hint in hints if looks_like(value, hint)), None)

    def _reference(self, record: type) -> CoreSchema:
        """A record by its name: one that stands in several places is made once."""
        name = self.named(record)
        if name not in self._records:
            self._records[name] = core_schema.any_schema()  # it may hold itself
            schema = self.record(record)
            self._records[name] = {**schema, "ref": name}
        return core_schema.definition_reference_schema(name)

    def named(self, record: type) -> str:
        """The name of a record's schema."""
        return f"{record.__module__}.{record.__name__}"

    def _choice(self, hints: Sequence[Any], name: str) -> CoreSchema:
        """One of several types, which is told by how the value looks."""
        others = [hint for hint in hints if hint is not type(None)]
        if len(others) == 1:
            chosen = self.schema(others[0], name)
        else:
            chosen = core_schema.tagged_union_schema(
                {label(hint): self.schema(hint, name) for hint in others},
                lambda value: (likely := self.likeliest(value, others)) and label(likely),
                custom_error_type="no_choice",
                custom_error_message="{fact}",
                custom_error_context=self.no_choice(others),
            )
        is_optional = len(others) < len(hints)
        return core_schema.nullable_schema(chosen) if is_optional else chosen

    def no_choice(self, hints: Sequence[Any]) -> dict[str, str | int | float]:
        """Fact and remedy of a value that is of none of several types."""
        del hints
        return {"fact": "is of no type that can stand here", "remedy": ""}


SCALARS = (bool, int, float, str)


def label(hint: Any) -> str:  # noqa: ANN401
    """A hint among several, as it stands in the way to a fault; `problems` leaves it out."""
    return f"<{getattr(hint, '__name__', hint)}>"
