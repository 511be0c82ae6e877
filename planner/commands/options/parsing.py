"""argv to what it says: words to texts of options, and what no option can mean."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.commands.options.commands import COMMANDS, called, options_of, owners
from planner.commands.options.said import Said
from planner.errors import Problem
from planner.specs.options.meanings import problem_of, refused_by
from planner.specs.options.option import Option, new_file
from planner.specs.options.readers import closest, synonyms

STDOUT, _TO_STDOUT = "-", ("--csv", "--solver-report")

PRINTED = ("--json", "--quiet", "--brief", "--full")
"""What is printed of an answer, of which there can be one."""

STANDING = ("--help", "-h", "--version", "--install-completion")
"""Words that need no other."""


@dataclass(slots=True)
class Words:
    """Words that are not read yet, the next one last."""

    said: Said
    rest: list[str]

    def read_all(self) -> None:
        is_first = self.said.command == "plan"
        while self.rest:
            token = self.rest.pop()
            if token in STANDING:
                self.said.standing = self.said.standing or token
            elif token.startswith("-") and token != "-":
                self._option(token)
            elif COMMANDS[self.said.command].word:
                self._word(token)
            else:
                self.said.problems.append(_stray(token, self.said, is_first=is_first))
            is_first = False

    def _option(self, token: str) -> None:
        name, equals, value = token.partition("=")
        row = options_of(self.said.command).get(name)
        if row is None:
            self._foreign(name, value if equals else self._value() or "")
        elif row.value:
            self._valued(row, value if equals else self._value(len(row.value.split())))
        elif equals:
            self.said.problems.append(Problem(where=token, fact="takes no value"))
        else:
            self.said.texts[name] = []

    def _value(self, n_words: int = 1) -> str | None:
        """The next word, or so many, unless one begins an option."""
        words: list[str] = []
        while len(words) < n_words and self.rest and not is_option(self.rest[-1]):
            words.append(self.rest.pop())
        return " ".join(words) if words else None

    def _word(self, token: str) -> None:
        command = self.said.command
        row = options_of(command)[COMMANDS[command].word]
        if row.name in self.said.texts and not row.gathers:
            fact = f"`{called(command)}` takes one {row.value.lower()}"
            self.said.problems.append(Problem(where=token, fact=fact))
        else:
            self._valued(row, token)

    def _valued(self, row: Option, text: str | None) -> None:
        if text is None:
            remedy = f"write `{row.name} {row.example}`" if row.example else ""
            self.said.refuse(row.name, "has no value", remedy, value="")
        elif row.name in self.said.texts and not row.gathers:
            self.said.refuse(row.name, "is given twice", value=text)
        else:
            self.said.texts.setdefault(row.name, []).append(text)

    def _foreign(self, name: str, value: str) -> None:
        """An option that another command has, or none."""
        command, owner = self.said.command, owners().get(name)
        row, near = refused_by(command).get(name), _meant(name, options_of(command))
        if row is not None:
            self.said.problems.append(problem_of(row, name, value))
        elif owner is not None and near not in synonyms().get(name, "").split():
            fact, remedy = f"means nothing to `{called(command)}`", f"it is an option of `{owner}`"
            self.said.refuse(name, fact, remedy, value=value)
        else:
            self.said.refuse(
                name, "no such option", f"did you mean `{near}`?" if near else "", value=value
            )
            if not near:
                self.said.hints.append(f"`{called(command)} --help` lists the options")


def is_option(token: str) -> bool:
    """Whether a token begins an option; `-5ms` and `-$2` are values, though wrong ones."""
    return token[:1] == "-" and not (token[1:2].isdigit() or token[1:2] in (".", "$", ""))


def command_of(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command that the first words name, `plan` where they name none, and the words behind."""
    names = {called(name): name for name in COMMANDS if name != "plan"}
    n_words = next((n for n in (2, 1) if " ".join(["plan", *argv[:n]]) in names), 0)
    return names.get(" ".join(["plan", *argv[:n_words]]), "plan"), argv[n_words:]


def parse(argv: Sequence[str]) -> Said:
    """The values of options, each problem of them, and what stands beside.

    >>> parse(["--batch", "8", "--fast"]).words
    ['--batch=8']
    """
    command, rest = command_of(argv)
    said = Said(command=command)
    Words(said, list(reversed(rest))).read_all()
    if said.standing:
        return said
    rows = options_of(said.command)
    for name in dict.fromkeys([*said.texts, *rows]):  # faults in the order of the words
        said.read_option(rows[name])
    said.problems += [*_incomplete(said), *_exclusive(said), *_unsolved(said)]
    return said


def _incomplete(said: Said) -> Iterator[Problem]:
    """Options that say nothing alone, and those that must not be left out."""
    command = COMMANDS[said.command]
    for name, row in options_of(said.command).items():
        if row.needs and said.is_given(name) and not said.is_given(row.needs):
            needed = options_of(said.command)[row.needs]
            remedy = f"leave it out, or write `{f'{needed.name} {needed.example}'.strip()}`"
            fact = lack_of(row.needs)
            yield Problem(where=name, value=said.text(name), fact=fact, remedy=remedy)
        if row.required and not said.is_given(name):
            where = called(said.command) if name == command.word else name
            yield Problem(where=where, fact=row.lack, remedy=row.required)


def lack_of(name: str) -> str:
    """What is wrong with options that need another."""
    return f"means nothing without `{name}`"


def _exclusive(said: Said) -> Iterator[Problem]:
    """Options that exclude each other."""
    is_data = said.text("--csv") == STDOUT
    shapes = ["--csv -"] * is_data + [name for name in PRINTED if said.is_given(name)]
    yield from (Problem(where=it, fact=f"cannot go with `{shapes[0]}`") for it in shapes[1:])
    if "--brief" in shapes or is_data:
        yield from (Problem(where=it, fact=f"cannot go with `{shapes[0]}`") for it in listing(said))
    elif said.is_given("--explain"):
        beside = {*shapes[:1], *listing(said)} - {"--explain"}
        yield from (Problem(where="--explain", fact=f"cannot go with `{it}`") for it in beside)


def _unsolved(said: Said) -> Iterator[Problem]:
    """Options with which what solvers did cannot be reported or kept."""
    if said.text("--solver-report") == STDOUT:
        data = ["--json"] * said.is_given("--json") + ["--csv"] * (said.text("--csv") == STDOUT)
        yield from (Problem(where=it, fact="cannot go with `--solver-report -`") for it in data)
    if said.is_given("--staircase") and said.values.get("workers", 1) > 1:
        fact, remedy = "does not see what other processes solve", "leave `--workers` out"
        for name in filter(said.is_given, ("--solver-report", "--keep-program")):
            yield Problem(where=name, value=said.text(name), fact=fact, remedy=remedy)


def listing(said: Said) -> list[str]:
    """Options that are given and have text list more than it does without them."""
    flags = [it for it in ("--all", "--ranks") if said.values.get(it[2:]) is True]
    return [*flags, *filter(said.is_given, ("--explain",))]


def files_of(said: Said) -> Mapping[str, str]:
    """The files that are to be written, by the option that names them."""
    rows = options_of(said.command).items()
    named = {n: said.text(n) for n, row in rows if row.reads is new_file and said.is_given(n)}
    return {n: text for n, text in named.items() if text != STDOUT or n not in _TO_STDOUT}


def _stray(word: str, said: Said, *, is_first: bool) -> Problem:
    """A word that stands alone where a command takes none."""
    if not is_first:
        return Problem(where=word, fact="belongs to no option")
    if word == "plan":
        return Problem(where=word, fact="is the command itself", remedy="leave it out")
    near = _meant(word, (*COMMANDS, "help"))
    meant = "plan --help" if near == "help" else called(near)
    if not near:
        said.hints.append("`plan --help` shows what `plan` understands")
    remedy = f"did you mean `{meant}`?" if near else ""
    return Problem(where=word, fact="no such command", remedy=remedy)


def _meant(word: str, known: Collection[str]) -> str:
    return closest(word, tuple(known), cutoff=0.7)
