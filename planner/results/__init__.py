"""What the planner answers, as frozen records in SI units.

deployments  of layouts    engines  of serving engines    erdil2025  of the reference model
plans        a plan, its alternatives and limits; or a conflict
"""

from planner.results.deployments import (
    Deployment,
    Division,
    DraftPlan,
    Memory,
    Mesh,
    PhasePlan,
    StepTime,
)
from planner.results.obstacles import Obstacle
from planner.results.plans import (
    Alternative,
    AnyDeployment,
    AnyPlan,
    AnyRequest,
    Conflict,
    Considered,
    EnginePlan,
    ErdilPlan,
    LayoutPlan,
    LimitUse,
    Plan,
    Rival,
    RuleCost,
    runtime_name,
    served_by,
)

__all__ = [
    "Alternative",
    "AnyDeployment",
    "AnyPlan",
    "AnyRequest",
    "Conflict",
    "Considered",
    "Deployment",
    "Division",
    "DraftPlan",
    "EnginePlan",
    "ErdilPlan",
    "LayoutPlan",
    "LimitUse",
    "Memory",
    "Mesh",
    "Obstacle",
    "PhasePlan",
    "Plan",
    "Rival",
    "RuleCost",
    "StepTime",
    "runtime_name",
    "served_by",
]
