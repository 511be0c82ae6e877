"""Answers that no search found: what there is to plan with, what a verification says, and why
there is no answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.errors import Problem
from planner.results.records import AnswerRecord
from planner.results.surveys import FrontierProof
from planner.specs.files.papers import PaperTable, PublishedRow
from planner.specs.files.pools import AnyFabric
from planner.specs.records.architecture import Architecture
from planner.specs.records.certificates import Certificate
from planner.specs.records.devices import DeviceSpec, ModelSpec
from planner.specs.records.kernels import EngineSpec, inner_records
from planner.specs.records.solving import SolvedProgram
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices(AnswerRecord):
    """Devices that there are to plan with."""

    devices: tuple[DeviceSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines(AnswerRecord):
    """Serving engines that there are to plan with, and what they start."""

    engines: tuple[EngineSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A file that can be named.

    Args:
        name: what to write to have it; of a pattern, the name with its placeholders.
        title: what it is called in reports; of a pattern, empty.
        description: a line about it, or why its file cannot be read.
        examples: of a pattern, names that fit it.
        file: that says so.
        facts: what tells it apart in a line, or how to see the faults of its file.
    """

    name: str
    title: str
    description: str
    examples: tuple[str, ...]
    file: str
    facts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueList:
    """Files of a kind.

    Args:
        hint: what to do with a name.
    """

    title: str
    hint: str
    entries: tuple[CatalogueEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue(AnswerRecord):
    """What can be named of a kind, or all that is known of what was named.

    Args:
        title: `models`, `topologies`, `connectors` or `clients`.
        lists: names; none where one thing is described.
        models: by their shapes; of a pattern its first example.
        architectures: by their classes of layers.
        sites: clusters and fabrics; of a pattern its first example.
    """

    title: str
    lists: tuple[CatalogueList, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    architectures: tuple[Architecture, ...] = ()
    sites: tuple[AnyFabric, ...] = ()


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
class Falsehood:
    """A figure of an answer that is not so.

    Args:
        pointer: to it, a JSON pointer into the envelope.
        says: what stands there.
        found: what a recount gives; empty where nothing could stand there.
        fact: why it is not so, where the two values do not say it all.
    """

    pointer: str
    says: str
    found: str
    fact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(AnswerRecord):
    """An answer, counted anew.

    Args:
        kind: of the answer.
        summary: the answer in one line.
        falsehoods: all that is not so; empty of a true answer.
        n_counted: figures that were counted anew, or held against the request and the cluster.
        n_taken: figures that only a new search can judge, and were taken as they are.
        n_unverified: figures that nobody can judge.
        taken, unverified: the names of those.
        is_as_written: whether it is the answer that was written; another one may be true, too.
        proofs: what a new search proved.
        notes: what differs here from where it was written, and is no fault of it.
    """

    kind: str
    summary: str
    falsehoods: tuple[Falsehood, ...]
    n_counted: int
    n_taken: int
    n_unverified: int
    taken: tuple[str, ...]
    unverified: tuple[str, ...]
    is_as_written: bool
    proofs: tuple[str, ...]
    notes: tuple[str, ...]

    @computed
    def is_true(self) -> bool:
        """Whether everything in it is so."""
        return not self.falsehoods

    def __str__(self) -> str:
        if self.falsehoods:
            return "\n".join(
                f"{one.pointer}: {one.says}, {one.fact or one.found}" for one in self.falsehoods
            )
        return f"verified: {self.n_counted} figures counted anew, {self.n_unverified} unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedRow:
    """A figure of a paper, and the answer to its request.

    Args:
        answered: the same figure here, in the unit of the row; None where there is no plan.
        reason: why there is none; empty where there is one.
        x, published_x: where both are drawn across; None where the table has no such axis.
    """

    row: PublishedRow
    answered: float | None
    reason: str = ""
    x: float | None = None
    published_x: float | None = None

    @property
    def error(self) -> float | None:
        """Answered over published, less 1; None where a figure is missing on either side [1]."""
        published = self.row.published
        if published is None or self.answered is None:
            return None
        return self.answered / published - 1.0 if published else float(self.answered != 0.0)

    @property
    def disagrees(self) -> bool:
        """Whether one side has a plan, and the other has none."""
        if self.row.fails:
            return self.answered is not None
        return self.row.published is not None and self.answered is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedTable:
    """A table of a paper, every row answered."""

    table: PaperTable
    rows: tuple[ReproducedRow, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """Absolute errors of the rows that have one, the smallest first [1]."""
        return tuple(sorted(abs(row.error) for row in self.rows if row.error is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverReport(AnswerRecord):
    """What was solved on the way to an answer, in order, and the proofs in the answer, in SI."""

    command: str
    certificates: tuple[Certificate, ...]
    frontiers: tuple[FrontierProof, ...]
    programs: tuple[SolvedProgram, ...]


def solver_report(command: str, answer: object, programs: Iterable[SolvedProgram]) -> SolverReport:
    """What was solved for an answer, None where there is none."""
    return SolverReport(
        command=command,
        certificates=tuple(proof for _, proof in inner_records(answer, Certificate)),
        frontiers=tuple(proof for _, proof in inner_records(answer, FrontierProof)),
        programs=tuple(programs),
    )
