"""Every option of `plan predict`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.commands.options.groups import (
    DEPLOYED,
    EXPERT_LOADS,
    EXPERTS_BACKEND,
    MEMORY_FRACTION,
    OUTPUT,
    RULES,
    SERVE,
    WORKSPACE,
    flag,
    text,
)
from planner.specs.defaults import DEFAULT_MODEL, DEFAULT_WORKLOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPrediction:
    """Options of `plan predict`."""

    model: Annotated[
        str, text(SERVE, "NAME|FILE", "Model: see `plan models`, or a Hugging Face config.json.")
    ] = DEFAULT_MODEL
    device: Annotated[
        str | None, text(SERVE, "NAME|FILE", "Device, in its usual servers; or else a topology.")
    ] = None
    topology: Annotated[
        str | None, text(SERVE, "NAME|FILE", "Pool of devices; see `plan topologies`.")
    ] = None
    engine: Annotated[str, text(SERVE, "NAME|FILE", "vllm, sglang or trtllm.")] = "vllm"
    input: Annotated[str, text(SERVE, "TOKENS", "Tokens that a request reads.")] = str(
        DEFAULT_WORKLOAD.n_input_tokens
    )
    output: Annotated[str, text(SERVE, "TOKENS", "Tokens that a request writes.")] = str(
        DEFAULT_WORKLOAD.n_output_tokens
    )
    hit_rate: Annotated[
        str, text(SERVE, "FRACTION", "Share of the input that the prefix cache has.")
    ] = "0"
    expert_loads: Annotated[str | None, EXPERT_LOADS] = None
    experts_backend: Annotated[str | None, EXPERTS_BACKEND] = None
    memory_fraction: Annotated[str | None, MEMORY_FRACTION] = None
    workspace: Annotated[str | None, WORKSPACE] = None
    rules: Annotated[str | None, RULES] = None
    shared: Annotated[
        str, text(SERVE, "TOKENS", "First tokens that all requests share in memory.")
    ] = "0"
    rate: Annotated[
        str | None,
        text(SERVE, "RATE", "Requests that arrive at random times, like 4req/s; `--batch` places."),
    ] = None
    in_flight: Annotated[
        str | None, text(SERVE, "N", "Requests in flight on all ranks together, a closed loop.")
    ] = None
    waves: Annotated[
        str | None,
        text(
            SERVE,
            "N",
            "Requests of each place, first ones at once, lengths vary by 6%; default: endless.",
        ),
    ] = None

    tp: Annotated[str, text(DEPLOYED, "N", "Devices that share the heads of a rank.")] = "1"
    dp: Annotated[
        str | None, text(DEPLOYED, "N", "Attention ranks with requests of their own. [ep/tp]")
    ] = None
    ep: Annotated[
        str | None, text(DEPLOYED, "N", "Groups that experts are dealt to. [tp·dp if dp > 1]")
    ] = None
    redundant_experts: Annotated[
        str | None,
        text(
            DEPLOYED, "N", "Copies of experts of a layer, balanced; 0: none. [the engine's of EP]"
        ),
    ] = None
    pp: Annotated[str, text(DEPLOYED, "N", "Stages of a pipeline.")] = "1"
    batch: Annotated[
        str | None, text(DEPLOYED, "N", "Requests in flight on each attention rank. [1]")
    ] = None
    weights: Annotated[
        str | None, text(DEPLOYED, "FORMAT", "Of dense weights; default: as published.")
    ] = None
    experts: Annotated[
        str | None, text(DEPLOYED, "FORMAT", "Of routed experts; default: as `--weights`.")
    ] = None
    kv: Annotated[str | None, text(DEPLOYED, "FORMAT", "Of the cache; default: as published.")] = (
        None
    )
    chunk: Annotated[
        str | None, text(DEPLOYED, "TOKENS", "Most tokens of a pass; default: the engine's.")
    ] = None
    role: Annotated[
        str, text(DEPLOYED, "ROLE", "What it does of a request: together, prefill or decode.")
    ] = "together"
    overlap: Annotated[
        str, text(DEPLOYED, "HOW", "two-batch: messages behind another micro-batch. Or none.")
    ] = "none"
    draft: Annotated[
        str | None, text(DEPLOYED, "HOW", "Speculative decoding: mtp, eagle or medusa.")
    ] = None
    lookahead: Annotated[str | None, text(DEPLOYED, "TOKENS", "Tokens drafted at once. [1]")] = None
    acceptance: Annotated[
        str | None,
        text(
            DEPLOYED,
            "P,…",
            "Probability that a drafted token is accepted, by position. [as published]",
        ),
    ] = None

    explain: Annotated[
        bool, flag(OUTPUT, "Trace each operation to its formula, constants and source.")
    ] = False
    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw the roofline: one page that needs nothing else.")
    ] = None
    json: Annotated[bool, flag(OUTPUT, "Print it as JSON, in SI units.")] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False
