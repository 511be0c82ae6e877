"""An engine's plan for people: what to start, what it does and how surely, what proves it."""

from __future__ import annotations

from planner.report.checkpoints import loaded_words
from planner.report.engine_requests import engine_rows
from planner.report.launch.text import launch_text
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.mixes import mix_head, mix_lines
from planner.report.prediction import balance_words, between, load_section
from planner.report.proof import certificate_lines
from planner.report.region import region_lines
from planner.report.times import times_lines
from planner.report.words import limit_label, limit_text, plural
from planner.results import Alternative, EnginePlan, LimitUse, Rival
from planner.results.engines import EngineDeployment
from planner.results.predictions import Interval
from planner.specs.region import CONFIDENCE
from planner.specs.runtimes import runtime_of
from planner.units import show


def engine_line(plan: EnginePlan) -> str:
    """The plan in one line."""
    return f"{_summary(plan)}: {_headline(plan.deployment)}"


def _summary(plan: EnginePlan) -> str:
    """What to start; under which engine, where several were asked."""
    best = plan.deployment
    return f"{runtime_of(best.engine).title} on {best.summary}" if plan.rivals else best.summary


def engine_text(plan: EnginePlan, width: int) -> str:
    """The whole report, in lines of at most `width` columns.

    Args:
        plan: to report.
        width: columns, 60 or more.
    """
    best, request = plan.deployment, plan.request
    said = [*wrapped(_summary(plan), width), *times_lines(plan, width)]
    mixed = mix_head(plan, width)
    sections = (
        "\n".join([*said, *wrapped(_headline(best), width), *mixed]),
        section("request", labelled(engine_rows(request, plan.other_requests), width)),
        section("for users", labelled(_user_rows(plan), width)),
        load_section(plan.load, width),
        section("memory of the fullest device", labelled(_memory_rows(best), width)),
        section("limits", _limit_lines(plan.limits)),
        section("measured region", region_lines(plan, width)),
        section("engines side by side", _rival_lines(plan, width)),
        section("what rules of engines cost", _rule_lines(plan, width)),
        section("mix", mix_lines(plan, width)),
        section("next best plans", _alternative_lines(plan, width)),
        section(
            "certificate",
            certificate_lines(plan.certificate, width, given_up=plan.given_up_fraction),
        ),
        "\n".join(wrapped(f"hint: where its time goes: `{best.command}`", width)),
        launch_text(best.launch, width),
    )
    return "\n\n".join(filter(None, sections))


def _headline(best: EngineDeployment) -> str:
    cost, rent = show(best.usd_per_token, "USD/token"), show(best.usd_per_hour, "USD/h")
    times = f"TPOT {show(best.planned_tpot_s, 's')}, TTFT {show(best.planned_ttft_s, 's')}"
    return f"{times}, {show(best.output_tokens_per_s, 'token/s')}, {cost}, {rent}"


def _user_rows(plan: EnginePlan) -> list[tuple[str, str]]:
    best, request = plan.deployment, plan.request
    rows = []
    if best.variant:
        asked = next(one for one in request.variants if one.name == best.variant)
        lost = percent(best.quality_loss_fraction)
        words = f"{asked.title} in place of {request.model.title}: loses {lost}"
        rows.append(("model", f"{words}; {asked.quality}"))
    tpot = _spread(best.tpot_s, best.planned_tpot_s, plan)
    ttft = _spread(best.ttft_s, best.planned_ttft_s, plan)
    rows += [
        ("TPOT", f"{tpot}, prompts of the others included"),
        ("TTFT", f"{ttft}, without a queue"),
    ]
    model = next(it for it in request.records.models if it.name == best.model)
    loaded = loaded_words(model, best.formats, request.records.engine)
    rows += [("loaded", loaded)] * bool(loaded)
    rows.append(("quality", f"formats {best.quality}" if best.variant else best.quality))
    if plan.error_fraction:
        ties = plural(plan.n_ties, "other way", "other ways") if plan.n_ties else "no other way"
        rows.append(
            (
                "ties",
                f"{ties} to use the pool closer than the error, {percent(plan.error_fraction)} of "
                f"the {plan.request.objective}",
            )
        )
    if plan.given_up_fraction > 0:
        best_value = show(plan.certificate.objective, plan.certificate.dimension)
        lost = percent(plan.given_up_fraction)
        rows.append(("simplest", f"gives up {lost} of the best {best_value}"))
    return rows


def _spread(times: Interval, planned_s: float, plan: EnginePlan) -> str:
    """What is planned against and how sure it is; the interval of two of three where nothing is."""
    if planned_s <= times.value:
        return between(times)
    share = percent(plan.request.confidence or CONFIDENCE)
    return f"{show(times.value, 's')} (at most {show(planned_s, 's')} in {share} of cases)"


def _memory_rows(best: EngineDeployment) -> list[tuple[str, str]]:
    return [
        ("weights", show(best.weights_bytes, "B")),
        *(
            (("of copies", balance_words(best.redundant_experts)),)
            if best.redundant_experts
            else ()
        ),
        ("in all", f"{show(best.used_bytes, 'B')} of {show(best.capacity_bytes, 'B')}"),
    ]


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


def _rival_lines(plan: EnginePlan, width: int) -> list[str]:
    """The best of each engine, where several were asked: what it loses, and what it is."""
    rows = []
    for rival in plan.rivals:
        if rival.deployment is None:
            rows.append((rival.runtime, "", "", "", "nothing of it is known to hold all limits"))
            continue
        best, lost = rival.deployment, rival.loss_fraction or 0.0
        cost, tpot = show(best.usd_per_token, "USD/token"), show(best.planned_tpot_s, "s")
        label = f"{best.n_devices} × {best.label or 'one'}, batch {best.batch}"
        rows.append((rival.runtime, percent(lost), tpot, cost, label))
    if not rows:
        return []
    table = columns([("", "loses", "TPOT", "output token", ""), *rows], "<>>><")
    ties = filter(None, (_tie_text(plan, one) for one in plan.rivals))
    return [*table, *(line for text in ties for line in wrapped(text, width))]


def _rule_lines(plan: EnginePlan, width: int) -> list[str]:
    """Rules without which the plan would gain much: what forbids which deployment, and where."""
    engines = {it.engine: it.records.engine for it in (plan.request, *plan.other_requests)}
    said = []
    for cost in plan.rule_costs:
        best, engine = cost.deployment, engines[cost.deployment.engine]
        rule = next(it for it in engine.rules if it.name == cost.rule)
        value, version = show(cost.objective, plan.certificate.dimension), engine.started_version
        within = ", within the prediction error" * (cost.gain_fraction < plan.error_fraction)
        within += ", than of replicas all alike" * (plan.cheaper_mix is not None)
        text = f"{value} as predicted{within}, by {engine.title} on {best.summary}, but for "
        text += f"`{cost.rule}`: {engine.title} {version} does not start it; {rule.says}"
        said.append((percent(cost.gain_fraction), f"{text} ({rule.origin or rule.source})"))
    return labelled(said, width)


def _tie_text(plan: EnginePlan, rival: Rival[EngineDeployment]) -> str:
    """What measurement would decide between the best engine and one that it cannot be told from."""
    leader = next((it for it in plan.rivals if it.loss_fraction == 0.0), None)
    if not rival.is_tie or leader is None or leader.deployment is None or rival.deployment is None:
        return ""
    work, cluster = plan.request.workload, plan.request.cluster
    runs = " and ".join(
        f"{it.engine} at {it.label or 'one device'}, batch {it.batch}"
        for it in (leader.deployment, rival.deployment)
    )
    return (
        f"{rival.runtime} and {leader.runtime} are a tie, {percent(rival.loss_fraction or 0.0)} "
        f"apart; {percent(rival.error_fraction)} would make it two to one which is better: a run "
        f"of {rival.deployment.model} on {cluster.device} with {work.n_input_tokens:,} tokens in "
        f"and {work.n_output_tokens:,} out would decide, {runs}"
    )


def _alternative_lines(plan: EnginePlan, width: int) -> list[str]:
    """Figures of each plan in columns, and beside them what it is, wrapped."""
    figures = [("loses", "", "TPOT", "output token")]
    figures += [_figures(other) for other in plan.alternatives]
    head, *rows = columns(figures, "><>>")
    lines = [head]
    for row, other in zip(rows, plan.alternatives, strict=True):
        best = other.deployment
        what = f"{best.engine}: {best.summary}" if plan.rivals else best.summary
        first, *rest = wrapped(what, max(20, width - len(row) - 4))
        lines += [f"{row}  {first}", *(" " * (len(row) + 2) + line for line in rest)]
    return lines if plan.alternatives else []


def _figures(other: Alternative[EngineDeployment]) -> tuple[str, str, str, str]:
    best = other.deployment
    cost = show(best.usd_per_token, "USD/token")
    tie = "tie" if other.is_tie else ""
    return percent(other.loss_fraction), tie, show(best.planned_tpot_s, "s"), cost
