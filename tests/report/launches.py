"""Commands that start engines, read by the flags that the engines' own parsers list."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from planner.results.predictions import Launch

DATA = Path(__file__).parents[1] / "data" / "launch"

_BEGINS = {
    "vllm": ("vllm", "serve"),
    "sglang": ("python", "-m", "sglang.launch_server"),
    "trtllm": ("trtllm-serve",),
}
_DEGREES = {
    "vllm": ("--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size"),
    "sglang": ("--tp-size", "--pp-size"),
    "trtllm": ("--tp_size", "--pp_size"),
}
_IN_SHELL = re.compile(r"\$\(\(([^)]*)\)\)|\$\(([^)]*)\)")


@cache
def known(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{engine}.json").read_text())
    return found


def flags_of(engine: str, launch: Launch) -> dict[str, str | bool]:
    """Flags and values of a command, every one of them known and every choice one of its own."""
    line = launch.command
    yaml, there, line = line.rpartition(" > trtllm.yaml && ")
    if there:
        _check_yaml(engine, yaml)
    joined = '$([ "$NODE_RANK" = 0 ] || echo --headless)'
    line = line.replace(joined, "--headless")
    line = re.sub(r"\$\(\((\d+) \* NODE_RANK\)\)", r"\1", line)
    words = shlex.split(line)
    if words[0] == "srun":
        assert words[5:7] == ["--mpi=pmix", "trtllm-llmapi-launch"], words
        words = words[7:]
    begins = _BEGINS[engine]
    assert tuple(words[: len(begins)]) == begins
    rest = words[len(begins) :]
    if engine != "sglang":
        assert not rest[0].startswith("-"), "the model comes first"
        rest = rest[1:]
    flags = _read(known(engine)["flags"], rest)
    used = set(re.findall(r"\b(?:CHECKPOINT|DRAFTER|NODE_RANK|HEAD)\b", launch.command))
    assert used == launch.variables.keys()
    return flags


def _read(table: dict[str, Any], words: list[str]) -> dict[str, str | bool]:
    flags: dict[str, str | bool] = {}
    while words:
        flag = words.pop(0)
        assert flag in table, f"the engine has no {flag}"
        assert flag not in flags, f"{flag} is said twice"
        if not table[flag]["takes_value"]:
            flags[flag] = True
            continue
        value = words.pop(0)
        assert not value.startswith("--"), f"{flag} has no value"
        choices = table[flag]["choices"]
        assert choices is None or value in choices, f"{flag} {value}: it is one of {choices}"
        flags[flag] = value
    return flags


def _check_yaml(engine: str, written: str) -> None:
    """Keys of the YAML that `echo` writes, in flow style."""
    text = re.fullmatch(r'echo "\{(.*)\}"', written)
    assert text, written
    table = known(engine)["yaml"]
    sections = r"(\w+): \{([^}]*)\}(?:, )?"
    for pair in filter(None, re.sub(sections, "", text[1]).split(", ")):
        key, _, value = pair.partition(": ")
        assert value in table[key], pair
    for section, inside in re.findall(sections, text[1]):
        for pair in inside.split(", "):
            key, _, value = pair.partition(": ")
            choices = table[f"{section}.{key}"]
            assert not isinstance(choices, list) or value in choices, pair


def n_devices_of(engine: str, launch: Launch) -> int:
    """Devices that the command takes, on all servers."""
    flags = flags_of(engine, launch)
    found = launch.n_servers
    for flag in _DEGREES[engine]:
        found *= int(flags.get(flag, 1))
    return found
