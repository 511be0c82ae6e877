"""What proves a plan: checks by code that did not find it, and the certificate.

Three judges look at every plan. `violations` recomputes every row of the unscreened program.
The referee recounts seconds and bytes of both phases in plain scalar arithmetic, and the
request's limits are compared with its count, not with ours. The bound is the solver's,
lowered to the bounds of whatever the screens rejected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from planner.errors import SolverError
from planner.estimates import referee
from planner.estimates.candidates import CandidateTable, passes
from planner.layouts.geometry import Pass
from planner.layouts.table import ATTENTION_NAMES
from planner.programs.deployment import MS, PHASES_OF_COLUMNS, USD_PER_MTOKEN, PosedProgram
from planner.programs.layout import Assignment
from planner.results import Certificate, Deployment, LimitUse, PhasePlan, Screen
from planner.search import Found
from planner.specs.request import Request

TOLERANCE = 1e-9
TIE_TOLERANCE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance

OBJECTIVE_UNITS = {
    "cost": (1.0 / USD_PER_MTOKEN, "USD/token"),
    "rent": (1.0, "USD/h"),
    "latency": (1.0 / MS, "s"),
    "ttft": (1.0 / MS, "s"),
    "throughput": (1.0 / MS, "token/s"),
    "devices": (1.0, "1"),
}
"""Factor from a program's unit to SI, and the dimension, of each objective."""


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI; of throughput, tokens a second instead of time a token."""
    scaled = value * OBJECTIVE_UNITS[objective][0]
    if objective != "throughput":
        return scaled
    return 1.0 / scaled if scaled else math.inf


REASONS = {
    "weights": "their weights alone exceed a device's memory",
    "memory": "they exceed a device's memory by themselves",
    "hbm": "no choice of the other phase leaves them room",
    "empty": "their slice has nothing left for the other phase",
    "bound": "their lower bound is above a plan that exists",
    "dominated": "another choice of the same slice is no worse in anything",
}


def referee_verdict(
    table: CandidateTable,
    posed: PosedProgram,
    request: Request,
    assignment: Assignment,
    deployment: Deployment,
) -> tuple[str, ...]:
    """Recount a deployment by the referee; the names of the checks that it passed.

    Raises:
        SolverError: a figure differs from the referee's, or breaks a limit by its count.
    """
    work = passes(request.workload)
    wrong: list[str] = []
    held_bytes = 0.0
    times = {}
    for name, column in zip(PHASES_OF_COLUMNS, assignment.columns, strict=True):
        phase = deployment.prefill if name == "prefill" else deployment.decode
        arm = int(posed.arm[column])
        time, held = _recount(table, request, arm, phase, work[name])
        times[name] = time.total_s
        wrong += _differences(name, phase, time)
        working = held.activation_bytes + held.gather_bytes
        if name == "prefill":
            held_bytes += held.weights_bytes + working
        else:  # its working set lies beside its own cache alone
            peak = held.weights_bytes + held.kv_bytes + working + deployment.memory.reserve_bytes
            wrong += _beyond_capacity(peak, deployment)
        held_bytes += held.kv_bytes
    held_bytes += deployment.memory.reserve_bytes
    if not math.isclose(held_bytes, deployment.memory.used_bytes, rel_tol=TOLERANCE):
        wrong.append(f"memory {deployment.memory.used_bytes!r} is {held_bytes!r}")
    wrong += _beyond_capacity(held_bytes, deployment)
    wrong += _broken_targets(request, deployment, times)
    if wrong:
        raise SolverError("the referee disagrees with the plan: " + "; ".join(wrong))
    return (
        "every constraint of the unscreened program holds",
        "seconds and bytes recounted by an independent scalar model",
        "targets hold by that recount",
    )


def _beyond_capacity(held_bytes: float, deployment: Deployment) -> list[str]:
    capacity_bytes = deployment.memory.capacity_bytes
    exceeds = held_bytes > capacity_bytes * (1 + TOLERANCE)
    return [f"memory {held_bytes!r} exceeds {capacity_bytes!r}"] if exceeds else []


def _recount(
    table: CandidateTable, request: Request, arm: int, phase: PhasePlan, work: Pass
) -> tuple[referee.RefereeTime, referee.RefereeBytes]:
    meshes, arms = table.machine.meshes, table.arms
    row = int(arms.mesh[arm])
    x, y, z = (int(size) for size in meshes.axis_size[row])
    wraps = [bool(wrap) for wrap in meshes.axis_wraps[row]]
    rates = [float(rate) for rate in meshes.axis_bytes_per_s[row]]
    hops = [float(hop) for hop in meshes.axis_hop_s[row]]
    mesh = referee.RefereeMesh(
        axes=(x, y, z),
        wraps=(wraps[0], wraps[1], wraps[2]),
        is_switch=bool(meshes.axis_is_switch[row].any()),
        axis_bytes_per_s=(rates[0], rates[1], rates[2]),
        axis_hop_s=(hops[0], hops[1], hops[2]),
        n_stages=int(meshes.n_stages[row]),
        stage_bytes_per_s=float(meshes.stage_bytes_per_s[row]),
        stage_hop_s=float(meshes.stage_hop_s[row]),
    )
    stored, gathered = int(arms.stored[arm]), int(arms.gathered[arm])
    attention = ATTENTION_NAMES[int(arms.attention[arm])]
    weights_format = table.formats[int(table.weights_format[arm])]
    time = referee.step_time(
        request.model,
        request.cluster.device,
        request.cluster.fabric,
        mesh,
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=phase.n_microbatches,
        batch=phase.batch,
        n_new_tokens=work.n_new_tokens,
        n_context_tokens=work.n_context_tokens,
        weights_format=weights_format,
    )
    held = referee.held_bytes(
        request.model,
        mesh,
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=phase.n_microbatches,
        batch=phase.batch,
        n_new_tokens=work.n_new_tokens,
        n_cached_tokens=work.n_cached_tokens,
        weights_format=weights_format,
    )
    return time, held


def _differences(name: str, phase: PhasePlan, time: referee.RefereeTime) -> list[str]:
    return [
        f"{name} {part} {seconds!r} is {getattr(time, part + '_s')!r}"
        for part, seconds in phase.step.parts()
        if not math.isclose(seconds, getattr(time, part + "_s"), rel_tol=TOLERANCE, abs_tol=1e-15)
    ]


def _broken_targets(request: Request, deployment: Deployment, times: dict[str, float]) -> list[str]:
    """Targets that do not hold when they are computed from the referee's times."""
    targets, workload = request.targets, request.workload
    per_request = times["prefill"] / deployment.prefill.batch
    per_request += workload.n_decode_steps * times["decode"] / deployment.decode.batch
    rent = deployment.mesh.n_devices * request.cluster.usd_per_hour / 3600.0
    reached = (
        ("tpot", times["decode"], targets.tpot_s),
        ("ttft", times["prefill"], targets.ttft_s),
        ("cost", per_request * rent / workload.n_output_tokens, targets.usd_per_token),
        ("devices", deployment.mesh.n_devices, targets.n_devices),
    )
    broken = [
        f"{name} {value!r} exceeds {limit!r}"
        for name, value, limit in reached
        if limit is not None and value > limit * (1 + TOLERANCE)
    ]
    if targets.min_batch is not None and deployment.decode.batch < targets.min_batch:
        broken.append(f"batch {deployment.decode.batch} is below {targets.min_batch}")
    return broken


def limit_uses(
    request: Request, deployment: Deployment, gains: Mapping[str, tuple[float, float | None]]
) -> tuple[LimitUse, ...]:
    """What the plan uses of each limit; `gains` holds (relief, gain fraction) by name."""
    targets, memory = request.targets, deployment.memory
    rows = (
        ("tpot", deployment.tpot_s, targets.tpot_s, "s"),
        ("ttft", deployment.ttft_s, targets.ttft_s, "s"),
        ("cost", deployment.usd_per_token, targets.usd_per_token, "USD/token"),
        ("devices", float(deployment.mesh.n_devices), targets.n_devices, "1"),
        ("batch", float(deployment.decode.batch), targets.min_batch, "1"),
        ("hbm", memory.used_bytes, memory.capacity_bytes, "B"),
    )
    return tuple(
        LimitUse(
            name=name,
            used=used,
            limit=float(limit),
            dimension=dimension,
            relief=gains[name][0],
            gain_fraction=gains[name][1],
        )
        for name, used, limit, dimension in rows
        if limit is not None
    )


def _reached(objective: str, deployment: Deployment) -> float:
    """What a deployment comes to in an objective, SI."""
    values: dict[str, float] = {
        "cost": deployment.usd_per_token,
        "rent": deployment.usd_per_hour,
        "latency": deployment.tpot_s,
        "ttft": deployment.ttft_s,
        "throughput": deployment.output_tokens_per_s,
        "devices": deployment.mesh.n_devices,
    }
    return values[objective]


def certificate(
    table: CandidateTable,
    posed: PosedProgram,
    request: Request,
    found: Found,
    *,
    deployment: Deployment,
    verified: tuple[str, ...],
    wall_s: float,
) -> Certificate:
    """The proof in numbers, in SI units.

    Raises:
        SolverError: what was optimised is not what the deployment comes to.
    """
    solution, screened = found.solution, found.screened
    objective = in_si(request.objective, solution.objective)
    reached = _reached(request.objective, deployment)
    if not math.isclose(objective, reached, rel_tol=TIE_TOLERANCE):
        raise SolverError(f"{request.objective} {objective!r} is {reached!r} in the deployment")
    bound = in_si(request.objective, min(solution.bound, solution.objective, screened.bound))
    n_too_large = table.n_too_large * (len(table.prefill.batches) + len(table.decode.batches))
    rejected = [("weights", n_too_large), ("memory", posed.n_unfit)]
    rejected += [(name, n_columns) for name, (n_columns, _) in screened.rejected.items()]
    return Certificate(
        status=solution.status.value,
        objective_name=request.objective,
        objective=objective,
        bound=bound,
        gap=abs(objective - bound) / abs(objective) if objective else 0.0,
        dimension=OBJECTIVE_UNITS[request.objective][1],
        solver=f"{solution.solver} {solution.version}",
        n_candidates=posed.program.n_columns + posed.n_unfit + n_too_large,
        n_contexts=posed.program.n_contexts,
        screens=tuple(
            Screen(
                name=name,
                n_candidates=count,
                reason=REASONS.get(name, f"they break `{name}` by themselves"),
            )
            for name, count in rejected
            if count
        ),
        n_solved=screened.program.n_columns,
        verified=verified,
        wall_s=wall_s,
        solve_s=solution.wall_s,
    )
