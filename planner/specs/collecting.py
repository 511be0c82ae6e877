"""What is wrong with several things, found one after the other and told all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from planner.errors import Problem, RequestError, SpecError

_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class Collected:
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

    def settle(self, error: type[RequestError] = SpecError) -> None:
        """Go on only if nothing is wrong.

        Raises:
            RequestError: of that class, with every problem once.
        """
        if self.problems:
            hint = "\n".join(dict.fromkeys(self.hints))
            raise error(list(dict.fromkeys(self.problems)), hint=hint)
