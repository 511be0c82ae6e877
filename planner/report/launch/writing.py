"""Launch files of an answer: which target can start it, and its servers put into templates."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from planner.errors import Problem
from planner.report.launch.flags import FOLDER, tables
from planner.report.launch.servers import Entrance, ServerPool, is_uneven
from planner.report.launch.words import HEAD, NODE_RANK
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER

FIRST_PORT = 8080
"""Of entrances."""

Server = dict[str, Any]
"""What a template says of a server on one of its nodes."""


def obstacles(entrances: Sequence[Entrance], target: str) -> Iterator[str]:
    """What a plan has and a target cannot say, in words."""
    row = tables()["targets"][target]
    pools = [pool for entrance in entrances for pool in entrance.pools]
    nodes = {node for pool in pools for node in pool.nodes}
    if len(nodes) > row.get("nodes", len(nodes)):
        yield f"the plan has servers on {len(nodes)} nodes"
    yield from filter(None, (_lack(pool, row) for pool in pools))
    yield from filter(None, (_odd(entrance, row) for entrance in entrances if entrance.is_apart))


def _lack(pool: ServerPool, row: Mapping[str, Any]) -> str:
    """What of a pool a target cannot start; empty if nothing."""
    is_apart, n_nodes, engine = pool.role != TOGETHER, pool.launch.n_nodes, pool.engine
    reasons = {
        f"{pool.name} runs {pool.launch.version.rpartition(' ')[0]}": engine not in row["engines"],
        f"a server of {pool.name} spans {n_nodes} nodes": n_nodes > 1
        and engine not in row["spans"],
        f"{pool.name} does one phase of a request": is_apart and engine not in row["apart"],
        f"attention of {pool.name} is data parallel": bool(
            set(row.get("without", ())) & pool.flags.keys()
        ),
    }
    return next((words for words, stands in reasons.items() if stands), "")


def _odd(entrance: Entrance, row: Mapping[str, Any]) -> str:
    """What hinders servers of one phase each; empty if nothing."""
    reads, writes = (len(entrance.of_role(role)) for role in (PREFILL, DECODE))
    if not (reads and writes):
        return f"{entrance.name} has servers of one phase alone"
    is_odd = "pairs" in row and reads + writes > 2
    return f"{entrance.name} has {reads} pools that read prompts, {writes} that answer" * is_odd


def refusals(entrances: Sequence[Entrance], target: str, folder: str) -> Iterator[Problem]:
    """Why a target cannot start a plan, with those that can."""
    lacks = "; ".join(dict.fromkeys(obstacles(entrances, target)))
    if lacks:
        says, rows = tables()["says"], tables()["targets"]
        able = [name for name in rows if not any(obstacles(entrances, name))]
        commands = [says["command"].format(target=name, folder=folder) for name in able]
        fact = f"cannot start this plan: {lacks}" + f", and {rows[target].get('why')}" * bool(able)
        remedy = f"write {' or '.join(commands or [says['both']])}"
        yield Problem(where=says["option"], value=target, fact=fact, remedy=remedy)


def written(
    entrances: Sequence[Entrance], target: str, *, readers: Callable[[str, str], list[str]]
) -> dict[str, str]:
    """Text of each file, by name.

    Args:
        readers: commands that read the file of a load test, of one that evaluates a replica.
    """
    row = tables()["targets"][target]
    about = _context(entrances, row)
    tested = {"loadtest.sh": "loadtest.sh"} if any(it.bands for it in entrances) else {}
    texts = {}
    for pattern, template in (row["templates"] | tested).items():
        for it in entrances if "{" in pattern else entrances[:1]:
            file = pattern.format(entrance=it.name)
            texts[file] = rendered(template, **about, entrance=it, file=file, readers=readers)
    return texts


def _context(entrances: Sequence[Entrance], row: Mapping[str, Any]) -> dict[str, Any]:
    """What templates know of all servers."""
    servers = seated(entrances, is_local=row.get("nodes") == 1)
    ports = {it.name: row.get("port", FIRST_PORT + i) for i, it in enumerate(entrances)}
    alone = {name: it[0]["port"] for name, it in servers.items() if it[-1]["name"] == it[0]["name"]}
    ports |= alone if "seats" in row else {}  # of files that say where each server is reached
    pools = [pool for entrance in entrances for pool in entrance.pools]
    return {"entrances": entrances, "pools": pools, "servers": servers, "ports": ports}


def rendered(template: str, **about: object) -> str:
    """A file of `templates`, filled in; a name that nothing stands for is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def source(name: str) -> str:
        return (FOLDER / "templates" / name).read_text("utf-8")

    drawn = Environment(loader=FunctionLoader(source), undefined=StrictUndefined)
    drawn.filters |= {"tojson": in_json, "words": words_of, "value": value_of, "quote": shlex.quote}
    drawn.globals |= {**tables(), "vendor": vendor_of, "image": image_of, "pod_line": pod_line}
    drawn.globals["uneven"] = is_uneven
    return drawn.get_template(template).render(**about).strip() + "\n"


def in_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def value_of(word: str | bool) -> object:
    """A value of a flag as JSON reads it, or the word itself."""
    try:
        return json.loads(word) if isinstance(word, str) else word
    except ValueError:
        return word


def words_of(flags: Mapping[str, str | bool], without: Sequence[str] = ()) -> list[str]:
    """Words of a command line."""
    pairs = [(flag, it) for flag, it in flags.items() if flag not in without]
    return [word for flag, it in pairs for word in ([flag] if it is True else [flag, str(it)])]


def vendor_of(pool: ServerPool) -> dict[str, str]:
    """What devices are called, by who makes them."""
    kinds = tables()["kinds"].items()
    name = next((it for it, begins in kinds if pool.kind.startswith(tuple(begins))), "nvidia")
    vendor: dict[str, str] = tables()["vendors"][name]
    return vendor


def image_of(pool: ServerPool) -> str:
    """The image of an engine, at the version whose flags the command has."""
    image = vendor_of(pool)["image"] or tables()["engines"][pool.engine]["image"]
    return str(image).format(version=pool.launch.version.rpartition(" ")[2])


def line_of(pool: ServerPool, port: int, slot: int = 0) -> str:
    """The command of the plan, and where it is reached.

    Args:
        slot: servers on a node of it before, which have the ports that are usual.
    """
    program = tables()["engines"][pool.engine]
    line = f"{pool.launch.command} {program['reached']}".replace("{port}", str(port))
    line += f" {shlex.quote(pool.model)}"
    if pool.role == PREFILL and "meets" in program:
        line += f" --disaggregation-bootstrap-port {program['meets'] + slot}"
    for known, first in program["joins"].items() if slot else ():
        line = line.replace(f"{known}{first}", f"{known}{first + slot}")
    if slot and "--master-addr" in line:
        line += f" --master-port {program['master'] + slot}"
    return line


def pod_line(pool: ServerPool, port: int) -> str:
    """The same in pods of a LeaderWorkerSet, which know their number and their leader."""
    line = re.sub(rf"\b{NODE_RANK}\b", "LWS_WORKER_INDEX", line_of(pool, port))
    return line.replace(f"${HEAD}", "$LWS_LEADER_ADDRESS")


def seated(entrances: Sequence[Entrance], *, is_local: bool) -> dict[str, list[Server]]:
    """Servers of each entrance, node by node; those of one node have different ports.

    Args:
        is_local: what hands requests to them is on their node.
    """
    taken: dict[str, int] = {}
    servers: dict[str, list[Server]] = {it.name: [] for it in entrances}
    every = ((it.name, pool) for it in entrances for pool in it.pools)
    for name, pool, number in ((*it, i) for it in every for i in range(len(it[1].seats))):
        program, seats = tables()["engines"][pool.engine], pool.seats[number]
        slot = max(taken.get(seat.node, 0) for seat in seats)
        taken |= {seat.node: slot + 1 for seat in seats}
        port = program["port"] + slot
        host = "localhost" if is_local else f"${{ADDRESS[{seats[0].node}]}}"
        server = {
            "name": f"{pool.name}-{number}",
            "pool": pool,
            "head": seats[0].node,
            "port": port,
            "line": line_of(pool, port, slot),
            "address": f"{host}:{port}",
            "meets": program.get("meets", 0) + slot,
            "channel": program.get("channel", 0) + 100 * slot,
        }
        servers[name] += [{**server, "seat": it, "rank": rank} for rank, it in enumerate(seats)]
    return servers
