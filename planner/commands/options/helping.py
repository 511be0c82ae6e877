"""Pages of help and completions of shells, from the table of options."""

import os
from collections.abc import Iterator
from pathlib import Path

from planner.commands.options.commands import COMMANDS, Command, called, options_of
from planner.errors import Problem, RequestError
from planner.report.paint import width
from planner.report.words import wrapped
from planner.specs.options.option import Option
from planner.specs.options.table import HEADINGS
from planner.specs.traffic.percentiles import DEFINITIONS, GOODPUT

_COLUMN = 28  # where words begin; `--prefill-batch BATCHES` fits before it

NOTES = {"Targets by percentile": (*DEFINITIONS.values(), GOODPUT)}
"""What is said below a heading."""


def help_page(name: str) -> str:
    """What a command does, and its options; of `plan` itself the other commands too."""
    command = COMMANDS[name]
    return "\n\n".join(["\n".join(part) for part in _parts(name, command)])


def _parts(name: str, command: Command) -> Iterator[list[str]]:
    yield list(_usage(name))
    yield wrapped(command.words, width())
    if name == "plan":
        others = {called(one)[5:]: other.words for one, other in COMMANDS.items() if one != name}
        yield ["commands", *_columns(others)]
        yield ["standing alone", *_columns(_STANDING)]
    for heading, rows in HEADINGS.items():
        own = [row for row in rows if options_of(name).get(row.name) is row]
        if own:
            labels = {row.usage: _words(row, command) for row in own}
            yield [heading.lower(), *_notes(heading), *_columns(labels)]


def _usage(name: str) -> Iterator[str]:
    """How a command is called; of `plan` itself all commands."""
    label = "usage:"
    for command in COMMANDS if name == "plan" else (name,):
        yield f"{label:6} {called(command)} {COMMANDS[command].usage}"
        label = ""


_STANDING = {
    "--help, -h": "Print this page; of a command, behind its name.",
    "--version": "Print the version.",
    "--install-completion": "Install completion for the shell in use.",
}


def _words(row: Option, command: Command) -> str:
    """What help says of an option, with what is usual."""
    if row.name in command.keeps:
        words, _, _ = row.words.removesuffix(".").partition("; default: ")
        return f"{words}; default: as before."
    return f"{row.words} [{row.usual}]" if row.usual else row.words


def _notes(heading: str) -> Iterator[str]:
    for sentence in NOTES.get(heading, ()):
        first, *rest = wrapped(sentence, width() - 4)
        yield f"  {first}"
        yield from (f"    {line}" for line in rest)


def _columns(labels: dict[str, str]) -> Iterator[str]:
    for label, words in labels.items():
        first, *rest = wrapped(words, width() - _COLUMN)
        yield f"  {label:<{_COLUMN - 4}}  {first}".rstrip()
        yield from (" " * _COLUMN + line for line in rest)


_BASH = """\
# completion of `plan`, by `plan --install-completion`
_plan() {{
  local words
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} " in
{cases}
    *) words="{default}";;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _plan plan
"""


def install() -> Path:
    """Write the script of the shell in use where that looks for it.

    Raises:
        RequestError: the shell is not known.
    """
    shell, home = Path(os.environ.get("SHELL", "")).name, Path.home()
    scripts = {
        "bash": (home / ".local/share/bash-completion/completions/plan", _bash),
        "zsh": (home / ".zfunc/_plan", _zsh),
        "fish": (home / ".config/fish/completions/plan.fish", _fish),
    }
    if shell not in scripts:
        fact, remedy = f"the shell `{shell}` is not known", "start it from bash, zsh or fish"
        raise RequestError([Problem(where="--install-completion", fact=fact, remedy=remedy)])
    path, script = scripts[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(), encoding="utf-8")
    return path


def _names(command: str) -> str:
    return " ".join(name for name in options_of(command) if name.startswith("-"))


def _bash() -> str:
    """Of two words that both are a command's, it is that; the second may be any other word."""
    others = sorted((name for name in COMMANDS if name != "plan"), key=lambda it: "-" not in it)
    called_so = {name: called(name)[5:].replace(" ", "\\ ") for name in others}
    cases = "\n".join(
        f'    {words}\\ *) words="{_names(name)}";;' for name, words in called_so.items()
    )
    first = dict.fromkeys(name.partition("-")[0] for name in others)
    return _BASH.format(cases=cases, default=" ".join([*first, _names("plan")]))


def _zsh() -> str:
    """What bash does: zsh reads its completions."""
    return f"#compdef plan\nautoload -U bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = []
    others = " ".join(other for other in COMMANDS if other != "plan")
    for name in COMMANDS:
        before, dash, last = name.rpartition("-")
        is_here = f"__fish_seen_subcommand_from {last}"
        condition = f"not __fish_seen_subcommand_from {others}" if name == "plan" else is_here
        where = f"'__fish_seen_subcommand_from {before}'" if dash else "__fish_use_subcommand"
        if name != "plan":
            lines.append(f"complete -c plan -n {where} -a {last}")
        lines += [
            f"complete -c plan -n '{condition}' -l {option.removeprefix('--')}"
            for option, row in options_of(name).items()
            if option.startswith("-")
        ]
    return "\n".join(lines) + "\n"
