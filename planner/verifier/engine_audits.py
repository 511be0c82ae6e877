"""An audit of what an engine runs counted anew: what runs, and the best of the pool beside it."""

from __future__ import annotations

from dataclasses import replace

from planner.results.engines import EngineAudit, EngineDeployment
from planner.specs.targets import Targets
from planner.verifier.engine_deployments import counted_engine
from planner.verifier.findings import Finding, with_differences
from planner.verifier.serving.rounds import stay_s


def judge_engine_audit(audit: EngineAudit) -> tuple[EngineAudit, list[Finding]]:
    """The audit that is true of what runs and of what was found beside it."""
    free = replace(audit.request, targets=Targets())
    runs = replace(free, batches=(audit.predicted.batch,), chunks=(audit.predicted.chunk_tokens,))
    predicted, wrong = counted_engine(runs, audit.predicted, ("predicted",))
    in_flight = predicted.batch * predicted.n_data
    tpot = audit.observed_tpot_s
    each_s = stay_s(predicted.planned_ttft_s, tpot, free.workload.n_output_tokens)
    each_s /= free.workload.n_output_tokens
    cost = predicted.usd_per_hour / 3600 * each_s / in_flight
    limits = (
        ("same_devices", Targets(n_devices=predicted.n_devices, min_batch=in_flight)),
        ("equal_speed", Targets(tpot_s=tpot)),
        ("equal_cost", Targets(usd_per_token=audit.observed_usd_per_token)),
    )
    found: list[EngineDeployment | None] = []
    for name, targets in limits:
        best: EngineDeployment | None = getattr(audit, name)
        if best is not None:
            best, more = counted_engine(replace(free, targets=targets), best, (name,))
            wrong += more
        found.append(best)
    same, fast, cheap = found
    truth = replace(
        audit,
        predicted=predicted,
        observed_usd_per_token=cost,
        same_devices=same,
        equal_speed=fast,
        equal_cost=cheap,
    )
    return truth, with_differences(wrong, audit, truth)
