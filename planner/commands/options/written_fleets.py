"""Every option of `plan fleet`, as text."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from planner.commands.options.groups import (
    CONFIDENCE,
    CONNECTOR,
    DECODE_DEVICES,
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
from planner.commands.options.written_limits import FleetLimits
from planner.specs.defaults import N_SIMULATED
from planner.specs.routers import LEAST_PRESENT, ROUTERS
from planner.specs.traffic.percentiles import DEFINITIONS, GOODPUT, USUAL_TARGETS

PERCENTILES = Group(
    "Targets by percentile", help="\n".join((*DEFINITIONS.values(), GOODPUT)), sort_key=2
)

if TYPE_CHECKING:

    class Percentiles(FleetLimits):
        """Fields are options of `USUAL_TARGETS`: `--ttft-p99.9` is `ttft_p99_9`."""

else:
    Percentiles = make_dataclass(
        "Percentiles",
        [
            (
                one.removeprefix("--").replace("-", "_").replace(".", "_"),
                Annotated[
                    str | None,
                    Parameter(
                        name=one,
                        group=PERCENTILES,
                        metavar="TIME",
                        help=f"{target.quantity.upper()} that {target.share * 100:g}% stay within.",
                        negative=(),
                    ),
                ],
                field(default=None),
            )
            for one, target in USUAL_TARGETS.items()
        ],
        bases=(FleetLimits,),
        frozen=True,
        slots=True,
        kw_only=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFleet(Percentiles):
    """Options of `plan fleet`."""

    traffic: Annotated[
        str | None,
        text(SERVE, "FILE", "Classes of traffic, and kinds of devices: in place of one class."),
    ] = None
    model: Annotated[
        tuple[str, ...],
        text(SERVE, "NAME|FILE", "Model to serve; again for others of which any may serve."),
    ] = ()
    rate: Annotated[
        str | None, text(SERVE, "RATE", "Requests that arrive, like 8req/s; default: the trace's.")
    ] = None
    input: Annotated[
        str | None,
        text(
            SERVE,
            "TOKENS",
            "Tokens that requests read: 1500, lognormal:1500:p99=8000, uniform:100:2000, "
            "exponential:1500, percentiles:p50=900:max=9000 or cdf:FILE.",
        ),
    ] = None
    output: Annotated[
        str | None, text(SERVE, "TOKENS", "Tokens that requests write, in the same way.")
    ] = None
    trace: Annotated[
        str | None,
        text(SERVE, "FILE", "Requests as they came, CSV or JSONL: lengths, arrivals and rate."),
    ] = None
    arrivals: Annotated[
        str | None,
        text(SERVE, "HOW", "poisson, cv2:4, constant or trace. [poisson; with a trace: trace]"),
    ] = None
    topology: Annotated[
        str | None,
        text(SERVE, "NAME|FILE", "Servers, or a fabric of leaves; default: h100-fat-tree-x64."),
    ] = None
    state: Annotated[
        str | None, text(SERVE, "FILE", "What is busy, failed, reserved, slow or down.")
    ] = None
    count: Annotated[
        tuple[str, ...],
        text(SERVE, "KIND=N", "Most devices of a kind; default: all that there are."),
    ] = ()
    price: Annotated[tuple[str, ...], PRICE] = ()

    goodput: Annotated[
        str | None,
        text(PERCENTILES, "TEXT", "Share of requests within limits: '99% ttft<2s tpot<50ms'."),
    ] = None
    max_quality_loss: Annotated[
        str | None,
        text(TARGETS, "FRACTION", "Most quality that a number format may lose, like 1%."),
    ] = None

    engine: Annotated[
        tuple[str, ...],
        text(
            SEARCH,
            "NAMES",
            "vllm, sglang, trtllm; of several the best for each replica; default: those that were "
            "measured on a kind.",
        ),
    ] = ()
    roles: Annotated[str | None, ROLES] = None
    connector: Annotated[str | None, CONNECTOR] = None
    prefill_devices: Annotated[str | None, PREFILL_DEVICES] = None
    decode_devices: Annotated[str | None, DECODE_DEVICES] = None
    sorts: Annotated[str | None, SORTS] = None
    sort_price: Annotated[str | None, SORT_PRICE] = None
    cuts: Annotated[
        str | None,
        text(
            SEARCH, "TOKENS", "Lengths of prompts that part pools: 2048,8192; free: the planner's."
        ),
    ] = None
    no_sharing: Annotated[
        bool, flag(SEARCH, "Give each class replicas of its own, of one model too.")
    ] = False
    router: Annotated[
        str, text(SEARCH, "HOW", f"Which replica of a pool gets a request: {', '.join(ROUTERS)}.")
    ] = LEAST_PRESENT
    weights: Annotated[
        tuple[str, ...],
        text(SEARCH, "FORMATS", "Weights formats to choose from; default: as published."),
    ] = ()
    kv: Annotated[
        tuple[str, ...],
        text(SEARCH, "FORMATS", "KV cache formats to choose from; default: as published."),
    ] = ()
    batch: Annotated[
        str | None,
        text(SEARCH, "BATCHES", "Most sequences of a rank to choose from, like 256 or 64,256."),
    ] = None
    chunk: Annotated[
        str | None, text(SEARCH, "TOKENS", "Most tokens of a pass to choose from.")
    ] = None
    replica_devices: Annotated[
        str | None, text(SEARCH, "N", "Most devices of one replica. [64]")
    ] = None
    confidence: Annotated[str | None, CONFIDENCE] = None

    simulated: Annotated[
        str, text(SOLVER, "N", "Requests that the fleet is tried on, one by one.")
    ] = str(N_SIMULATED)
    solver: Annotated[str, text(SOLVER, "NAME", "highs, cpsat or exhaustive.")] = "highs"
    time_limit: Annotated[
        str | None, text(SOLVER, "TIME", "Stop after this, with the best so far, like 10s.")
    ] = None
    gap: Annotated[
        str, text(SOLVER, "FRACTION", "Distance to the optimum that is good enough, like 1%.")
    ] = "0"
    threads: Annotated[str, text(SOLVER, "N", "Threads of the solver.")] = "1"
    seed: Annotated[str, text(SOLVER, "N", "Seed of the solver, and of the simulation.")] = "0"
    proof: Annotated[
        str, text(SOLVER, "HOW", "two: nothing is called optimal on one solver's word; or one.")
    ] = "two"

    staircase: Annotated[
        str | None,
        text(OUTPUT, "RANGE", "The least rent of each rate of requests too, like 1:200req/s."),
    ] = None
    workers: Annotated[str | None, text(OUTPUT, "N", "Processes that climb the staircase. [1]")] = (
        None
    )
    html: Annotated[str | None, text(OUTPUT, "FILE", "Write a page with drawings of it.")] = None
    csv: Annotated[
        str | None, text(OUTPUT, "FILE", "Write pools, or steps, as CSV; - to stdout.")
    ] = None
    json: Annotated[
        bool, flag(OUTPUT, "Print it as JSON, in SI units; of a staircase the steps.")
    ] = False
    quiet: Annotated[bool, flag(OUTPUT, "Print it in one line.")] = False
