"""Parsers of commands made once for all tests of a process.

A process of a user parses one line of words. The tests parse thousands in one process, where
making the parser of all options anew takes longer than many an answer; and where pydantic is
loaded by then, the parser makes validators of it that a process of a user never makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import cyclopts.field_info
import pydantic
from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection
from cyclopts.utils import UNSET


def keep_parsers() -> None:
    """From now on the options of each command are assembled once, and emptied for each line."""
    assemble = App.assemble_argument_collection
    kept: dict[Callable[..., object], ArgumentCollection] = {}

    def emptied(app: App, **asked: object) -> ArgumentCollection:
        if any(asked.values()) or app.default_command is None:
            return assemble(app, **asked)
        if app.default_command not in kept:
            kept[app.default_command] = assemble(app)
        found = kept[app.default_command]
        for one in found:
            one.tokens, one._value = [], UNSET
            one._marked_converted = one._mark_converted_override = False
        return found

    App.assemble_argument_collection = emptied
    pydantic.TypeAdapter = cache(pydantic.TypeAdapter)
    cyclopts.field_info.get_type_hints = cache(cyclopts.field_info.get_type_hints)
    for name in ("names", "negatives", "_negatives_hint"):
        _keep(name)


def _keep(name: str) -> None:
    """What an option computes of its own declaration, computed once."""
    compute = getattr(Argument, name).fget
    kept: dict[int, tuple[Argument, object]] = {}  # with the option, so that its id stays its own

    def of(one: Argument) -> object:
        if id(one) not in kept:
            kept[id(one)] = one, compute(one)
        return kept[id(one)][1]

    setattr(Argument, name, property(of))
