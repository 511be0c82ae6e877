"""Flags of a command line, held against the list of those that its program takes.

Lists are of the programs' own parsers, a file each in `manifests`; `tests/launch/shipped.py` makes
them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

FOLDER = files("planner.report.launch")
_JOINED = re.compile(r'\$\(\[ "\$\w+" = 0 \] \|\| echo (--[\w-]+)\)')
"""A flag of all nodes but the first."""

_SUM, _RANKS = re.compile(r"\$\(\((\d+) \* \w+\)\)"), re.compile(r"^srun .*? trtllm-llmapi-launch ")
_YAML = re.compile(r'^echo "(\{.*\})" > \S+ && ')

Flags = dict[str, str | bool]
"""Values by flag; True where a flag takes none."""


class Command(NamedTuple):
    """A command line, as its program reads it; `program` is empty where no manifest begins so.

    `model` is the word that is no flag's, `yaml` has the keys of a file that is written beside,
    and `problems` says what the program would refuse.
    """

    program: str
    flags: Flags
    model: str
    yaml: Mapping[str, object]
    problems: tuple[str, ...]


@cache
def manifests() -> Mapping[str, dict[str, Any]]:
    """Manifests by name: `begins`, `source`, `version`, `flags`, `degrees`, and keys of `yaml`.

    Of `flags`, false takes no value, true takes one, `+` several or comes again, and a list is of
    the values that it takes.
    """
    paths = [it for it in (FOLDER / "manifests").iterdir() if it.name.endswith(".json")]
    read = {it.name.removesuffix(".json"): json.loads(it.read_text("utf-8")) for it in paths}
    for manifest in read.values():
        if base := manifest.get("extends"):
            manifest["flags"] = read[base]["flags"] | manifest["flags"]
    return read


def command_of(line: str) -> Command:
    """What a line of a shell says to the program that it starts."""
    beside = _YAML.match(line)
    line = _RANKS.sub("", line[beside.end() :] if beside else line)
    words = shlex.split(_SUM.sub(r"\1", _JOINED.sub(r"\1", line)))
    firsts = {name: it["begins"].split() for name, it in manifests().items()}
    begun = [name for name, first in firsts.items() if words[: len(first)] == first]
    if not begun:
        return Command("", {}, "", {}, (f"nobody reads `{line[:40]}`",))
    program = max(begun, key=lambda name: len(firsts[name]))
    return _command(program, words[len(firsts[program]) :], beside[1] if beside else "{}")


def _command(program: str, words: Sequence[str], beside: str) -> Command:
    import yaml

    manifest, keys = manifests()[program], yaml.safe_load(beside)
    at = [i for i, word in enumerate(words) if word.startswith("--") or word in manifest["flags"]]
    said = [(words[i], words[i + 1 : end]) for i, end in pairwise((*at, len(words)))]
    problems = [it for flag, values in said for it in _refused(manifest["flags"], flag, values)]
    problems += _of_yaml(manifest.get("yaml", {}), keys)
    flags: Flags = {flag: " ".join(values) or True for flag, values in said}
    return Command(program, flags, words[0] if words and at[:1] != [0] else "", keys, (*problems,))


def _refused(table: Mapping[str, Any], flag: str, values: Sequence[str]) -> Iterator[str]:
    """What a program has against a flag and its values."""
    takes, most = table.get(flag), {False: 0, "+": len(values)}
    if takes is None:
        yield f"the program has no `{flag}`"
    elif len(values) > most.get(str(takes) if takes == "+" else bool(takes), 1):
        yield f"`{flag} {' '.join(values)}`: it takes no such number of words"
    elif takes is not False and not values:
        yield f"`{flag}` has no value"
    elif isinstance(takes, list) and values[0] not in takes:
        yield f"`{flag} {values[0]}`: it is one of {', '.join(takes)}"


def _of_yaml(table: Mapping[str, Any], keys: Mapping[str, object], at: str = "") -> Iterator[str]:
    """Keys that no manifest has, and values that it does not list."""
    for name, value in keys.items():
        key, word = f"{at}{name}", str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, dict):
            yield from _of_yaml(table, value, f"{key}.")
        elif key not in table:
            yield f"the program has no key `{key}`"
        elif table[key] is not None and word not in table[key]:
            yield f"`{key}: {word}`: it is one of {', '.join(table[key])}"


def n_devices_of(command: Command) -> int:
    """Devices that a server of the command takes, on all its nodes."""
    n_devices = 1
    for flag in manifests()[command.program]["degrees"]:
        n_devices *= int(command.flags.get(flag, 1))
    return n_devices
