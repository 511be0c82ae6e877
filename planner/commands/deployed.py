"""What runs by its launch file: flags of an engine as options of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from planner.commands.options.commands import called, options_of
from planner.commands.options.parsing import lack_of
from planner.commands.options.said import Said
from planner.errors import Problem
from planner.report.launch.flags import manifests
from planner.specs.files.engines import load_engine
from planner.specs.files.ledger import remark
from planner.specs.huggingface.aliases import are_two_models, known_checkpoint, model_named
from planner.specs.huggingface.locating import is_config
from planner.specs.options.meanings import misplaced

if TYPE_CHECKING:
    from planner_workshop.importing.deployments import StartedServer

FLAGS, MEASURED = "--flags", {"--measured", "--metrics"}


def read_flags(said: Said) -> None:
    """Take what `--flags` starts for options; what contradicts others is a problem among theirs."""
    from planner_workshop.importing.deployments import read_servers

    model = said.text("--model")
    servers = said.collect(lambda: read_servers(said.flags, asked_by=FLAGS, model=model))
    server = _chosen(said, servers) if servers else None
    if server is None:
        said.check()
        return
    n_problems = len(said.problems)
    said.problems += [Problem(where=server.place, fact=fact) for fact in server.wrong]
    options = dict(_options(said, server))
    is_wrong = len(said.problems) > n_problems  # what else could be wrong follows from that
    unread, read = [*server.unread], list[str]()
    for name, value in options.items():
        given, runtimes = {f"--{name}": value}, [server.engine]
        is_refused = any(misplaced(given, runtimes, said.command))
        if given.keys() <= options_of(said.command).keys() and not is_refused:
            _take(said, server, name, value)
            read.append(f"--{name} {value}")
        elif name == "role":
            fact = f"starts servers of one phase, {value}, and this compares whole requests"
            said.refuse(FLAGS, fact, f"write `plan predict {FLAGS} … --role {value}`")
        elif name != "tokens":
            unread.append(f"`{server.flags.get(name, name)}`")
    said.problems += _excess(said, server)
    said.values["read"] = [*_read(said, server, " ".join(read))]
    if unread:
        fact = f"says what is not taken into account: {', '.join(unread)}"
        remark(Problem(where=server.place, fact=fact))
    if is_wrong:
        said.check()


def _excess(said: Said, server: StartedServer) -> Iterator[Problem]:
    """Requests beyond the longest and the most that servers take; not of a file that says later."""
    cap, n_ranks = (int(server.options.get(name, "0")) for name in ("batch", "dp"))
    said.values["cap"] = cap
    n_running = said.values.get("in_flight") or 0
    if 0 < cap * max(1, n_ranks) < n_running:
        fact = f"runs {cap * max(1, n_ranks)} requests at most, and `--in-flight` says {n_running}"
        yield Problem(where=server.place, fact=f"{fact}: `{server.flags['batch']}`")
    longest, n_tokens = server.options.get("tokens"), (said.input or 0) + (said.output or 0)
    if longest and int(longest) < n_tokens and not MEASURED & said.texts.keys():
        fact = f"takes requests of {longest} tokens, and these have {n_tokens}"
        remedy = "write `--input` and `--output` as they are"
        yield Problem(where=server.place, fact=fact, remedy=remedy)


def _chosen(said: Said, servers: list[StartedServer]) -> StartedServer | None:
    """The servers that the command is about: of several those of a phase that it names."""
    role = said.text("--role")
    own = [it for it in servers if it.options.get("role", role) == role or not role]
    if len(own) == 1:
        return own[0]
    listed = "; ".join(
        f"{it.n_servers:.0f} × {it.engine} on {it.n_devices} devices"
        f"{', ' * ('role' in it.options)}{it.options.get('role', '')} ({it.place})"
        for it in servers
    )
    is_apart = all("role" in it.options for it in servers) and "--role" in options_of(said.command)
    phase = "`--role prefill` or `--role decode`, or " * is_apart
    begins = manifests()[servers[0].engine]["begins"]
    remedy = f"write {phase}the command of one of them: `{FLAGS} '{begins} …'`"
    said.refuse(FLAGS, f"starts {listed}", remedy)
    return None


def _options(said: Said, server: StartedServer) -> Iterator[tuple[str, str]]:
    """Options that servers are, but for those that the command line may say otherwise."""
    options = {"engine": server.engine, **server.options}
    if {"--in-flight", *MEASURED} & said.texts.keys():
        options.pop("batch", None)
    model = options.get("model", "")
    if _is_own(said, model):
        options.pop("model", None)
    elif re.match(r"[/$<~.]|$", model) and not is_config(model):
        options.pop("model", None)
        fact = f"loads `{model or 'nothing'}`, and nobody here knows which model that is"
        remedy = "write `--model`, see `plan models`"
        said.problems.append(Problem(where=server.place, fact=fact, remedy=remedy))
    yield from options.items()
    if server.product and not {"--device", "--topology"} & said.texts.keys():
        from planner.estimates.serving.usual_engines import usual_servers
        from planner_workshop.importing.pools import device_of, usual_size

        device = device_of(server.product)
        if usual := device and usual_servers(device):
            n_nodes = ceil(server.n_servers * server.n_devices / usual_size(device))
            yield "topology", re.sub(r"\d+$", str(n_nodes), usual)
        else:
            fact = f"runs on `{server.product}`, of which no servers are known here"
            remedy = "write `--topology`, see `plan topologies`"
            said.problems.append(Problem(where=server.place, fact=fact, remedy=remedy))


def _is_own(said: Said, model: str) -> bool:
    """Whether a path, or a name that is none of ours, stands for another that is given."""
    named = said.text("--model") or model
    return named != model and not (known_checkpoint(model) or are_two_models(model, named))


def _take(said: Said, server: StartedServer, name: str, value: str) -> None:
    """Set an option; one that says something else is refused."""
    row, flag = options_of(said.command)[f"--{name}"], server.flags.get(name, value)
    old, texts, lack = said.values[row.argument], said.texts.get(row.name), lack_of(row.name)
    problems = list(filter(lambda it: it.fact != lack, said.problems))  # it is not lacking now
    said.texts[row.name], said.problems = [value], []
    said.read_option(row)
    place = f"{server.place} {flag}"
    said.problems = problems + [replace(it, where=place, value="") for it in said.problems]
    new = said.values[row.argument]
    if texts is None or (name == "model" and model_named(old) == model_named(new)):
        return  # a checkpoint says more than its model: its formats
    said.texts[row.name], said.values[row.argument] = texts, old
    if old != new and not (name == "batch" and old and new and old < new):
        fact = f"is {value} in {server.place}: `{flag}`"
        said.refuse(row.name, fact, f"leave it out, or change `{FLAGS}`")


def _read(said: Said, server: StartedServer, read: str) -> Iterator[str]:
    """What is taken from the flags, and what the engine does without one."""
    engine = load_engine(server.engine)
    yield f"{server.place}: `{called(said.command)} {read}`"
    if _is_own(said, loaded := server.options.get("model", "nothing by name")):
        yield f"it loads {loaded}, taken for `--model {said.text('--model')}`"
    if server.product and "--topology" not in read:
        yield f"it names {server.product}, and figures are of the devices of the command line"
    usual: dict[str, float] = {"--tp": 1, "--pp": 1, "--dp": 1, "--chunk": engine.n_chunk_tokens}
    usual |= {"--memory-fraction": engine.memory_fraction}
    rest = [f"{name} {it:g}" for name, it in usual.items() if not said.is_given(name)]
    rest += [f"{it} as published" for it in ("--weights", "--kv") if not said.is_given(it)]
    if rest:
        yield f"without a flag {server.engine} has {', '.join(rest)}"
    if not {"--batch", "--in-flight", *MEASURED} & said.texts.keys():
        yield "no flag says how many sequences run: figures are of 1, or of `--batch`"
    if server.n_servers > 1:
        yield f"{server.n_servers:.0f} such servers are started, and figures are of one"
