"""Every option of `plan`, as text: the one table behind the help and the reading.

Options stay text until all of them are read, so that one message can name every fault.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Parameter

from planner.commands.options.groups import (
    CONFIDENCE,
    CONNECTOR,
    DECODE_DEVICES,
    PREFILL_DEVICES,
    PRICE,
    ROLES,
)
from planner.commands.options.groups import DEPLOYED as _DEPLOYED
from planner.commands.options.groups import OUTPUT as _OUTPUT
from planner.commands.options.groups import SEARCH as _SEARCH
from planner.commands.options.groups import SERVE as _SERVE
from planner.commands.options.groups import SOLVER as _SOLVER
from planner.commands.options.groups import TABLES as _TABLES
from planner.commands.options.groups import TARGETS as _TARGETS
from planner.commands.options.groups import flag as _flag
from planner.commands.options.groups import text as _text
from planner.commands.options.remade import hiding_refused, option
from planner.commands.options.written_limits import Limits
from planner.quantities import objectives
from planner.specs.defaults import (
    DEFAULT_MODEL,
    DEFAULT_TOPOLOGY,
    DEFAULT_WORKLOAD,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Limits):
    """Options as they were written; `reading.read` turns them into numbers."""

    model: Annotated[
        str, _text(_SERVE, "NAME|FILE", "Model to serve, or a `config.json`; see `plan models`.")
    ] = DEFAULT_MODEL
    topology: Annotated[
        str, _text(_SERVE, "NAME|FILE", "Pool of devices to serve it on; see `plan topologies`.")
    ] = DEFAULT_TOPOLOGY
    input: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request reads.")] = str(
        DEFAULT_WORKLOAD.n_input_tokens
    )
    output: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request writes.")] = str(
        DEFAULT_WORKLOAD.n_output_tokens
    )

    price: Annotated[tuple[str, ...], PRICE] = ()

    rate: Annotated[
        str | None,
        _text(
            _TARGETS,
            "RATE",
            "Requests that replicas serve together on average, like 8req/s: a `--demand` of so "
            "many times `--output`.",
        ),
    ] = None
    max_quality_loss: Annotated[
        str | None,
        _text(_TARGETS, "FRACTION", "Most quality that a number format may lose, like 1%."),
    ] = None

    tp: Annotated[str | None, _text(_SEARCH, "N", "Devices that divide attention.")] = None
    pp: Annotated[str | None, _text(_SEARCH, "N", "Pipeline stages.")] = None
    layout: Annotated[
        str | None,
        _text(_SEARCH, "PHASE=NAME,…", "Layouts of phases: prefill=WGXYZ,decode=WS2D/batch."),
    ] = None
    ep: Annotated[str | None, _text(_SEARCH, "N", "Devices that divide the experts.")] = None
    dp: Annotated[
        str | None, _text(_SEARCH, "N", "Copies of attention, of models with experts.")
    ] = None
    objective: Annotated[
        str,
        _text(
            _SEARCH,
            "WHAT",
            f"What to optimise: {', '.join(objectives()[:-1])} or {objectives()[-1]}.",
        ),
    ] = "cost"
    weights: Annotated[
        tuple[str, ...],
        _text(
            _SEARCH,
            "FORMATS",
            "Weights formats to choose from, like bf16,int8; default: as published.",
        ),
    ] = ()
    kv: Annotated[
        tuple[str, ...],
        _text(_SEARCH, "FORMATS", "KV cache formats to choose from; default: as published."),
    ] = ()
    allow_formats: Annotated[
        tuple[str, ...],
        _text(_SEARCH, "FORMATS", "Formats that weights and KV cache may take, like bf16,fp8."),
    ] = ()
    draft: Annotated[
        str | None,
        _text(
            _SEARCH,
            "NAME|FILE",
            "Draft model that decode may use, or leave; of an engine mtp, eagle or medusa.",
        ),
    ] = None
    acceptance: Annotated[
        str | None,
        _text(
            _SEARCH,
            "P",
            "Probability that a drafted token is accepted; of an engine by position too, like "
            "0.85,0.5. [0.8; of an engine as published for its drafter]",
        ),
    ] = None
    lookahead: Annotated[
        str | None, _text(_SEARCH, "TOKENS", "Tokens drafted at once to choose from. [2:5]")
    ] = None
    speculation: Annotated[
        str | None,
        _text(_SEARCH, "HOW", "usual: g drafted, g+1 scored. capped: g drafted, g scored. [usual]"),
    ] = None
    batch: Annotated[
        str,
        _text(_SEARCH, "BATCHES", "Decode batches to choose from: up to 64, or 16:128:8 or 1,2,4."),
    ] = "1024"
    prefill_batch: Annotated[
        str | None,
        _text(_SEARCH, "BATCHES", "Prefill batches to choose from; default: as `--prefill` says."),
    ] = None
    prefill: Annotated[
        str | None,
        _text(
            _SEARCH,
            "POLICY",
            "latency: each request alone. cost: in batches. Default: latency with a "
            "`--latency-target` and no `--ttft-target`, else cost.",
        ),
    ] = None

    engine: Annotated[
        str | None,
        _text(
            _SEARCH,
            "NAME,…",
            "vllm, sglang, trtllm, the best of several; roofline; or erdil2025, decode only. "
            "Default: the engines that were measured on the device, else roofline.",
        ),
    ] = None
    memory: Annotated[
        str | None,
        _text(
            _SEARCH,
            "RULE",
            "What has to fit, by erdil2025: in-flight, all requests. one-microbatch, as the paper.",
        ),
    ] = None

    solver: Annotated[str, _text(_SOLVER, "NAME", "highs, cpsat or exhaustive.")] = "highs"
    time_limit: Annotated[
        str | None, _text(_SOLVER, "TIME", "Stop after this, with the best plan so far, like 10s.")
    ] = None
    gap: Annotated[
        str, _text(_SOLVER, "FRACTION", "Distance to the optimum that is good enough, like 1%.")
    ] = "0"
    threads: Annotated[str, _text(_SOLVER, "N", "Threads of the solver.")] = "1"
    seed: Annotated[str, _text(_SOLVER, "N", "Seed of the solver.")] = "0"
    proof: Annotated[
        str, _text(_SOLVER, "HOW", "two: nothing is called optimal on one solver's word; or one.")
    ] = "two"
    keep_program: Annotated[
        str | None,
        _text(_SOLVER, "FILE", "Leave the program as MPS: that on which provers disagree, if any."),
    ] = None

    json: Annotated[bool, _flag(_OUTPUT, "Print the plan as JSON, in SI units.")] = False
    quiet: Annotated[bool, _flag(_OUTPUT, "Print the plan in one line.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan(Written):
    """Options of `plan` itself: those of every plan, and those of plans for an engine."""

    variants: Annotated[
        tuple[str, ...],
        _text(
            _SERVE,
            "NAME|FILE,…",
            "Variants of the model that may be served in its place; all: every one that is known.",
        ),
    ] = ()
    chunk: Annotated[
        str | None,
        _text(_SEARCH, "TOKENS", "Most tokens of a pass to choose from, of an engine."),
    ] = None
    overlap: Annotated[
        tuple[str, ...],
        _text(
            _SEARCH,
            "HOW",
            "none,two-batch: an engine may hide messages behind another micro-batch. [none]",
        ),
    ] = ()
    hit_rate: Annotated[
        str | None, _text(_SERVE, "FRACTION", "Input that an engine's prefix cache already has.")
    ] = None
    expert_loads: Annotated[
        str | None,
        _text(
            _SERVE,
            "FILE|S",
            "Load of each expert, as `plan experts` reads it, or k^-S of the k-th; 0: all alike.",
        ),
    ] = None
    confidence: Annotated[str | None, CONFIDENCE] = None
    prefer: Annotated[
        str | None,
        _text(
            _SEARCH,
            "WHAT",
            "simplest: of an engine's plans closer than their error, the one with fewest devices; "
            "or objective, to the last percent. [simplest]",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOne(WrittenPlan):
    """Options of `plan` itself: those of every plan, and those of replicas with a phase each."""

    roles: Annotated[str | None, ROLES] = None
    connector: Annotated[str | None, CONNECTOR] = None
    prefill_devices: Annotated[str | None, PREFILL_DEVICES] = None
    decode_devices: Annotated[str | None, DECODE_DEVICES] = None


_NAMES = "NAME|FILE,…"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSurvey(WrittenPlan):
    """Options of the commands that answer with several plans."""

    model: Annotated[str, _text(_SERVE, _NAMES, "Models to serve; see `plan models`.")] = (
        DEFAULT_MODEL
    )
    topology: Annotated[
        str, _text(_SERVE, _NAMES, "Pools of devices to serve them on; see `plan topologies`.")
    ] = DEFAULT_TOPOLOGY
    by: Annotated[
        str | None,
        _text(
            _SEARCH,
            "WHAT",
            "A case for each: weights, format of these; formats, pair with one of the KV cache.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenComparison(WrittenSurvey):
    """Options of `plan compare`."""

    roles: Annotated[
        str | None,
        _text(
            _SEARCH,
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

    x: Annotated[str, _text(_SEARCH, "WHAT", "What to keep short: latency or ttft.")] = "latency"
    y: Annotated[
        str,
        _text(
            _SEARCH,
            "WHAT",
            "What to set against it: cost, rent or throughput; of an engine device-throughput.",
        ),
    ] = "cost"
    alpha: Annotated[
        str, _text(_SEARCH, "NUMBER", "The preferred point has the largest speed^alpha / price.")
    ] = "3"
    all: Annotated[bool, _flag(_OUTPUT, "Print every point.")] = False
    csv: Annotated[
        str | None, _text(_OUTPUT, "FILE|-", "Write every point as CSV, in SI units.")
    ] = None
    html: Annotated[
        str | None, _text(_OUTPUT, "FILE", "Draw the frontier: one page that needs nothing else.")
    ] = None


@hiding_refused("audit")
@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAudit(WrittenPlan):
    """Options of `plan audit`: what runs, as its owner sees it."""

    speed: Annotated[
        str | None, _text(_SERVE, "RATE", "Output tokens a second that a user sees, like 70tok/s.")
    ] = None
    batch: Annotated[
        str,
        Parameter(
            group=_SERVE,
            metavar="N",
            help="Sequences decoded together; or else `--utilization`.",
            negative=(),
            show_default=False,
        ),
    ] = ""
    weights: Annotated[
        tuple[str, ...], _text(_SERVE, "FORMAT", "Format of its weights; default: as published.")
    ] = ()
    kv: Annotated[
        tuple[str, ...], _text(_SERVE, "FORMAT", "Format of its KV cache; default: the usual one.")
    ] = ()
    utilization: Annotated[
        str | None, _text(_SERVE, "FRACTION", "Model FLOP of decode over the peak, like 15%.")
    ] = None
    devices: Annotated[str | None, _text(_SERVE, "N", "Devices in use. [the whole pool]")] = None
    html: Annotated[
        str | None, _text(_OUTPUT, "FILE", "Draw it beside the frontier: one page, nothing else.")
    ] = None

    tp: Annotated[
        str | None, _text(_SERVE, "N", "Devices that share the heads, of an engine. [1]")
    ] = None
    pp: Annotated[str | None, _text(_SERVE, "N", "Pipeline stages, of an engine. [1]")] = None
    ep: Annotated[
        str | None, _text(_SERVE, "N", "Groups of experts, of an engine. [tp·dp if dp > 1]")
    ] = None
    dp: Annotated[str | None, _text(_SERVE, "N", "Attention ranks, of an engine. [1]")] = None


OUTPUTS = ("html", "svg", "csv", "output", "network", "plot", "keep_program")
"""Options that name a file to write."""


def flags(written: type) -> tuple[str, ...]:
    """The options of a command that take no value."""
    return tuple(option(f.name) for f in fields(written) if isinstance(f.default, bool))


def valued(written: type) -> tuple[str, ...]:
    """The options of a command that take a value."""
    return tuple(option(f.name) for f in fields(written) if not isinstance(f.default, bool))


FLAGS = frozenset(flags(Written))
REPEATED = frozenset(
    {"--weights", "--kv", "--allow-formats", "--table", "--variants", "--overlap", "--price"}
)
_OF_MODELS = frozenset({"--model", "--demand", "--replicas"})
REPEATED_BY = {"place": _OF_MODELS, "repair": _OF_MODELS}
"""Options that only some commands take more than once."""
VALUED = valued(Written)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCalibration:
    """Options of `plan calibrate`."""

    table: Annotated[
        tuple[str, ...],
        _text(_TABLES, "FILE|FOLDER", "Tables to read; `--table` itself may be left out."),
    ] = ()
    device: Annotated[str | None, _text(_TABLES, "NAME|FILE", "Device that was measured.")] = None
    engine: Annotated[
        str | None, _text(_TABLES, "NAME", "Whose kernels they are: vllm, sglang, deepgemm, ….")
    ] = None
    engine_version: Annotated[str, _text(_TABLES, "TEXT", "Of the engine.")] = ""
    sms: Annotated[
        str | None,
        _text(_TABLES, "N", "Multiprocessors of the device; default: as its other tables say."),
    ] = None
    source: Annotated[
        str, _text(_TABLES, "TEXT", "Where the rows come from; default: the names of the files.")
    ] = ""
    kernels: Annotated[
        str | None,
        _text(_TABLES, "NAMES", "Of an engine's kernels of experts; default: all but rare ones."),
    ] = None
    output: Annotated[
        str | None, _text(_OUTPUT, "FILE", "Write the constants as a kernel file.")
    ] = None
    network: Annotated[
        str | None,
        _text(_OUTPUT, "FILE", "Write collectives as sections of a topology file."),
    ] = None
    plot: Annotated[
        str | None, _text(_OUTPUT, "FILE", "Draw predicted against measured time, as SVG.")
    ] = None
    refused: Annotated[bool, _flag(_OUTPUT, "Name every row that was refused.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPrediction:
    """Options of `plan predict`."""

    model: Annotated[
        str, _text(_SERVE, "NAME|FILE", "Model: see `plan models`, or a Hugging Face config.json.")
    ] = DEFAULT_MODEL
    device: Annotated[
        str | None, _text(_SERVE, "NAME|FILE", "Device, in its usual servers; or else a topology.")
    ] = None
    topology: Annotated[
        str | None, _text(_SERVE, "NAME|FILE", "Pool of devices; see `plan topologies`.")
    ] = None
    engine: Annotated[str, _text(_SERVE, "NAME|FILE", "vllm, sglang or trtllm.")] = "vllm"
    input: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request reads.")] = str(
        DEFAULT_WORKLOAD.n_input_tokens
    )
    output: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request writes.")] = str(
        DEFAULT_WORKLOAD.n_output_tokens
    )
    hit_rate: Annotated[
        str, _text(_SERVE, "FRACTION", "Share of the input that the prefix cache has.")
    ] = "0"
    expert_loads: Annotated[
        str | None,
        _text(
            _SERVE,
            "FILE|S",
            "Load of each expert, as `plan experts` reads it, or k^-S of the k-th; 0: all alike.",
        ),
    ] = None
    shared: Annotated[
        str, _text(_SERVE, "TOKENS", "First tokens that all requests share in memory.")
    ] = "0"
    rate: Annotated[
        str | None,
        _text(
            _SERVE, "RATE", "Requests that arrive at random times, like 4req/s; `--batch` places."
        ),
    ] = None
    in_flight: Annotated[
        str | None, _text(_SERVE, "N", "Requests in flight on all ranks together, a closed loop.")
    ] = None
    waves: Annotated[
        str | None,
        _text(_SERVE, "N", "Requests of each place, all first ones at once; default: endless."),
    ] = None

    tp: Annotated[str, _text(_DEPLOYED, "N", "Devices that share the heads of a rank.")] = "1"
    dp: Annotated[
        str | None, _text(_DEPLOYED, "N", "Attention ranks with requests of their own. [ep/tp]")
    ] = None
    ep: Annotated[
        str | None, _text(_DEPLOYED, "N", "Groups that experts are dealt to. [tp·dp if dp > 1]")
    ] = None
    pp: Annotated[str, _text(_DEPLOYED, "N", "Stages of a pipeline.")] = "1"
    batch: Annotated[
        str | None, _text(_DEPLOYED, "N", "Requests in flight on each attention rank. [1]")
    ] = None
    weights: Annotated[
        str | None, _text(_DEPLOYED, "FORMAT", "Of dense weights; default: as published.")
    ] = None
    experts: Annotated[
        str | None, _text(_DEPLOYED, "FORMAT", "Of routed experts; default: as `--weights`.")
    ] = None
    kv: Annotated[
        str | None, _text(_DEPLOYED, "FORMAT", "Of the cache; default: as published.")
    ] = None
    chunk: Annotated[
        str | None, _text(_DEPLOYED, "TOKENS", "Most tokens of a pass; default: the engine's.")
    ] = None
    role: Annotated[
        str, _text(_DEPLOYED, "ROLE", "What it does of a request: together, prefill or decode.")
    ] = "together"
    overlap: Annotated[
        str, _text(_DEPLOYED, "HOW", "two-batch: messages behind another micro-batch. Or none.")
    ] = "none"
    draft: Annotated[
        str | None, _text(_DEPLOYED, "HOW", "Speculative decoding: mtp, eagle or medusa.")
    ] = None
    lookahead: Annotated[str | None, _text(_DEPLOYED, "TOKENS", "Tokens drafted at once. [1]")] = (
        None
    )
    acceptance: Annotated[
        str | None,
        _text(
            _DEPLOYED,
            "P,…",
            "Probability that a drafted token is accepted, by position. [as published]",
        ),
    ] = None

    explain: Annotated[
        bool, _flag(_OUTPUT, "Trace each operation to its formula, constants and source.")
    ] = False
    html: Annotated[
        str | None, _text(_OUTPUT, "FILE", "Draw the roofline: one page that needs nothing else.")
    ] = None
    json: Annotated[bool, _flag(_OUTPUT, "Print it as JSON, in SI units.")] = False
    quiet: Annotated[bool, _flag(_OUTPUT, "Print it in one line.")] = False


SURVEYS: dict[str, type] = {
    "pareto": WrittenPareto,
    "compare": WrittenComparison,
    "audit": WrittenAudit,
    "calibrate": WrittenCalibration,
    "predict": WrittenPrediction,
}
"""Commands that take options, their own or those of `plan` and more."""

WORDS = {
    "calibrate": "--table",
    "layers": "--machines",
    "repair": "--placement",
    "verify": "--answer",
}
"""Options of commands whose words may stand alone."""
