"""An engine's plan for people: what to start, what it does and how surely, what proves it."""

from planner.quantities.units import show
from planner.report.answers.plan_parts import limits_section, load_section, start_section
from planner.report.documents.blocks import Block, Pairs, Row, Section, Table, hint, notes, section
from planner.report.engine_requests import engine_rows, loaded_words
from planner.report.region import region_rows
from planner.report.words import balance_words, between, percent, plural
from planner.results.engines import EngineDeployment
from planner.results.plans import EnginePlan, Rival
from planner.results.predictions import Interval
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.runtimes import runtime_of
from planner.specs.region import CONFIDENCE


def summary_of(plan: EnginePlan) -> str:
    """What to start; under which engine, where several were asked."""
    best = plan.deployment
    return f"{runtime_of(best.engine).title} on {best.summary}" if plan.rivals else best.summary


def headline_of(plan: EnginePlan) -> str:
    best = plan.deployment
    cost, rent = show(best.usd_per_token, "USD/token"), show(best.usd_per_hour, "USD/h")
    times = f"TPOT {show(best.planned_tpot_s, 's')}, TTFT {show(best.planned_ttft_s, 's')}"
    return f"{times}, {show(best.output_tokens_per_s, 'token/s')}, {cost}, {rent}"


def request_rows(request: EngineRequest, plan: EnginePlan) -> list[tuple[str, str]]:
    return engine_rows(request, plan.other_requests)


def sections(plan: EnginePlan) -> list[Section]:
    """What users wait for, what it holds, and how far all of it was measured."""
    return [
        section("latency", Pairs(_user_rows(plan))),
        load_section(plan.load, plan.deployment.n_replicas),
        section("memory of the fullest device", Pairs(_memory_rows(plan.deployment))),
        limits_section(plan),
        section("measured region", Pairs(region_rows(plan))),
        section("engines side by side", *_rivals(plan)),
        section("what rules of engines cost", Pairs(_rule_rows(plan))),
    ]


def closing(plan: EnginePlan) -> list[Section]:
    """What evaluates it by itself, and what starts it."""
    best = plan.deployment
    of = f"each of {best.n_replicas} replicas is" if best.n_replicas > 1 else ""
    return [start_section((best.launch, of)), hint(f"where its time goes: `{best.command}`")]


def _user_rows(plan: EnginePlan) -> list[tuple[str, str]]:
    best, request = plan.deployment, plan.request
    rows = []
    if best.variant:
        variant = next(one for one in request.variants if one.name == best.variant)
        lost = percent(best.quality_loss_fraction)
        words = f"{variant.title} in place of {request.model.title}: loses {lost}"
        rows.append(("model", f"{words}; {variant.quality}"))
    tpot = _spread(best.tpot_s, best.planned_tpot_s, plan)
    ttft = _spread(best.ttft_s, best.planned_ttft_s, plan)
    rows += [
        ("TPOT", f"{tpot}, prompts of other requests included"),
        ("TTFT", f"{ttft}, without a queue"),
    ]
    model = next(it for it in request.records.models if it.name == best.model)
    loaded = loaded_words(model, best.formats, request.records.engine)
    rows += [("loaded", loaded)] * bool(loaded)
    rows.append(("quality", f"formats {best.quality}" if best.variant else best.quality))
    if plan.error_fraction:
        ties = plural(plan.n_ties, "other way", "other ways") if plan.n_ties else "no other way"
        error = f"{percent(plan.error_fraction)} of the {plan.request.objective}"
        rows.append(("ties", f"{ties} to use the pool within the prediction error, {error}"))
    if plan.given_up_fraction > 0:
        best_value = show(plan.certificate.objective, plan.certificate.dimension)
        lost = percent(plan.given_up_fraction)
        rows.append(("simplest", f"costs {lost} of the best {best_value}"))
    return rows


def _spread(times: Interval, planned_s: float, plan: EnginePlan) -> str:
    """What is planned against and how sure it is; the interval of two of three where nothing is."""
    if planned_s <= times.value:
        return between(times)
    share = percent(plan.request.confidence or CONFIDENCE)
    return f"{show(times.value, 's')} (at most {show(planned_s, 's')} in {share} of cases)"


def _memory_rows(best: EngineDeployment) -> list[tuple[str, str]]:
    copies = best.redundant_experts
    return [
        ("weights", show(best.weights_bytes, "B")),
        ("of copies", balance_words(copies) if copies else ""),
        ("in all", f"{show(best.used_bytes, 'B')} of {show(best.capacity_bytes, 'B')}"),
    ]


def _rivals(plan: EnginePlan) -> list[Block]:
    """The best of each engine, where several were asked: what it loses, and what it is."""
    rows: list[Row] = []
    for rival in plan.rivals:
        if rival.deployment is None:
            rows.append((rival.runtime, "", "", "", "nothing of it is known to hold all limits"))
            continue
        best, lost = rival.deployment, rival.loss_fraction or 0.0
        cost, tpot = show(best.usd_per_token, "USD/token"), show(best.planned_tpot_s, "s")
        label = f"{best.n_devices} × {best.label or 'one'}, batch {best.batch}"
        rows.append((rival.runtime, percent(lost), tpot, cost, label))
    ties = filter(None, (_tie_text(plan, one) for one in plan.rivals))
    heads = ("", "loses", "TPOT", "output token", "")
    return [Table(heads=heads, rows=rows, align="<>>><", wraps=True, sorts=True), *notes(ties)]


def _rule_rows(plan: EnginePlan) -> list[tuple[str, str]]:
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
    return said


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
