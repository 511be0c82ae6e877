"""What figures of an answer are of, and what is made of it to explain them.

A scope is one record that has figures, and its request. Whatever else formulas ask for is made when
they do: the verifier's account of it, and that of the same deployment on an ideal machine, which
reaches what data sheets say and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from planner.quantities.units import show
from planner.report.answer_kinds import kind_of
from planner.report.outlines import case_label
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.phase_deployments import PhaseDeployment
from planner.results.plans import served_by
from planner.results.predictions import Prediction
from planner.specs.ask.placement import layout_request
from planner.specs.files.what_if import multiplied
from planner.specs.records.devices import FORMAT_BYTES, NodesFabric
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
from planner.verifier.serving.held import layer_weights_bytes
from planner.verifier.serving.rounds import deviations_planned


class Scope(dict[str, Any]):
    """A record, `it`, its request, and what is made of them when a formula first asks for it."""

    def __missing__(self, name: str) -> object:
        self[name] = value = _MADE[name](self)
        return value


Subject = tuple[str, Scope]
"""What a record is called where an answer has several, and its scope."""


def subjects(answer: Any) -> Iterator[Subject]:  # noqa: ANN401 any kind of answer
    """Everything in an answer that has figures."""
    whole = Scope(it=answer, request=getattr(answer, "request", None))
    if isinstance(answer, Prediction):
        whole |= {"given": answer.request, "alone": answer}
    yield "", whole
    yield from _SUBJECTS.get(kind_of(answer).name, lambda _: ())(answer)
    if (load := getattr(answer, "load", None)) is not None:
        yield "", Scope(it=load)


def _deployed(it: Any, holder: Any, heading: str = "") -> Subject:  # noqa: ANN401
    """A deployment, with the request of its engine and model among those that were made."""
    requests = (holder.request, *getattr(holder, "other_requests", ()))
    engine = getattr(it, "engine", None)
    request = next((it for it in requests if getattr(it, "engine", None) == engine), requests[0])
    served = served_by(request, it) if isinstance(it, Deployment) else request
    return heading, Scope(it=it, request=served)


def _of_curves(answer: Any) -> Iterator[Subject]:  # noqa: ANN401
    """The preferred point of each."""
    cases = [curve.case for curve in answer.curves]
    for curve in answer.curves:
        if (frontier := curve.frontier) is not None:
            heading = f"{case_label(curve.case, cases)}, " * (len(cases) > 1)
            yield _deployed(frontier.best.deployment, frontier, heading)


def _of_audit(answer: Any) -> Iterator[Subject]:  # noqa: ANN401
    """What runs as predicted, and the best that are set beside it."""
    for name in ("predicted", "possible", "equal_speed", "equal_cost"):
        if (best := getattr(answer, name, None)) is not None:
            yield _deployed(best, answer, f"{name.replace('_', ' ')}, ")


def _of_placement(answer: Any) -> Iterator[Subject]:  # noqa: ANN401
    yield from ((f"{model.model}, ", Scope(it=model)) for model in answer.served)
    wishes = {wish.model.name: wish for wish in answer.request.models}
    yield from _of_recipes(answer, answer.request, [wishes[it.model] for it in answer.recipes])


def _of_fleet(answer: Any) -> Iterator[Subject]:  # noqa: ANN401
    yield from ((f"{it.name}, ", Scope(it=it)) for it in (*answer.classes, *answer.pools))
    yield from _of_recipes(answer, placement_request(answer), wishes_of(answer))


def _of_recipes(answer: Any, request: Any, wishes: Iterable[Any]) -> Iterator[Subject]:  # noqa: ANN401
    """Deployments of replicas, each on the cluster that devices of its ability make."""
    stand = stand_of(request)
    for number, (recipe, wish) in enumerate(zip(answer.recipes, wishes, strict=True)):
        it, scope = recipe.deployment, Scope(it=recipe.deployment)
        if isinstance(it, EngineDeployment | Deployment | PhaseDeployment):
            cluster, scope["ground"] = stand.cluster_of(recipe, wish)
            if isinstance(it, EngineDeployment):
                replica = asked_of(request, wish, cluster, recipe.engine, it)
                scope["request"], scope["given"] = replica
            else:
                scope["request"] = layout_request(request, wish, cluster)
        yield f"recipe {number}, ", scope


_SUBJECTS: Mapping[str, Callable[[Any], Iterable[Subject]]] = {
    "plan": lambda answer: [_deployed(answer.deployment, answer)],
    "layout-prediction": lambda answer: subjects(answer.plan),
    "frontiers": _of_curves,
    "audit": _of_audit,
    "engine-audit": _of_audit,
    "placement": _of_placement,
    "fleet": _of_fleet,
}


def _given(of: Scope) -> object:
    """One replica of an engine's deployment, as a given one."""
    models = {model.name: model for model in of["request"].records.models}
    return of["it"].alone(of["request"], models[of["it"].model])


def _pass(name: str, of: Scope) -> object:
    return next((it for it in of["alone"].passes if it.name == name), None)


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


def _links(of: Scope) -> Any:  # noqa: ANN401
    """What a device sends at most over all of its links [B/s]."""
    fabric, n_devices = of["fabric"], of["alone"].n_devices
    if not isinstance(fabric, NodesFabric):
        return 6.0 * fabric.link_bytes_per_s
    leaves = n_devices > fabric.n_devices_per_node
    return fabric.scale_up_bytes_per_s + leaves * fabric.scale_out_bytes_per_s


def _layer_bytes(of: Scope) -> float:
    """Weights of the layers of a class, on a device of the fullest stage."""
    rank, layer = of["counted"].rank, of["item"]
    n_layers = sum(it.n_layers for it in rank.model.layers)
    fullest = -(-n_layers // rank.n_stages) / n_layers
    return float(fullest * layer.n_layers * layer_weights_bytes(layer, rank))


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
    if not isinstance(it, Deployment | PhaseDeployment):
        return None  # of the reference model, asked in words of layouts
    waits = ("overheads", "scale_up_latency", "scale_out_latency")
    cluster: Any = multiplied(of["cluster"], dict.fromkeys(waits, 0.0))
    networks = _SWITCHED if isinstance(cluster.fabric, NodesFabric) else _LINKED
    device = replace(cluster.device, **full, roofline_exponent=1.0)
    cluster = replace(cluster, device=device, fabric=replace(cluster.fabric, **networks))
    request = replace(of["request"], cluster=cluster, confidence=0.5)  # with no margin
    if isinstance(it, PhaseDeployment):
        return phase_deployment(request, it.choice, of["ground"])[0]
    return layout_deployment(request, it.choice, ground=of.get("ground"))[0]


_LINKED = {"activation_network": "flat", "bulk_network": "flat"}
_SWITCHED = {**dict.fromkeys(_LINKED, "tree"), "scale_up_fraction": 1.0, "scale_out_fraction": 1.0}
"""All links of a torus at once; all of those of a node, and between nodes."""


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
    "engine": lambda of: getattr(getattr(of["request"], "records", None), "engine", None),
    "cluster": lambda of: getattr(
        getattr(of["request"], "records", of["request"]), "cluster", None
    ),
    "device": lambda of: (of["cluster"] or of["request"]).device,
    "fabric": lambda of: getattr(of["cluster"], "fabric", None),
    "price": lambda of: (of["cluster"] or of["request"]).usd_per_hour,
    "provenance": lambda of: [
        value
        for name in ("request", "engine", "cluster", "device")
        for value in getattr(of[name], "provenance", ())
    ],
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
    "given": _given,
    "counted": lambda of: evaluation(of["given"]),
    "alone": lambda of: prediction(of["given"], of["counted"]),
    "decode": partial(_pass, "decode"),
    "prefill": partial(_pass, "prefill"),
    "experts": partial(_pass, "experts"),
    "runs": lambda of: of["work"].n_runs(of["item"]),
    "bound": _bound,
    "links": _links,
    "layer_bytes": _layer_bytes,
    "beyond": lambda of: deviations_planned(of["request"].confidence, of["counted"].times),
    "ideal": _ideal,
    "planned": lambda of: planned_over_predicted(
        of["request"], of["phase"], of["it"].mesh.n_devices // of["it"].mesh.n_stages
    ),
}
