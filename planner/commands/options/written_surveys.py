"""Options of the commands that set plans side by side, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from planner.commands.options.groups import (
    CONNECTOR,
    DECODE_DEVICES,
    OUTPUT,
    PREFILL_DEVICES,
    SEARCH,
    SERVE,
    flag,
    text,
)
from planner.commands.options.remade import hiding_refused
from planner.commands.options.written import WrittenPlan
from planner.specs.defaults import DEFAULT_MODEL, DEFAULT_TOPOLOGY

_NAMES = "NAME|FILE,…"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSurvey(WrittenPlan):
    """Options of the commands that answer with several plans."""

    model: Annotated[str, text(SERVE, _NAMES, "Models to serve; see `plan models`.")] = (
        DEFAULT_MODEL
    )
    topology: Annotated[
        str, text(SERVE, _NAMES, "Pools of devices to serve them on; see `plan topologies`.")
    ] = DEFAULT_TOPOLOGY
    by: Annotated[
        str | None,
        text(
            SEARCH,
            "WHAT",
            "A case for each: weights, format of these; formats, pair with one of the KV cache.",
        ),
    ] = None


@hiding_refused("compare")
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenComparison(WrittenSurvey):
    """Options of `plan compare`."""

    roles: Annotated[
        str | None,
        text(
            SEARCH,
            "HOW,…",
            "A case for each, of replicas that serve the demand: together, each does both phases; "
            "apart, prefill or decode, and KV caches are handed over; free, the program chooses.",
        ),
    ] = None
    connector: Annotated[str | None, CONNECTOR] = None
    prefill_devices: Annotated[str | None, PREFILL_DEVICES] = None
    decode_devices: Annotated[str | None, DECODE_DEVICES] = None


@hiding_refused("pareto")
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPareto(WrittenSurvey):
    """Options of `plan pareto`."""

    x: Annotated[str, text(SEARCH, "WHAT", "What to keep short: latency or ttft.")] = "latency"
    y: Annotated[
        str,
        text(
            SEARCH,
            "WHAT",
            "What to set against it: cost, rent or throughput; of an engine device-throughput.",
        ),
    ] = "cost"
    alpha: Annotated[
        str, text(SEARCH, "NUMBER", "The preferred point has the largest speed^alpha / price.")
    ] = "3"
    all: Annotated[bool, flag(OUTPUT, "Print every point.")] = False
    csv: Annotated[str | None, text(OUTPUT, "FILE|-", "Write every point as CSV, in SI units.")] = (
        None
    )
    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw the frontier: one page that needs nothing else.")
    ] = None


@hiding_refused("audit")
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAudit(WrittenPlan):
    """Options of `plan audit`: what runs, as its owner sees it."""

    speed: Annotated[
        str | None, text(SERVE, "RATE", "Output tokens a second that a user sees, like 70tok/s.")
    ] = None
    batch: Annotated[
        str,
        Parameter(
            group=SERVE,
            metavar="N",
            help="Sequences decoded together; or else `--utilization`.",
            negative=(),
            show_default=False,
        ),
    ] = ""
    weights: Annotated[
        tuple[str, ...], text(SERVE, "FORMAT", "Format of its weights; default: as published.")
    ] = ()
    kv: Annotated[
        tuple[str, ...], text(SERVE, "FORMAT", "Format of its KV cache; default: the usual one.")
    ] = ()
    utilization: Annotated[
        str | None, text(SERVE, "FRACTION", "Model FLOP of decode over the peak, like 15%.")
    ] = None
    devices: Annotated[str | None, text(SERVE, "N", "Devices in use. [the whole pool]")] = None
    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw it beside the frontier: one page, nothing else.")
    ] = None

    tp: Annotated[
        str | None, text(SERVE, "N", "Devices that share the heads, of an engine. [1]")
    ] = None
    pp: Annotated[str | None, text(SERVE, "N", "Pipeline stages, of an engine. [1]")] = None
    ep: Annotated[
        str | None, text(SERVE, "N", "Groups of experts, of an engine. [tp·dp if dp > 1]")
    ] = None
    dp: Annotated[str | None, text(SERVE, "N", "Attention ranks, of an engine. [1]")] = None
