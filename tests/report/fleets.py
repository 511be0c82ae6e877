"""Small fleets, found by the planner, for the tests of reports and of verdicts."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from itertools import accumulate

from planner.placing.fleets.planning import fleet
from planner.results.fleets import FleetPlan, FleetStaircase, Step
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_connector, load_model
from planner.specs.files.state import State
from planner.specs.records.devices import ModelSpec
from planner.specs.records.roles import RoleOptions
from planner.specs.traffic.arrivals import Trace, replaying
from planner.specs.traffic.lengths import IndependentLengths, TraceLengths
from planner.specs.traffic.percentiles import GoodputTarget, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.specs.traffic.texts import tokens_of


def trace(n_requests: int = 300) -> Trace:
    """Requests at random times, 40 a second."""
    draw = random.Random(7)
    gaps = [0.0, *(draw.expovariate(40.0) for _ in range(n_requests - 1))]
    return Trace(
        name="mine.csv",
        arrival_s=array("d", accumulate(gaps)),
        n_input=array("q", [draw.randint(20, 400) for _ in range(n_requests)]),
        n_output=array("q", [draw.randint(1, 12) for _ in range(n_requests)]),
    )


def tiny() -> ModelSpec:
    """Three layers of Llama 3 8B, of which a device serves a hundred requests a second."""
    return replace(
        load_model("llama-3-8b"), n_layers=3, name="tiny", tied_embeddings=False, repository=""
    )


def chat(rate_per_s: float = 120.0, *, ttft_s: float = 0.05) -> TrafficClass:
    return TrafficClass(
        name="chat",
        models=(tiny(),),
        rate_per_s=rate_per_s,
        lengths=IndependentLengths(
            input=tokens_of("uniform:20:400"), output=tokens_of("uniform:2:12")
        ),
        targets=(
            PercentileTarget(quantity="ttft", share=0.95, at_most_s=ttft_s),
            PercentileTarget(quantity="tpot", share=0.9, at_most_s=0.02),
        ),
    )


def replayed() -> TrafficClass:
    """Requests of a trace, to be served by the same model as chat, before it."""
    mine = trace()
    return TrafficClass(
        name="mine",
        models=(tiny(),),
        rate_per_s=mine.rate_per_s,
        lengths=TraceLengths(trace=mine),
        arrivals=replaying(mine),
        goodput=GoodputTarget(share=0.9, ttft_s=0.1, tpot_s=0.05),
        priority=1,
    )


def asked(*classes: TrafficClass, **others: object) -> FleetRequest:
    given = {
        "site": load_site("h100-nvl8-x1"),
        "engines": ("vllm",),
        "batches": (4,),
        "chunks": (256,),
        "n_simulated": 300,
        "confidence": 0.0,
        "state": State(busy=("node0/gpu0",)),
    }
    return FleetRequest(classes=classes, **{**given, **others})  # type: ignore[arg-type]


def staircase(plan: FleetPlan) -> FleetStaircase:
    """Four steps, the last a little above its bound."""
    steps = [
        Step(
            above_factor=i / 2.0,
            upto_factor=(i + 1) / 2.0,
            usd_per_hour=2.95 * (i + 1),
            bound_usd_per_hour=2.95 * (i + 1) * (0.99 if i == 3 else 1.0),
            n_devices=i + 1,
            words=f"{i + 1} × h100-sxm for chat",
        )
        for i in range(4)
    ]
    return FleetStaircase(request=plan.request, steps=tuple(steps), is_whole=False)


FLEET = fleet(asked(chat(), replayed(), sharing=False))
"""A class with percentiles and one of a trace, each with replicas of its own."""

APART = fleet(
    asked(
        replace(chat(20.0, ttft_s=0.5), cuts=(200,)),
        roles=RoleOptions(name="apart", connector=load_connector("nixl")),
    )
)
"""Prompts in two ranges, each read on devices of its own and decoded on others."""

STAIRCASE = staircase(FLEET)
