"""Variants that options name, loaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from planner.commands.options.arguments import Arguments
from planner.errors import Problem
from planner.specs.listing import variants_of

_Model = TypeVar("_Model")

ALL = "all"
OPTION = "--variants"


def named(written: tuple[str, ...], model: str, found: Arguments) -> tuple[str, ...]:
    """Names and files that an option lists; of `all`, every variant of the model."""
    words = [word.strip() for text in written for word in text.split(",")]
    names = [name for word in words for name in (variants_of(model) if word == ALL else (word,))]
    if words and not names:
        fact = f"there is no variant of `{model}`"
        remedy = "say what a model is a variant of in its file, or beside its config.json"
        found.problems.append(Problem(where=OPTION, value=ALL, fact=fact, remedy=remedy))
    return tuple(dict.fromkeys(names))


def loaded(
    names: tuple[str, ...], load: Callable[..., _Model], found: Arguments
) -> tuple[_Model, ...]:
    """The models of these names; what is wrong with their files is among the problems."""
    models = (found.collect(partial(load, name, asked_by=OPTION)) for name in names)
    return tuple(model for model in models if model is not None)
