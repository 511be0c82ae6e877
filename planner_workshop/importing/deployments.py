"""Servers that a command line or a launch file starts, as options of `plan predict`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from planner.errors import Problem, RequestError, SpecError
from planner.quantities.tables import packaged_table
from planner.report.launch.flags import Command, commands_of, engine_of, n_devices_of, tables
from planner.report.launch.reading import Pods, pods_in
from planner.specs.files.ledger import Use
from planner.specs.files.reading import load_model
from planner.specs.files.texts import UnreadError, json_of, read_text
from planner.specs.records.roles import PREFILL

TABLE = packaged_table("importing/engines.toml", "planner_workshop")
OVERRIDE = "--override-engine-args"
"""Of dynamo.trtllm: keys of the engine's file."""

MOST_BYTES = 2**20
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmM])")
_TIMES = {"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}

Texts = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedServer:
    """Servers that are started alike.

    Args:
        place: where they stand: a file with a line, or the option that has their command.
        engine: that they run.
        options: of `plan predict`, by name without dashes, and `tokens` of the longest request.
        flags: what says them, as it is written.
        unread: what nothing here is said of; `wrong`: what cannot be, in words.
        n_servers: how many there are, pods over those of one; `n_devices`: of each.
        product: their devices as the file calls them.
    """

    place: str
    engine: str
    options: Texts
    flags: Texts
    unread: Sequence[str]
    wrong: Sequence[str]
    n_servers: float
    n_devices: int
    product: str


def read_servers(text: str, *, asked_by: str, model: str) -> list[StartedServer]:
    """The servers of engines that a command line starts, or a file of such.

    Args:
        text: a command, or the path of a script or of YAML.
        asked_by: the option that says it.
        model: what serves, where the user says so; else empty.

    Raises:
        SpecError: it cannot be read, or starts none.
    """
    is_line = len(text.split()) != 1 and not os.path.exists(text)  # noqa: PTH110 of any length
    name = asked_by if is_line else text
    try:
        content = text if is_line else read_text(text, most_bytes=MOST_BYTES, use=Use(kind="flags"))
    except UnreadError as error:
        raise SpecError([error.problem(name)]) from None
    pods = _of_engines(name, content)
    if not pods:
        fact = f"starts no server of {', '.join(tables()['engines'])} that can be read"
        fact += "".join(f": {it}" for it in commands_of(text)[0].problems * is_line)
        remedy = f"write `{asked_by} 'vllm serve MODEL …'`, or name a script or YAML"
        raise SpecError([Problem(where=name, fact=fact, remedy=remedy)])
    is_apart = PREFILL in {it.role for it in pods}
    alike: dict[str, StartedServer] = {}
    end = 0
    for it in pods:
        server = _server(it, model=model, is_apart=is_apart)
        if not it.line:
            end = _end_of_line(server.flags.get("model", ""), f"{content}\n", end)
        number = it.line or content.count("\n", 0, end) + 1
        line = f":{number}" * ("\n" in content.strip())
        key = str(replace(server, n_servers=0.0))
        first = alike.get(key, replace(server, place=name + line, n_servers=0.0))
        alike[key] = replace(first, n_servers=first.n_servers + server.n_servers)
    return list(alike.values())


def _of_engines(name: str, content: str) -> list[Pods]:
    """Pods of engines, as many as are started at all."""
    try:
        pods = [it for it in pods_in(name, content) if engine_of(it.command.program)]
    except ValueError as error:
        raise SpecError([Problem(where=name, fact=f"cannot be read: {error}")]) from None
    return [it for it in pods if it.n_pods > 0 < it.n_nodes]


def _end_of_line(flag: str, content: str, last: int) -> int:
    """Where the next line of YAML ends that says a flag's value, or the first of all."""
    word = flag.rpartition(" ")[2]
    start = content.find(word, last)
    return content.find("\n", start if start >= 0 else max(0, content.find(word)))


def _server(pods: Pods, *, model: str, is_apart: bool) -> StartedServer:
    """Servers of like pods."""
    command, engine = pods.command, engine_of(pods.command.program)
    said, flags, unread = _meanings(command, engine)
    if role := pods.role * is_apart:
        said.setdefault("role", role)
    wrong = [*_faults(command, said, flags)]
    unread += [it for it in command.problems if "$" in it]  # what a shell alone knows
    wrong += [] if wrong else _by_rank(engine, said)
    n_devices, n_here = n_devices_of(command), pods.n_devices * pods.n_nodes
    if 0 < n_here < n_devices:
        wrong.append(f"has {n_here} devices for a server whose flags take {n_devices}")
    elif n_here > n_devices:
        unread.append(f"{n_here - n_devices} of the {n_here} devices of a server")
    unread += _tree(said, flags)
    _as_published(model, said)
    return StartedServer(
        place="",
        engine=engine,
        n_servers=pods.n_pods / pods.n_nodes * float(said.pop("copies", 1)),
        options=said,
        flags=flags,
        unread=unread,
        wrong=wrong,
        n_devices=n_devices,
        product=pods.product,
    )


def _faults(command: Command, said: Texts, flags: Texts) -> Iterator[str]:
    """What cannot be of flags; numbers that are none are taken out of what they say."""
    for it in TABLE["numbers"]:
        if not _NUMBER.fullmatch(said.get(it, "1")) and (value := said.pop(it)) != "true":
            fault = "it has to be at least 1" if not value.strip("0") else f"{value} is no number"
            yield f"has `{flags[it]}`, and {fault}"
    for fault in command.problems:
        if "$" not in fault and "the program has no" not in fault:
            yield f"is refused by {engine_of(command.program)}: {fault}"


def _meanings(command: Command, engine: str) -> tuple[Texts, Texts, list[str]]:
    """Options, the flags that say them, and flags that say nothing here."""
    words, idle = TABLE["words"], TABLE["idle"]["flags"].split()
    said, flags, unread = {"model": command.model}, {"model": command.model}, []
    for flag, value in _said(command, engine):
        option, shown = TABLE[engine].get(flag, ""), f"{flag} {value}".removesuffix(" true")
        word = words[option].get(value.lower()) if option in words else _plain(value)
        if option and word is not None:
            said, flags = said | {option: word}, flags | {option: shown}
        elif not any(fnmatchcase(flag, it) for it in idle):
            unread.append(f"`{shown}`")
    return {name: word for name, word in said.items() if word}, flags, unread


def _said(command: Command, engine: str) -> Iterator[tuple[str, str]]:
    """Flags and keys with their values; `true` of those that take none."""
    renamed = {new: old for old, new in tables()["engines"][engine].get("renamed", {}).items()}
    keys = dict(command.yaml)
    for flag, value in command.flags.items():
        try:
            inside = json_of(str(value)) if str(value)[:1] == "{" else None
        except ValueError:
            inside = None
        if flag == OVERRIDE and inside:
            keys |= inside
        else:
            keys[renamed.get(flag, flag)] = inside or value
    yield from _flat(keys)


def _flat(keys: Mapping[str, object], at: str = "") -> Iterator[tuple[str, str]]:
    for key, value in keys.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", json.dumps(value) if isinstance(value, bool) else str(value)


def _plain(value: str) -> str | None:
    """A value as options take it: `32k` is 32000; None of what is no value, like -1."""
    if value == "auto":
        return ""
    if count := _COUNT.fullmatch(value):
        return f"{float(count[1]) * _TIMES[count[2]]:.0f}"
    return None if value.startswith("-") else value


def _tree(said: Texts, flags: Texts) -> Iterator[str]:
    """Flags of drafts that are a tree, of which times know one token at each depth."""
    names = [it for it in ("width", "scored") if said.pop(it, "1") != "1"]
    if "width" in names:
        depth = said.get("lookahead", "its depth")
        how = f", a tree of drafts, timed as a chain of {depth}"
        yield " and ".join(f"`{flags[it]}`" for it in names) + how * ("draft" in said)


def _by_rank(engine: str, said: Texts) -> Iterator[str]:
    """Make of what a server says of all its devices what options say of an attention rank."""
    tensor, data, copies = (int(said.get(it, 1)) for it in ("tp", "dp", "copies"))
    n_ranks, experts = data, said.get("ep", "1")
    if said.pop("shared", ""):
        n_ranks = {"trtllm": tensor}.get(engine, copies)
        said["copies"] = "1"
    if "true" in (experts, said.pop("exchanges", "")):
        experts = str({"vllm": tensor * data}.get(engine, tensor))
    if experts != "1" or n_ranks > 1:
        said |= {"ep": experts, "dp": str(n_ranks)}
    for name in said.keys() & TABLE["divided"][engine]:
        said[name] = str(max(1, int(said[name]) // n_ranks))
    if "tp" in TABLE["divided"][engine] and tensor % n_ranks:
        yield f"has {tensor} devices, which {n_ranks} attention ranks cannot share alike"


def _as_published(model: str, said: Texts) -> None:
    """Leave out what a checkpoint has by itself: its format, and layers that draft."""
    if not said.pop("drafter", "") and said.get("draft") == "eagle":
        said["draft"] = "mtp"  # SGLang's word for those, too
    try:
        published = load_model(model or said.get("model", "")).published_weights
    except RequestError:
        return  # which is told where it is loaded
    if published and published[0] not in ("bf16", "fp16"):
        said.pop("weights", None)
