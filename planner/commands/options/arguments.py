"""argv, freed of what no option can mean.

A parser stops at the first thing that it does not know. Here every such thing becomes a
`Problem`, and what is left parses: so one message names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from planner.commands.options.offered import (
    COMMANDS,
    REPEATED,
    REPEATED_BY,
    SURVEYS,
    WORDS,
    flags,
    record_of,
    valued,
)
from planner.errors import Problem, RequestError
from planner.quantities import limited
from planner.specs.meanings import Refusal, misplaced, problem_of, refused_by

if TYPE_CHECKING:
    from planner.specs.placement_request import SiteSpec

STANDING = frozenset({"--help", "-h", "--version", "--install-completion"})  # need nothing else

_EXAMPLES = {
    **{one.option: one.example for one in limited()},
    "--time-limit": "10s",
    "--max-utilisation": "85%",
    "--max-quality-loss": "1%",
    "--tp": "8",
    "--pp": "2",
    "--ep": "8",
    "--dp": "2",
    "--layout": "decode=WS2D",
    "--batch": "1:1024",
    "--max-rent": "'$500/h'",
    "--replicas": "4",
    "--state": "state.toml",
    "--weights": "bf16,int8",
    "--gap": "1%",
}


_T = TypeVar("_T")
_S = TypeVar("_S", bound="SiteSpec")


@dataclass(slots=True, kw_only=True)
class Arguments:
    """What argv says.

    Args:
        tokens: what parses.
        problems: what does not.
        hints: what was probably meant.
    """

    tokens: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    @property
    def command(self) -> str:
        """The command, `plan` where it is that itself."""
        first = self.tokens[0] if self.tokens else ""
        return first if first in SURVEYS else "plan"

    def refuse(self, runtimes: Sequence[str]) -> None:
        """Keep what is wrong with options that mean nothing under the runtimes asked for."""
        words = (token.partition("=") for token in self.tokens if token.startswith("--"))
        said = {name: value for name, _, value in words}
        refused = list(misplaced(said, runtimes, self.command))
        names = {one.where for one in refused}  # what else is wrong with them does not matter
        self.problems = [*(one for one in self.problems if one.where not in names), *refused]

    def collect(self, call: Callable[[], _T]) -> _T | None:
        """The result of a call; or None, and its problems among those found."""
        try:
            return call()
        except RequestError as error:
            self.problems += error.problems
            self.hints += filter(None, (error.hint,))
            return None

    def priced(self, texts: Sequence[str], sites: Sequence[_S]) -> list[_S]:
        """Sites at the rents that are asked for; a kind that none of them has is a problem."""
        if not texts:
            return list(sites)
        from planner.commands.options.by_name import read_prices
        from planner.commands.options.reading import Faults
        from planner.specs.prices import priced, unknown_kinds

        faults = Faults()
        prices = read_prices(texts, faults)
        self.problems += [*faults.problems, *unknown_kinds(prices, sites)]
        return [priced(site, prices) for site in sites]

    def check(self) -> None:
        """Go on only if nothing is wrong.

        Raises:
            RequestError: with all problems.
        """
        if self.problems:
            raise RequestError(
                list(dict.fromkeys(self.problems)), hint="\n".join(dict.fromkeys(self.hints))
            )


def tidy(argv: list[str]) -> Arguments:
    """Split argv into what parses and what is wrong with the rest.

    >>> tidy(["--batch", "8", "--fast"]).tokens
    ['--batch=8']
    """
    if argv and argv[0] in COMMANDS:
        return _command(argv)
    if argv and argv[0] in SURVEYS:
        return _options(argv[1:], record_of(argv[0]), command=argv[0])
    return _options(argv, record_of(""))


def _command(argv: list[str]) -> Arguments:
    """`plan models [NAME]`: one word at most, beside the command's options."""
    said = Arguments(tokens=argv[:1])
    command = f"plan {argv[0]}"
    for token in argv[1:]:
        if token in (*STANDING, *COMMANDS[argv[0]]):
            said.tokens.append(token)
        elif token.startswith("-"):
            said.problems.append(Problem(where=token, fact=f"is no option of `{command}`"))
        elif any(not word.startswith("-") for word in said.tokens[1:]):
            said.problems.append(Problem(where=token, fact=f"`{command}` takes one name"))
        else:
            said.tokens.append(token)
    return said


def _options(argv: list[str], written: type, *, command: str = "") -> Arguments:
    """The options of `plan`, or of a command that takes options too."""
    said = Arguments(tokens=[command] if command else [])
    with_value, without = valued(written), (*flags(written), *STANDING)
    refused = refused_by(command or "plan")
    seen: set[str] = set()
    repeated = REPEATED | REPEATED_BY.get(command, frozenset())
    rest = list(reversed(argv))
    while rest:
        token = rest.pop()
        name, equals, value = token.partition("=")
        if name in refused or (name not in (*with_value, *without) and name in _offered()):
            if not equals and rest and not _is_option(rest[-1]) and name not in without:
                value = rest.pop()
            said.problems.append(_refusal(refused.get(name), name, value, command))
        elif name in without:
            _flag(said, token, has_value=bool(equals))
        elif name in with_value:
            if not equals and rest and not _is_option(rest[-1]):
                value, equals = rest.pop(), "="
            _valued(said, name, value if equals else None, seen - repeated)
            seen.add(name)
        elif token.startswith("-") and token != "-":
            if not equals and rest and not _is_option(rest[-1]):
                value = rest.pop()
            _unknown_option(said, name, value, known=(*with_value, *without))
        elif command in WORDS:
            _valued(said, WORDS[command], token, seen - repeated)
            seen.add(WORDS[command])
        else:
            _stray(said, token, is_first=not command and len(rest) + 1 == len(argv))
    return said


@cache
def _offered() -> dict[str, str]:
    """The options of all commands, each with the first command that has it."""
    found: dict[str, str] = {}
    for command in ("", *SURVEYS):
        written = record_of(command)
        known = {*valued(written), *flags(written)} - refused_by(command or "plan").keys()
        for name in known:
            found.setdefault(name, f"plan {command}".rstrip())
    return found


def _refusal(row: Refusal | None, name: str, value: str, command: str) -> Problem:
    """Why a command does not take an option: as the table says, or that another has it."""
    if row is not None:
        return problem_of(row, name, value)
    fact = f"means nothing to `{f'plan {command}'.rstrip()}`"
    remedy = f"it is an option of `{_offered()[name]}`"
    return Problem(where=name, value=value, fact=fact, remedy=remedy)


def _is_option(token: str) -> bool:
    """Whether a token begins an option; `-5ms` and `-$2` are values, though wrong ones."""
    return token[:1] == "-" and not (token[1:2].isdigit() or token[1:2] in (".", "$", ""))


def _flag(said: Arguments, token: str, *, has_value: bool) -> None:
    if has_value:
        said.problems.append(Problem(where=token, fact="takes no value"))
    else:
        said.tokens.append(token)


def _valued(said: Arguments, name: str, value: str | None, seen: set[str]) -> None:
    if value is None:
        example = _EXAMPLES.get(name)
        remedy = f"write `{name} {example}`" if example else ""
        said.problems.append(Problem(where=name, fact="has no value", remedy=remedy))
    elif name in seen:
        said.problems.append(Problem(where=name, value=value, fact="is given twice"))
    else:
        said.tokens.append(f"{name}={value}")


def _unknown_option(said: Arguments, name: str, value: str, *, known: tuple[str, ...]) -> None:
    near = _closest(name, known)
    remedy = f"did you mean `{near}`?" if near else ""
    said.problems.append(Problem(where=name, value=value, fact="no such option", remedy=remedy))
    if not near:
        command = " ".join(["plan", *(word for word in said.tokens[:1] if word in SURVEYS)])
        said.hints.append(f"`{command} --help` lists the options")


def _stray(said: Arguments, word: str, *, is_first: bool) -> None:
    if not is_first:
        said.problems.append(Problem(where=word, fact="belongs to no option"))
        return
    near = _closest(word, (*COMMANDS, *SURVEYS, "help"))
    meant = "plan --help" if near == "help" else f"plan {near}"
    remedy = f"did you mean `{meant}`?" if near else ""
    said.problems.append(Problem(where=word, fact="no such command", remedy=remedy))
    if not near:
        said.hints.append("`plan --help` shows what `plan` understands")


def _closest(word: str, known: tuple[str, ...]) -> str:
    begun = [name for name in known if name.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(word, known, n=1, cutoff=0.7)), "")
