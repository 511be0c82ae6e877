"""The kinds of answers: their records, and what of each stands beside it in the envelope."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin

from planner.errors import Problem
from planner.report.documents.blocks import Document
from planner.report.json_records import UNVERIFIED, record_hints
from planner.results import Conflict, Plan
from planner.results.audits import Audit
from planner.results.engines import EngineAudit
from planner.results.experts import ExpertPlan
from planner.results.fleets import FleetPlan, FleetStaircase
from planner.results.placements import Placement, PlacementConflict
from planner.results.predictions import Prediction
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan, StagingConflict
from planner.results.surveys import Comparison, Curves
from planner.results.verifications import Verification
from planner.specs.kernels import EngineSpec
from planner.specs.records import DeviceSpec

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Devices that there are to plan with."""

    devices: tuple[DeviceSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Serving engines that there are to plan with, and what they start."""

    engines: tuple[EngineSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no answer, other than a conflict.

    Args:
        error: its name: `RequestError`, `OutOfTimeError`, …; `InternalError` of a defect.
        exit_code: of the command.
        message: in a sentence.
        problems: of a request that cannot be read.
        hint: what to do instead, if anybody knows.
    """

    error: str
    exit_code: int
    message: str
    problems: tuple[Problem, ...]
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """One kind of answer.

    Args:
        name: the word for it in the envelope.
        record: what it is.
        module: of `planner.report` that makes a document of it; empty where none does.
        request, state, certificate: fields, by the way to them from the record, that stand in the
            envelope under these names instead; empty where the kind has none.
        repeated: a field that is not written because it is the same as another, and that one.
    """

    name: str
    record: type
    module: str = ""
    request: Path = ()
    state: Path = ()
    certificate: Path = ()
    repeated: tuple[Path, Path] | None = None

    @property
    def moved(self) -> tuple[tuple[str, Path], ...]:
        """What stands beside the answer; the state, which lies in the request, comes last."""
        return (
            ("request", self.request),
            ("certificate", self.certificate),
            ("state", self.state),
        )

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


_REQUEST, _PROOF = ("request",), ("certificate",)

ANSWER_KINDS: tuple[AnswerKind, ...] = (
    AnswerKind(
        name="plan", record=Plan, module="answers.plans", request=_REQUEST, certificate=_PROOF
    ),
    AnswerKind(
        name="placement",
        record=Placement,
        module="answers.placement",
        state=("request", "state"),
        request=_REQUEST,
        certificate=_PROOF,
    ),
    AnswerKind(
        name="repair",
        record=Repair,
        module="answers.repair",
        request=("request",),
        state=("request", "wanted", "state"),
        certificate=("placement", "certificate"),
        repeated=(("placement", "request"), ("request", "wanted")),
    ),
    AnswerKind(
        name="experts",
        record=ExpertPlan,
        module="answers.experts",
        request=_REQUEST,
        certificate=_PROOF,
    ),
    AnswerKind(
        name="stages",
        record=StagePlan,
        module="answers.stages",
        request=_REQUEST,
        certificate=_PROOF,
    ),
    AnswerKind(
        name="layers",
        record=LayerPlacement,
        module="answers.layers",
        request=_REQUEST,
        certificate=_PROOF,
    ),
    AnswerKind(
        name="fleet",
        record=FleetPlan,
        module="answers.fleets",
        state=("request", "state"),
        request=_REQUEST,
        certificate=_PROOF,
    ),
    AnswerKind(
        name="staircase",
        record=FleetStaircase,
        module="answers.staircases",
        state=("request", "state"),
        request=_REQUEST,
    ),
    AnswerKind(name="frontiers", record=Curves, module="answers.frontiers"),
    AnswerKind(name="comparison", record=Comparison, module="answers.comparison"),
    AnswerKind(name="audit", record=Audit, module="answers.audit", request=("request",)),
    AnswerKind(
        name="engine-audit", record=EngineAudit, module="answers.engine_audit", request=("request",)
    ),
    AnswerKind(name="prediction", record=Prediction, module="answers.prediction", request=_REQUEST),
    AnswerKind(name="devices", record=Devices, module="catalogue.devices"),
    AnswerKind(name="engines", record=Engines, module="catalogue.engines"),
    AnswerKind(name="conflict", record=Conflict, module="answers.conflicts", request=("request",)),
    AnswerKind(name="placement-conflict", record=PlacementConflict, module="answers.conflicts"),
    AnswerKind(name="staging-conflict", record=StagingConflict, module="answers.conflicts"),
    AnswerKind(name="verification", record=Verification, module="answers.verification"),
    AnswerKind(name="error", record=Failure),
)

_OF_RECORD = {kind.record: kind for kind in ANSWER_KINDS}
_OF_NAME = {kind.name: kind for kind in ANSWER_KINDS}


def kind_of(answer: object) -> AnswerKind:
    """The kind of an answer.

    Raises:
        TypeError: it is no answer.
    """
    found = _OF_RECORD.get(type(answer))
    if found is None:
        raise TypeError(f"a {type(answer).__name__} is no answer of the planner")
    return found


def document_of(answer: object, **beside: object) -> Document:
    """What an answer says.

    Args:
        beside: what its kind may say more, or has to know: whether text has every row, …

    Raises:
        TypeError: it is no answer, or of a kind that has no document.
    """
    kind = kind_of(answer)
    if not kind.module:
        raise TypeError(f"no document tells a {kind.name}")
    module = import_module(f"planner.report.{kind.module}")
    document: Document = module.document(answer, **beside)
    return document


def kind_named(name: object) -> AnswerKind | None:
    return _OF_NAME.get(name) if isinstance(name, str) else None


@cache
def records_in(record: type) -> frozenset[type]:
    """The records that an answer is made of, itself and its request among them."""
    found: set[type] = set()
    waiting: list[Any] = [record]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            if hint not in found:
                found.add(hint)
                waiting += record_hints(hint).values()
        else:
            waiting += get_args(hint)
    return frozenset(found)


@cache
def _unverified(kind: AnswerKind) -> tuple[str, ...]:
    inside = {"/" + "/".join(kind.place_of(path)) for path in _paths(kind.record, (), ())}
    return ("/versions", "/data", *sorted(inside))


def _paths(annotation: Any, path: Path, above: tuple[type, ...]) -> Iterator[Path]:  # noqa: ANN401
    """Ways to fields that cannot be recounted, in a type and all within it."""
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
            if field.name in UNVERIFIED.get(annotation, ()):
                yield here
            else:
                yield from _paths(hints[field.name], here, (*above, annotation))
