"""The kinds of answers: their records, and what of each stands beside it in the envelope."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from planner.quantities.tables import packaged_table

if TYPE_CHECKING:
    from planner.report.documents.blocks import Document

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """One kind of answer.

    Args:
        name: the word for it in the envelope.
        of: its record, by module of `planner.results` and name: others are not imported.
        module: that makes a document of it; empty where none does.
        elsewhere: what stands beside it in the envelope that is no `request` or `certificate` of
            the record, nor `state` of its request: its name there, and the way to it.
        repeated: a field that is not written because it is the same as another, and that one.
        rows: ways to the entries that are its rows as a data frame, `*` for all of a list.
    """

    name: str
    of: str
    module: str = ""
    elsewhere: tuple[tuple[str, Path], ...] = ()
    repeated: tuple[Path, Path] | None = None
    rows: tuple[Path, ...] = ()

    @property
    def record(self) -> type:
        """What it is."""
        module, _, name = self.of.partition(".")
        record: type = getattr(import_module(f"planner.results.{module}"), name)
        return record

    @property
    def moved(self) -> tuple[tuple[str, Path], ...]:
        """What may stand beside the answer, by the way to it from the record, empty without one.

        The state, which lies in the request, comes last.
        """
        return _moved(self)

    @property
    def unverified(self) -> tuple[str, ...]:
        """JSON pointers to what cannot be recounted, `*` for any index."""
        return _unverified(self)

    def place_of(self, path: Path) -> Path:
        """Where in the envelope a field of the record is, by the way to it from the record."""
        if self.repeated:
            here, there = self.repeated
            if path[: len(here)] == here:
                path = (*there, *path[len(here) :])
        for name, home in reversed(self.moved):
            if home and path[: len(home)] == home:
                return (name, *path[len(home) :])
        return ("answer", *path)


TABLE = packaged_table("report/answers.toml")


def _answer_kind(name: str, row: Mapping[str, Any]) -> AnswerKind:
    elsewhere = tuple((key, _path(way)) for key, way in row.get("elsewhere", {}).items())
    here, there = row.get("repeated", ("", ""))
    repeated = (_path(here), _path(there)) if here else None
    rows = tuple(map(_path, row.get("rows", ())))
    made = {"name": name, "elsewhere": elsewhere, "repeated": repeated, "rows": rows}
    return AnswerKind(**{**row, **made})


def _path(way: str) -> Path:
    return tuple(way.split("."))


ANSWER_KINDS = tuple(_answer_kind(name, row) for name, row in TABLE["answers"].items())

_OF_RECORD = {f"planner.results.{kind.of}": kind for kind in ANSWER_KINDS}
_OF_NAME = {kind.name: kind for kind in ANSWER_KINDS}


def kind_of(answer: object) -> AnswerKind:
    """The kind of an answer.

    Raises:
        TypeError: it is no answer.
    """
    record = type(answer)
    kind = _OF_RECORD.get(f"{record.__module__}.{record.__name__}")
    if kind is None:
        raise TypeError(f"a {type(answer).__name__} is no answer of the planner")
    return kind


def document_of(answer: object, **beside: object) -> Document:
    """What an answer says.

    Args:
        beside: what its kind may say more, or has to know: whether text has every row, …

    Raises:
        TypeError: it is no answer, or of a kind that has no document.
    """
    from planner.report.accuracy import accuracy_sections

    document: Document = _module(answer).document(answer, **beside)
    is_read = bool(document.begins)  # of a catalogue nobody asks how sure it is
    added = accuracy_sections(answer) if is_read else ()
    return dataclasses.replace(document, sections=(*document.sections, *added))


def line_of(answer: object) -> str:
    """An answer in one line.

    Raises:
        TypeError: it is no answer, or of a kind that has no document.
    """
    module = _module(answer)
    return str(module.line_of(answer) if hasattr(module, "line_of") else document_of(answer).line)


def _module(answer: object) -> Any:  # noqa: ANN401 a module
    kind = kind_of(answer)
    if not kind.module:
        raise TypeError(f"no document tells a {kind.name}")
    return import_module(kind.module)


def kind_named(name: object) -> AnswerKind | None:
    return _OF_NAME.get(name) if isinstance(name, str) else None


@cache
def records_in(record: type) -> frozenset[type]:
    """The records that an answer is made of, itself and its request among them."""
    from planner.report.json_records import record_hints

    records: set[type] = set()
    waiting: list[Any] = [record]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            if hint not in records:
                records.add(hint)
                waiting += record_hints(hint).values()
        else:
            waiting += get_args(hint)
    return frozenset(records)


@cache
def _moved(kind: AnswerKind) -> tuple[tuple[str, Path], ...]:
    from planner.report.json_records import record_hints

    hints = record_hints(kind.record)
    request = hints.get("request")
    is_of_cluster = isinstance(request, type) and "state" in record_hints(request)
    usual: dict[str, Path] = {
        "request": ("request",) if request else (),
        "certificate": ("certificate",) if "certificate" in hints else (),
        "state": ("request", "state") if is_of_cluster else (),
    }
    return tuple((usual | dict(kind.elsewhere)).items())


@cache
def _unverified(kind: AnswerKind) -> tuple[str, ...]:
    inside = {"/" + "/".join(kind.place_of(path)) for path in _paths(kind.record, (), ())}
    return ("/versions", "/data", *sorted(inside))


def _paths(annotation: Any, path: Path, above: tuple[type, ...]) -> Iterator[Path]:  # noqa: ANN401
    """Ways to fields that cannot be recounted, in a type and all within it."""
    from planner.report.json_records import record_hints
    from planner.verifier.rules import UNVERIFIED, rule_of

    inner = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        for one in inner:
            yield from _paths(one, path, above)
    elif get_origin(annotation) is tuple:
        for one in dict.fromkeys(inner):
            yield from _paths(one, (*path, "*"), above)
    elif isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        if annotation in above:
            return
        hints = record_hints(annotation)
        for field in dataclasses.fields(annotation):
            here = (*path, field.name)
            if rule_of(annotation, field.name) == UNVERIFIED:
                yield here
            else:
                yield from _paths(hints[field.name], here, (*above, annotation))
