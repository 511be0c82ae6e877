"""A plan under the reference model for people: what to run, where its time goes, what proves it.

24 devices TP 24 × PP 1, attention on 8, fp8 weights, batch 1
152 tok/s per user, $92/Mtoken, $50.4/h

where the time goes
  launches     1.28 ms  19.5 %  ███▉
"""

from collections.abc import Collection

from planner.quantities.units import show
from planner.report.answers.plan_parts import limits_section, load_section
from planner.report.documents.blocks import Bar, Pairs, Row, Section, Table, section
from planner.report.outlines import ECONOMICS_WORDS
from planner.report.words import amount, percent, plural, target_texts, user_speed
from planner.results.erdil2025 import EconomicsDeployment, PassCount, Split
from planner.results.plans import ErdilPlan
from planner.specs.records.economics import EconomicsRequest

_MEMORY = {
    "in-flight": "weights and caches of all requests in flight, of a draft too",
    "one-microbatch": "weights and the caches of one micro-batch, as the paper counts",
}


def summary_of(plan: ErdilPlan) -> str:
    return plan.deployment.summary


def headline_of(plan: ErdilPlan) -> str:
    best = plan.deployment
    cost, rent = show(best.usd_per_token, "USD/token"), show(best.usd_per_hour, "USD/h")
    return f"{user_speed(best.tpot_s)} per user, {cost}, {rent}"


def sections(plan: ErdilPlan) -> list[Section]:
    """How it is cut, where its time goes, what it holds."""
    best = plan.deployment
    return [
        section("layout", Pairs(_layout_rows(best.layout, best.step))),
        section("where the time goes", pass_times(best)),
        section("draft", Pairs(_draft_rows(best))),
        section("memory of the busiest device", Pairs(_memory_rows(best))),
        load_section(plan.load, plan.deployment.n_replicas),
        limits_section(plan),
    ]


def closing(plan: ErdilPlan) -> list[Section]:
    return []


def request_rows(
    request: EconomicsRequest, plan: ErdilPlan, without: Collection[str] = ()
) -> list[tuple[str, str]]:
    """What was asked, with every default; some rows may be left out."""
    decode = request.served[0].target
    chosen = plan.deployment.weights_format
    served = next(one for one in request.served if one.weights_format == chosen)
    rows = [
        ("cost model", ECONOMICS_WORDS),
        ("model", f"{decode.model.title}, {amount(decode.n_context_tokens)} tokens of context"),
        ("pool", f"{request.n_devices} × {decode.device.title}"),
        ("weights", " or ".join(served.weights_format for served in request.served)),
        ("quality", served.quality),
        ("memory", f"{request.memory}: {_MEMORY[request.memory]}"),
        ("targets", ", ".join(target_texts(request.targets)) or "none"),
        ("objective", request.objective),
        ("left out", "; ".join(request.notes)),
    ]
    return [row for row in rows if row[0] not in without]


def _layout_rows(way: Split, step: PassCount) -> list[tuple[str, str]]:
    attention = f"projections on {plural(way.n_attention, 'device')} of a stage"
    return [
        ("stages", f"{way.n_stages} of {plural(way.n_tensor, 'device')}"),
        ("attention", f"{attention}, {step.attention_shape}; caches on all"),
        ("experts", f"spread {way.n_expert} ways" * (way.n_expert > 1)),
        ("FFN", f"on {plural(way.n_tensor // way.n_expert, 'device')}, {step.ffn_shape}"),
    ]


def pass_times(best: EconomicsDeployment) -> Table:
    """Parts of a pass: those that follow one another, and the two of which the longer counts."""
    step, total = best.step, best.step.total_s
    parts = (
        ("launches", step.launch_s),
        ("attention network", step.attention_network_s),
        ("FFN network", step.ffn_network_s),
        ("expert network", step.expert_network_s),
        ("stages' network", step.pipeline_network_s),
        ("memory", step.memory_s),
        ("arithmetic", step.compute_s),
    )
    hidden = "arithmetic" if step.memory_s >= step.compute_s else "memory"
    rows: list[Row] = []
    for name, seconds in parts:
        if name == hidden:
            rows.append((name, show(seconds, "s"), "", "hidden behind the other"))
        elif seconds:
            share = seconds / total
            rows.append((name, show(seconds, "s"), percent(share), Bar(share)))
    rows.append(("pass", show(total, "s"), "", ""))
    if best.draft:
        rows.append(("token", show(best.tpot_s, "s"), "", "with its drafts"))
    return Table(rows=rows, align="<>><")


def _draft_rows(best: EconomicsDeployment) -> list[tuple[str, str]]:
    draft = best.draft
    if draft is None:
        return []
    return [
        ("model", f"{draft.model} in {draft.weights_format}, {draft.layout.label}"),
        ("drafts", f"{draft.n_drafted} tokens a round, {draft.n_yielded:.3g} yielded"),
        ("pass", show(draft.step.total_s, "s")),
    ]


def _memory_rows(best: EconomicsDeployment) -> list[tuple[str, str]]:
    parts = [
        ("weights", best.weights_bytes),
        ("caches", best.kv_bytes),
        ("draft", best.draft.held_bytes if best.draft else 0.0),
    ]
    rows = [(name, show(size, "B")) for name, size in parts if size]
    return [*rows, ("in all", f"{show(best.used_bytes, 'B')} of {show(best.capacity_bytes, 'B')}")]
