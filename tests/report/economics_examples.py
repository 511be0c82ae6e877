"""Answers under the reference model, found on small pools: for reports and schemas."""

from __future__ import annotations

from planner.planning.comparing import compare, frontiers
from planner.planning.plans import plan
from planner.specs.ask.targets import Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model

LLAMA, MIXTRAL = load_model("llama-3-70b"), load_model("mixtral-8x22b")
POOL, TORUS = load_cluster("h100-nvl8-x2"), load_cluster("tpu-v4-2x2x2")
BATCHES = (1, 2, 4, 8, 16, 32, 64)
DRAFT = Speculation(draft=load_model("llama-3-8b"))
TARGETS = Targets(tpot_s=0.030)

ECONOMICS_PLAN = plan(
    LLAMA,
    POOL,
    "erdil2025",
    batches=BATCHES,
    speculation=DRAFT,
    targets=TARGETS,
    objective="latency",
)
ECONOMICS_ALONE = plan(LLAMA, POOL, "erdil2025", batches=BATCHES, targets=TARGETS)
(ECONOMICS_CURVE,), (ECONOMICS_MIXTURE,) = (
    frontiers(
        [model],
        [POOL],
        engines=("erdil2025",),
        batches=BATCHES,
        speculation=Speculation(draft=load_model(draft)),
        targets=TARGETS,
        allowed_formats=["bf16", "fp8"],
    )
    for model, draft in ((LLAMA, "llama-3-8b"), (MIXTRAL, "mixtral-8x7b"))
)
ECONOMICS_MISSING, *_ = frontiers([LLAMA], [TORUS, POOL], engines=("erdil2025",), batches=BATCHES)
ECONOMICS_COMPARISON = compare(
    [LLAMA, MIXTRAL], [POOL, TORUS], engines=("erdil2025",), batches=BATCHES, targets=TARGETS
)
