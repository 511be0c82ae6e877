"""What surveys say of a deployment in a table or beside a point, whichever cost model counts it."""

from collections.abc import Callable, Mapping, Sequence

from planner.quantities.table import axis_of, objective_of
from planner.quantities.units import show
from planner.report.words import plural
from planner.results.deployments import Deployment, PhasePlan
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.plans import AnyDeployment, AnyRequest, runtime_name
from planner.results.surveys import Case, Frontier, FrontierPoint
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.validation.hints import of_kind

_Cell = Callable[[AnyDeployment], str]


def speed_text(deployment: AnyDeployment) -> str:
    """`43.9 token/s`, of each user; of an engine, what is planned against."""
    return show(1 / deployment.planned_tpot_s, "token/s")


def phase_text(phase: PhasePlan) -> str:
    """`WS 2D × 64`: layout and batch."""
    return f"{phase.layout} × {phase.batch}"


def headline_of(deployment: AnyDeployment) -> str:
    """What a deployment does and costs, in one line."""
    times = f"TPOT {show(deployment.planned_tpot_s, 's')}"
    if not isinstance(deployment, EconomicsDeployment):  # which decodes only
        times += f", TTFT {show(deployment.planned_ttft_s, 's')}"
    cost = show(deployment.usd_per_token, "USD/token")
    return f"{times}, {cost}, {show(deployment.usd_per_hour, 'USD/h')}"


def devices_text(deployment: AnyDeployment) -> str:
    """`8 TP 8`, `4 2×2×1`: how many, and how they are cut."""
    if isinstance(deployment, Deployment):
        return f"{deployment.n_devices} {deployment.mesh.label}"
    if isinstance(deployment, EngineDeployment):
        return f"{deployment.n_devices} {deployment.label}".rstrip()
    return f"{deployment.n_devices} {deployment.layout.label}"


def drafted_text(deployment: AnyDeployment) -> str:
    """Tokens that are drafted before a pass; `no` without a draft."""
    if isinstance(deployment, EngineDeployment):
        return str(deployment.n_drafted or "no")
    return str(deployment.draft.n_drafted) if deployment.draft else "no"


def details(deployment: AnyDeployment) -> list[str]:
    """What runs, in a few lines."""
    if isinstance(deployment, EngineDeployment):
        return [deployment.summary]
    drafted = ""
    if deployment.draft:
        drafted = f", {deployment.draft.n_drafted} drafted by {deployment.draft.model}"
    if isinstance(deployment, Deployment):
        mesh = deployment.mesh
        return [
            f"{plural(deployment.n_devices, 'device')} {mesh.label}, "
            f"{deployment.weights_format} weights, {deployment.kv_format} KV cache",
            f"prefill {phase_text(deployment.prefill)}, "
            f"decode {phase_text(deployment.decode)}{drafted}",
        ]
    way = deployment.layout
    return [
        f"{plural(way.n_devices, 'device')} {way.label}, {deployment.weights_format} weights",
        f"batch {deployment.batch}{drafted}",
    ]


_OF_BOTH: Mapping[str, _Cell] = {
    "engine": runtime_name,
    "TPOT": lambda best: show(best.planned_tpot_s, "s"),
    "speed": speed_text,
    "cost": lambda best: show(best.usd_per_token, "USD/token"),
    "rent": lambda best: show(best.usd_per_hour, "USD/h"),
    "tokens/s": lambda best: show(best.output_tokens_per_s, "1"),
    "tokens/s a device": lambda best: show(best.device_tokens_per_s, "1"),
    "devices": devices_text,
    "weights": lambda best: best.weights_format,
    "drafted": drafted_text,
}
_OF_LAYOUTS: Mapping[str, Callable[[Deployment], str]] = {
    "TTFT": lambda best: show(best.ttft_s, "s"),
    "KV": lambda best: best.kv_format,
    "prefill": lambda best: phase_text(best.prefill),
    "decode": lambda best: phase_text(best.decode),
}
_OF_ECONOMICS: Mapping[str, Callable[[EconomicsDeployment], str]] = {
    "batch": lambda best: str(best.batch)
}
_OF_ENGINES: Mapping[str, Callable[[EngineDeployment], str]] = {
    "TTFT": lambda best: show(best.planned_ttft_s, "s"),
    "model": lambda best: best.model,
    "KV": lambda best: best.kv_format,
    "batch": lambda best: f"{best.batch}{' a rank' if best.n_data > 1 else ''}",
    "chunk": lambda best: str(best.chunk_tokens),
    "overlap": lambda best: best.overlap,
}
LAYOUT_HEADS = ("devices", "weights", "KV", "prefill", "decode", "drafted")
ECONOMICS_HEADS = ("devices", "weights", "batch", "drafted")


def has_prefill(deployment: AnyDeployment) -> bool:
    """Whether what counts a deployment knows its time to first token."""
    return not isinstance(deployment, EconomicsDeployment)


def run_heads(deployments: Sequence[AnyDeployment], requests: Sequence[AnyRequest]) -> list[str]:
    """The columns that say what to run: those in which there was something to choose.

    Args:
        deployments: of one runtime or of several.
        requests: what was asked for; nothing where that is not known.
    """
    layouts = of_kind(Deployment, deployments)
    engines = of_kind(EngineDeployment, deployments)
    heads = ["engine"] if len({*map(runtime_name, deployments)}) > 1 else []
    if engines:
        heads += _engine_heads(engines, of_kind(EngineRequest, requests))
    if layouts:
        heads += _layout_heads(layouts, of_kind(Request, requests))
    if not all(map(has_prefill, deployments)):
        heads += ECONOMICS_HEADS[: None if _drafts(deployments, requests) else -1]
    return list(dict.fromkeys(heads))


def _drafts(deployments: Sequence[AnyDeployment], requests: Sequence[AnyRequest]) -> bool:
    """Whether any deployment drafts, or could have."""
    return any(drafted_text(one) != "no" for one in deployments) or any(
        isinstance(request, Request) and request.speculation for request in requests
    )


def _layout_heads(deployments: Sequence[Deployment], requests: Sequence[Request]) -> list[str]:
    """The columns of layouts in which there was something to choose."""
    kept = len({one.kv_format for one in deployments}) > 1
    unchosen = {
        "KV": not kept and all(len(request.kv_formats) < 2 for request in requests),
        "drafted": not _drafts(deployments, requests),
    }
    return [head for head in LAYOUT_HEADS if not unchosen.get(head)]


def _engine_heads(
    deployments: Sequence[EngineDeployment], requests: Sequence[EngineRequest]
) -> list[str]:
    """The columns of an engine's deployments in which there was something to choose."""
    chosen = {
        "model": any(request.variants for request in requests),
        "devices": True,
        "weights": True,
        "KV": len({one.kv_format for one in deployments}) > 1
        or any(len({one.cache for one in request.formats}) > 1 for request in requests),
        "batch": True,
        "chunk": True,
        "overlap": any(len(request.overlaps) > 1 for request in requests),
        "drafted": any(request.drafting for request in requests),
    }
    return [head for head, is_chosen in chosen.items() if is_chosen]


def cell(head: str, deployment: AnyDeployment) -> str:
    """What stands below a head; nothing where a deployment of its runtime has no such thing."""
    if head in _OF_BOTH:
        return _OF_BOTH[head](deployment)
    if isinstance(deployment, EngineDeployment):
        return _OF_ENGINES[head](deployment) if head in _OF_ENGINES else ""
    if isinstance(deployment, Deployment):
        return _OF_LAYOUTS[head](deployment) if head in _OF_LAYOUTS else ""
    return _OF_ECONOMICS[head](deployment) if head in _OF_ECONOMICS else ""


def case_label(case: Case, cases: Sequence[Case]) -> str:
    """What tells a case from the others; of a single one, its model and pool."""
    parts = (
        (case.model, {one.model for one in cases}),
        (case.topology, {one.topology for one in cases}),
        (case.weights, {one.weights for one in cases}),
        (f"{case.kv} KV", {one.kv for one in cases}),
        (case.engine, {one.engine for one in cases}),
        (case.roles, {one.roles for one in cases}),
    )
    told = [text for text, seen in parts if len(seen) > 1]
    return ", ".join(told) or f"{case.model} on {case.topology}"


def cases_text(cases: Sequence[Case]) -> str:
    """All models and pools: `llama-3.1-70b on h100-nvl8-x4, h200-nvl8-x4`."""
    models = ", ".join(dict.fromkeys(case.model for case in cases))
    engines = ", ".join(dict.fromkeys(case.engine for case in cases if case.engine))
    under = f" under {engines}" if engines else ""
    return f"{models} on {', '.join(dict.fromkeys(case.topology for case in cases))}{under}"


def survey_title(cases: Sequence[Case], frontier: Frontier) -> str:
    """`palm-540b on tpu-v4-4x8x8: cost per token against speed per user`."""
    axes = f"{axis_of(frontier.y_name).words} against {axis_of(frontier.x_name).words}"
    return f"{cases_text(cases)}: {axes}"


ECONOMICS_WORDS = "of Erdil 2025, its degrees of parallelism as integers: decode only"
"""What the other cost model is."""


def preferred_text(frontier: Frontier) -> str:
    """Why a point is preferred."""
    speed = "speed" if frontier.x_name == "latency" else "(1/TTFT)"
    price = axis_of(frontier.y_name).price
    return f"preferred: the most {speed}^{frontier.alpha:g} / {price}"


def axis_targets(frontier: Frontier) -> list[tuple[bool, float, str]]:
    """Targets on the axes: whether on x, the value in SI, and its text."""
    most = frontier.request.targets.limits()
    sides = ((True, objective_of(frontier.x_name)), (False, objective_of(frontier.y_name)))
    return [
        (is_x, most[axis.name], f"{axis.label} {axis.limit_text(most[axis.name])}")
        for is_x, axis in sides
        if axis.name in most
    ]


def best_text(frontier: Frontier) -> str:
    """What is best of the points within the targets."""
    return "the most throughput" if objective_of(frontier.y_name).is_rate else "the cheapest"


def end_text(frontier: Frontier, point: FrontierPoint) -> str:
    """Both quantities of a point: `43.9 token/s at $234/Mtoken`."""
    is_speed = frontier.x_name == "latency"
    x = speed_text(point.deployment) if is_speed else f"TTFT {show(point.x, 's')}"
    return f"{x} at {show(point.y, frontier.y_dimension)}"


def ends_text(frontier: Frontier) -> str:
    """From the slowest point to the fastest."""
    first, last = frontier.points[0], frontier.points[-1]
    return f"{end_text(frontier, first)} to {end_text(frontier, last)}"


def at_target(frontier: Frontier) -> int | None:
    """Index of the cheapest point within targets on the axes; `None` without such targets too."""
    return frontier.at_target if axis_targets(frontier) else None
