"""What launch files start: those that are written here, and those of others.

YAML is walked from its root, whatever its kind: replicas, nodes and phases are inherited by the
containers below. Scripts are read line by line.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

from planner.report.launch.flags import Command, commands_of, n_devices_of, n_shown, tables
from planner.report.launch.writing import words_of
from planner.specs.files.tables import at
from planner.specs.records.roles import DECODE, PREFILL

_T = TypeVar("_T")
MOST_VARIABLES, MOST_CHARACTERS = 1_000, 4_096
"""Of a line, and of what one of them stands for."""

MOST_ALIASES, MOST_NODES = 16, 100_000
"""Of a document: each alias repeats what it names, and those of aliases multiply."""

_NAMED = re.compile(r"""(?:export\s+)?(\w+)=("[^"$]*"|'[^']*'|[^\s"'$;&|]*);?""")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|\((\w+)\)|(\w+))")
_LINE = re.compile(r"(?:\\\r?\n|.)+")
_BLOCK = '\n  (\n    mkdir -p "run/'
_KINDS = re.compile(r"^(?:apiVersion|kind|services|servingEngineSpec):", re.MULTILINE)
_SHELLS = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")


class Pods(NamedTuple):
    """Pods, or processes, that a file starts alike: devices of each, and pods of a server.

    `role` is the phase that they do, `product` their devices, and `line` where a script starts
    them, where that is known.
    """

    file: str
    command: Command
    n_devices: int
    n_pods: int
    n_nodes: int
    role: str = ""
    product: str = ""
    line: int = 0


class Above(NamedTuple):
    """What a node of a file inherits: `n` servers that are alike, of so many `nodes`.

    The node is of `each` of these, or of all where that is 0. `model` is what servers load where
    their command does not say it, `flags` are added by a chart to a command of its own.
    """

    n: int = 1
    nodes: int = 1
    each: int = 0
    role: str = ""
    n_devices: int = 0
    model: str = ""
    product: str = ""
    flags: tuple[str, ...] = ()


def documents_of(text: str, target: str = "") -> Iterator[tuple[str, Any]]:
    """Documents of a file of YAML, each with the name of its schema.

    Raises:
        ValueError: it is none, or says more than any that starts servers.
    """
    import yaml

    said = tables()["targets"].get(target, {}).get("schema", "kind")
    if len(re.findall(r"(?<![^\s\[{,:-])\*[^\s*]", text)) > MOST_ALIASES:
        raise ValueError(f"has more than {MOST_ALIASES} aliases: write out what they stand for")
    try:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for document in yaml.load_all(text, loader):
            _check_size(document)
            kind = document.get("kind", "") if isinstance(document, dict) else ""
            yield (kind if said == "kind" else said), document
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def _check_size(document: object) -> None:
    """That a walk ends.

    Raises:
        ValueError: there is too much.
    """
    left = [document]
    for _ in range(MOST_NODES):
        if not left:
            return
        node = left.pop()
        left += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    raise ValueError(f"says more than {MOST_NODES:,} things")


def pods_in(name: str, text: str, target: str = "") -> Iterator[Pods]:
    """What a file starts on devices, and what it starts besides, on none.

    Raises:
        ValueError: it cannot be read.
    """
    if name.lower().endswith((".yaml", ".yml", ".json")) or _KINDS.search(text):
        for _, document in documents_of(text, target):
            yield from _below(name, document, Above())
        return
    blocks = list(_blocks(name, text))
    n_nodes, first = Counter(server for server, _ in blocks), dict(reversed(blocks))
    for server, it in blocks:
        starts = it if it.command.program else first[server]  # which starts its other nodes, too
        yield starts._replace(n_devices=it.n_devices, n_nodes=n_nodes[server])
    for number, command in () if blocks else commands_in(text):
        yield Pods(name, command, command.n_devices, 1, 1, line=number)


def _blocks(name: str, text: str) -> Iterator[tuple[str, Pods]]:
    """Processes of `start.sh`: server, and what starts its part of it."""
    before, *parts = text.split(_BLOCK)
    number = before.count("\n") + _BLOCK.count("\n") + 1
    for part in parts:
        *lines, line = part.partition("\n  ) &")[0].splitlines() or [""]
        devices = (it.partition("VISIBLE_DEVICES=")[2] for it in lines)
        n_devices = len(next(filter(None, devices), "").split(","))
        pods = Pods(name, commands_of(line.strip())[0], n_devices, 1, 1, line=number + len(lines))
        yield part.partition('"')[0], pods
        number += f"{part}{_BLOCK}".count("\n")


def commands_in(
    text: str, variables: Mapping[str, str] | None = None
) -> Iterator[tuple[int, Command]]:
    """What lines of a script, by number, start of programs that are known, as it sets variables."""
    values, number, end = dict(variables or {}), 1, 0
    for part in _LINE.finditer(text):
        number, end = number + text.count("\n", end, part.start()), part.start()
        bare = re.sub(r"\\\r?\n", " ", part[0]).strip()
        if named := _NAMED.fullmatch(bare):
            values[named[1]] = named[2].strip("\"'")[:MOST_CHARACTERS]
        elif bare[:1] != "#":
            filled = _filled(bare, values) if bare.count("$") < MOST_VARIABLES else bare
            shown = n_shown(f"{it}={values[it]}" for it in values)
            for it in filter(lambda it: it.program, commands_of(filled)):
                yield number, it._replace(n_devices=it.n_devices or shown)


def _filled(line: str, values: Mapping[str, str]) -> str:
    """A line with what its variables stand for, where that is known."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3] or match[4]
        return values.get(name, match[2] if match[2] is not None else match[0])

    return _VARIABLE.sub(value, line)


def _below(name: str, node: Any, above: Above) -> Iterator[Pods]:  # noqa: ANN401
    """Pods below a node of a file."""
    if isinstance(node, list):
        for inside in node:
            yield from _below(name, inside, above)
    if not isinstance(node, dict) or node.get("create") is False:
        return
    above = _inherited(node, above)
    n_pods = above.n * (above.each or above.nodes)
    for command in _started(node, above):
        each = n_devices_of(command) if "engine_kwargs" in node else 1  # whose bundle is a worker's
        n_devices, kind = above.n_devices * each or command.n_devices, above.product
        yield Pods(name, command, n_devices, n_pods, above.nodes, above.role, kind)
    of_key = {"leaderTemplate": 1, "workerTemplate": above.nodes - ("leaderTemplate" in node)}
    for key, inside in node.items():
        phase = str(key).partition("_")[0]
        role = phase if phase in (PREFILL, DECODE) else above.role
        each = of_key.get(key, above.each)
        yield from _below(name, inside, above._replace(each=each, role=role))


def _inherited(node: Mapping[str, Any], above: Above) -> Above:
    """What holds below a node, by its own keys."""
    own = tables()["inherited"].items()
    given: dict[str, Any] = {it: _first(node, paths, getattr(above, it)) for it, paths in own}
    if given["role"] not in (PREFILL, DECODE):
        given["role"] = above.role
    given["n"] = above.n * _first(node, tables()["counted"]["copies"], 1)
    sides = [(flag, str(at(node, *keys))) for flag, keys in tables()["sides"].items()]
    given["flags"] = above.flags + tuple(it for side in sides if side[1].isdigit() for it in side)
    return above._replace(**given, n_devices=_devices(node) or above.n_devices)


def _first(node: Mapping[str, Any], paths: Sequence[Sequence[str]], usual: _T) -> _T:
    """What a node says below the first keys at which there is such a value."""
    said = (at(node, *keys) for keys in paths)
    return next((it for it in said if isinstance(it, type(usual))), usual)


def _devices(node: Mapping[str, Any]) -> int:
    """Devices that a node of a file takes for each pod; 0 where it says none."""
    limits = at(node.get("deploy", node), "resources", "limits")
    said = [at(node, *keys) for keys in tables()["counted"]["devices"]]
    said += [limits[key] for key in limits if "gpu" in str(key)] if isinstance(limits, dict) else []
    seats = at(node, "deploy", "resources", "reservations", "devices")
    for seat in seats if isinstance(seats, list) else ():
        ids = at(seat, "device_ids")
        said.append(len(ids) if isinstance(ids, list) else at(seat, "count"))
    return sum(int(it) for it in said if re.fullmatch(r"\d{1,6}", str(it)))


def _started(node: Mapping[str, Any], above: Above) -> Iterator[Command]:
    """What a node itself starts."""
    flags, own = node.get("engine_kwargs"), node.get("vllmConfig")
    if isinstance(flags, dict):
        named = [(str(key).replace("_", "-"), it) for key, it in flags.items() if it is not None]
        dashed = {f"--{'no-' * (it is False)}{key}": it is False or it for key, it in named}
        yield _vllm(above, dashed)
    elif isinstance(own, dict):
        known = {flag: own[key] for flag, key in tables()["own"].items() if key in own}
        yield _vllm(above, known, *_words(own.get("extraArgs")))
    elif "image" in node and {"command", "args", "modelCommand"} & node.keys():
        yield from _of_container(node, above)


def _of_container(node: Mapping[str, Any], above: Above) -> Iterator[Command]:
    """What a container starts, of which its image or a chart may say the program."""
    values = _environment(node)
    if node.get("modelCommand") in ("vllmServe", "imageDefault"):
        own = (_filled(it, values) for it in _words(node.get("args")))
        yield _vllm(above, {}, *above.flags, *own)
        return
    words = [*_words(node.get("entrypoint")), *_words(node.get("command"))]
    words += _words(node.get("args"))
    scripts = [shlex.join(words)]
    if words and _SHELLS.fullmatch(words[0]):
        scripts = [it for flag, it in pairwise(words) if re.fullmatch(r"-\w*c", flag)][:1]
    elif not {"name", "command"} <= node.keys():  # of Kubernetes, which then asks no image
        scripts.append(f"{node['image']} {scripts[0]}")
    started = ([it for _, it in commands_in(one.replace("$$", "$"), values)] for one in scripts)
    yield from next(filter(None, chain(started, map(commands_of, scripts[:1]))), ())


def _environment(node: Mapping[str, Any]) -> dict[str, str]:
    """Variables that a container sets."""
    said = node.get("env", node.get("environment"))
    pairs = said.items() if isinstance(said, dict) else (
        (at(it, "name"), at(it, "value")) if isinstance(it, dict) else str(it).partition("=")[::2]
        for it in (said if isinstance(said, list) else ())
    )  # fmt: skip
    return {str(name): str(value) for name, value in pairs if value not in (None, "")}


def _words(said: object) -> list[str]:
    """Words of a command, which are a list or one text."""
    if isinstance(said, str):
        return shlex.split(said)
    return [str(it) for it in said] if isinstance(said, list) else []


def _vllm(above: Above, flags: Mapping[str, Any], *more: str) -> Command:
    texts = {flag: json.dumps(it) if isinstance(it, dict) else it for flag, it in flags.items()}
    model = above.model.removeprefix("hf://")
    words = ["vllm", "serve", *[model] * bool(model), *words_of(texts), *more]
    return commands_of(shlex.join(words))[0]
