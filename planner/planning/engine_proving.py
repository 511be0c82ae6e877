"""Answers of engines searched for again, with the records that their requests hold."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import NoPlanError
from planner.estimates.serving.networks import serving_network
from planner.planning.plans import decide
from planner.results import AnyPlan
from planner.results.engines import EngineAudit, EngineDeployment
from planner.runtimes.candidates import Among
from planner.runtimes.engines import EngineCandidates
from planner.runtimes.predicting import Machines
from planner.specs.engine_request import EngineRequest
from planner.specs.targets import Targets


def planned_again(request: EngineRequest) -> AnyPlan | None:
    """The plan of a request; None where there is none."""
    records = request.records
    machines = Machines(
        device=records.cluster.device,
        kernels=records.kernels,
        engine=records.engine,
        network=serving_network(records.cluster.fabric),
        network_name=records.cluster.name,
        cluster=records.cluster,
    )
    parts = tuple(
        EngineCandidates(
            request=request,
            model=one,
            asked=records.models[0],
            machines=machines,
            cluster=records.cluster,
        )
        for one in records.models
    )
    try:
        return decide(Among(parts=parts), prefer=request.prefer)
    except NoPlanError:
        return None


def audited_again(audit: EngineAudit) -> dict[str, EngineDeployment | None]:
    """What an audit sets beside what runs, by its names."""
    request, runs = audit.request, audit.predicted
    in_flight = runs.batch * runs.n_data
    same = Targets(n_devices=runs.n_devices, min_batch=in_flight)
    asked = {
        "same_devices": ("latency", same),
        "equal_speed": ("cost", Targets(tpot_s=audit.observed_tpot_s)),
        "equal_cost": ("latency", Targets(usd_per_token=audit.observed_usd_per_token)),
    }
    found: dict[str, EngineDeployment | None] = {}
    for name, (objective, targets) in asked.items():
        again = planned_again(replace(request, objective=objective, targets=targets))
        best = again.deployment if again else None
        found[name] = best if isinstance(best, EngineDeployment) else None
    return found
