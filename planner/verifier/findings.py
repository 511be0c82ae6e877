"""What does not hold in an answer: the place, what it says, and what a recount finds there."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar

from planner.errors import SolverError

Path = tuple[str, ...]
"""The way to a value from the record of an answer: names of fields, keys, indices."""

TOLERANCE = 1e-9
"""Relative, of a recount: another order of summation makes some 1e-13 of it."""

NOTHING = 1e-15
"""Seconds, dollars, bytes and shares below which two figures are both nothing."""

CANCELLED = {
    **dict.fromkeys(("gap", "loss_fraction", "gain_fraction", "error_fraction"), 1e-8),
    **{"half_width_s": 1e-10, "hidden_s": 1e-12},
}
"""Differences of nearly equal numbers, and what is left of their digits, absolute."""


_LEAVES = frozenset({bool, int, float, str})
"""Types without anything inside: looked at first, because most values are of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One figure that does not hold.

    Args:
        path: where it stands in the record.
        says: what stands there.
        found: what a recount gives; None where nothing could stand there.
        fact: why it does not hold, where the two values do not say it all.
    """

    path: Path
    says: object
    found: object = None
    fact: str = ""

    def below(self, path: Path) -> Finding:
        """The same, of a record that stands inside another."""
        return replace(self, path=(*path, *self.path))

    def __str__(self) -> str:
        where = ".".join(self.path)
        if self.fact:
            return f"{where} {_shown(self.says)} {self.fact}"
        return f"{where} {_shown(self.says)} is {_shown(self.found)}"


class Invalid(Exception):  # noqa: N818 caught where the rest of an answer can still be judged
    """Something that cannot be, so that what depends on it cannot be recounted.

    Args:
        fact: what is wrong with it.
        path: where it stands, from where the caller looks.
    """

    def __init__(self, fact: str, *, path: Path = (), says: object = None) -> None:
        self.path, self.says, self.fact = path, says, fact
        super().__init__(fact)

    def at(self, path: Path) -> Finding:
        return Finding(path=(*path, *self.path), says=self.says, fact=self.fact)


@contextmanager
def refused_in(name: str) -> Iterator[None]:
    """What is refused inside is so of a part of the record."""
    try:
        yield
    except Invalid as refused:
        raise Invalid(refused.fact, path=(name, *refused.path), says=refused.says) from None


def differences(says: object, true: object, path: Path = ()) -> Iterator[Finding]:
    """Where a record differs from the one that a recount gives, leaf by leaf."""
    if says is true or (says == true and type(says) is type(true) and type(true) in _LEAVES):
        return
    parts = _parts(says, true)
    if parts is not None:
        for name, one, other in parts:
            yield from differences(one, other, (*path, name))
    elif isinstance(true, tuple) and isinstance(says, tuple):
        fact = f"entries, and there are {len(true)}"
        yield Finding(path=path, says=len(says), found=len(true), fact=fact)
    elif not _equal(says, true, path[-1] if path else ""):
        yield Finding(path=path, says=says, found=true)


def _parts(says: object, found: object) -> list[tuple[str, object, object]] | None:
    """What both are made of, by name; None of leaves, and of tuples that are not as long."""
    if is_dataclass(found) and type(says) is type(found):
        return [(it.name, getattr(says, it.name), getattr(found, it.name)) for it in fields(found)]
    if isinstance(found, Mapping) and isinstance(says, Mapping):
        return [(str(key), says.get(key), found.get(key)) for key in {**says, **found}]
    if isinstance(found, tuple) and isinstance(says, tuple) and len(says) == len(found):
        return [(str(i), *both) for i, both in enumerate(zip(says, found, strict=True))]
    return None


def with_differences(wrong: list[Finding], says: object, truth: object) -> list[Finding]:
    """What was found wrong, and every other leaf that is not as a recount has it."""
    told = {finding.path for finding in wrong}
    return wrong + [one for one in differences(says, truth) if one.path not in told]


Answer = TypeVar("Answer")


def accounted(
    draft: Answer, counted: tuple[Answer, list[Finding]], left_out: Collection[str]
) -> Answer:
    """The answer that an account makes of a draft.

    Args:
        draft: what was chosen and proved, and what a search has besides.
        counted: the answer that is true of it, and what in the draft is not so.
        left_out: fields that the draft leaves to the account, or `within.field` of another.

    Raises:
        SolverError: something of the choice cannot be, or search and account do not agree.
    """
    truth, wrong = counted
    names, differ = [{*it.split(".")} for it in left_out], differences(draft, truth)
    filled = {one.path for one in differ if any(name.issubset(one.path) for name in names)}
    refuse([one for one in wrong if one.path not in filled or (one.fact and one.found is None)])
    return truth


def refuse(wrong: Sequence[Finding]) -> None:
    """Go on only if nothing is wrong.

    Raises:
        SolverError: something is; all of it is told.
    """
    if wrong:
        raise SolverError("the verifier disagrees with the answer: " + "; ".join(map(str, wrong)))


def near(says: float | None, true: float, *, rel_tol: float = 0.0, abs_tol: float = 0.0) -> float:
    """A figure as it is said, where it is so to these tolerances; else what a recount gives."""
    is_so = says is not None and math.isclose(says, true, rel_tol=rel_tol, abs_tol=abs_tol)
    return says if says is not None and is_so else true


def _equal(says: object, true: object, name: str) -> bool:
    numbers = (int, float)
    if isinstance(says, bool) or isinstance(true, bool):
        return says is true
    if isinstance(says, numbers) and isinstance(true, numbers):
        close = CANCELLED.get(name, NOTHING)
        return math.isclose(says, true, rel_tol=TOLERANCE, abs_tol=close)
    return type(says) is type(true) and says == true


def _shown(value: object) -> str:
    return repr(value) if not is_dataclass(value) else type(value).__name__
