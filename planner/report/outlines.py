"""What surveys say of a deployment in a table or beside a point, whichever cost model counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.report.words import headline, plural
from planner.results import AnyDeployment, AnyRequest, Deployment, PhasePlan, runtime_name
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.specs.engine_request import EngineRequest
from planner.specs.request import Request
from planner.units import show

_Cell = Callable[[AnyDeployment], str]


def tpot_of(deployment: AnyDeployment) -> float:
    """Time per output token; of an engine, what is planned against [s]."""
    return deployment.planned_tpot_s


def speed_text(deployment: AnyDeployment) -> str:
    """`43.9 token/s`, of each user."""
    return show(1 / tpot_of(deployment), "token/s")


def phase_text(phase: PhasePlan) -> str:
    """`WS 2D × 64`: layout and batch."""
    return f"{phase.layout} × {phase.batch}"


def headline_of(deployment: AnyDeployment) -> str:
    """What a deployment does and costs, in one line."""
    if isinstance(deployment, Deployment):
        return headline(deployment)
    cost = show(deployment.usd_per_token, "USD/token")
    if isinstance(deployment, EngineDeployment):
        times = (deployment.planned_tpot_s, deployment.planned_ttft_s)
        tpot, ttft = (show(time_s, "s") for time_s in times)
        return f"TPOT {tpot}, TTFT {ttft}, {cost}, {show(deployment.usd_per_hour, 'USD/h')}"
    return f"TPOT {show(deployment.tpot_s, 's')}, {cost}, {show(deployment.usd_per_hour, 'USD/h')}"


def n_devices_of(deployment: AnyDeployment) -> int:
    return deployment.n_devices


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
    "TPOT": lambda best: show(tpot_of(best), "s"),
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
    "batch": lambda best: str(best.batch),
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
    layouts = [one for one in deployments if isinstance(one, Deployment)]
    engines = [one for one in deployments if isinstance(one, EngineDeployment)]
    several = len({runtime_name(one) for one in deployments}) > 1
    heads = ["engine"] if several else []
    if engines:
        asked = [request for request in requests if isinstance(request, EngineRequest)]
        heads += _engine_heads(engines, asked)
    if layouts:
        heads += _layout_heads(layouts, [one for one in requests if isinstance(one, Request)])
    if any(isinstance(one, EconomicsDeployment) for one in deployments):
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
