"""What a command line says: values of options, and everything that is wrong with them.

Nothing ends at the first fault: each becomes a `Problem`, what can be read is read, and one
message names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from planner.commands.options.commands import COMMANDS, called, options_of
from planner.errors import Problem, RequestError
from planner.quantities.units import UnitError
from planner.specs.options.meanings import misplaced
from planner.specs.options.option import Option, Read
from planner.specs.validation.problems import Problems

if TYPE_CHECKING:
    from planner.specs.files.pools import SiteSpec

_T = TypeVar("_T")
_S = TypeVar("_S", bound="SiteSpec")


@dataclass(slots=True, kw_only=True)
class Said(Problems):
    """What argv says, and what is wrong with it.

    Values of options are attributes, `said.time_limit`: as read, or what is usual where nothing
    is said or it cannot be read; None where nothing is usual.

    Args:
        command: `plan` where it is that itself.
        standing: the first word that needs no other; none where empty.
        texts: of each option that is given, as it was typed; of a flag none.
        values: by the name of an argument.
    """

    command: str
    standing: str = ""
    texts: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, argument: str) -> Any:  # noqa: ANN401 one type an option
        try:
            return self.values[argument]
        except KeyError:
            raise AttributeError(argument) from None

    @property
    def words(self) -> list[str]:
        """The command line again, in one spelling: `--batch=8`."""
        _, *words = called(self.command).split()
        for name, texts in self.texts.items():
            is_word = not name.startswith("-")
            words += [text if is_word else f"{name}={text}" for text in texts] or [name]
        return words

    def is_given(self, name: str) -> bool:
        """Whether an option is said."""
        return name in self.texts

    def text(self, name: str) -> str:
        """What was typed of an option."""
        return ",".join(self.texts.get(name, ()))

    def refuse(self, name: str, fact: str, remedy: str = "", *, value: str | None = None) -> None:
        """Keep what is wrong with an option."""
        shown = self.text(name) if value is None else value
        self.problems.append(Problem(where=name, value=shown, fact=fact, remedy=remedy))

    def refuse_under(self, runtimes: Sequence[str]) -> None:
        """Keep what is wrong with options that mean nothing under the runtimes asked for."""
        given = {name: self.text(name) for name in self.texts}
        refused = list(misplaced(given, runtimes, self.command))
        names = {one.where for one in refused}  # what else is wrong with them does not matter
        self.problems = [*(one for one in self.problems if one.where not in names), *refused]
        for name in names:
            del self.texts[name]
            self.read_option(options_of(self.command)[name])

    def read_option(self, row: Option) -> None:
        """Keep the value of an option as it is said, or usual."""
        texts = self.texts.get(row.name, [])
        usual = None if row.name in COMMANDS[self.command].keeps else row.usual
        if not row.value:
            value: Any = row.name in self.texts
        elif row.gathers is not None:
            value = row.gathers(texts, partial(self.read, row.name))
        else:
            value = self.read(row.name, texts[-1], row.reads) if texts else None
            if value is None and usual is not None:
                value = row.reads(usual)
        self.values[row.argument] = value

    def read(self, name: str, text: str, reads: Read) -> Any:  # noqa: ANN401 one type an option
        """The value of a text; None, and a problem of the option, where it has none."""
        try:
            return reads(text)
        except UnitError as error:
            self.refuse(name, error.fact, error.remedy, value=text)
            return None

    def read_as(self, name: str, reads: Read) -> Any:  # noqa: ANN401 one type an option
        """The value of an option that is read in several ways; None where it is not given."""
        texts = self.texts.get(name)
        return self.read(name, texts[-1], reads) if texts else None

    def sets(self, record: str = "") -> dict[str, Any]:
        """Fields of a record, or arguments of the library, that options set to something."""
        values: dict[str, Any] = {}
        for name, row in options_of(self.command).items():
            owner, _, argument = row.sets.rpartition(".")
            value = self.values[row.argument]
            is_said = self.is_given(name) if row.gathers else value is not None
            if argument and owner == record and is_said:
                values[argument] = value
        return values

    def load(self, name: str, load: Callable[[str], _T]) -> _T | None:
        """What stands in the file that an option names; None where it names none, or has faults."""
        file = self.values[options_of(self.command)[name].argument]
        return None if file is None else self.collect(partial(load, file))

    def need_one(self, name: str, other: str, *, both: str, remedy: str) -> bool:
        """Refuse two options where neither is said, or both are; whether one is.

        Args:
            both: what is wrong with the first beside the other.
        """
        if self.is_given(name) == self.is_given(other):
            self.refuse(name, both if self.is_given(name) else "is not given", remedy, value="")
        return self.is_given(name) != self.is_given(other)

    def priced(self, sites: Sequence[_S]) -> list[_S]:
        """Sites at the rents that are asked for; a kind that none of them has is a problem."""
        if not self.price:
            return list(sites)
        from planner.specs.ask.prices import priced, unknown_kinds

        self.problems += unknown_kinds(self.price, sites)
        return [priced(site, self.price) for site in sites]

    def check(self) -> None:
        """Go on only if nothing is wrong.

        Raises:
            RequestError: with all problems.
        """
        if self.values.get("what_if"):
            from planner.specs.files.what_if import idle

            self.problems += idle(self.command)
        self.settle(RequestError)


@contextmanager
def settings(said: Said) -> Iterator[None]:
    """What options change of engines and machines, while a request is read and answered."""
    with ExitStack() as changes:
        for change in _of_engines(said):
            changes.enter_context(change)
        changes.enter_context(_what_if(said))
        yield


def _of_engines(said: Said) -> Iterator[AbstractContextManager[object]]:
    """What engines may take of a device, their rules by a file, and what own runs say of them.

    A file that cannot be read, or rules of an engine that is not asked, are problems among those
    of the other options.
    """
    fraction, workspace = (said.values.get(name) for name in ("memory_fraction", "workspace"))
    rules, calibration = (said.values.get(name) for name in ("rules", "calibration"))
    if fraction is not None or workspace is not None:
        from planner.specs.files.engines import engine_memory

        yield engine_memory(fraction=fraction, workspace_bytes=workspace)
    if rules is not None:
        from planner.specs.files.engines import changed_rules

        engines = (said.engine,) if isinstance(said.engine, str) else said.engine or ()
        changed = said.collect(partial(changed_rules, rules, engines=engines))
        yield changed or nullcontext()
    if calibration is not None:
        from planner.specs.ask.calibrations import calibrated, load_calibrations

        yield calibrated(said.collect(partial(load_calibrations, calibration)) or ())


def _what_if(said: Said) -> AbstractContextManager[object]:
    """What machines are supposed to have more or less of, where an option says so."""
    if not said.values.get("what_if"):
        return nullcontext()
    from planner.specs.ask.targets import WHAT_IF
    from planner.specs.files.what_if import EACH, named, what_if

    factors = said.values["what_if"] = said.collect(lambda: named(said.what_if)) or {}
    if EACH in factors and said.command != "plan":
        said.refuse(WHAT_IF, f"is nothing to `plan {said.command}`", f"`plan` has `{EACH}`")
    if "price" in factors and said.values.get("price"):
        said.refuse(WHAT_IF, "multiplies a rent that `--price` says", "leave one of them out")
    return what_if(**{name: value for name, value in factors.items() if name != EACH})
