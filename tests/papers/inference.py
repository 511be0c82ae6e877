"""The six deployments that InferSim publishes a measured throughput of ([InferSim] Table 2).

Nothing is fitted on them. Kernels are those of H20 and H800; host times are the engine's, fitted
to other rows on another device (`tests/papers/sets`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.estimates.calibration.kernel_files import kernel_table
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.hosts import decode_gaps_s, prefill_gaps_s
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.steps import pass_time
from planner.specs.engines.files import load_engine
from planner.specs.reading import load_architecture, load_cluster
from planner.specs.served_formats import ServedFormats

_FP8 = ServedFormats(weights="fp8", experts="fp8", cache="bf16")
_BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table.

    Args:
        measured: tokens a second and device.
        theirs: what InferSim's paper predicts.
        n_tokens: of one pass on one device: prompts in prefill, sequences in decode.
        source: of the measurement.
    """

    model: str
    phase: str
    topology: str
    table: DeploymentTable
    work: PassShape
    n_tokens: float
    measured: float
    theirs: float
    source: str


_TRACE = "deepseek-ai/profile-data"
"""It simulates "an absolutely balanced MoE routing strategy" (its README)."""
_AUTHORS = "InferSim's authors, SGLang"
CASES = (
    Case(
        model="deepseek-v3",
        phase="prefill",
        topology="h800-nvl8-x4",
        table=deployments(formats=_FP8, n_data=32, n_expert_parallel=32, overlaps=True),
        work=PassShape(n_prompts=np.array([4.0]), prompt_tokens=4096.0),
        n_tokens=16384,
        measured=7839,
        theirs=9034,
        source=_TRACE,
    ),
    Case(
        model="deepseek-v3",
        phase="decode",
        topology="h800-nvl8-x16",
        table=deployments(
            formats=_FP8, n_data=128, n_expert_parallel=128, overlaps=True, batch=128
        ),
        work=PassShape(n_decoding=np.array([128.0]), context=4989.0),
        n_tokens=128,
        measured=2324,
        theirs=2675,
        source=_TRACE,
    ),
    Case(
        model="qwen3-30b-a3b",
        phase="prefill",
        topology="h20-nvl8-x1",
        table=deployments(formats=_BF16),
        work=PassShape(n_prompts=np.array([4.0]), prompt_tokens=4096.0),
        n_tokens=16384,
        measured=16594,
        theirs=17350,
        source=_AUTHORS,
    ),
    Case(
        model="qwen3-30b-a3b",
        phase="decode",
        topology="h20-nvl8-x1",
        table=deployments(formats=_BF16, n_data=4, n_expert_parallel=4, exchanges=False),
        work=PassShape(n_decoding=np.array([100.0]), context=5120.0),
        n_tokens=100,
        measured=2749,
        theirs=2632,
        source=_AUTHORS,
    ),
    Case(
        model="qwen3-8b",
        phase="prefill",
        topology="h20-nvl8-x1",
        table=deployments(formats=_FP8),
        work=PassShape(n_prompts=np.array([4.0]), prompt_tokens=4096.0),
        n_tokens=16384,
        measured=15061,
        theirs=16328,
        source=_AUTHORS,
    ),
    Case(
        model="qwen3-8b",
        phase="decode",
        topology="h20-nvl8-x1",
        table=deployments(formats=_FP8),
        work=PassShape(n_decoding=np.array([64.0]), context=5120.0),
        n_tokens=64,
        measured=2682,
        theirs=2581,
        source=_AUTHORS,
    ),
)


def predicted(case: Case) -> float:
    """Tokens a second and device."""
    engine = load_engine("sglang")
    cluster = load_cluster(case.topology)
    clock = KernelClock(
        device=cluster.device,
        table=kernel_table(cluster.device.name, engine.name),
        engine=engine,
        network=serving_network(cluster.fabric),
    )
    model = load_architecture(case.model)
    if case.source == _TRACE:
        model = model.with_loads([1.0] * model.expert_counts[0])
    formats = case.table.formats[0]
    timed = pass_time(model, case.table, case.work, formats, clock)
    decodes = case.phase == "decode"
    host = decode_gaps_s(model, engine) if decodes else prefill_gaps_s(model, engine)
    return case.n_tokens / (float(timed.total_s[0]) + host)


def error(case: Case) -> float:
    return predicted(case) / case.measured - 1.0


def without_overlap(case: Case) -> Case:
    """The same, without two micro-batches."""
    return replace(case, table=replace(case.table, overlaps=np.array([False])))


def main() -> None:
    errors = [error(case) for case in CASES]
    for case, one in zip(CASES, errors, strict=True):
        theirs = case.theirs / case.measured - 1.0
        print(
            f"{case.model:16s} {case.phase:8s} measured {case.measured:6.0f}"
            f"  here {predicted(case):6.0f} {100 * one:+6.1f} %  InferSim {100 * theirs:+6.1f} %"
        )
    print(
        f"mean {100 * np.abs(errors).mean():.1f} %, InferSim 8.6 %; largest "
        f"{100 * np.abs(errors).max():.1f} %, InferSim 15.2 %"
    )


if __name__ == "__main__":
    main()
