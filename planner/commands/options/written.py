"""Every option of `plan`, as text: the one table behind the help and the reading.

Options stay text until all of them are read, so that one message can name every fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.commands.options.groups import (
    CONFIDENCE,
    CONNECTOR,
    DECODE_DEVICES,
    EXPERT_LOADS,
    EXPERTS_BACKEND,
    MAX_UTILISATION,
    PREFILL_DEVICES,
    PRICE,
    ROLES,
    SORT_PRICE,
    SORTS,
)
from planner.commands.options.groups import OUTPUT as _OUTPUT
from planner.commands.options.groups import SEARCH as _SEARCH
from planner.commands.options.groups import SERVE as _SERVE
from planner.commands.options.groups import SOLVER as _SOLVER
from planner.commands.options.groups import TARGETS as _TARGETS
from planner.commands.options.groups import flag as _flag
from planner.commands.options.groups import text as _text
from planner.commands.options.written_limits import Limits
from planner.quantities import objectives
from planner.specs.defaults import (
    DEFAULT_MODEL,
    DEFAULT_TOPOLOGY,
    DEFAULT_WORKLOAD,
)


class Usual(str):
    """A default that nobody wrote."""

    __slots__ = ()


USUAL_INPUT = Usual(DEFAULT_WORKLOAD.n_input_tokens)
USUAL_OUTPUT = Usual(DEFAULT_WORKLOAD.n_output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Limits):
    """Options as they were written; `reading.read` turns them into numbers."""

    model: Annotated[
        str, _text(_SERVE, "NAME|FILE", "Model to serve, or a `config.json`; see `plan models`.")
    ] = DEFAULT_MODEL
    topology: Annotated[
        str, _text(_SERVE, "NAME|FILE", "Pool of devices to serve it on; see `plan topologies`.")
    ] = DEFAULT_TOPOLOGY
    input: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request reads.")] = USUAL_INPUT
    output: Annotated[str, _text(_SERVE, "TOKENS", "Tokens that a request writes.")] = USUAL_OUTPUT

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
    max_utilisation: Annotated[str | None, MAX_UTILISATION] = None
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
    expert_loads: Annotated[str | None, EXPERT_LOADS] = None
    experts_backend: Annotated[str | None, EXPERTS_BACKEND] = None
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
    sorts: Annotated[str | None, SORTS] = None
    sort_price: Annotated[str | None, SORT_PRICE] = None
