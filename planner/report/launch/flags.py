"""Flags of a command line, held against the list of those that its program takes.

Lists are of the programs' own parsers, a file each in `manifests`; `tests/launch/shipped.py` makes
them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain, groupby, product, takewhile
from typing import Any, NamedTuple

from planner.quantities.tables import packaged_table

FOLDER = files("planner.report.launch")
_JOINED = re.compile(r'\$\(\[ "\$\w+" = 0 \] \|\| echo (--[\w-]+)\)')
"""A flag of all nodes but the first."""

_SUM, _RANKS = re.compile(r"\$\(\((\d+) \* \w+\)\)"), re.compile(r"^srun .*? trtllm-llmapi-launch ")
_YAML = re.compile(r'^echo "(\{[^*]*\})" > \S+ && ')
"""Keys beside a command, without aliases, which multiply."""

MOST_CHARACTERS = 2**15
"""Of a line, whose characters are put together one by one."""

_FLAG = re.compile(r"--|-[A-Z]")
_ENDS = re.compile(r"\d*>|<(?![A-Z])|&|\||;|#")
"""A word of the shell between commands."""

Flags = dict[str, str | bool]
"""Values by flag; True where a flag takes none."""


class Command(NamedTuple):
    """A command line, as its program reads it; `program` is empty where no manifest begins so.

    `model` is the word that is no flag's, `yaml` has the keys of a file that is written beside,
    and `problems` says what the program would refuse. `n_devices` are those that the line shows
    it, 0 where that is not said.
    """

    program: str
    flags: Flags
    model: str
    yaml: Mapping[str, object]
    problems: tuple[str, ...]
    n_devices: int = 0


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


@cache
def tables() -> dict[str, Any]:
    """What `targets.toml` says of targets and of programs."""
    return packaged_table("report/launch/targets.toml")


@cache
def _programs() -> Mapping[tuple[str, ...], str]:
    """Programs by the words that their command lines begin with."""
    begun = {it["begins"]: name for name, it in manifests().items()} | tables()["begins"]
    longest = sorted(begun, key=lambda it: (len(it.split()), len(it)), reverse=True)
    return {tuple(map(_spelt, words.split())): begun[words] for words in longest}


def _spelt(word: str) -> str:
    """A program without its folder, an image without its tag, and whichever Python."""
    return re.sub(r"^python[\d.]*$", "python", word.rpartition("/")[2].partition(":")[0])


def commands_of(line: str) -> list[Command]:
    """What a line of a shell says to each program that it starts, whatever stands around that."""
    import yaml

    beside = _YAML.match(line)
    line = _RANKS.sub("", line[beside.end() :] if beside else line)
    try:
        if len(line) > MOST_CHARACTERS:
            raise ValueError("is longer than any command")
        lexer = shlex.shlex(_SUM.sub(r"\1", _JOINED.sub(r"\1", line)), None, True, ";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(takewhile(lambda it: it[0:1] != "#", lexer))
        keys = yaml.safe_load(beside[1]) if beside else {}
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        fault = f"`{line[:40]}`: {' '.join(str(error).lower().split())}"
        return [Command("", {}, "", {}, (fault,))]
    parts = [list(own) for end, own in groupby(words, _ENDS.match) if not end]
    read = [it for part in parts for it in _started(part, keys)]
    return read or [Command("", {}, "", {}, (f"nobody reads `{line[:40]}`",))]


def _started(words: Sequence[str], keys: Mapping[str, object]) -> Iterator[Command]:
    """What words start, if anything: the program whose own words are most."""
    spelt = tuple(map(_spelt, words))
    for (first, program), i in product(_programs().items(), range(len(words))):
        if spelt[i : i + len(first)] == first:
            command = _command(program, words[i + len(first) :], keys)
            is_part = re.search(tables()["shell"]["across"], " ".join(words))
            yield command if is_part else command._replace(n_devices=n_shown(words[:i]))
            return


def n_shown(words: Iterable[str]) -> int:
    """Devices that words of a shell show a program, the last of them; 0 where they name none."""
    listed = re.findall(tables()["shell"]["shown"], " ".join(words))
    shown = (int(n) if n else len(names.split(",")) for names, n in listed)
    return [0, *shown][-1]


def engine_of(program: str) -> str:
    """The engine that a program of a manifest starts; empty if it starts none."""
    name = program.removeprefix("dynamo-")
    return name if name in tables()["engines"] else ""


def _command(program: str, words: Sequence[str], keys: Mapping[str, object]) -> Command:
    manifest, engine = manifests()[program], engine_of(program)
    table, same = manifest["flags"], tables()["engines"].get(engine, {}).get("same", {})
    said: dict[str, list[str]] = {}
    alone: list[str] = []
    flag = ""
    for word in chain.from_iterable(_divided(it, table, same) for it in words):
        if _FLAG.match(word) or word in table:
            flag, said[word] = word, []
        elif flag and _takes_more(table.get(flag.replace("--no-", "--"), "+"), said[flag]):
            said[flag].append(word)
        else:
            alone.append(word)
    problems = [it for pair in said.items() for it in _refused(table, *pair)]
    problems += [*_of_yaml(manifest.get("yaml", {}), keys)]
    problems += map("`{}` belongs to no flag".format, alone[1:])
    flags: Flags = {flag: " ".join(values) or True for flag, values in said.items()}
    return Command(program, flags, "".join(alone[:1]), keys, (*problems,))


def _takes_more(takes: object, values: Sequence[str]) -> bool:
    return takes == "+" or (takes is not False and not values)


def _divided(word: str, table: Mapping[str, Any], same: Mapping[str, str]) -> list[str]:
    """A flag as its program spells it, apart from its value: `--tp=4`, `--tensor_parallel_size`."""
    if not word.startswith("-"):
        return [word]
    flag, equals, value = word.partition("=")
    dashed = flag.replace("_", "-")
    spelt = flag if flag in table or dashed not in table else dashed
    spelt = same.get(spelt, spelt)
    begun = [it for it in table if it.startswith(f"{spelt}-") or it.startswith(f"{spelt}_")]
    if spelt not in table and len(begun) == 1:  # as argparse has it
        spelt = begun[0]
    return [spelt, value] if equals else [spelt]


def _refused(table: Mapping[str, Any], flag: str, values: Sequence[str]) -> Iterator[str]:
    """What a program has against a flag and its values."""
    takes = table.get(flag)
    if takes is None:
        yield f"the program has no `{flag}`"
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
        said = str(command.flags.get(flag, 1))
        n_devices *= int(said) if said.isdigit() else 1
    return n_devices
