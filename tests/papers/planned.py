"""What `plan` says of a row: its deployment, layouts and all, by the path that users take.

The slice, formats, batch and the names of the layouts are the row's; what a name leaves open is
chosen by the planner. A row has nothing to say of the other phase of a plan, which is free.
"""

from __future__ import annotations

from functools import cache

from planner import NoPlanError, Targets, Workload, load_model, load_topology, plan
from planner.results import Deployment
from planner.specs.targets import Degrees, Layouts, PhaseLayout
from tests.papers.bench import TPU_POOL
from tests.papers.rows import Row
from tests.papers.timing import predicted_s

SERVERS = {"TP16": ("dgx-a100-x2", 16), "TP32": ("dgx-a100-x4", 32)}
"""FasterTransformer's servers without stages, and devices that divide a layer."""

NAMES = {"WS2D": "WS 2D", "WG-XYZ": "WG XYZ"}
CUTS = {"head": "heads", "batch": "batch"}
MEGATRON = PhaseLayout(name="WS 1D", attention="heads")
FREE = PhaseLayout()

UNPLANNED = {
    "D.4 MT-NLG-total B1024": "bf16 weights and cache alone are 33 of the chip's 32 GiB",
}
"""Rows that no plan has: they are timed pass by pass, whatever they hold."""

CUT_OTHERWISE = {
    "D.4 PaLM-prefill B1024": "attention over heads has a copy of the cache on each chip, for "
    "which there is no room; it is cut over the batch instead, in the same time",
}
"""Rows whose attention is cut in the way that fits."""


def is_planned(row: Row) -> bool:
    """Whether `plan` can be asked for a row's deployment."""
    return str(row) not in UNPLANNED and (row.is_tpu or row.ffn in SERVERS)


def stated_s(row: Row) -> float:
    """Time that a row measured: what `plan` prints, or the passes one by one without a plan [s]."""
    return planned_s(row) if is_planned(row) else predicted_s(row)


def planned_s(row: Row) -> float:
    """Time that a row measured: of a prefill pass, of its decode passes, or of both [s].

    Raises:
        NoPlanError: its deployment does not fit.
    """
    if not row.is_tpu:
        best = _planned(row, "throughput", MEGATRON, MEGATRON)
        return best.ttft_s + (row.n_output - 1) * best.tpot_s
    named = PhaseLayout(name=NAMES[row.ffn], attention=_cut(row))
    if row.phase == "prefill":
        return _planned(row, "ttft", named, FREE).ttft_s
    if row.phase == "total":
        best = _planned(row, "throughput", PhaseLayout(name=named.name), named)
        return best.ttft_s + row.n_output * best.tpot_s
    step_s = _planned(row, "latency", FREE, named).tpot_s
    return step_s if row.phase == "generate-step" else row.n_output * step_s


def fits(row: Row) -> bool:
    """Whether a row's deployment has a plan."""
    try:
        planned_s(row)
    except NoPlanError:
        return False
    return True


def _cut(row: Row) -> str | None:
    """Weights that are gathered over all axes leave attention nothing but the batch."""
    return None if row.ffn == "WG-XYZ" or str(row) in CUT_OTHERWISE else CUTS[row.attention]


def _planned(row: Row, objective: str, prefill: PhaseLayout, decode: PhaseLayout) -> Deployment:
    reads = row.phase in ("prefill", "total")
    writes = row.phase != "prefill"
    return _plan(
        row.model,
        *((f"tpu-v4-{TPU_POOL[row.n_chips]}", row.n_chips) if row.is_tpu else SERVERS[row.ffn]),
        workload=_workload(row),
        weights_format=row.weights_format if row.is_tpu else "bf16",
        batches=(row.batch if writes else 1, row.batch if reads else 1),
        objective=objective,
        layouts=Layouts(prefill=prefill, decode=decode),
    )


def _workload(row: Row) -> Workload:
    """Tables 2 and 3 decode "at a context length of 2048": that is the mean over 63 tokens."""
    if row.phase.startswith("generate") and row.n_context == row.n_input:
        return Workload(n_input_tokens=row.n_context - 32, n_output_tokens=63)
    return Workload(n_input_tokens=row.n_input, n_output_tokens=row.n_output or 2)


@cache
def _plan(
    model: str,
    topology: str,
    n_devices: int,
    *,
    workload: Workload,
    weights_format: str,
    batches: tuple[int, int],
    objective: str,
    layouts: Layouts,
) -> Deployment:
    decode, prefill = batches
    return plan(
        load_model(model),
        load_topology(topology),
        workload=workload,
        targets=Targets(degrees=Degrees(tensor=n_devices), layouts=layouts),
        weights_formats=[weights_format],
        batches=[decode],
        prefill_batches=[prefill],
        objective=objective,
    ).deployment
