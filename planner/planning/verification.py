"""`verify`: an answer that somebody wrote down, counted anew from the request that is in it."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from planner.errors import PlannerError, Problem, SpecError
from planner.report.answer_kinds import ANSWER_KINDS, line_of, records_in
from planner.report.as_json import Json, answer_json, digest_of, parts_json, record_json, versions
from planner.report.launch.telling import with_commands_of
from planner.report.saved import ReadAnswer, answer_of, load_answer
from planner.report.times import times_of
from planner.results.listings import Falsehood, Verification
from planner.running.deadlines import counted_from, only_within
from planner.specs.files.ledger import DataFile, is_unchanged
from planner.specs.records.kernels import EngineSpec, inner_records
from planner.verifier.findings import Finding, Path as Place, differences
from planner.verifier.rules import PROVED, UNVERIFIED, judge_of, rule_of
from planner.verifier.serving.starting import altered_rules

_SENSELESS = (
    *(ArithmeticError, ValueError, LookupError, AssertionError),
    *(StopIteration, RuntimeError),  # a search within a generator that finds nothing is the latter
)
"""What arithmetic on records ends in that no loader would have let in."""


def verify(
    answer: object, *, prove: bool = False, time_limit_s: float | None = None, shown: str = "answer"
) -> Verification:
    """Count an answer anew, and say of each figure in it that is not so.

    Args:
        answer: a file that `--json` wrote, by its path; an envelope as a mapping; or a record,
            such as a `Plan`.
        prove: search again, and compare what only a search can say: bounds, numbers of
            candidates, what looser limits gain.
        time_limit_s: of all searches together; without it each has that of its request.
        shown: what a mapping or a record is called in messages.

    Raises:
        RequestError: it is no answer, or of a kind that cannot be verified; all faults are told.
        OutOfTimeError: a search ran out of time.
    """
    if isinstance(answer, (str, Path)):
        read = load_answer(str(answer), asked_by="ANSWER")
    elif isinstance(answer, Mapping):
        read = answer_of(dict(answer), shown=shown)
    elif isinstance(answer, tuple(kind.record for kind in ANSWER_KINDS)):
        read = answer_of(answer_json(answer), shown=shown)
    else:
        fact = "is no path, no mapping and no answer of the planner"
        raise SpecError([Problem(where=shown, value=type(answer).__name__, fact=fact)])
    return verified(read, prove=prove, time_limit_s=time_limit_s, shown=shown)


def verified(
    read: ReadAnswer,
    *,
    prove: bool = False,
    time_limit_s: float | None = None,
    shown: str = "answer",
) -> Verification:
    """The same of an answer that was read.

    Raises:
        RequestError, OutOfTimeError: as `verify`.
    """
    kind, record = read.kind, read.answer
    judge = judge_of(type(record))
    if judge is None:
        raise SpecError([_unjudged(kind.name, shown)])
    try:
        truth, findings = judge(record)
        falsehoods = {one.pointer: one for one in _falsehoods(findings, kind.place_of)}
        told = with_commands_of(truth)
        files = [DataFile(**row) for row in read.envelope["data"]]
        here = [one.path for one in files if is_unchanged(one)]  # files that are as they were
        engines = list(inner_records(record, EngineSpec))
        beside = (*differences(truth, told), *_of_rules(engines, here))
        truth = told
        derived = _falsehoods(_derived(read.envelope, parts_json(truth)), tuple)
        for one in (*_falsehoods(beside, kind.place_of), *derived):
            falsehoods.setdefault(one.pointer, one)
        summary = line_of(truth).replace("\n", "; ").removeprefix("error: ")
    except PlannerError:
        raise
    except _SENSELESS as error:
        fact = f"cannot be counted anew, what it holds makes no sense: {error!r}"
        raise SpecError([Problem(where=shown, key="/request", fact=fact)]) from error
    counts, taken = _counts(record)
    proofs: tuple[str, ...] = ()
    if prove:
        from planner.planning.proving import proved

        # searches follow each other: from a common start the later ones had no time
        with counted_from(None) if time_limit_s is None else only_within(time_limit_s):
            again = proved(record)
        proofs, taken = again.proofs, again.taken
        for one in _falsehoods(again.findings, kind.place_of):
            falsehoods.setdefault(one.pointer, one)
    return Verification(
        kind=kind.name,
        summary=summary,
        falsehoods=tuple(falsehoods.values()),
        n_counted=counts[""],
        n_taken=len(taken) if prove else counts[PROVED],
        n_unverified=counts[UNVERIFIED],
        taken=taken,
        unverified=tuple(sorted(_named(kind.record, UNVERIFIED))),
        is_as_written=read.envelope.get("digest") == digest_of(read.envelope),
        proofs=proofs,
        notes=(*_notes(read.envelope, truth, files), *_believed(engines, here)),
    )


Engines = Sequence[tuple[Place, EngineSpec]]


def _unjudged(kind: str, shown: str) -> Problem:
    names = [one.name for one in ANSWER_KINDS if judge_of(one.record) is not None]
    fact = "is a kind of answer that cannot be verified"
    remedy = f"{', '.join(names[:-1])} and {names[-1]} can"
    return Problem(where=shown, key="/kind", value=kind, fact=fact, remedy=remedy)


def _falsehoods(
    findings: Iterable[Finding], place_of: Callable[[Place], Place]
) -> Iterator[Falsehood]:
    """Findings as they are told, each where it stands in the envelope."""
    for finding in findings:
        parts = (part.replace("~", "~0").replace("/", "~1") for part in place_of(finding.path))
        yield Falsehood(
            pointer="/" + "/".join(parts),
            says=_text(finding.says),
            found="" if finding.fact else _text(finding.found),
            fact=finding.fact,
        )


def _derived(says: Json, truth: Json) -> Iterator[Finding]:
    """Leaves of the envelope that are not those of the true answer: what records compute."""
    for part, found in truth.items():
        yield from differences(_frozen(says[part], says[part]), _frozen(found, says[part]), (part,))


def _frozen(value: object, says: object) -> object:
    """JSON with tuples for lists, as records have them.

    Without what answers of an earlier version have not, such as what `says`: all else was read.
    """
    if isinstance(value, dict):
        known = says if isinstance(says, dict) else value
        return {key: _frozen(inner, known[key]) for key, inner in value.items() if key in known}
    if isinstance(value, list):
        is_alike = isinstance(says, list) and len(says) == len(value)
        return tuple(map(_frozen, value, cast("list[object]", says) if is_alike else value))
    return value


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if dataclasses.is_dataclass(value):
        return type(value).__name__
    return f"`{value}`" if isinstance(value, str) else f"{value}"


def _counts(record: object) -> tuple[dict[str, int], tuple[str, ...]]:
    """Figures of an answer by rule, and names of those that only a search can judge.

    Counted, asked and chosen are all judged, and count as ``.
    """
    counts = {"": 0, PROVED: 0, UNVERIFIED: 0}
    names: set[str] = set()

    def walk(value: object, rule: str) -> None:
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name in ("request", "other_requests", "requests", "speculation"):
                    continue  # what was asked is no claim
                own = rule_of(value.__class__, field.name)
                if own == PROVED:
                    names.add(field.name)
                walk(getattr(value, field.name), own if own in counts else rule)
        elif isinstance(value, Mapping):
            for inner in value.values():
                walk(inner, rule)
        elif isinstance(value, tuple):
            for inner in value:
                walk(inner, rule)
        else:
            counts[rule] += 1

    walk(record, "")
    return counts, tuple(sorted(names))


def _named(record: type, rule: str) -> set[str]:
    """Names of the fields of a kind of answer that have a rule."""
    return {
        field.name
        for cls in records_in(record)
        for field in dataclasses.fields(cls)
        if rule_of(cls, field.name) == rule
    }


def _notes(envelope: Json, truth: object, files: Sequence[DataFile]) -> Iterator[str]:
    """What differs here from where the answer was made, and is no fault of it."""
    there, here = envelope["versions"].get("planner"), versions()["planner"]
    if there != here:
        yield f"written by version {there} of the planner, verified by {here}"
    if envelope["times"] != [record_json(one) for one in times_of(truth)]:
        yield "`times` is not what is known here of how far off such times were"
    if not files:
        yield "`data` names no file that could be compared with the one here"
    for file in files:
        if is_unchanged(file) is False:
            yield f"the {file.kind} in `{file.path}` here is not the one of the answer"


def _of_rules(engines: Engines, here: Collection[str]) -> Iterator[Finding]:
    for path, engine in engines:
        yield from (one.below(path) for one in altered_rules(engine, here))


def _believed(engines: Engines, here: Collection[str]) -> Iterator[str]:
    """Users' files of rules that are not at hand as they were."""
    for name in sorted({one.rules_file for _, one in engines} - {"", *here}):
        yield f"what `{name}` changes of an engine's rules is taken from the answer"
