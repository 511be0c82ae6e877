"""What pydantic found, as faults with the way to each; borders make problems of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from planner.errors import Problem, RequestError, SpecError
from planner.quantities.tables import packaged_table

if TYPE_CHECKING:
    from pydantic_core import ValidationError

KeyPath = tuple[int | str, ...]
"""Keys and indices from a value to one within it."""

OPTION = "\0"
"""Between a field of a record and the option that says the same."""

_FACTS: Mapping[str, str] = packaged_table("specs/validation/values.toml")["facts"]


class Fault(NamedTuple):
    """One thing that is wrong with a value.

    Args:
        kind: as pydantic names it; `value_error` of what a border finds itself.
        way: from the whole to the part that is wrong.
        value: that part, or what lacks it.
        is_misfit: it is of another type, and nothing else can be said of it.
    """

    kind: str
    way: KeyPath
    value: Any
    fact: str
    remedy: str = ""
    is_misfit: bool = True


class _Unsound(tuple[()]):
    __slots__ = ()


UNSOUND = _Unsound()
"""In place of a value that is there and cannot be: nothing else is found of it."""


class Finding(NamedTuple):
    """What is wrong with a field of a record only together with others.

    Args:
        field: of the record, or of one within it: `moe.n_experts`.
        value: that is said to be wrong; of the field where it is None.
    """

    field: str
    fact: str
    remedy: str = ""
    value: Any = None


def repeated(items: Iterable[Any], field: str) -> Iterator[Finding]:
    """One finding for each item of a list that was in it before."""
    seen: set[Any] = set()
    for item in items:
        if item in seen:
            yield Finding(field, "is given twice", value=item)
        seen.add(item)


def faults_of(error: ValidationError) -> Iterator[Fault]:
    """All that is wrong, in the order in which it was found."""
    for detail in error.errors(include_url=False):
        kind, context = detail["type"], detail.get("ctx", {})
        way = tuple(part for part in detail["loc"] if not _is_label(part))
        cause: Any = context.get("error")
        fact, remedy, is_misfit = _FACTS.get(kind, ""), "", True
        if cause is not None:
            fact, remedy = getattr(cause, "fact", str(cause)), getattr(cause, "remedy", "")
            is_misfit = getattr(cause, "is_misfit", False)
        elif kind == "no_choice":
            fact, remedy = context["fact"], context["remedy"]
        elif kind == "too_long":
            fact = f"has {context['actual_length']} entries, not {context['max_length']}"
        elif kind == "literal_error":
            fact = f"is not {context['expected']}"
        fact = fact or detail["msg"][:1].lower() + detail["msg"][1:]
        yield Fault(kind, way, detail["input"], fact, remedy, is_misfit)


def _is_label(part: int | str) -> bool:
    """Whether a part of a way says which of several types a value was taken for."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def dotted(way: Sequence[int | str]) -> str:
    """`link[0].bandwidth`; the key `value` of a sourced value is left out."""
    path = ""
    for part in way:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in ("value", "[key]"):
            path += f".{part}" if path else part
    return path


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """The remedy for an unknown word: the nearest of those that are known."""
    from difflib import get_close_matches  # costs more to import than a whole file to read

    names = list(known)
    longer = [name for name in names if word and name.startswith(f"{word}-")]
    close = longer or get_close_matches(word, names, n=1)
    return f"did you mean `{close[0]}`?" if close else otherwise


_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class Problems:
    """What is wrong so far, and what may help."""

    problems: list[Problem] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def collect(self, read: Callable[[], _T]) -> _T | None:
        """What is read, or None, and why it cannot be."""
        try:
            return read()
        except RequestError as error:
            self.problems += error.problems
            self.hints += filter(None, (error.hint,))
        return None

    def each(
        self, read: Callable[..., _T], items: Iterable[Any], *, key: str = ""
    ) -> tuple[_T, ...]:
        """What items are, but for those that cannot be read.

        Args:
            key: of the list that they are in, if `read` takes the `key` of each.
        """
        made = (
            self.collect(partial(read, item, **({"key": f"{key}[{i}]"} if key else {})))
            for i, item in enumerate(items)
        )
        return tuple(one for one in made if one is not None)

    def settle(self, error: type[RequestError] = SpecError) -> None:
        """Go on only if nothing is wrong.

        Raises:
            RequestError: of that class, with every problem once.
        """
        error.raise_if_any(self.problems, hint="\n".join(dict.fromkeys(self.hints)))
