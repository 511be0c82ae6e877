"""A plan under the reference model for people: what to run, where its time goes, what proves it.

24 devices TP 24 × PP 1, attention on 8, fp8 weights, batch 1
152 tok/s per user, $92/Mtoken, $50.4/h

where the time goes
  launches     1.28 ms  19.5 %  ███▉
"""

from __future__ import annotations

from collections.abc import Collection

from planner.report.lines import bar, columns, labelled, percent, section, wrapped
from planner.report.prediction import load_section
from planner.report.proof import certificate_lines
from planner.report.survey_words import ECONOMICS_WORDS
from planner.report.times import times_lines
from planner.report.words import amount, limit_label, limit_text, plural, target_texts
from planner.results import Alternative, ErdilPlan, LimitUse
from planner.results.erdil2025 import EconomicsDeployment, PassCount, Way
from planner.units import show

_BAR = 20
_MEMORY = {
    "in-flight": "weights and caches of all requests in flight, of a draft too",
    "one-microbatch": "weights and the caches of one micro-batch, as the paper counts",
}


def economics_line(plan: ErdilPlan) -> str:
    """The plan in one line."""
    best = plan.deployment
    return f"{best.summary}: {_headline(best)}"


def economics_text(plan: ErdilPlan, width: int) -> str:
    """The whole report, in lines of at most `width` columns.

    Args:
        plan: to report.
        width: columns, 60 or more.
    """
    best = plan.deployment
    sections = (
        "\n".join([*wrapped(best.summary, width), *times_lines(plan, width), _headline(best)]),
        section("request", labelled(_request_rows(plan), width)),
        section("layout", labelled(_layout_rows(best.layout, best.step), width)),
        section("where the time goes", _time_lines(best)),
        section("draft", labelled(_draft_rows(best), width)),
        section("memory of the busiest device", labelled(_memory_rows(best), width)),
        load_section(plan.load, width),
        section("limits", _limit_lines(plan.limits)),
        section("next best plans", _alternative_lines(plan.alternatives, width)),
        section("certificate", certificate_lines(plan.certificate, width)),
    )
    return "\n\n".join(filter(None, sections))


def request_rows(plan: ErdilPlan, *, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """What was asked, with every default; some rows may be left out."""
    return [row for row in _request_rows(plan) if row[0] not in without]


def _headline(best: EconomicsDeployment) -> str:
    cost, rent = show(best.usd_per_token, "USD/token"), show(best.usd_per_hour, "USD/h")
    return f"{_speed(best)} per user, {cost}, {rent}"


def _request_rows(plan: ErdilPlan) -> list[tuple[str, str]]:
    request = plan.request
    decode = request.served[0].target
    chosen = plan.deployment.weights_format
    served = next(one for one in request.served if one.weights_format == chosen)
    return [
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


def _layout_rows(way: Way, step: PassCount) -> list[tuple[str, str]]:
    rows = [
        ("stages", f"{way.n_stages} of {plural(way.n_tensor, 'device')}"),
        (
            "attention",
            f"projections on {plural(way.n_attention, 'device')} of a stage, "
            f"{step.attention_shape}; caches on all",
        ),
    ]
    if way.n_expert > 1:
        rows.append(("experts", f"spread {way.n_expert} ways"))
    n_ffn = way.n_tensor // way.n_expert
    return [*rows, ("FFN", f"on {plural(n_ffn, 'device')}, {step.ffn_shape}")]


def _time_lines(best: EconomicsDeployment) -> list[str]:
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
    rows = []
    for name, seconds in parts:
        if name == hidden:
            rows.append((name, show(seconds, "s"), "", "hidden behind the other"))
        elif seconds:
            share = seconds / total
            rows.append((name, show(seconds, "s"), percent(share), bar(share, _BAR)))
    rows.append(("pass", show(total, "s"), "", ""))
    if best.draft:
        rows.append(("token", show(best.tpot_s, "s"), "", "with its drafts"))
    return columns(rows, "<>><")


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


def _limit_lines(limits: tuple[LimitUse, ...]) -> list[str]:
    rows = [("", "asked", "used", "")]
    for use in limits:
        asked = limit_text(use.name, use.limit, use.dimension)
        gain = ""
        if use.binds:
            looser = limit_text(use.name, use.limit * use.relief, use.dimension)
            gain = f"binds: {looser} would gain {percent(use.gain_fraction or 0.0)}"
        rows.append((limit_label(use.name), asked, show(use.used, use.dimension), gain))
    return columns(rows, "<<<<")


def _alternative_lines(
    alternatives: tuple[Alternative[EconomicsDeployment], ...], width: int
) -> list[str]:
    """Figures of each plan in columns, and beside them what it is, wrapped."""
    figures = [("loses", "speed", "output token")]
    for other in alternatives:
        best = other.deployment
        cost = show(best.usd_per_token, "USD/token")
        figures.append((percent(other.loss_fraction), _speed(best), cost))
    head, *rows = columns(figures, ">>>")
    lines = [head]
    for row, other in zip(rows, alternatives, strict=True):
        first, *rest = wrapped(other.deployment.summary, max(20, width - len(row) - 4))
        lines += [f"{row}  {first}", *(" " * (len(row) + 2) + line for line in rest)]
    return lines if alternatives else []


def _speed(best: EconomicsDeployment) -> str:
    return f"{1.0 / best.tpot_s:.3g} tok/s"
