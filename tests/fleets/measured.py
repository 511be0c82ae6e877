"""Fleets for jobs that people have, as the documents tell them: `python -m tests.fleets.measured`.

What ignoring bursts would have cost: the fleet for the same lengths at random times is sent the
trace as it was.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from planner.placing.fleets.planning import fleet
from planner.results.fleets import FleetPlan, ServedClass
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_connector
from planner.specs.records.roles import ALL_TOGETHER, RoleOptions
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, replaying
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.lengths import TraceLengths
from planner.specs.traffic.records import TrafficClass
from planner.specs.traffic.trace_files import load_trace
from planner.verifier.simulation.fleets import simulate
from planner.verifier.simulation.outcomes import ClassOutcome
from planner.verifier.simulation.pools import ClassLoad, Pool, Route

DATA = Path(__file__).parents[1] / "data" / "fleet"


def asked(topology: str, one: TrafficClass, roles: RoleOptions = ALL_TOGETHER) -> FleetRequest:
    return FleetRequest(
        site=load_site(topology), classes=(one,), engines=("vllm",), roles=roles, confidence=0.0
    )


def start_up(rate: float) -> FleetRequest:
    """70B on H100 within TTFT p95 1 s and TPOT p95 40 ms."""
    one = traffic_class(
        "chat",
        load_architecture("llama-3.1-70b"),
        rate_per_s=rate,
        input=1500,
        output=300,
        targets={"ttft_p95": "1 s", "tpot_p95": "40 ms"},
    )
    return asked("h100-nvl8-x4", one)


def azure(name: str, model: str) -> FleetRequest:
    """One of Azure's traces of 2023, replayed, within TTFT p95 2 s and TPOT p95 50 ms."""
    trace = load_trace(DATA / f"azure2023_{name}.csv.gz")
    usual = start_up(1.0).classes[0]
    one = replace(
        usual,
        name=name,
        models=(load_architecture(model),),
        rate_per_s=trace.rate_per_s,
        lengths=TraceLengths(trace=trace),
        arrivals=replaying(trace),
        targets=tuple(replace(it, at_most_s=2 * it.at_most_s) for it in usual.targets[:1])
        + tuple(replace(it, at_most_s=0.05) for it in usual.targets[1:]),
    )
    return asked("h100-nvl8-x4", one)


def by_roles(name: str, connector: str | None) -> FleetRequest:
    """70B with long prompts and a strict TPOT."""
    one = traffic_class(
        "chat",
        load_architecture("llama-3.1-70b"),
        rate_per_s=12.0,
        input=4000,
        output=500,
        targets={"ttft_p95": "2 s", "tpot_p95": "30 ms"},
    )
    if connector is None:
        return asked("h100-nvl8-x8", one)
    roles = RoleOptions(name=name, connector=load_connector(connector))
    return asked("h100-nvl8-x8", one, roles)


def replayed_on(plan: FleetPlan, one: TrafficClass) -> ClassOutcome:
    """A class on a fleet that was planned for another, all of it once."""
    pools = [Pool(name=it.name, station=it.station, n_replicas=it.n_replicas) for it in plan.pools]
    routes = tuple(Route(pool=it.name, share=it.rate_per_s) for it in plan.pools)
    load = ClassLoad(name=one.name, source=one, routes=routes)
    n_requests = len(one.arrivals.trace or ())
    return simulate(pools, [load], n_requests=n_requests, shares=(0.5, 0.95)).classes[0]


def words(plan: FleetPlan) -> str:
    return ", ".join(
        f"{one.n_replicas} × {plan.recipes[one.recipe].label or 'one GPU'}"
        + (f" ({plan.recipes[one.recipe].role})" if plan.handovers else "")
        for one in plan.pools
    )


def times(one: ServedClass) -> str:
    told = [it for it in one.percentiles if it.at_most_s is not None]
    return ", ".join(
        f"{it.quantity.upper()} p{100 * it.share:g} {1e3 * it.simulated_s:.0f}"
        f" of {1e3 * it.at_most_s:.0f} ms"
        for it in told
    )


def report(name: str, request: FleetRequest) -> FleetPlan:
    began = time.process_time()
    plan = fleet(request)
    spent = time.process_time() - began
    print(
        f"| {name} | {plan.n_devices} GPUs, ${plan.usd_per_hour:.2f}/h: {words(plan)} | "
        f"{times(plan.classes[0])} | ${plan.fluid_usd_per_hour:.2f}/h | {len(plan.rounds)} | "
        f"{spent:.1f} s |"
    )
    return plan


def main() -> None:
    for rate in (8.0, 20.0):
        report(f"70B at {rate:g} req/s", start_up(rate))
    for name, model in (("conv", "llama-3.1-70b"), ("code", "llama-3.1-8b")):
        request = azure(name, model)
        report(f"Azure {name}, {model}, replayed", request)
        steady = replace(request.classes[0], arrivals=POISSON_ARRIVALS)
        plan = report("… as if at random", replace(request, classes=(steady,)))
        found = replayed_on(plan, request.classes[0])
        print(
            f"  that fleet under the trace: TTFT p95 {1e3 * found.ttft.at_s(0.95):.0f} ms, "
            f"TPOT p95 {1e3 * found.tpot.at_s(0.95):.0f} ms"
        )
    for name, connector in (
        ("together", None),
        ("free", "wire"),
        ("free", "nixl"),
        ("apart", "nixl"),
    ):
        report(f"70B, long prompts, {name} {connector or ''}", by_roles(name, connector))


if __name__ == "__main__":
    main()
