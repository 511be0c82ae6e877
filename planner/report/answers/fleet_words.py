"""Words that the reports of a fleet share: traffic, prompts, rates, what was found."""

import math
from collections.abc import Iterable, Sequence

from planner.quantities.units import show
from planner.report.words import percent
from planner.results.arrivals import Percentile
from planner.results.fleets import FleetPlan, FleetPool, ServedClass
from planner.results.placements import RunConfig
from planner.specs.records.roles import AT_RANDOM, LEAST_PRESENT, ROUND_ROBIN, role_words
from planner.specs.records.runtimes import runtime_of
from planner.specs.traffic.arrivals import BURSTS, CONSTANT, POISSON, REPLAYED, Arrivals
from planner.specs.traffic.percentiles import GOODPUT, GoodputTarget
from planner.specs.traffic.records import TrafficClass

ROUTER_WORDS = {
    LEAST_PRESENT: "each request to the replica with the fewest",
    ROUND_ROBIN: "requests to each replica in turn",
    AT_RANDOM: "each request to any replica",
}

_FEW = 0.01
"""Share that is served, below which it is said rather than what is not."""

COST_WORDS = (
    "$/Mtoken in: all of the rent over the tokens that are read; $/Mtoken out: all of it over "
    "those that are written"
)


def rate(requests_per_s: float) -> str:
    """`8 request/s`."""
    return show(requests_per_s, "request/s")


def joined(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def per_mtoken(usd: float) -> str:
    """What a million tokens cost."""
    return show(usd / 1e6, "USD/token")


def finite(value: float, dimension: str) -> str:
    """A figure, or a dash where nobody knows it."""
    return show(value, dimension) if math.isfinite(value) else "–"


def spread(value: float, half_width: float, dimension: str) -> str:
    """`790 ms ± 21 ms`; without an interval where there is none."""
    if not math.isfinite(half_width):
        return finite(value, dimension)
    return f"{finite(value, dimension)} ± {show(half_width, dimension)}"


def share_known(value: float, half_width: float) -> str:
    """`71.2 ± 0.8 %`; of the time no more than all of it, whatever edges of batches add."""
    shown = min(value, 1.0)
    if not math.isfinite(half_width):
        return percent(shown)
    return f"{100 * shown:.3g} ± {100 * half_width:.2g} %"


def percentile_name(percentile: Percentile) -> str:
    """`TTFT p95`."""
    return f"{percentile.quantity.upper()} p{percentile.share * 100.0:.8g}"


def goodput_words(target: GoodputTarget) -> str:
    """`99 % of requests with TTFT ≤ 1 s and TPOT ≤ 40 ms`."""
    limits = (("TTFT", target.ttft_s), ("TPOT", target.tpot_s), ("E2E", target.e2e_s))
    said = joined([f"{name} ≤ {show(most, 's')}" for name, most in limits if most is not None])
    return f"{percent(target.share)} of requests with {said}"


def target_words(traffic: TrafficClass) -> str:
    """`TTFT p95 ≤ 1 s, TPOT p95 ≤ 40 ms`."""
    words = [f"{it.name} ≤ {show(it.at_most_s, 's')}" for it in traffic.targets]
    if traffic.goodput is not None:
        words.append(goodput_words(traffic.goodput))
    return ", ".join(words) or "none"


def arrival_words(arrivals: Arrivals) -> str:
    """How requests come."""
    cv2 = f"{arrivals.cv2:.3g}"
    return {
        POISSON: "at random times",
        BURSTS: f"in bursts of cv² {cv2}",
        CONSTANT: "evenly",
        REPLAYED: f"as in {arrivals.trace.name if arrivals.trace else 'a trace'}, cv² {cv2}",
    }[arrivals.pattern]


def prompt_words(pool: FleetPool) -> str:
    """`prompts above 2,048 up to 8,192 tokens`; nothing of a pool that reads all."""
    above = f"above {pool.above_tokens:,.0f}" if pool.above_tokens > 0.0 else ""
    upto = f"up to {pool.upto_tokens:,.0f}" if math.isfinite(pool.upto_tokens) else ""
    between = " ".join(filter(None, (above, upto)))
    return f"prompts {between} tokens" if between else ""


def deployment_words(recipe: RunConfig) -> str:
    """`4 devices TP 4, bf16 weights, …, on h100-sxm under vLLM`."""
    slow = "" if recipe.speed_fraction == 1 else f" at {percent(recipe.speed_fraction)} of speed"
    alone, under = role_words(recipe.role), runtime_of(recipe.engine).title
    return f"{recipe.deployment.summary}{alone}, on {recipe.kind}{slow} under {under}"


def most_words(pool: FleetPool) -> str:
    """What one replica serves."""
    each = pool.rate_per_s / pool.n_replicas if pool.n_replicas else 0.0
    most = pool.replica_rate_per_s
    used = f", {percent(each / most)} of it" if most > 0.0 else ""
    return f"{rate(each)} each of at most {rate(most)} as simulated{used}"


def class_verdict(outcome: ServedClass) -> str:
    """`chat meets its targets`; what is missed, or not served, by name."""
    goodput = outcome.goodput
    missed = [percentile_name(it) for it in outcome.percentiles if it.is_met is False]
    missed += ["goodput"] * (goodput is not None and goodput.is_met is False)
    if outcome.served_fraction < 1.0:
        few = 0.0 < outcome.served_fraction < _FEW  # 99.98 % reads as all
        left = (
            f"all but {percent(outcome.served_fraction)}"
            if few
            else percent(1 - outcome.served_fraction)
        )
        missed.insert(0, f"{left} of its requests")
    has_targets = goodput is not None or any(it.at_most_s is not None for it in outcome.percentiles)
    if not missed:
        by = "" if outcome.is_tried else " on replicas by themselves"
        return f"{outcome.name} meets its targets{by}" if has_targets else f"{outcome.name} served"
    return f"{outcome.name} without {joined(missed)}"


def class_words(outcome: ServedClass) -> str:
    """`chat: TTFT p95 42 ms (target 50 ms)`, as simulated; nothing without targets."""
    of = [
        f"{percentile_name(it)} {finite(it.simulated_s, 's')} (target {show(it.at_most_s, 's')})"
        for it in outcome.percentiles
        if it.at_most_s is not None
    ]
    if outcome.goodput is not None:
        share = share_known(outcome.goodput.simulated, outcome.goodput.half_width)
        of.append(f"{share} of requests in time (target {percent(outcome.goodput.asked)})")
    return f"{outcome.name}: {', '.join(of)}" if of else ""


def devices_words(plan: FleetPlan) -> str:
    """`8 h100-sxm and 4 l40s`."""
    return joined([f"{one.n_used:,} {one.kind}" for one in plan.kinds if one.n_used]) or "nothing"


def whole_costs(plan: FleetPlan) -> tuple[float, float]:
    """Rent of the fleet over all tokens that are read, and over all that are written [$/Mtoken]."""
    return (
        _over(plan, (one.n_input_tokens for one in plan.classes)),
        _over(plan, (one.n_output_tokens for one in plan.classes)),
    )


def _over(plan: FleetPlan, tokens: Iterable[float]) -> float:
    per_s = sum(
        outcome.rate_per_s * outcome.served_fraction * n
        for outcome, n in zip(plan.classes, tokens, strict=True)
    )
    return plan.usd_per_hour / 3600.0 / per_s * 1e6 if per_s else math.inf


def pools_of(plan: FleetPlan, recipe: int) -> list[FleetPool]:
    return [one for one in plan.pools if one.recipe == recipe]


def pool_of_replica(plan: FleetPlan, number: int) -> FleetPool | None:
    return next((one for one in plan.pools if number in one.replicas), None)


def defined(quantities: Iterable[str], *, goodput: bool) -> list[str]:
    """What each quantity is a percentile of."""
    from planner.specs.traffic.percentiles import DEFINITIONS

    definitions = [DEFINITIONS[name] for name in DEFINITIONS if name in set(quantities)]
    return [*definitions, *([GOODPUT] if goodput else [])]
