"""Answers with one leaf altered, and what a verifier has to make of each."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from planner.errors import SpecError
from planner.planning.verification import verify
from planner.report.answer_kinds import AnswerKind, kind_named
from planner.report.as_json import Json
from planner.verifier.findings import CANCELLED
from planner.verifier.rules import ASKED, COUNTED, PROVED, UNVERIFIED, rule_of

Pointer = tuple[str, ...]
PARTS = ("answer", "certificate")
ASKED_THERE = ("request", "other_requests", "requests", "speculation")
"""What was asked, wherever it stands: it is no claim."""


def leaves(envelope: Json) -> list[Pointer]:
    """Ways to every leaf and every list of the answer and its certificate."""

    def below(value: object, path: Pointer) -> Iterator[Pointer]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key not in ASKED_THERE:
                    yield from below(inner, (*path, key))
        elif isinstance(value, list):
            if value:
                yield path
            for i, inner in enumerate(value):
                yield from below(inner, (*path, str(i)))
        else:
            yield path

    return [path for part in PARTS for path in below(envelope[part], (part,))]


def of_each_field(places: Iterable[Pointer]) -> list[Pointer]:
    """Of places that differ in their numbers alone one: the k-th field at the k-th of its places.

    Entries of a list are judged by the same lines, and each of its first ones has its fields.
    """
    alike: dict[Pointer, list[Pointer]] = {}
    for path in places:
        field = tuple("*" if key.isdecimal() else key for key in path)
        alike.setdefault(field, []).append(path)
    return [paths[k % len(paths)] for k, paths in enumerate(alike.values())]


def at(envelope: Any, path: Pointer) -> Any:
    for key in path:
        envelope = envelope[int(key)] if isinstance(envelope, list) else envelope[key]
    return envelope


def altered(envelope: Json, path: Pointer, draw: Random) -> Json | None:
    """The envelope with another value at a place; None where there is no other."""
    value = at(envelope, path)
    other = _other(value, draw, envelope)
    if isinstance(value, float) and path[-1] in CANCELLED:
        other = value + 1e-6
    if other is value:
        return None
    changed = copy.deepcopy(envelope)
    above = at(changed, path[:-1])
    if isinstance(above, list):
        above[int(path[-1])] = other
    else:
        above[path[-1]] = other
    return changed


def _other(value: Any, draw: Random, envelope: Json) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        near = value * (1 + 1e-6) if abs(value) > 1e-6 else value + 1e-6
        # of 35 billion bytes one more is within the rounding of a recount
        return draw.choice([near, value + 1, value - 1] if abs(value) < 1e8 else [near])
    if isinstance(value, int):
        return value + draw.choice([1, -1, 1000])
    if isinstance(value, str):
        return draw.choice(["", f"{value}x", "other", *_texts(envelope)[:20]])
    if isinstance(value, list):
        i = draw.randrange(len(value))
        dropped, doubled = value[:i] + value[i + 1 :], [*value[: i + 1], value[i], *value[i + 1 :]]
        return draw.choice([dropped, doubled])
    return draw.choice([0, 1.5])  # in place of null


def _texts(envelope: Json) -> list[str]:
    """Some words of an answer, which may stand in each other's place."""
    return [value for path in leaves(envelope) if isinstance(value := at(envelope, path), str)]


def rule_at(kind: AnswerKind, answer: object, path: Pointer) -> str:
    """The rule of a leaf: of the last field on the way to it, or of one above that is excused."""
    moved = dict(kind.moved)
    way = moved[path[0]] + path[1:] if path[0] in moved else path[1:]
    value: Any = answer
    rule = COUNTED
    for key in way:
        if dataclasses.is_dataclass(value):
            if key not in {field.name for field in dataclasses.fields(value)}:
                return COUNTED  # what a record computes
            rule = rule_of(type(value), key)
            if rule in (PROVED, UNVERIFIED):
                return rule
            value = getattr(value, key)
        elif isinstance(value, Mapping):
            value = value[key]
        else:
            value = value[int(key)]
    return rule


def is_refused(envelope: Json, *, prove: bool = False) -> bool:
    """Whether a verifier finds the answer false, or no answer."""
    try:
        return not verify(json.loads(json.dumps(envelope)), prove=prove).is_true
    except SpecError:
        return True


def let_through(name_of_kind: str, answer: object, envelope: Json, seed: int, n: int) -> list[str]:
    """Alterations of fields that are counted or asked, and that the verifier did not refuse."""
    draw, places = Random(seed), leaves(envelope)
    drawn = (tried(name_of_kind, answer, envelope, draw.choice(places), draw) for _ in range(n))
    return [one.told for one in drawn if one is not None and one.is_let_through]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One alteration, and what the verifier made of it."""

    rule: str
    is_refused: bool
    told: str

    @property
    def is_let_through(self) -> bool:
        """Whether it passed where nothing but the truth may."""
        return self.rule in (COUNTED, ASKED) and not self.is_refused


def tried(
    name_of_kind: str,
    answer: object,
    envelope: Json,
    path: Pointer,
    draw: Random,
    *,
    prove: bool = False,
) -> Tried | None:
    """One place altered; None where there is nothing to alter."""
    kind = kind_named(name_of_kind)
    assert kind is not None
    changed = altered(envelope, path, draw)
    if changed is None or at(changed, path[:-1]) == at(envelope, path[:-1]):
        return None
    return Tried(
        rule=rule_at(kind, answer, path),
        is_refused=is_refused(changed, prove=prove),
        told=f"/{'/'.join(path)}: {at(envelope, path)} to {at(changed, path)}",
    )
