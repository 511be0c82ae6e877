"""A plan of layouts: what was asked, how the phases run, what they hold and cost."""

import math
import re
from collections.abc import Collection

from planner.estimates.phases import margins_of
from planner.quantities.table import objective_of
from planner.quantities.units import show
from planner.report import outlines
from planner.report.answers import plan_parts
from planner.report.documents.blocks import Bar, Block, Cell, Pairs, Section, Table, section
from planner.report.proof import constant_rows
from planner.report.words import PREFILL_WORDS, amount, percent, plural, target_texts
from planner.results.deployments import Deployment, Division, Memory, Mesh, PhasePlan
from planner.results.plans import LayoutPlan, served_by
from planner.specs.ask.defaults import default_prefill_batches
from planner.specs.ask.quality import quality_words
from planner.specs.ask.request import Request
from planner.specs.options.counts import span_text
from planner.specs.records.devices import LinkedFabric
from planner.specs.records.served_formats import product_format

_SENT = " in products, messages and their sums, and memory; attention multiplies in 16 bits"
_NOTES = (
    ("overlap", "compute and weights run at once; the longer is charged for most of both"),
    ("per pass", "TTFT and TPOT are of one pass: no queue, no pass of the other phase between"),
)


def summary_of(plan: LayoutPlan) -> str:
    return plan.deployment.summary


def headline_of(plan: LayoutPlan) -> str:
    return outlines.headline_of(plan.deployment)


def sections(plan: LayoutPlan) -> list[Section]:
    """What is served, how its phases run, what it holds and costs."""
    best = plan.deployment
    where = f"a {best.memory.fullest} pass"
    return [
        section("variants", Pairs(_variant_rows(plan))),
        section("deployment", Pairs(_deployment_rows(plan))),
        section("phases", *_phases(plan)),
        section(f"memory of a device, at its fullest in {where}", _memory(best.memory)),
        section("cost", Pairs(_cost_rows(plan))),
        plan_parts.load_section(plan.load, plan.deployment.n_replicas),
        plan_parts.limits_section(plan),
    ]


def closing(plan: LayoutPlan) -> list[Section]:
    """How many values the inputs hold, and which of them nobody published."""
    return [section("constants", Pairs(constant_rows(plan)))]


def request_rows(
    request: Request, plan: LayoutPlan | None = None, without: Collection[str] = ()
) -> list[tuple[str, str]]:
    """What was asked, with every default; some rows may be left out."""
    model, cluster, workload = request.model, request.cluster, request.workload
    n_params = f"{amount(model.n_params)} parameters"
    if model.n_params_served != model.n_params:
        n_params += f", {amount(model.n_params_served)} as served"
    no_decode = "" if workload.n_decode_steps else ": prefill writes it, decode never runs"
    kv_formats = request.kv_formats if len(request.kv_formats) > 1 else ()
    batches = f"decode {span_text(request.batches)}, prefill {span_text(request.prefill_batches)}"
    rows = [
        ("model", f"{model.name}: {model.title}, {n_params}"),
        ("pool", f"{cluster.name}: {cluster.n_devices} × {cluster.device.title}"),
        ("tokens", f"{workload.n_input_tokens} in, {workload.n_output_tokens} out{no_decode}"),
        ("decoding", plan_parts.decoding_words(model.variant)),
        ("targets", ", ".join(target_texts(request.targets)) or "none"),
        ("objective", f"{request.objective}: {objective_of(request.objective).aim}"),
        ("prefill", f"{request.prefill}: {_prefill_words(request)}"),
        ("batches", batches),
        ("weights", " or ".join(request.weights_formats)),
        ("KV cache", " or ".join(kv_formats)),
        ("activations", " or ".join(request.activation_formats)),
        ("planned", _planned_text(request)),
        ("solver", _solver_text(request)),
    ]
    return [row for row in rows if row[0] not in without]


def _planned_text(request: Request) -> str:
    """What passes are planned to take, where that is not what is predicted."""
    times, share = margins_of(request), request.confidence
    if (times.prefill, times.decode) == (1.0, 1.0):
        return ""
    if share is None:
        return f"decode {times.decode:.3g} times what is predicted, as it was measured on average"
    return (
        f"what holds in {percent(share)} of cases: prefill {times.prefill:.3g} times, "
        f"decode {times.decode:.3g} times what is predicted"
    )


def _prefill_words(request: Request) -> str:
    usual = request.prefill_batches == tuple(default_prefill_batches(request.prefill))
    return PREFILL_WORDS.get(request.prefill, "") if usual else "in the batches asked for"


def _solver_text(request: Request) -> str:
    options = request.options
    limit = "none" if options.time_limit_s is None else show(options.time_limit_s, "s")
    return (
        f"{options.solver}, gap {percent(options.gap)}, time limit {limit}, "
        f"{plural(options.threads, 'thread')}, seed {options.seed}"
    )


def _variant_rows(plan: LayoutPlan) -> list[tuple[str, str]]:
    """Which model is served where there were several to choose from, and what that loses."""
    if not plan.variants:
        return []
    served, requested = served_by(plan.request, plan.deployment).model.name, plan.request.model.name
    rows = [("asked", requested + " (served)" * (served == requested))]
    for variant in plan.variants:
        loss = variant.quality_loss_fraction
        lost = "nobody says what it loses" if loss is None else f"loses {percent(loss)}"
        mark = " (served)" * (variant.name == served)
        rows.append(("or", f"{variant.name}{mark}: {variant.title}; {lost}: {variant.quality}"))
    return rows


def _deployment_rows(plan: LayoutPlan) -> list[tuple[str, str]]:
    best, cluster = plan.deployment, plan.request.cluster
    is_linked = isinstance(cluster.fabric, LinkedFabric)  # one place was looked for
    places = f"; fits the pool in {plural(best.mesh.n_positions, 'place')}"
    network = _network_text(best.mesh, is_linked=is_linked)
    replicas = f"{best.n_replicas}, each on {plural(best.mesh.n_devices, 'device')} of its own"
    product = product_format(best.weights_format, best.activation_format) or ""
    used, title = cluster.device.multiplies(product), cluster.device.title
    why = f"{used}: the wider of both" if used == product != best.weights_format else ""
    served = served_by(plan.request, best)
    formats = best.weights_format, best.kv_format, best.activation_format
    return [
        ("devices", f"{best.n_devices} of {cluster.n_devices} × {title}"),
        ("replicas", replicas if best.demand_tokens_per_s is not None else ""),
        ("mesh", f"{best.mesh.text}, {network}{'' if is_linked else places}"),
        ("weights", f"{best.weights_format}, at rest {best.storage}   {_axes_text(best)}"),
        ("arithmetic", why or plan_parts.arithmetic_words(product, used, title)),
        ("KV cache", best.kv_format),
        ("activations", f"{best.activation_format}{_SENT}" if best.activation_format else ""),
        ("quality", quality_words(served.model, *formats)),
    ]


def _network_text(mesh: Mesh, *, is_linked: bool) -> str:
    if mesh.n_devices == 1:
        kind = "one device"
    elif is_linked:
        kind = "the widest links of the pool"
    elif not mesh.is_torus:
        kind = "switched"
    else:
        kind = "closed into rings" if any(mesh.axes_wrap) else "open, not closed into rings"
    return f"{kind}, {mesh.n_stages} pipeline stages" if mesh.n_stages > 1 else kind


def _axes_text(best: Deployment) -> str:
    """Devices along the axes that cut each dimension of the weights: `x=4 yz=16`."""
    sizes = dict(zip("xyz", best.mesh.axes, strict=True))
    axes = re.findall(r"_([xyz]+)", best.storage)
    return " ".join(f"{names}={math.prod(sizes[name] for name in names)}" for names in axes)


def _phases(plan: LayoutPlan) -> list[Block]:
    """A row for each fact, a column for each phase."""
    best, request = plan.deployment, served_by(plan.request, plan.deployment)
    phases = (best.prefill, best.decode)
    offered = (request.prefill_batches, request.batches)
    ttft, tpot = show(best.ttft_s, "s"), f"{show(best.tpot_s, 's')} (TPOT)"
    if best.draft is not None:
        tpot = f"{show(best.decode.step.total_s, 's')}, with drafts {tpot}"
    parts = [plural(one.n_microbatches, "micro-batch", "micro-batches") for one in phases]
    rows: list[tuple[Cell, ...]] = [
        ("batch", *(_batch_text(*pair) for pair in zip(phases, offered, strict=True))),
        *([("in parts", *parts)] if best.mesh.n_stages > 1 else []),
        ("layout", *(f"{one.layout}  {best.storage}" for one in phases)),
        ("attention", *(f"over {one.attention}" for one in phases)),
        ("KV cache", *(_kv_text(one, best.mesh) for one in phases)),
        ("pass", f"{ttft} (TTFT)", tpot),
        *_step_rows(phases),
        ("MFU", *(_share(one.mfu_fraction) for one in phases)),
        ("tokens/s", *(show(one.tokens_per_s, "1") for one in phases)),
    ]
    return [
        Table(heads=("", *(one.phase for one in phases)), rows=rows),
        Pairs([*_draft_rows(best), ("uneven", _division_words(phases)), *_NOTES]),
    ]


def _step_rows(phases: tuple[PhasePlan, PhasePlan]) -> list[tuple[Cell, ...]]:
    """The parts of a pass: time, share, bar."""
    first, second = (one.step.parts() for one in phases)
    totals = [one.step.total_s for one in phases]
    return [
        (f"  {name}", *map(_bar, (first_s, second_s), totals))
        for (name, first_s), (_, second_s) in zip(first, second, strict=True)
    ]


def _bar(part_s: float, total_s: float) -> Bar:
    share = part_s / total_s
    return Bar(share, text=show(part_s, "s"), share=_share(share))


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _batch_text(phase: PhasePlan, offered: tuple[int, ...]) -> str:
    """The batch, and whether one could not go further because no larger one was offered."""
    at_the_end = len(offered) > 1 and phase.batch == max(offered)
    return f"{phase.batch}{', largest offered' if at_the_end else ''}"


def _kv_text(phase: PhasePlan, mesh: Mesh) -> str:
    """`cut 8 ways, 4 copies`: devices of a tensor group that outnumber the ways hold copies."""
    n_copies = math.prod(mesh.axes) // phase.n_kv_ways
    cut = f"cut {phase.n_kv_ways} ways" if phase.n_kv_ways > 1 else "not cut"
    return f"{cut}, {n_copies} copies" if n_copies > 1 else cut


def _draft_rows(best: Deployment) -> list[tuple[str, str]]:
    """The draft model and its round; nothing without one."""
    draft = best.draft
    if draft is None:
        return []
    accepted = f"{100 * draft.acceptance:.3g} % accepted"
    drafts = f"{draft.n_drafted} tokens a round, {accepted}: {draft.n_yielded:.3g} yielded"
    return [
        ("draft", f"{draft.model} in {draft.weights_format}, {draft.layout}  {draft.storage}"),
        ("  drafts", drafts),
        ("  pass", f"{show(draft.step.total_s, 's')}, most of it {draft.step.largest}"),
    ]


def _division_words(phases: tuple[PhasePlan, PhasePlan]) -> str:
    """Heads, experts and layers that are dealt out unevenly; once where phases are alike."""
    first, second = phases
    said = [(one.phase, one.divisions) for one in phases]
    if first.divisions == second.divisions:
        said = [("both phases", first.divisions)]
    return "; ".join(
        f"{name}: {', '.join(map(_division_text, divisions))}"
        for name, divisions in said
        if divisions
    )


def _division_text(division: Division) -> str:
    """`8 KV heads on 16 devices (2 have the same)`, `61 layers in 4 stages (16 at most)`."""
    parts = "in {} stages" if division.things == "layers" else "on {} devices"
    thing = division.things.removesuffix("s") if division.n_things == 1 else division.things
    text = f"{division.n_things} {thing} {parts.format(division.n_parts)}"
    if division.n_copies > 1:
        return f"{text} ({division.n_copies} have the same)"
    return f"{text} ({division.n_most} at most)"


def _memory(memory: Memory) -> Table:
    """The parts of a device's memory: size, share, bar."""
    parts = [(name, size) for name, size in memory.parts() if size]
    rows: list[tuple[Cell, ...]] = []
    for name, size in (*parts, ("free", memory.free_bytes)):
        share = size / memory.capacity_bytes
        rows.append((name, show(size, "B"), _share(share), Bar(share, 40)))
    return Table(rows=[*rows, ("in all", show(memory.capacity_bytes, "B"), "", "")], align="<<><")


def _cost_rows(plan: LayoutPlan) -> list[tuple[str, str]]:
    best, cluster = plan.deployment, plan.request.cluster
    rent, price = show(best.usd_per_hour, "USD/h"), show(cluster.usd_per_hour, "USD/h")
    dated = cluster.device.price_date or "undated"
    share = percent(best.prefill_usd_per_token / best.usd_per_token)
    prefill = f"{show(best.prefill_usd_per_token, 'USD/token')} ({share})"
    served = show(best.output_tokens_per_s, "1")
    demand = ""
    if best.demand_tokens_per_s is not None:
        busy = percent(best.utilization_fraction)
        demand = f"{show(best.demand_tokens_per_s, '1')} per second: busy {busy} of the time, "
        demand += "and paid for all of it"
    return [
        ("rent", f"{rent}: {best.n_devices} at {price} each, price {dated}"),
        ("output token", f"{show(best.usd_per_token, 'USD/token')}, of which prefill {prefill}"),
        ("throughput", f"{served} output tokens per second, the phases taking turns, never idle"),
        ("demand", demand),
    ]
