"""A plan for people: what was asked, what to run, what it does, what proves it.

`plan_text` is the whole report, `plan_line` its first line. Rows are templates: what a
section prints can be read off its table.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING

from planner.estimates.margins import NONE, margins_of
from planner.quantities import limited_text, objective_of
from planner.report.lines import columns, labelled, percent, section
from planner.report.mixes import mix_head, mix_lines
from planner.report.phases import memory_lines, memory_title, phase_lines
from planner.report.proof import certificate_lines, constant_lines
from planner.report.times import times_lines
from planner.report.words import (
    PREFILL_WORDS,
    amount,
    headline,
    limit_label,
    limit_text,
    plural,
    target_texts,
)
from planner.results import Deployment, LayoutPlan, LimitUse, Mesh, served_by
from planner.specs.certificates import UNCONFIRMED
from planner.specs.quality import quality_words
from planner.specs.records import LinkedFabric
from planner.specs.request import Request, SolverOptions, default_prefill_batches
from planner.specs.spans import span_text
from planner.units import show

if TYPE_CHECKING:
    from planner.results.arrivals import Load

Rows = tuple[tuple[str, str], ...]

_REQUEST: Rows = (
    ("model", "{model}: {title}, {n_params} parameters{padding}"),
    ("pool", "{pool}: {n_pool} × {device}"),
    ("tokens", "{n_input} in, {n_output} out{no_decode}"),
    ("targets", "{targets}"),
    ("objective", "{objective}: {objective_words}"),
    ("prefill", "{prefill}: {prefill_words}"),
    ("batches", "decode {batches}, prefill {prefill_batches}"),
    ("weights", "{formats}"),
    ("KV cache", "{kv_formats}"),
    ("planned", "{planned}"),
    ("solver", "{solver}"),
)
_DEPLOYMENT: Rows = (
    ("devices", "{n_devices} of {n_pool} × {device}"),
    ("replicas", "{replicas}"),
    ("mesh", "{mesh}, {network}{places}"),
    ("weights", "{weights_format}, at rest {storage}   {axes}"),
    ("arithmetic", "{multiplied}"),
    ("KV cache", "{kv_format}"),
    ("quality", "{quality}"),
)
_COST: Rows = (
    ("rent", "{rent}: {n_devices} at {price} each, price {price_date}"),
    ("output token", "{cost}, of which prefill {prefill_cost} ({prefill_share})"),
    ("throughput", "{throughput} output tokens per second, the phases taking turns, never idle"),
    ("demand", "{demand}"),
)


def plan_line(plan: LayoutPlan) -> str:
    """The plan in one line."""
    return f"{plan.deployment.summary}: {headline(plan.deployment)}"


def _load_section(load: Load | None, width: int) -> str:
    if load is None:
        return ""
    from planner.report.prediction import load_section

    return load_section(load, width)


def plan_text(plan: LayoutPlan, width: int) -> str:
    """The whole report, in lines of at most `width` columns.

    Args:
        plan: to report.
        width: columns, 60 or more.
    """
    best, request = plan.deployment, served_by(plan.request, plan.deployment)
    offered = (request.prefill_batches, request.batches)
    sections = (
        "\n".join(
            [best.summary, *times_lines(plan, width), headline(best), *mix_head(plan, width)]
        ),
        section("request", request_lines(request, width)),
        section("variants", labelled(_variant_rows(plan), width)),
        section("deployment", labelled(_fill(_DEPLOYMENT, _mesh_values(plan)), width)),
        section("phases", phase_lines(best, offered, width)),
        section(memory_title(best.memory), memory_lines(best.memory, width)),
        section("cost", labelled(_fill(_COST, _cost_values(plan)), width)),
        _load_section(plan.load, width),
        section("limits", _limit_lines(plan)),
        section("mix", mix_lines(plan, width)),
        section("next best plans", _alternative_lines(plan)),
        section("certificate", certificate_lines(plan.certificate, width)),
        section("constants", constant_lines(plan, width)),
    )
    return "\n\n".join(filter(None, sections))


def _variant_rows(plan: LayoutPlan) -> list[tuple[str, str]]:
    """Which model is served where there were several to choose from, and what that loses."""
    if not plan.variants:
        return []
    served, asked = served_by(plan.request, plan.deployment).model.name, plan.request.model.name
    rows = [("asked", asked + " (served)" * (served == asked))]
    for one in plan.variants:
        loss = one.quality_loss_fraction
        lost = "nobody says what it loses" if loss is None else f"loses {percent(loss)}"
        mark = " (served)" * (one.name == served)
        rows.append(("or", f"{one.name}{mark}: {one.title}; {lost}: {one.quality}"))
    return rows


def request_lines(request: Request, width: int, *, without: Collection[str] = ()) -> list[str]:
    """What was asked, with every default; some rows may be left out."""
    rows = tuple(row for row in _REQUEST if row[0] not in without)
    return labelled(_fill(rows, _request_values(request)), width)


def _fill(rows: Rows, values: dict[str, object]) -> list[tuple[str, str]]:
    return [(label, text.format(**values)) for label, text in rows]


def _request_values(request: Request) -> dict[str, object]:
    model, cluster, workload = request.model, request.cluster, request.workload
    padded = model.n_params_served != model.n_params
    return {
        "model": model.name,
        "title": model.title,
        "n_params": amount(model.n_params),
        "padding": f", {amount(model.n_params_served)} as served" if padded else "",
        "pool": cluster.name,
        "n_pool": cluster.n_devices,
        "device": cluster.device.title,
        "n_input": workload.n_input_tokens,
        "n_output": workload.n_output_tokens,
        "no_decode": "" if workload.n_decode_steps else ": prefill writes it, decode never runs",
        "targets": ", ".join(target_texts(request.targets)) or "none",
        "objective": request.objective,
        "objective_words": objective_of(request.objective).aim,
        "prefill": request.prefill,
        "prefill_words": _prefill_words(request),
        "batches": span_text(request.batches),
        "prefill_batches": span_text(request.prefill_batches),
        "formats": " or ".join(request.weights_formats),
        "kv_formats": " or ".join(request.kv_formats) if len(request.kv_formats) > 1 else "",
        "planned": _planned_text(request),
        "solver": _solver_text(request.options),
    }


def _planned_text(request: Request) -> str:
    """What passes are planned to take, where that is not what is predicted."""
    times, share = margins_of(request), request.confidence
    if times == NONE:
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


def _solver_text(options: SolverOptions) -> str:
    limit = "none" if options.time_limit_s is None else show(options.time_limit_s, "s")
    return (
        f"{options.solver}, gap {percent(options.gap)}, time limit {limit}, "
        f"{plural(options.threads, 'thread')}, seed {options.seed}"
    )


def _mesh_values(plan: LayoutPlan) -> dict[str, object]:
    best = plan.deployment
    is_linked = isinstance(plan.request.cluster.fabric, LinkedFabric)  # one place was looked for
    places = plural(best.mesh.n_positions, "place")
    return {
        "n_devices": best.n_devices,
        "replicas": _replicas_text(best),
        "quality": _quality_text(plan),
        "n_pool": plan.request.cluster.n_devices,
        "device": plan.request.cluster.device.title,
        "mesh": best.mesh.text,
        "network": _network_text(best.mesh, is_linked=is_linked),
        "places": "" if is_linked else f"; fits the pool in {places}",
        "weights_format": best.weights_format,
        "storage": best.storage,
        "axes": _axes_text(best),
        "multiplied": _arithmetic_text(plan),
        "kv_format": best.kv_format,
    }


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
    return " ".join(f"{names}={prod(sizes[name] for name in names)}" for names in axes)


def _cost_values(plan: LayoutPlan) -> dict[str, object]:
    best, cluster = plan.deployment, plan.request.cluster
    return {
        "rent": show(best.usd_per_hour, "USD/h"),
        "n_devices": best.n_devices,
        "demand": _demand_text(best),
        "price": show(cluster.usd_per_hour, "USD/h"),
        "price_date": cluster.device.price_date or "undated",
        "cost": show(best.usd_per_token, "USD/token"),
        "prefill_cost": show(best.prefill_usd_per_token, "USD/token"),
        "prefill_share": percent(best.prefill_usd_per_token / best.usd_per_token),
        "throughput": show(best.output_tokens_per_s, "1"),
    }


def _replicas_text(best: Deployment) -> str:
    """`8, each on 2 devices of its own`; nothing without a demand."""
    if best.demand_tokens_per_s is None:
        return ""
    return f"{best.n_replicas}, each on {plural(best.mesh.n_devices, 'device')} of its own"


def _demand_text(best: Deployment) -> str:
    if best.demand_tokens_per_s is None:
        return ""
    return (
        f"{show(best.demand_tokens_per_s, '1')} per second: busy "
        f"{percent(best.utilization_fraction)} of the time, and paid for all of it"
    )


def _arithmetic_text(plan: LayoutPlan) -> str:
    """In what weights are multiplied that the device does not multiply as they are stored."""
    device, stored = plan.request.cluster.device, plan.deployment.weights_format
    used = device.multiplies(stored)
    if used == stored:
        return ""
    return f"{used}: {device.title} does not multiply {stored}, it saves bytes only"


def _quality_text(plan: LayoutPlan) -> str:
    """What the formats lose by the model's file."""
    best = plan.deployment
    served = served_by(plan.request, best)
    return quality_words(served.model, best.weights_format, best.kv_format)


def _limit_lines(plan: LayoutPlan) -> list[str]:
    options = plan.request.options
    late = options.time_limit_s is not None and not options.gap
    late = late and plan.certificate.status != UNCONFIRMED
    rows = [
        (
            limit_label(use.name),
            limit_text(use.name, use.limit, use.dimension),
            limited_text(use.used, use.dimension),
            _gain_text(use, late=late),
        )
        for use in plan.limits
    ]
    return columns([("", "asked", "used", ""), *rows], "<<<<") if rows else []


def _gain_text(use: LimitUse, *, late: bool) -> str:
    """What a little more of a limit gains; or that there was no time to see."""
    if use.gain_fraction is None and late and use.name != "demand":
        return "no time to see what more of it would gain"
    if not use.binds or use.gain_fraction is None:
        return ""
    looser = limit_text(use.name, use.limit * use.relief, use.dimension)
    return f"binds: {looser} would gain {percent(use.gain_fraction or 0.0)}"


def _alternative_lines(plan: LayoutPlan) -> list[str]:
    """One line a plan: what it is, and how much of the objective it loses."""
    among = bool(plan.variants)
    model = ("model",) if among else ()
    rows = [("loses", *model, "mesh", "weights", "prefill", "decode", "TPOT", "cost")]
    for other in plan.alternatives:
        best = other.deployment
        rows.append(
            (
                percent(other.loss_fraction),
                *((best.variant or plan.request.model.name,) if among else ()),
                best.mesh.text,
                best.weights_format,
                f"{best.prefill.layout} × {best.prefill.batch}",
                f"{best.decode.layout} × {best.decode.batch}",
                show(best.tpot_s, "s"),
                show(best.usd_per_token, "USD/token"),
            )
        )
    return columns(rows, f">{'<' * among}<<<<><") if plan.alternatives else []
