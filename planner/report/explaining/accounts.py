"""What figures of an answer are of, and what is made of it to explain them.

A scope is one record that has figures, and its request. Whatever else formulas ask for is made when
they do: the verifier's account of it, and that of the same deployment on an ideal machine, which
reaches what data sheets say and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.quantities.units import show
from planner.report.answers.fleet_words import percentile_name
from planner.report.outlines import case_label
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.fleets import FleetPlan
from planner.results.phase_deployments import LayoutDeployment, PhaseDeployment, TableDeployment
from planner.results.placements import Placement
from planner.results.plans import served_by
from planner.results.predictions import Prediction
from planner.specs.ask.placement import layout_request
from planner.specs.files.what_if import multiplied, resources
from planner.specs.records.devices import FORMAT_BYTES, NodesFabric, TorusFabric
from planner.specs.records.economics import Protocol, TreeCollectives
from planner.specs.records.served_formats import product_format
from planner.verifier.engines import asked_of
from planner.verifier.fleets.judging import placement_request, wishes_of
from planner.verifier.layouts.deployments import layout_deployment
from planner.verifier.layouts.phases import planned_over_predicted
from planner.verifier.placing.placements import stand_of
from planner.verifier.predictions import prediction
from planner.verifier.runtimes.erdil_passes import count_pass
from planner.verifier.runtimes.layouts import phase_deployment
from planner.verifier.scalar.times import peak_flop_per_s
from planner.verifier.serving.evaluation import evaluation
from planner.verifier.serving.held import fullest_share, layer_weights_bytes
from planner.verifier.serving.rounds import deviations_planned


class Scope(dict[str, Any]):
    """A record, `it`, its request, and what is made of them when a formula first asks for it."""

    def __missing__(self, name: str) -> object:
        self[name] = value = _MADE[name](self)
        return value


_BESIDE = ("predicted", "possible", "equal_speed", "equal_cost")
_PARTS = {
    "deployment": "",
    **{name: f"{name.replace('_', ' ')}, " for name in _BESIDE},
    "served": "{it.model}, ",
    "classes": "{it.name}, ",
    "pools": "{it.name}, ",
    "load": "",
}
"""Fields of answers that have figures, and what each is called where there are several."""


def subjects(answer: Any) -> Iterator[tuple[str, Scope]]:  # noqa: ANN401 any kind of answer
    """Everything in an answer that has figures, and what it is called where there are several."""
    whole = Scope(it=answer, request=getattr(answer, "request", None))
    if isinstance(answer, Prediction):
        whole |= {"given": answer.request, "alone": answer}
    yield "", whole
    if inner := getattr(answer, "plan", getattr(answer, "placement", None)):
        yield from subjects(inner)
    for field, heading in _PARTS.items():
        part = getattr(answer, field, None) or ()
        for it in part if isinstance(part, tuple) else (part,):
            yield heading.format(it=it), _deployed(it, answer)
    yield from _of_cases(getattr(answer, "curves", getattr(answer, "rows", ())))
    if isinstance(answer, Placement | FleetPlan):
        yield from _of_recipes(answer)


def _of_cases(several: Sequence[Any]) -> Iterator[tuple[str, Scope]]:
    """What stands in curves of a survey, or in rows of a comparison."""
    for it in several:
        heading = f"{case_label(it.case, [of.case for of in several])}, " * (len(several) > 1)
        if frontier := getattr(it, "frontier", None):
            yield heading, _deployed(frontier.best.deployment, frontier)
        elif best := getattr(it, "answer", None):
            yield from ((heading + own, scope) for own, scope in subjects(best))


def _deployed(it: Any, holder: Any) -> Scope:  # noqa: ANN401
    """A part of an answer, with the request of its engine and model among those that were made."""
    requests = (holder.request, *getattr(holder, "other_requests", ()))
    engine = getattr(it, "engine", None)
    request = next((it for it in requests if getattr(it, "engine", None) == engine), requests[0])
    return Scope(it=it, request=served_by(request, it) if isinstance(it, Deployment) else request)


def _of_recipes(answer: Placement | FleetPlan) -> Iterator[tuple[str, Scope]]:
    """A replica of each recipe, on the cluster that devices of its ability make."""
    if isinstance(answer, FleetPlan):
        request, wishes = placement_request(answer), wishes_of(answer)
    else:
        request, models = answer.request, {it.model.name: it for it in answer.request.models}
        wishes = [models[it.model] for it in answer.recipes]
    stand = stand_of(request)
    for number, (recipe, wish) in enumerate(zip(answer.recipes, wishes, strict=True)):
        it, scope = recipe.deployment, Scope(it=recipe.deployment)
        if not isinstance(it, TableDeployment):
            cluster, scope["ground"] = stand.cluster_of(recipe, wish)
            scope["speed"] = recipe.speed_fraction
            if isinstance(it, EngineDeployment):
                replica = asked_of(request, wish, cluster, recipe.engine, it)
                scope["request"], scope["given"] = replica
            else:
                scope["request"] = layout_request(request, wish, cluster)
        yield f"a replica of recipe {number}, ", scope


def _bound(of: Scope) -> dict[str, Any]:
    """What one run of an operation takes at least: its FLOP, bytes or messages at full rates."""
    line, rate, links = of["item"], of["device"].hbm_bytes_per_s, of["links"]
    peak = line.ridge_flop_per_byte * rate
    least, by = max(
        (line.flop / peak, f"its FLOP at {show(peak, 'FLOP/s')}"),
        (line.hbm_bytes / rate, f"its bytes at {show(rate, 'B/s')}"),
        (line.sent_bytes / links, f"its bytes at {show(links, 'B/s')}"),
    )
    return {"least_s": least, "by": by, "run": show(line.run_s, "s")}


def _links(of: Scope) -> float:
    """What a device sends at most over all of its links: of a torus two an axis [B/s]."""
    fabric, n_devices = of["fabric"], of["alone"].n_devices
    if isinstance(fabric, TorusFabric):
        return 2.0 * sum(n > 1 for n in fabric.shape) * fabric.link_bytes_per_s
    within = min(n_devices, fabric.n_devices_per_node)
    leaves = n_devices > within
    return float(fabric.group_scale_up_bytes_per_s(within) + leaves * fabric.scale_out_bytes_per_s)


def _ideal(of: Scope) -> object:
    """The account on a machine that reaches what data sheets say, and waits for nothing."""
    it, full = of["it"], {"compute_fraction": 1.0, "hbm_fraction": 1.0}
    if of["cluster"] is None:
        hops = dict.fromkeys(("scale_up_hop_s", "scale_out_hop_s", "base_s"), 0.0)
        sends = TreeCollectives(protocols=(Protocol(name="", **hops, bandwidth_fraction=1.0),))
        device = replace(of["device"], **full, kernel_launch_s=0.0, collectives=sends)
        is_usual = of["request"].drafting.convention == "usual"
        n_scored = it.draft.n_drafted + is_usual if it.draft else 1.0
        decode = replace(of["target"], device=device, n_scored_tokens=n_scored)
        return count_pass(decode, it.layout, it.batch)
    if not isinstance(it, LayoutDeployment):
        return None  # of the reference model, asked in words of layouts
    attained: dict[str, Any] = {"scale_up_fraction": 1.0, "scale_out_fraction": 1.0}
    waits = ("overheads", "scale_up_latency", "scale_out_latency")
    cluster: Any = multiplied(of["cluster"], dict.fromkeys(waits, 0.0))
    device = replace(cluster.device, **full, roofline_exponent=1.0)
    if isinstance(fabric := cluster.fabric, TorusFabric):  # all links at once
        fabric = replace(fabric, activation_network="flat", bulk_network="flat")
    elif isinstance(fabric, NodesFabric):
        fabric = replace(fabric, activation_network="tree", bulk_network="tree", **attained)
    cluster = replace(cluster, device=device, fabric=fabric)
    request = replace(of["request"], cluster=cluster, confidence=0.5)  # with no margin
    if isinstance(it, PhaseDeployment):
        return phase_deployment(request, it.choice, of["ground"])[0]
    return layout_deployment(request, it.choice, ground=of.get("ground"))[0]


def _differs(of: Scope) -> dict[str, str]:
    """By field, how a machine that is supposed, or a recipe counts on, differs from its file's."""
    times, said = dict.fromkeys(("hbm_bytes_per_s", "peak_flop_per_s"), of.get("speed", 1.0)), {}
    for name, factor in getattr(of["device"], "what_if", {}).items():
        for field in {it.rpartition(".")[2] for it in resources()[name]["scales"].split()}:
            times[field] = times.get(field, 1.0) * factor
    if "speed" in of:
        links = ("scale_up_bytes_per_s", "scale_out_bytes_per_s", "link_bytes_per_s")
        said = dict.fromkeys(links, "where it stands, at most that of")
    return said | {it: f"{factor:g} times that of" for it, factor in times.items() if factor != 1.0}


def _format(of: Scope) -> str:
    """In which matrices are multiplied: of weights and activations the wider."""
    it, rates = of["it"], of["device"].peak_flop_per_s
    if of["engine"] is not None:
        own: str = of["counted"].rank.formats.weights.partition("_")[0]
        return next(str(it) for it in (own, *rates) if rates.get(it) == of["peak"])
    weights = getattr(it, "weights_format", "") or it.observed.weights_format
    wider = product_format(weights, getattr(it, "activation_format", "")) or weights
    return str(of["cluster"].device.multiplies(wider) if of["cluster"] else weights)


def _peak(of: Scope) -> float:
    """Of the format in which they are multiplied [FLOP/s]."""
    if of["cluster"] is None:
        return float(of["device"].peak_flop_per_s[8 * of["target"].model.weight_bytes])
    if of["engine"] is None:
        return peak_flop_per_s(of["device"], of["format"])
    rank = of["counted"].rank
    return float(rank.kernels.peak_of(rank.formats.weights))


_MADE: Mapping[str, Callable[[Scope], Any]] = {
    "records": lambda of: getattr(of["request"], "records", of["request"]),
    "engine": lambda of: getattr(of["records"], "engine", None),
    "cluster": lambda of: getattr(of["records"], "cluster", None),
    "device": lambda of: (of["cluster"] or of["request"]).device,
    "fabric": lambda of: getattr(of["cluster"], "fabric", None),
    "price": lambda of: (of["cluster"] or of["request"]).usd_per_hour,
    "provenance": lambda of: [
        value
        for name in ("request", "engine", "cluster", "device")
        for value in getattr(of[name], "provenance", ())
    ],
    "differs": _differs,
    "model": lambda of: of["request"].model,
    "active_params": lambda of: (
        of["model"].n_active_params_published or of["model"].n_params_published
    ),
    "passes_a_token": lambda of: of["model"].n_diffusion_passes or 1.0,
    "weight_bytes": lambda of: FORMAT_BYTES[of["it"].weights_format],
    "kv_bytes": lambda of: FORMAT_BYTES[of["it"].kv_format] / FORMAT_BYTES[of["model"].kv_format],
    "target": lambda of: next(
        it.target for it in of["request"].served if it.weights_format == of["it"].weights_format
    ),
    "is_joint": lambda of: getattr(of["request"], "memory", "in-flight") == "in-flight",
    "draft_bytes": lambda of: getattr(of["it"].draft, "held_bytes", 0.0),
    "draft_peak": lambda of: _peak(Scope(it=of["it"].draft, request=of["request"])),
    "format": _format,
    "peak": _peak,
    "given": lambda of: of["it"].alone(
        of["request"], next(m for m in of["request"].records.models if m.name == of["it"].model)
    ),
    "counted": lambda of: evaluation(of["given"]),
    "alone": lambda of: prediction(of["given"], of["counted"]),
    "passes": lambda of: {it.name: it for it in of["alone"].passes},
    "runs": lambda of: of["work"].n_runs(of["item"]),
    "bound": _bound,
    "links": _links,
    "layer_bytes": lambda of: layer_weights_bytes(of["item"], of["counted"].rank),
    "fullest": lambda of: fullest_share(of["counted"].rank),
    "percentile": lambda of: percentile_name(of["item"]),
    "beyond": lambda of: deviations_planned(of["request"].confidence, of["counted"].times),
    "ideal": _ideal,
    "planned": lambda of: planned_over_predicted(
        of["request"], of["phase"], of["it"].mesh.n_devices // of["it"].mesh.n_stages
    ),
}
