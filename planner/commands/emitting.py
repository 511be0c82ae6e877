"""`--emit`: files that start an answer, written beside it, with their receipt."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

from planner.commands.options.commands import options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.commands.paging import evaluated, tested_entrances
from planner.errors import Problem, RequestError, SolverError
from planner.report.files import Answer
from planner.report.launch.checking import (
    PLACEHOLDER,
    devices_in,
    problems_of,
    schema_of,
    sequences_of,
)
from planner.report.launch.expected import CacheRoom, room_of
from planner.report.launch.flags import manifests, tables
from planner.report.launch.reading import documents_of, pods_in
from planner.report.launch.servers import Entrance, ServerPool, is_uneven
from planner.report.launch.telling import with_commands_of
from planner.report.launch.writing import refusals, rendered, written
from planner.report.words import percent
from planner.results.predictions import Prediction

Rooms = Mapping[str, CacheRoom | None]
"""Blocks of the cache of each pool, by its name."""


def with_launch_files(said: Said, made: Answer) -> Answer:
    """An answer with the files that start it, read back and checked before one is written.

    Raises:
        RequestError: no engine runs the answer, or the target cannot say how.
        SolverError: the files would start something else.
    """
    target, folder = said.values["emit"]
    folder, words = folder.rstrip("/"), shlex.join(["plan", *said.words])
    if "lacks" in tables()["targets"][target]:
        from planner.report.launch.programs import program_of

        texts, receipt = program_of(made.record, words)
    else:
        texts, receipt = _launch_files(made.record, target, folder, words)
    texts["receipt.json"] = json.dumps(receipt, indent=1, ensure_ascii=False) + "\n"
    texts["receipt.md"] = rendered("receipt.md", **receipt)
    files = ((f"{folder}/{name}", text) for name, text in texts.items())
    is_report = not (made.is_data or said.values.get("quiet"))
    lines = rendered("receipt.txt", **receipt, folder=folder).rstrip() if is_report else ""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = f"{made.text}\n\n{lines}" if is_report else made.text
    return replace(made, text=text, files=(*made.files, *files))


def _launch_files(
    answer: object, target: str, folder: str, words: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Files that start servers, and their receipt."""
    started = with_commands_of(answer)
    entrances = _entrances(started, target, folder)
    RequestError.raise_if_any(refusals(entrances, target, folder))
    texts = written(entrances, target, readers=lambda it, file: [*_readers(it or words, file)])
    rooms = {pool.name: _room(pool, started) for it in entrances for pool in it.pools}
    problems = list(problems_of(texts, entrances, target, rooms))
    planned, seated = devices_of(started), sum(it.n_devices for e in entrances for it in e.pools)
    problems += [f"{seated} GPUs of servers, {planned} of the answer"] * (planned != seated)
    if problems:
        raise SolverError(f"launch files would not start the plan: {'; '.join(problems)}")
    return texts, receipt_of(texts, entrances, target, rooms)


def devices_of(answer: Any) -> int:  # noqa: ANN401 any kind that is started
    """Devices of an answer, by nothing but the answer."""
    if replicas := getattr(answer, "replicas", ()):
        return len({rank.device for it in replicas for rank in it.ranks})
    return int(getattr(answer, "deployment", answer).n_devices)


def _entrances(answer: object, target: str, folder: str) -> tuple[Entrance, ...]:
    """Those of an answer all of whose replicas are started by commands."""
    recipes = getattr(answer, "recipes", ())
    entrances = tested_entrances(answer)
    if not entrances or not all(getattr(it.deployment, "launch", None) for it in recipes):
        said = {name: it.format(folder=folder) for name, it in tables()["says"]["nothing"].items()}
        raise RequestError([Problem(value=target, **said)])
    return entrances


def _room(pool: ServerPool, answer: object) -> CacheRoom | None:
    """Blocks of a pool's cache, of its evaluation."""
    alone = answer if isinstance(answer, Prediction) else evaluated(pool.command)
    return room_of(alone) if alone else None


def _readers(command: str, file: str) -> Iterator[str]:
    """Commands that read the result of a load test, by the one that evaluates the deployment."""
    evaluated, reading = parse(shlex.split(command)[1:]), tables()["reading"]
    texts = {it: evaluated.text(it) for it in evaluated.texts if it not in reading["without"]}
    for pattern in reading["commands"] if evaluated.values.get("topology") else ():
        known = options_of(pattern.split()[1])
        pairs = [f"{name} {shlex.quote(it)}" for name, it in texts.items() if it and name in known]
        yield " ".join([pattern.format(file=file), *pairs])


def receipt_of(
    texts: Mapping[str, str], entrances: Sequence[Entrance], target: str, rooms: Rooms
) -> dict[str, Any]:
    """What is known of launch files that have no problems, as `receipt.json` has it."""
    row = tables()["targets"][target]
    pools = [pool for entrance in entrances for pool in entrance.pools]
    rows = [_of_pool(pool, rooms[pool.name]) for pool in pools]
    pods = [each for name, text in texts.items() for each in pods_in(name, text, target)]
    remarks = dict.fromkeys(it for pool in pools for it in pool.launch.remarks)
    return {
        "title": f"Launch files for {target}: {row['words']}",
        "target": target,
        "files": list(texts),
        "entrances": {it.name: it.requests or "all of them" for it in entrances},
        "gpus": {"files": devices_in(pods), "plan": sum(it["n_devices"] for it in rows)},
        "checks": [*_of_files(texts, target), *_of_programs([it.command.program for it in pods])],
        "pools": rows,
        "placeholders": _of_placeholders(" ".join(texts.values()), pools),
        "unchecked": [*row["unchecked"], *_uneven(entrances, target), *remarks],
    }


def _uneven(entrances: Sequence[Entrance], target: str) -> Iterator[str]:
    """Servers behind one router that are to get more requests than others, and what it does."""
    row, behind = tables()["targets"][target], dict[tuple[str, str], list[ServerPool]]()
    for name, pool in ((it.name, pool) for it in entrances for pool in it.pools):
        at = pool.model if row.get("shared") else name, pool.role
        behind.setdefault(at, []).append(pool)
    for (name, role), pools in ((at, it) for at, it in behind.items() if is_uneven(it)):
        rates = {
            it.name: it.rate / len(it.seats) / sum(each.rate for each in pools) for it in pools
        }
        shares = ", ".join(f"{percent(it)} to each of {of}" for of, it in rates.items())
        does = tables()["routers"].get(target, tables()["routers"][pools[0].engine])
        words = f"the plan sends {shares}, which no router is told"
        yield f"{name}: {words}: {does.format(role=role)}"


def _of_pool(pool: ServerPool, room: CacheRoom | None) -> dict[str, Any]:
    return {
        "name": pool.name,
        "role": pool.role,
        "engine": pool.launch.version,
        "n_servers": len(pool.seats),
        "n_devices": pool.n_devices,
        "n_sequences": sequences_of(pool.flags, pool),
        "blocks": room and room._asdict(),
    }


def _of_placeholders(text: str, pools: Sequence[ServerPool]) -> dict[str, str]:
    """What each mark of the files stands for."""
    said = (
        (mark, it.launch.variables[name[1:]]) for it in pools for name, mark in it.marks.items()
    )
    meanings = {f"<{name}>": words for name, words in tables()["placeholders"].items()} | dict(said)
    marks = dict.fromkeys(PLACEHOLDER.findall(text))
    return {it: meanings.get(it, "the address of a node") for it in marks}


def _of_files(texts: Mapping[str, str], target: str) -> Iterator[dict[str, str]]:
    bash = "bash -n" if which("bash") else "nobody, without bash"
    for name in (it for it in texts if it.endswith(".sh")):
        yield {"what": name, "by": bash, "result": "read"}
    for name in (it for it in texts if it.endswith(".yaml")):
        kinds = [kind for kind, _ in documents_of(texts[name], target)]
        for kind in dict.fromkeys(kinds):
            by = f"the closed schema of {schema_of(kind)['source']} {schema_of(kind)['version']}"
            yield {"what": f"{name}: {kind}", "by": by, "result": f"{kinds.count(kind)} accepted"}


def _of_programs(programs: Sequence[str]) -> Iterator[dict[str, str]]:
    for program in dict.fromkeys(filter(None, programs)):
        row, n_read = manifests()[program], programs.count(program)
        by = f"the {len(row['flags'])} flags of {row['title']} {row['version']}"
        yield {"what": f"`{row['begins']}`", "by": by, "result": f"{n_read} accepted"}
