"""Launch files read back: schemas, flags, devices and caches, held against the plan.

Their text is parsed, by YAML or line by line, and what it would start is counted; of how it is
written only the names of flags and keys in `targets.toml` are used.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import ceil
from shutil import which
from typing import Any

from planner.report.launch.expected import CacheRoom
from planner.report.launch.flags import FOLDER, Command, Flags, manifests, n_devices_of, tables
from planner.report.launch.reading import Pods, documents_of, pods_in
from planner.report.launch.servers import Entrance, ServerPool

KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")
"""What a user has to say, of whatever kind."""


@cache
def schema_of(name: str) -> Mapping[str, Any]:
    """The closed schema of a kind, with its source and version; empty of one that nobody knows."""
    path = FOLDER / "schemas" / f"{name}.json"
    schema: Mapping[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return schema


def unfit(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:  # noqa: ANN401
    """What of a value its schema does not allow; a key that it does not list is one of that."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, str) and PLACEHOLDER.fullmatch(value):
        return
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        yield f"{at}: `{value}` is no {' or '.join(kinds)}"
    elif value not in schema.get("enum", [value]):
        yield f"{at}: `{value}`: it is one of {', '.join(map(str, schema['enum']))}"
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from unfit(each, schema.get("items", {}), f"{at}[{number}]")
    elif isinstance(value, dict):
        yield from _unfit_keys(value, schema, at)


def _is_kind(value: object, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean") == isinstance(value, bool)


def _unfit_keys(value: dict[str, Any], schema: Mapping[str, Any], at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    missing = [key for key in schema.get("required", ()) if key not in value]
    yield from (f"{at}: `{key}` is missing" for key in missing)
    for key, inside in value.items():
        if key in known or "values" in schema:
            yield from unfit(inside, known.get(key, schema.get("values")), f"{at}.{key}")
        elif "type" in schema:
            yield f"{at}: there is no key `{key}`"


def file_problems(name: str, text: str, target: str) -> Iterator[str]:
    """What schemas refuse of a file; of a script what bash does not read, where there is bash."""
    bash = which("bash")
    if name.endswith(".sh") and bash:
        run = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False)
        yield from [f"{name}: {run.stderr.strip()}"] if run.returncode else []
    for kind, document in documents_of(text, target) if name.endswith(".yaml") else ():
        schema = schema_of(kind)
        yield from [] if schema else [f"{name}: nobody knows the kind `{kind}`"]
        yield from unfit(document, schema.get("schema", {}), f"{name} {kind}")


def problems_of(
    texts: Mapping[str, str],
    entrances: Sequence[Entrance],
    target: str,
    rooms: Mapping[str, CacheRoom | None],
) -> Iterator[str]:
    """What is wrong with launch files, in words; nothing where they start the plan.

    Args:
        texts: of files, by name.
        rooms: blocks of each pool's cache, where they are known.
    """
    unread: list[str] = []
    started: list[Pods] = []
    for name, text in texts.items():
        try:
            unread += file_problems(name, text, target)
            started += [] if unread else pods_in(name, text, target)
        except ValueError as error:
            unread.append(f"{name}: cannot be read: {error}")
    if unread:
        yield from unread
        return
    pools = [pool for entrance in entrances for pool in entrance.pools]
    for pods in started:
        yield from (f"{pods.file}: {it}" for it in _pods_problems(pods, pools, rooms))
    planned, counted = sum(it.n_devices for it in pools), devices_in(started)
    if planned != counted:
        yield f"{counted} GPUs in the files, {planned} in the plan"


def devices_in(started: Sequence[Pods]) -> int:
    return sum(it.n_devices * it.n_pods for it in started)


def _pods_problems(
    pods: Pods, pools: Sequence[ServerPool], rooms: Mapping[str, CacheRoom | None]
) -> Iterator[str]:
    """Of a server: its devices; its flags, against the pool that is most like it; its cache."""
    yield from pods.command.problems
    if not pods.n_devices or not pods.command.program:
        return
    takes, (said, leaves) = n_devices_of(pods.command), _own_flags(pods.command)
    if pods.n_devices * pods.n_nodes != takes:
        here = f"{pods.n_devices} GPUs on {pods.n_nodes} nodes"
        yield f"{here} for a server whose flags take {takes}"
    alike = [it for it in pools if it.engine in pods.command.program]
    if not alike:
        yield f"no pool of the plan runs `{pods.command.program}`"
        return
    pool = min(alike, key=lambda it: len([*_differences(said, it, leaves)]))
    wrong = [*_differences(said, pool, leaves), *_overfull(said, pool, rooms.get(pool.name))]
    yield from (f"{pool.name}: {words}" for words in wrong)


def _own_flags(command: Command) -> tuple[Flags, set[str]]:
    """Flags as those of the engine by itself, and those that are not looked at."""
    renamed, leaves = tables()["engines"]["trtllm"]["renamed"], {*tables()["joining"]["flags"]}
    if command.program != "dynamo-trtllm":  # which has others among its engine's arguments
        return command.flags, leaves
    own = {old: command.flags[new] for old, new in renamed.items() if new in command.flags}
    return own, leaves | (manifests()["trtllm"]["flags"].keys() - renamed.keys())


def _differences(said: Flags, pool: ServerPool, leaves: set[str]) -> Iterator[str]:
    names = {mark: name for name, mark in pool.marks.items()}
    for flag, value in pool.started.flags.items():
        written = said.get(flag, "missing")
        if flag not in leaves and _value(names.get(str(written), written)) != _value(value):
            yield f"`{flag}` is {written}, the plan has {value}"
    for flag in said.keys() - pool.started.flags.keys() - {*tables()["added"]["flags"]} - leaves:
        yield f"`{flag}` is not of the plan"


def _value(word: object) -> object:
    """Numbers are the same however many digits say so, and JSON whatever stands between."""
    try:
        return json.loads(str(word))
    except ValueError:
        return word


def _overfull(said: Flags, pool: ServerPool, room: CacheRoom | None) -> Iterator[str]:
    if room is None:
        return
    n_sequences = sequences_of(said, pool)
    n_tokens = int(said.get(tables()["engines"][pool.engine]["tokens"], 0))
    if n_sequences > room.largest_batch:
        yield f"{n_sequences} sequences of a rank, and caches of {room.largest_batch} fit"
    if ceil(n_tokens / room.block_tokens) > room.n_blocks:
        yield f"a sequence of {n_tokens} tokens needs more than {room.n_blocks} blocks, which fit"


def sequences_of(said: Flags, pool: ServerPool) -> int:
    """Sequences of an attention rank, of which SGLang says all ranks together."""
    n_ranks = int(said.get("--attn-dp-size", 1))
    return int(said.get(tables()["engines"][pool.engine]["running"], 0)) // n_ranks
