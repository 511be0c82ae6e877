"""What an obstacle says: the fact that stands in the way, and by how little it may not be one."""

import math
from collections.abc import Iterator

from planner.programs.blocks import Objective
from planner.quantities.table import QUANTITIES
from planner.quantities.units import show
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.obstacles import Obstacle, beyond_text
from planner.results.plans import AnyDeployment
from planner.runtimes.candidates import CandidatePool, has_region
from planner.solvers.search import is_feasible
from planner.specs.ask.request import Request
from planner.specs.records.model_errors import Quantity, roofline_error
from planner.specs.records.runtimes import ROOFLINE
from planner.specs.region import MEDIAN

PREDICTED = ("tpot", "ttft", "cost", "demand")
"""Limits that are as far off as the times that they rest on."""

POLICY = "prefill_batch"
"""The policy that leaves candidates out, by the name of what it holds to one."""


def doubt(among: CandidatePool, name: str, best: AnyDeployment, values: tuple[float, float]) -> str:
    """That a limit is broken by less than predictions are off, if it is.

    Args:
        values: the limit, and what is reachable, SI.
    """
    error, (limit, reachable) = _error(among, name, best), values
    is_close = 0.0 < abs(reachable / limit - 1.0) <= error
    return f"; {beyond_text(limit, reachable, error)}" if is_close else ""


def _error(among: CandidatePool, name: str, best: AnyDeployment) -> float:
    """By how much what is predicted may be off; 0 of what is not, or where nobody knows [1]."""
    if name not in PREDICTED:
        return 0.0
    if isinstance(best, EngineDeployment):
        times = best.ttft_s if name == "ttft" else best.tpot_s
        return times.high / times.value - 1.0
    if not isinstance(best, Deployment):
        return 0.0
    request = among.under(ROOFLINE.name).request
    assert isinstance(request, Request)
    of: Quantity = "TTFT" if name == "ttft" else "TPOT"
    return roofline_error(request.cluster.device, request.model.kind, of) or 0.0


def as_predicted(among: CandidatePool) -> Iterator[str]:
    """That there would be a plan if what was never measured were as predicted, if so."""
    source = among.source(Objective(objective="cost", belief=MEDIAN)) if has_region(among) else None
    if source is not None and is_feasible(source, among.request.options):
        sure = among.parts[0].command({"--confidence": "0"})
        yield f"if all that is predicted held there would be one: `{sure}`"


def policy_obstacle(best: AnyDeployment) -> Obstacle:
    """What a policy leaves out: the batch in which a plan that holds the limits prefills."""
    batch = best.prefill.batch if isinstance(best, Deployment) else math.inf
    return Obstacle(
        name=POLICY,
        asked=1.0,
        reachable=float(batch),
        dimension="1",
        reason="`--prefill latency`, which a target on tokens sets, reads each request alone",
    )


def _demanded(values: tuple[float, float], best: AnyDeployment, within: str, busy: float) -> str:
    """How many replicas the demand takes, and how many there is room for."""
    (demand, served), n_replicas = values, getattr(best, "n_replicas", 1)
    each = best.output_tokens_per_s / n_replicas * busy
    n_room, n_needed = round(served / each), math.ceil(demand / each)
    replicas = f"{n_room} replica{'s' * (n_room > 1)}"
    return (
        f"the most that the pool serves{within} is {show(served, 'token/s')}, by {replicas} of "
        f"{best.where}; {show(demand, 'token/s')} need {n_needed} of them, "
        f"{n_needed * best.n_devices // n_replicas} devices"
    )


def reason_of(
    name: str, best: AnyDeployment, within: str, values: tuple[float, float], busy: float
) -> str:
    """The fact that stands in the way, in one sentence.

    Args:
        within: which limits it keeps, in words.
        values: the limit, and what is reachable, SI.
        busy: share of their capacity that replicas serve of a demand at most.
    """
    if name == "demand":
        return _demanded(values, best, within, busy)
    if name in ("tpot", "ttft"):
        return best.fastest(name, within)
    if name == "hbm":
        return (
            f"the plan that needs least memory{within} takes {show(best.used_bytes, 'B')} of "
            f"each device on {best.where}, {show(best.weights_bytes, 'B')} of it weights in "
            f"{best.weights_format}; a device has {show(best.capacity_bytes, 'B')}"
        )
    quantity = QUANTITIES[name]
    reached = quantity.shown(quantity.told(best))
    return quantity.reason.format(within=within, value=reached, where=best.where)
