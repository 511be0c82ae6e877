"""What plans say whichever runtime they are of: load, limits, what else there is, how to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.equations.tails import confidence_of
from planner.quantities.table import DEMAND, QUANTITIES, limited_text
from planner.quantities.units import show
from planner.report.answer_kinds import line_of
from planner.report.answers.pools import NOT_STARTED
from planner.report.documents.blocks import Block, Command, Note, Pairs, Section, Table, section
from planner.report.documents.screens import FIRST_SCREEN
from planner.report.engine_requests import reuse_words
from planner.report.proof import status_text
from planner.report.region import planned_words
from planner.report.words import limit_label, limit_text, percent, plural, target_texts
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyPlan, LimitUse, runtime_name
from planner.results.predictions import Interval
from planner.specs.ask.quality import quality_words
from planner.specs.files.what_if import resources
from planner.specs.options.counts import span_text
from planner.specs.records.certificates import UNCONFIRMED
from planner.specs.records.devices import AnyModel
from planner.specs.records.roles import DECODE, PREFILL, role_words
from planner.specs.records.runtimes import ROOFLINE, runtime_of
from planner.specs.records.served_formats import NUMBER_FORMATS
from planner.specs.records.variants import Variant
from planner.specs.traffic.percentiles import TPOT, TTFT

if TYPE_CHECKING:
    from planner.results.arrivals import Load
    from planner.results.placements import Placement, RunConfig
    from planner.results.predictions import Launch
    from planner.specs.ask.placement import PlacementRequest, Serve


def load_section(load: Load | None, n_replicas: int = 1) -> Section:
    """What so many replicas do at the rate that arrives, if one is said."""
    if load is None:
        return section("")
    most = show(load.most_requests_per_s, "request/s")
    serves = f"{percent(load.utilization_fraction)} of the {most} that it serves at most"
    if load.simulated is None:
        carry = f"{load.n_needed(n_replicas)} replicas carry it"
        rows = [("load", f"{serves}: requests would wait without end; {carry}")]
    else:
        rows = [
            ("load", f"{serves}; simulated, with requests that arrive at random times"),
            ("in flight", f"{load.n_in_flight:.3g} on each rank, by Little's law"),
            *((name.upper(), _times_words(load, name)) for name in (TTFT, TPOT)),
        ]
    return section(f"at {show(load.requests_per_s, 'request/s')}", Pairs(rows))


def _times_words(load: Load, quantity: str) -> str:
    """Mean and percentiles; nothing of what the role does not have."""
    told = [one for one in load.percentiles if one.quantity == quantity]
    if not told:
        return ""
    mean = show(getattr(load, f"{quantity}_s"), "s")
    shares = (f"p{100 * one.share:g} {show(one.simulated_s, 's')}" for one in told)
    return f"{mean} on average, {', '.join(shares)}"


def limits_section(plan: AnyPlan) -> Section:
    options = plan.request.options
    late = options.time_limit_s is not None and not options.gap
    late = late and plan.certificate.status != UNCONFIRMED
    rows = [
        (
            limit_label(use.name),
            limit_text(use.name, use.limit, use.dimension),
            limited_text(use.used, use.dimension),
            "; ".join(filter(None, (_sure_text(plan, use), _gain_text(use, late=late)))),
        )
        for use in plan.limits
    ]
    return section("limits", Table(heads=("", "asked", "used", ""), rows=rows))


def _sure_text(plan: AnyPlan, use: LimitUse) -> str:
    """In how many cases a limit of a time holds, by the error of what is predicted."""
    times = getattr(plan.deployment, f"{use.name}_s", None)
    if not isinstance(times, Interval) or times.high <= times.value:
        return ""
    room, error = (at / times.value - 1.0 for at in (use.limit, times.high))
    return f"holds in {percent(confidence_of(room, error))} of cases"


def _gain_text(use: LimitUse, *, late: bool) -> str:
    """What a little more of a limit gains; or that there was no time to see."""
    if use.gain_fraction is None and late and use.name != DEMAND:
        return "no time to see what more of it would gain"
    if not use.binds or use.gain_fraction is None:
        return ""
    looser = limit_text(use.name, use.limit * use.relief, use.dimension)
    return f"binds: {looser} would gain {percent(use.gain_fraction)}"


def gains_sections(plan: AnyPlan) -> Sequence[Section]:
    """What more of each resource of the machine would gain, each solved by itself.

    None is solved with replicas of several sorts, which may serve a demand for less.
    """
    proof, rows = plan.certificate, []
    for one in plan.gains:
        value, gain = show(one.objective, proof.dimension), percent(one.gain_fraction)
        rows.append((resources()[one.name]["words"], f"{one.factor:.3g}x", gain, value))
    heads = ("", "of it", "gains", proof.objective_name)
    some = rows[: sum(one.gain_fraction > 1e-9 for one in plan.gains[:3])]
    most = ", ".join(f"{gain} by {of_it} of {name}" for name, of_it, gain, _ in some)
    alike = "; of replicas alike: several sorts may gain more" * (plan.load is not None)
    told = [("gains", f"{most or 'nothing by more of any one resource'}{alike}")] * bool(rows)
    table = Table(heads=heads, rows=rows, align="<>>>")
    return (
        section(FIRST_SCREEN, Pairs(told)),
        section("what more of the machine would gain", table),
    )


def mix_head(plan: AnyPlan) -> list[Note]:
    """That others serve the demand for less; nothing where none do."""
    mix = plan.cheaper_mix
    if mix is None:
        return []
    gain = percent(1.0 - plan.of_alike(mix))
    several = f"replicas of several sorts (`mix`, below): {line_of(mix)}"
    return [Note(f"for {gain} less, {several}")]


def mix_section(plan: AnyPlan) -> Section:
    """The replicas of several sorts that serve a demand for less, or how it is known of none."""
    mix = plan.mix
    if mix is None:
        return section("mix")
    if plan.cheaper_mix is None:
        return section("mix", Note(_none(plan, mix)))
    words = f"{status_text(mix.certificate)}; `plan place` shows where they lie"
    return section("mix", recipe_table(mix), Note(words))


def _none(plan: AnyPlan, mix: Placement) -> str:
    """That alike replicas are the cheapest, or that no cheaper ones were found."""
    proof = mix.certificate
    sure = proof.vouched_bound
    if not sure:  # that nothing is cheaper than nothing bounds nothing
        return "no cheaper replicas of several sorts were found; nothing bounds them"
    alike = proof.objective / plan.of_alike(mix)
    least = show(min(sure, alike), proof.dimension)
    if sure >= alike * (1.0 - plan.request.options.gap - 1e-9):
        return f"`plan place` proves that no replicas of several sorts serve it for less: {least}"
    return f"no cheaper replicas of several sorts were found; `plan place` has none below {least}"


def alternatives(plan: AnyPlan) -> Table:
    """What else there is, how much of the objective it loses, and what it does."""
    rows = []
    for other in plan.alternatives:
        best = other.deployment
        lost, tie = percent(other.loss_fraction), "tie" if other.is_tie else ""
        tpot, cost = show(best.planned_tpot_s, "s"), show(best.usd_per_token, "USD/token")
        of = f"{runtime_name(best)}: " if plan.rivals else ""
        rows.append((lost, tie, tpot, cost, of + best.summary))
    heads = ("loses", "", "TPOT", "output token", "")
    return Table(heads=heads, rows=rows, align="><>><", wraps=True, sorts=True)


def wish_rows(request: PlacementRequest) -> list[tuple[str, str]]:
    """What is asked of replicas together."""
    work, connector = request.workload, request.roles.connector
    lengths = f"{work.n_input_tokens:,} tokens in, {work.n_output_tokens:,} out"
    limits = (QUANTITIES[name] for name in request.limits)
    targets = [f"{one.label} {one.limit_text(request.limits[one.name])}" for one in limits]
    most = f"of at most {request.most_devices} devices" if request.most_devices else ""
    is_planned = request.engines != (ROOFLINE.name,) or request.confidence is not None
    return [
        ("models", ", ".join(map(_wish, request.models))),
        ("engine", " or ".join(request.engines)),
        ("requests", f"{lengths}{reuse_words(work)}"),
        ("targets", ", ".join([*target_texts(request.targets), *targets]) or "none"),
        ("hand-over", connector.title if connector else ""),
        ("replicas", ", ".join(filter(None, (most, "at cubes only" * request.aligned)))),
        ("batches", span_text(request.batches)),
        ("objective", request.objective),
        ("times", planned_words(request.confidence) if is_planned else ""),
    ]


def _wish(demand: Serve) -> str:
    """`llama-3.1-70b (2 replicas, 900 token/s, bf16)`."""
    said = [
        *([plural(demand.replicas, "replica")] if demand.replicas else []),
        *([show(demand.demand_tokens_per_s, "token/s")] if demand.demand_tokens_per_s else []),
        *([f"weights {' or '.join(demand.weights_formats)}"] if demand.weights_formats else []),
        *([f"KV {' or '.join(demand.kv_formats)}"] if demand.kv_formats else []),
    ]
    return demand.model.name + (f" ({', '.join(said)})" if said else "")


def start_section(*started: tuple[Launch | None, str]) -> Section:
    """How deployments are started, each with which of an answer's it is, where it has several."""
    blocks = [block for launch, of in started for block in (Note(), *_start(launch, of))]
    return Section(title="start", blocks=tuple(blocks[1:]), is_bare=True)


def _start(launch: Launch | None, of: str) -> Iterator[Block]:
    """What it takes, and the command, which no line break may come into."""
    if launch is None:
        yield Note(f"{of} started as your engine is: it is of a file of yours".lstrip())
        return
    said = [f"{of} started with flags of {launch.version}".lstrip()]
    if launch.n_servers > 1:
        said.append(f"{plural(launch.n_servers, 'such server')} behind a balancer of load")
    if launch.n_nodes > 1:
        said.append(f"on each of {launch.n_nodes} nodes")
    filled = [f"{name}: {words}" for name, words in launch.variables.items()]
    yield Note("; ".join((", ".join(said), *filled, *launch.remarks)) + ":")
    yield Command(launch.command)


def recipes_section(recipes: Sequence[RunConfig], names: Sequence[str] = ()) -> Section:
    """What starts a replica of each recipe; nothing of layouts, or of what has no name.

    Args:
        names: what its replicas are called; by the number of the recipe where left out.
    """
    called = names or [f"recipe {number}" for number in range(len(recipes))]
    engines = [
        (recipe.deployment, f"each replica of {name} is")
        for name, recipe in zip(called, recipes, strict=True)
        if name and isinstance(recipe.deployment, EngineDeployment)
    ]
    said = start_section(*((it.launch, of) for it, of in engines if not it.n_expert_devices))
    apart = [Note(f"{of} {NOT_STARTED}") for it, of in engines if it.n_expert_devices]
    return replace(said, blocks=(*said.blocks, *apart))


def recipe_table(placement: Placement) -> Table:
    """Of each recipe what it is of, its figures and its layout."""
    models = {one.model.name: one.model for one in placement.request.models}
    rows = []
    for number, recipe in enumerate(placement.recipes):
        n_replicas = sum(one.recipe == number for one in placement.replicas)
        head, text = _config(recipe, models[recipe.model])
        rows += [(str(number), f"{n_replicas} × {head}"), ("", text)]
    return Table(rows=rows, align="><", wraps=True)


def _config(recipe: RunConfig, model: AnyModel) -> tuple[str, str]:
    it = recipe.deployment
    quality = quality_words(model, it.weights_format, it.kv_format)
    slow = "" if recipe.speed_fraction == 1 else f" at {percent(recipe.speed_fraction)} of speed"
    under = "" if recipe.engine == ROOFLINE.name else f" under {runtime_of(recipe.engine).title}"
    on = f"{role_words(recipe.role)} on {recipe.kind}{slow}{under}"
    times = f"{', '.join(_times(recipe))}, {show(it.output_tokens_per_s, 'token/s')} each"
    text = f"{it.summary}; within one {recipe.span}; quality: {quality}"
    return f"{recipe.model}{on}: {times}", text


def _times(recipe: RunConfig) -> Iterator[str]:
    """What a user waits for; of one phase, what that phase takes."""
    if recipe.role != PREFILL:
        yield f"TPOT {show(recipe.tpot_s, 's')}"
    if recipe.role != DECODE:
        before = " before the hand-over" if recipe.role == PREFILL else ""
        yield f"TTFT {show(recipe.ttft_s, 's')}{before}"


def decoding_words(variant: Variant | None) -> str:
    """How a model is decoded that does not write one token after the other."""
    if variant is None or not variant.n_passes:
        return ""
    steps, block = variant.n_denoising_steps, variant.n_block_tokens
    return (
        f"by diffusion: {steps} passes over prompt and answer for each block of {block} tokens, "
        "no cache; the first pass counts as prefill"
    )


def arithmetic_words(weights: str, used: str | None, device: str) -> str:
    """In what weights are multiplied, where it is not their format alone."""
    served = NUMBER_FORMATS[weights]
    if served.main == used:
        share = f"{100 * served.outlier_fraction:g} % of columns are in 16 bits"
        return f"{used}; {share}, and what finds these in each input takes time not counted"
    saves = f"{used}: {device} does not multiply {weights}, it saves bytes only"
    return saves if used != weights else ""
