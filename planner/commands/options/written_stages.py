"""Every option of `plan stages` and `plan layers`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from planner.commands.options.groups import DEPLOYED, OUTPUT, SEARCH, SERVE, SOLVER, flag, text
from planner.specs.defaults import DEFAULT_MODEL, DEFAULT_WORKLOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStages:
    """Options of `plan stages`."""

    model: Annotated[
        str, text(SERVE, "NAME|FILE", "Model: see `plan models`, or a Hugging Face config.json.")
    ] = DEFAULT_MODEL
    groups: Annotated[
        str | None,
        text(SERVE, "GROUPS", "Groups of devices or topologies: h100-sxm:tp8x2,a100-80gb:tp4x3"),
    ] = None
    engine: Annotated[str, text(SERVE, "NAME|FILE", "vllm, sglang or trtllm.")] = "vllm"
    input: Annotated[str, text(SERVE, "TOKENS", "Tokens that a request reads.")] = str(
        DEFAULT_WORKLOAD.n_input_tokens
    )
    output: Annotated[str, text(SERVE, "TOKENS", "Tokens that a request writes.")] = str(
        DEFAULT_WORKLOAD.n_output_tokens
    )

    phase: Annotated[
        str, text(DEPLOYED, "PHASE", "Which passes to cut for: decode or prefill.")
    ] = "decode"
    batch: Annotated[str, text(DEPLOYED, "N", "Sequences of a micro-batch.")] = "1"
    micro_batches: Annotated[
        str | None,
        text(DEPLOYED, "N", "Of them in flight. [one a group; for latency one]"),
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

    objective: Annotated[
        str,
        text(SEARCH, "WHAT", "bottleneck: the slowest stage; latency: a pass through all."),
    ] = "bottleneck"
    solver: Annotated[str, text(SOLVER, "NAME", "highs, cpsat or exhaustive.")] = "highs"
    time_limit: Annotated[
        str | None, text(SOLVER, "TIME", "Stop then, with the best cut so far.")
    ] = None
    proof: Annotated[
        str, text(SOLVER, "HOW", "two: nothing is called optimal on one solver's word; or one.")
    ] = "two"
    keep_program: Annotated[
        str | None,
        text(SOLVER, "FILE", "Leave the program as MPS: that on which provers disagree, if any."),
    ] = None

    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw the cut: one page that needs nothing else.")
    ] = None
    json: Annotated[bool, flag(OUTPUT, "Print it as JSON, in SI units.")] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLayers:
    """Options of `plan layers`."""

    machines: Annotated[
        str | None,
        text(SERVE, "FILE", "Machines: token/s by layers held, links; see examples/machines"),
    ] = None
    gap: Annotated[
        str, text(SOLVER, "FRACTION", "Stop when nothing can be better by more than this.")
    ] = "0.01%"
    time_limit: Annotated[
        str | None, text(SOLVER, "TIME", "Stop then, with the best placement and bound so far.")
    ] = None
    proof: Annotated[
        str, text(SOLVER, "HOW", "two: nothing is called optimal on one solver's word; or one.")
    ] = "two"
    keep_program: Annotated[
        str | None,
        text(SOLVER, "FILE", "Leave the program as MPS: that on which provers disagree, if any."),
    ] = None
    html: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw the placement: one page that needs nothing else.")
    ] = None
    json: Annotated[bool, flag(OUTPUT, "Print it as JSON.")] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False
