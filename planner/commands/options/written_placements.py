"""Every option of `plan place` and `plan repair`, as text."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Annotated, TypeVar

from cyclopts import Parameter

from planner.commands.options.groups import (
    CONFIDENCE,
    CONNECTOR,
    DECODE_DEVICES,
    MAX_UTILISATION,
    OUTPUT,
    PREFILL_DEVICES,
    PRICE,
    ROLES,
    SEARCH,
    SERVE,
    SOLVER,
    SORT_PRICE,
    SORTS,
    TARGETS,
    flag,
    text,
)
from planner.commands.options.remade import remade
from planner.commands.options.written import USUAL_INPUT, USUAL_OUTPUT
from planner.commands.options.written_limits import PlacedLimits

T = TypeVar("T", bound=type)

DEFAULT = re.compile(r"; default: .*\.$|\.$", flags=re.DOTALL)
"""The end of what an option says, with what it is by default."""

SAID_ALWAYS = (
    "state",
    "align",
    "keep_program",
    "time_limit",
    "ranks",
    "html",
    "svg",
    "json",
    "quiet",
)
"""Options that are of one answer, and never as before."""


def as_before(written: T) -> T:
    """A record of options whose inherited ones say nothing by default: what they say is kept."""
    (above,) = written.__bases__
    inherited = {field.name for field in dataclasses.fields(above)} - {*SAID_ALWAYS}

    def changed(name: str, parameter: Parameter) -> Parameter:
        words = Parameter(help=DEFAULT.sub("; default: as before.", parameter.help or ""))
        return Parameter.combine(parameter, words) if name in inherited else parameter

    return remade(written, changed, unsaid=inherited)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlacement(PlacedLimits):
    """Options of `plan place`."""

    model: Annotated[
        tuple[str, ...], text(SERVE, "NAME|FILE", "Model to serve; again for each further one.")
    ] = ()
    topology: Annotated[
        str | None,
        text(
            SERVE,
            "NAME|FILE",
            "Servers, a fabric of leaves, or a torus; default: h100-fat-tree-x64.",
        ),
    ] = None
    engine: Annotated[
        tuple[str, ...],
        text(
            SERVE,
            "NAMES",
            "vllm, sglang, trtllm: by measured kernels; roofline; or table:FILE, a CSV of "
            "replicas; several: the best for each replica; default: the engines that were "
            "measured on a kind, else roofline.",
        ),
    ] = ()
    state: Annotated[
        str | None, text(SERVE, "FILE", "What is busy, failed, reserved, slow or down.")
    ] = None
    price: Annotated[tuple[str, ...], PRICE] = ()
    input: Annotated[str | None, text(SERVE, "TOKENS", "Tokens that a request reads.")] = (
        USUAL_INPUT
    )
    output: Annotated[str | None, text(SERVE, "TOKENS", "Tokens that a request writes.")] = (
        USUAL_OUTPUT
    )

    demand: Annotated[
        tuple[str, ...],
        text(TARGETS, "RATE", "Output tokens to serve: 20000tok/s, of several MODEL=RATE."),
    ] = ()
    rate: Annotated[
        tuple[str, ...],
        text(
            TARGETS,
            "RATE",
            "Requests to serve, on average: 8req/s, of several MODEL=RATE; in place of --demand.",
        ),
    ] = ()
    replicas: Annotated[
        tuple[str, ...],
        text(TARGETS, "N", "Exactly so many replicas; of several models MODEL=N."),
    ] = ()
    max_utilisation: Annotated[str | None, MAX_UTILISATION] = None
    max_quality_loss: Annotated[
        str | None,
        text(TARGETS, "FRACTION", "Most quality that a number format may lose, like 1%."),
    ] = None

    confidence: Annotated[str | None, CONFIDENCE] = None

    objective: Annotated[
        str | None,
        text(
            SEARCH,
            "WHAT",
            "throughput, share (of the demand served worst), rent, devices, latency or cost; "
            "default: rent where every model has a demand, else throughput.",
        ),
    ] = None
    replica_devices: Annotated[
        str | None,
        text(SEARCH, "N", "Most devices of one replica; default: 64, none on a torus."),
    ] = None
    align: Annotated[
        bool, flag(SEARCH, "Start slices of a torus at its cubes only: fewer places to try.")
    ] = False
    roles: Annotated[str | None, ROLES] = None
    connector: Annotated[str | None, CONNECTOR] = None
    prefill_devices: Annotated[str | None, PREFILL_DEVICES] = None
    decode_devices: Annotated[str | None, DECODE_DEVICES] = None
    sorts: Annotated[str | None, SORTS] = None
    sort_price: Annotated[str | None, SORT_PRICE] = None
    weights: Annotated[
        tuple[str, ...],
        text(
            SEARCH,
            "FORMATS",
            "Weights formats to choose from, like bf16,int8; default: as published.",
        ),
    ] = ()
    kv: Annotated[
        tuple[str, ...],
        text(SEARCH, "FORMATS", "KV cache formats to choose from; default: as published."),
    ] = ()
    batch: Annotated[
        str | None,
        text(SEARCH, "BATCHES", "Decode batches to choose from: up to 64, or 16:128:8. [1024]"),
    ] = None

    solver: Annotated[str | None, text(SOLVER, "NAME", "highs, cpsat or exhaustive.")] = "highs"
    time_limit: Annotated[
        str | None, text(SOLVER, "TIME", "Stop after this, with the best so far and its gap.")
    ] = "60s"
    gap: Annotated[
        str | None,
        text(SOLVER, "FRACTION", "Distance to the optimum that is good enough, like 1%."),
    ] = "0"
    threads: Annotated[str | None, text(SOLVER, "N", "Threads of the solver.")] = "1"
    seed: Annotated[str | None, text(SOLVER, "N", "Seed of the solver.")] = "0"
    proof: Annotated[
        str | None,
        text(SOLVER, "HOW", "two: nothing is called optimal on one solver's word; or one."),
    ] = "two"
    keep_program: Annotated[
        str | None,
        text(SOLVER, "FILE", "Leave the program as MPS: that on which provers disagree, if any."),
    ] = None

    ranks: Annotated[bool, flag(OUTPUT, "Print every rank and its device.")] = False
    html: Annotated[str | None, text(OUTPUT, "FILE", "Write a page with a drawing of it.")] = None
    svg: Annotated[str | None, text(OUTPUT, "FILE", "Write the drawing alone.")] = None
    json: Annotated[bool, flag(OUTPUT, "Print it as JSON, in SI units.")] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False


@as_before
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRepair(WrittenPlacement):
    """Options of `plan repair`: what stands, what may be lost, and those of `plan place`.

    The latter change what the standing placement was asked for; None leaves it as it was.
    """

    placement: Annotated[
        str | None, text(SERVE, "FILE", "What stands: the JSON of `plan place` or `plan repair`.")
    ] = None
    loss: Annotated[
        str, text(TARGETS, "FRACTION", "Most of the objective to lose for fewer bytes.")
    ] = "0"
