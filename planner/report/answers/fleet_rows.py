"""Figures of a fleet in rows of words: for a terminal and for a page alike."""

import math
from collections.abc import Iterator

from planner.quantities.units import show
from planner.report.answers.fleet_words import (
    ROUTER_WORDS,
    defined,
    finite,
    per_mtoken,
    percentile_name,
    rate,
    share_known,
    spread,
)
from planner.report.documents.blocks import Table
from planner.report.proof import objective_text
from planner.report.words import percent, plural
from planner.results.fleets import FleetAlternative, FleetPlan, Refuted, Round, ServedClass

_MET = {True: "yes", False: "no", None: "–"}

NEAREST = 3
"""Alternatives that are priced beside the answer."""


def warnings(plan: FleetPlan) -> Iterator[str]:
    """What of the traffic is not served, or misses a target."""
    for outcome in plan.classes:
        if outcome.served_fraction < 1.0:
            left = rate(outcome.rate_per_s * (1.0 - outcome.served_fraction))
            yield (
                f"`{outcome.name}` is served to {percent(outcome.served_fraction)}: there are too "
                f"few devices for {left} of its {rate(outcome.rate_per_s)}"
            )
        if not outcome.is_tried:
            yield (
                f"no request of `{outcome.name}` was among the {plan.simulated.n_requests:,} that "
                "were simulated, so rare is it beside the others: its targets rest on "
                "replicas simulated by themselves"
            )
            continue
        for it in outcome.percentiles:
            if it.is_met is False and it.at_most_s is not None:
                yield (
                    f"{percentile_name(it)} of `{outcome.name}` is {finite(it.simulated_s, 's')} "
                    f"as simulated, above its target of {show(it.at_most_s, 's')}"
                )


def percentiles(plan: FleetPlan) -> Table:
    """Percentiles of each class, below their heads: asked for and simulated."""
    rows = [
        (outcome.name if i == 0 else "", *row)
        for outcome in plan.classes
        for i, row in enumerate(_class_rows(outcome))
    ]
    heads = ("class", "", "target", "simulated", "met")
    return Table(heads=heads, rows=rows, align="<<>><")


def _class_rows(outcome: ServedClass) -> Iterator[tuple[str, str, str, str]]:
    for it in outcome.percentiles:
        target = "" if it.at_most_s is None else f"≤ {show(it.at_most_s, 's')}"
        met = "" if it.at_most_s is None else _MET[it.is_met]
        yield (percentile_name(it), target, spread(it.simulated_s, it.half_width_s, "s"), met)
    if outcome.goodput is not None:
        goodput = outcome.goodput
        yield (
            "goodput",
            f"≥ {percent(goodput.asked)}",
            share_known(goodput.simulated, goodput.half_width),
            _MET[goodput.is_met],
        )


def costs(plan: FleetPlan) -> Table:
    """Rent of each class, below its heads, and over its tokens."""
    rows = [
        (
            outcome.name,
            percent(outcome.served_fraction),
            show(outcome.usd_per_hour, "USD/h"),
            per_mtoken(outcome.usd_per_mtoken_in),
            per_mtoken(outcome.usd_per_mtoken_out),
        )
        for outcome in plan.classes
    ]
    heads = ("class", "served", "rent", "in", "out")
    return Table(heads=heads, rows=rows, align="<>>>>", sorts=True)


def bound_rows(plan: FleetPlan) -> list[tuple[str, str]]:
    """How far the fleet may be from the best: of its program, and of any scheduler."""
    proof = plan.certificate
    rates = (
        "no fleet that keeps its targets in simulation is cheaper than the bound, where classes "
        "share a pool in the mixture in which they come, or in one that was tried"
    )
    program = f"{objective_text(proof)}: {rates}"
    rows = [("program", program), ("any fleet", _fluid_words(plan))]
    most = plan.most_factor
    if most is not None:
        served = sum(one.rate_per_s * one.served_fraction for one in plan.classes)
        own = min(
            pool.n_replicas * pool.replica_rate_per_s / pool.rate_per_s
            for pool in plan.pools
            if pool.rate_per_s > 0.0
        )
        words = (
            f"some fleet of this rent serves up to {most:.3g} times what this one serves now, "
            f"{rate(most * served)}, as simulated; this one up to {rate(own * served)}"
        )
        rows.append(("next step", words))
    return rows


def _fluid_words(plan: FleetPlan) -> str:
    if plan.fluid_usd_per_hour is None or plan.fluid_gap is None:
        return "no bound of all fleets is known"
    return (
        f"{show(plan.fluid_usd_per_hour, 'USD/h')}: no fleet of these deployments is cheaper, "
        "however classes share its replicas and passes are scheduled, percentiles "
        f"aside; {percent(plan.fluid_gap)} of the rent is above it"
    )


def round_words(trial: Round) -> str:
    """What one solution cost, and what the simulation said of it."""
    what = f"{show(trial.usd_per_hour, 'USD/h')}, {plural(trial.n_devices, 'device')}"
    if not trial.refuted:
        return f"{what}: the simulation keeps every target"
    return f"{what}: refuted, {'; '.join(map(refuted_words, trial.refuted))}"


def refuted_words(miss: Refuted) -> str:
    """`TTFT p95 of chat is 31 % beyond 1 s: capacity of a replica of `chat` lowered …`."""
    beyond = miss.simulated_s / miss.at_most_s - 1.0
    far = f"{percent(beyond)} beyond" if math.isfinite(beyond) else "never within"
    missed = f"{miss.target} of {miss.class_name} is {far} {show(miss.at_most_s, 's')}"
    before, after = rate(miss.before_per_s), rate(miss.after_per_s)
    return f"{missed}: capacity of a replica of `{miss.pool}` lowered from {before} to {after}"


def simulation_rows(plan: FleetPlan) -> list[tuple[str, str]]:
    """How the fleet was tried."""
    did = plan.simulated
    aside = f"the first {did.n_warm_up:,} and the last {did.n_wind_down:,} are not counted"
    again = ""
    if did.n_begun_again:
        again = f"{did.n_begun_again:,} times a request lost its place and began again"
    return [
        ("requests", f"{did.n_requests:,} in {show(did.duration_s, 's')}; {aside}"),
        ("intervals", f"hold with 95 %, by the means of {did.n_batches} batches"),
        ("router", ROUTER_WORDS.get(plan.request.router, plan.request.router)),
        ("seed", str(did.seed)),
        ("evictions", again),
    ]


def alternatives(plan: FleetPlan) -> Table:
    """What else there is, below its heads, and what it would cost."""
    rows = [_alternative(plan, one) for one in plan.alternatives[:NEAREST]]
    heads = ("rent", "more", "devices", "")
    return Table(heads=heads, rows=rows, align=">>><", wraps=True, sorts=True)


def _alternative(plan: FleetPlan, alternative: FleetAlternative) -> tuple[str, str, str, str]:
    if alternative.usd_per_hour is None:
        return "–", "", "", f"{alternative.name}: there is none"
    more = alternative.usd_per_hour / plan.usd_per_hour - 1.0 if plan.usd_per_hour else math.nan
    sign = "+" if more > 0.0 else ""
    text = f"{sign}{percent(more)}" if math.isfinite(more) else ""
    n_devices = "" if alternative.n_devices is None else f"{alternative.n_devices:,}"
    return show(alternative.usd_per_hour, "USD/h"), text, n_devices, alternative.name


def definitions(plan: FleetPlan) -> list[str]:
    """What each quantity that the report tells is a percentile of."""
    quantities = [it.quantity for one in plan.classes for it in one.percentiles]
    return defined(quantities, goodput=any(one.goodput is not None for one in plan.classes))
