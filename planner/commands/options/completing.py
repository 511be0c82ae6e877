"""Completion of the command line in bash, zsh and fish, written from the table of options."""

from __future__ import annotations

import os
from pathlib import Path

from planner.commands.options.commands import COMMANDS, options_of
from planner.errors import Problem, RequestError

_BASH = """\
# completion of `plan`, by `plan --install-completion`
_plan() {{
  local words
  case "${{COMP_WORDS[1]}}" in
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
    others = [name for name in COMMANDS if name != "plan"]
    cases = "\n".join(f'    {name}) words="{_names(name)}";;' for name in others)
    return _BASH.format(cases=cases, default=" ".join([*others, _names("plan")]))


def _zsh() -> str:
    """What bash does: zsh reads its completions."""
    return f"#compdef plan\nautoload -U bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = []
    others = " ".join(other for other in COMMANDS if other != "plan")
    for name in COMMANDS:
        is_here = f"__fish_seen_subcommand_from {name}"
        condition = f"not __fish_seen_subcommand_from {others}" if name == "plan" else is_here
        if name != "plan":
            lines.append(f"complete -c plan -n __fish_use_subcommand -a {name}")
        lines += [
            f"complete -c plan -n '{condition}' -l {option.removeprefix('--')}"
            for option, row in options_of(name).items()
            if option.startswith("-")
        ]
    return "\n".join(lines) + "\n"
