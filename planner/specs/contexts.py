"""Requests that are longer than a model can attend to.

A sequence holds what it reads and what it writes. A drafter attends to the same sequence, and
proposes nothing beyond its end: what it proposes counts no further.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from planner.errors import Problem


class Attending(Protocol):
    """A model, as layouts or as engines see it."""

    @property
    def name(self) -> str: ...

    @property
    def n_context_tokens(self) -> int | None: ...


def context_problems(
    model: Attending, n_input_tokens: float, n_output_tokens: float, *, asked_by: str = "--model"
) -> Iterator[Problem]:
    """One problem if a request is longer than what a model attends to; none if nothing limits it.

    Args:
        model: that is to serve it, alone or by drafting.
        n_input_tokens, n_output_tokens: of the request.
        asked_by: the option that named the model.
    """
    longest = model.n_context_tokens
    if longest is None or n_input_tokens + n_output_tokens <= longest:
        return
    said = f"{n_input_tokens:.0f} in and {n_output_tokens:.0f} out"
    fact = f"attends to {longest} tokens at most, and a request has {said}"
    room = longest - n_output_tokens
    remedy = f"write `--input {room:.0f}` or less" if room >= 1 else "write fewer `--output`"
    yield Problem(where=asked_by, value=model.name, fact=fact, remedy=remedy)
