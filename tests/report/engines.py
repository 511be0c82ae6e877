"""Plans of an engine that tests of reports share."""

from __future__ import annotations

import pytest

from planner.errors import NoPlanError
from planner.planning.comparing import frontiers
from planner.planning.engine_audit import audit_engine
from planner.planning.plans import plan
from planner.results.conflicts import Conflict
from planner.results.plans import EnginePlan
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.files.reading import load_architecture, load_cluster


def planned(tpot_s: float, **asked: object) -> EnginePlan:
    model, cluster = load_architecture("qwen3-8b"), load_cluster("h100-nvl8-x1")
    return plan(model, cluster, "vllm", targets=Targets(tpot_s=tpot_s), **asked)


def conflict(tpot_s: float) -> Conflict:
    with pytest.raises(NoPlanError) as caught:
        planned(tpot_s)
    found: Conflict = caught.value.conflict
    return found


ENGINE_PLAN = planned(0.02, confidence=0.9, prefer="simplest")
ENGINE_CONFLICT = conflict(0.0005)
ENGINE_AUDIT = audit_engine(
    load_architecture("qwen3-8b"),
    load_cluster("h100-nvl8-x1"),
    speed_tokens_per_s=60.0,
    degrees=Degrees(tensor=2),
    batch=8,
)
(ENGINE_CURVE,) = frontiers(
    [load_architecture("qwen3-8b")],
    [load_cluster("h100-nvl8-x1")],
    ["vllm"],
    y="device-throughput",
    batches=(1, 64),
    chunks=(2048,),
)
