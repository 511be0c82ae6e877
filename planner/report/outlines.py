"""What surveys say of a deployment in a table or beside a point, whichever cost model counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.economics_results import EconomicsDeployment
from planner.report.words import headline, plural
from planner.results import Deployment, PhasePlan
from planner.specs.request import Request
from planner.surveys import AnyDeployment
from planner.units import show

_Cell = Callable[[AnyDeployment], str]


def speed_text(deployment: AnyDeployment) -> str:
    """`43.9 token/s`, of each user."""
    return show(1 / deployment.tpot_s, "token/s")


def phase_text(phase: PhasePlan) -> str:
    """`WS 2D × 64`: layout and batch."""
    return f"{phase.layout} × {phase.batch}"


def headline_of(deployment: AnyDeployment) -> str:
    """What a deployment does and costs, in one line."""
    if isinstance(deployment, Deployment):
        return headline(deployment)
    cost = show(deployment.usd_per_token, "USD/token")
    return f"TPOT {show(deployment.tpot_s, 's')}, {cost}, {show(deployment.usd_per_hour, 'USD/h')}"


def n_devices_of(deployment: AnyDeployment) -> int:
    return deployment.n_devices


def devices_text(deployment: AnyDeployment) -> str:
    """`8 TP 8`, `4 2×2×1`: how many, and how they are cut."""
    if isinstance(deployment, Deployment):
        return f"{deployment.n_devices} {deployment.mesh.label}"
    return f"{deployment.n_devices} {deployment.layout.label}"


def drafted_text(deployment: AnyDeployment) -> str:
    """Tokens that are drafted before a pass; `no` without a draft."""
    return str(deployment.draft.n_drafted) if deployment.draft else "no"


def details(deployment: AnyDeployment) -> list[str]:
    """What runs, in a few lines."""
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
    "TPOT": lambda best: show(best.tpot_s, "s"),
    "speed": speed_text,
    "cost": lambda best: show(best.usd_per_token, "USD/token"),
    "rent": lambda best: show(best.usd_per_hour, "USD/h"),
    "tokens/s": lambda best: show(best.output_tokens_per_s, "1"),
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
LAYOUT_HEADS = ("devices", "weights", "KV", "prefill", "decode", "drafted")
ECONOMICS_HEADS = ("devices", "weights", "batch", "drafted")


def run_heads(deployments: Sequence[AnyDeployment], requests: Sequence[Request]) -> list[str]:
    """The columns that say what to run: those in which there was something to choose.

    Args:
        deployments: all of one cost model.
        requests: what was asked for; nothing where that is not known.
    """
    if isinstance(deployments[0], EconomicsDeployment):
        heads = list(ECONOMICS_HEADS)
    else:
        heads = list(LAYOUT_HEADS)
        chosen = {one.kv_format for one in deployments if isinstance(one, Deployment)}
        if len(chosen) < 2 and all(len(request.kv_formats) < 2 for request in requests):
            heads.remove("KV")
    if all(one.draft is None for one in deployments) and not any(
        request.speculation for request in requests
    ):
        heads.remove("drafted")
    return heads


def cell(head: str, deployment: AnyDeployment) -> str:
    """What stands below a head."""
    if head in _OF_BOTH:
        return _OF_BOTH[head](deployment)
    if isinstance(deployment, Deployment):
        return _OF_LAYOUTS[head](deployment)
    return _OF_ECONOMICS[head](deployment)
