"""A model cut into pipeline stages on groups of unequal kinds, with proof."""

import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import NoPlanError
from planner.results.staging import StageLine, StagePlan, StagingConflict
from planner.running.deadlines import solver_limit_s
from planner.solvers.certify import certified
from planner.solvers.solution import Effort, Status
from planner.specs.ask.stages import StageGroup, StagesRequest
from planner.tools.staging.cuts import cut
from planner.tools.staging.cuts.program import Objective, Stage, StageProgram
from planner.tools.staging.groups import UnitTable, unit_table
from planner.tools.staging.stages_verifier import judge_stages
from planner.verifier.findings import accounted

MS_PER_S = 1e3
BYTES_PER_GIB = 2.0**30


LEFT_OUT = (
    *("stages", "latency_s", "bottleneck_s", "tokens_per_s", "even_s", "groups", "provenance"),
    "verified",
)
"""What a cut leaves to the account."""


def cut_groups(request: StagesRequest) -> StagePlan:
    """Cut a model into pipeline stages on groups of unequal kinds, exactly.

    Which groups are used, in which order, and where the model is cut are chosen together.

    Raises:
        NoPlanError: nothing fits; its `conflict` says what is missing (`StagingConflict`).
        OutOfTimeError: the time limit came before any cut.
        SolverError: an answer fails its verification.
    """
    began_s = time.perf_counter()
    objective = cast("Objective", request.objective)
    units = unit_table(request)
    program = stage_program(units, request.groups)
    effort = Effort(time_limit_s=solver_limit_s())
    solution = cut(program, objective, solver=request.solver, effort=effort, proof=request.proof)
    chosen = solution.found.answer
    if chosen is None:
        if solution.found.status is Status.INFEASIBLE:
            raise NoPlanError(_conflict(request, units))
        raise solution.found.unsettled(max(solution.found.bound, 0.0) / MS_PER_S, dimension="s")
    plan = StagePlan(
        request=request,
        stages=tuple(_line(request, program, stage) for stage in chosen),
        latency_s=0.0,
        bottleneck_s=0.0,
        tokens_per_s=0.0,
        even_s=None,
        groups=(),
        certificate=certified(
            solution.found,
            objective_name=objective,
            to_si=lambda milliseconds: milliseconds / MS_PER_S,
            dimension="s",
            n_candidates=solution.n_columns,
            n_contexts=len(request.groups),
            n_solved=solution.n_columns,
            wall_s=time.perf_counter() - began_s,
            n_programs=solution.n_solves,
        ),
        provenance=(),
    )
    return accounted(plan, judge_stages(plan), LEFT_OUT)


def stage_program(units: UnitTable, groups: Sequence[StageGroup]) -> StageProgram:
    """The program of a table of units: every run of units as one stage."""
    weights = _runs(units.weights_bytes)
    weights[:, 0, -1] -= units.shared_bytes
    held = weights + _runs(units.cache_bytes) + units.fixed_bytes[:, None, None]
    return StageProgram(
        kinds=tuple(group.name for group in groups),
        n_groups=np.array([group.n_groups for group in groups], dtype=np.int64),
        run_ms=_runs(units.run_s) * MS_PER_S,
        held_gib=held / BYTES_PER_GIB,
        room_gib=units.limit_bytes / BYTES_PER_GIB,
        hand_ms=units.hand_s * MS_PER_S,
    )


def _runs(values: FloatArray) -> FloatArray:
    """Sums of units i to j − 1, (T, U) to (T, U + 1, U + 1)."""
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    return np.asarray(sums[:, None, :] - sums[:, :, None])


def _line(request: StagesRequest, program: StageProgram, stage: Stage) -> StageLine:
    """A stage as it is chosen; the account fills in all that follows."""
    first, last = max(stage.first, 1), min(stage.last, program.n_units - 1)
    return StageLine(
        kind=request.groups[stage.kind].name,
        device="",
        n_devices=0,
        first_layer=first - 1,
        n_layers=last - first,
        layers={},
        has_embedding=stage.first == 0,
        has_head=stage.last == program.n_units,
        run_s=0.0,
        hand_s=0.0,
        weights_bytes=0.0,
        cache_bytes=0.0,
        fixed_bytes=0.0,
        limit_bytes=0.0,
    )


def _conflict(request: StagesRequest, units: UnitTable) -> StagingConflict:
    """Why nothing fits: units too large for a device, or all devices together too small."""
    groups = request.groups
    what = ", ".join(f"{group.name} × {group.n_groups}" for group in groups)
    each = units.weights_bytes + units.cache_bytes
    room = units.limit_bytes - units.fixed_bytes
    facts = []
    for t, group in enumerate(groups):
        if room[t] < 0:
            facts.append(
                f"buffers and activations of {group.name} need {_gb(units.fixed_bytes[t])} of a "
                f"device, {_gb(-room[t])} more than the engine may take"
            )
            continue
        names = np.array(units.names)
        for name in dict.fromkeys(units.names):
            largest = float(each[t, names == name].max())
            if largest > room[t]:
                facts.append(
                    f"one layer `{name}` on {group.name} needs {_gb(largest)} of a device, "
                    f"{_gb(largest - room[t])} more than is left there"
                )
    devices = np.array([group.n_groups * group.n_tensor for group in groups], dtype=float)
    tensor = np.array([group.n_tensor for group in groups], dtype=float)
    most = float(devices @ np.maximum(room, 0.0))
    needs = float((each.sum(axis=1) * tensor).min())
    if not facts and needs > most:
        facts.append(
            f"weights and caches need {_gb(needs)}, and all devices have {_gb(most)} for them: "
            f"{_gb(needs - most)} are missing"
        )
    if not facts:
        facts.append(
            f"weights and caches need {_gb(needs)} of {_gb(most)}, but no cut between whole "
            "layers fits on every device"
        )
    remedy = "more groups, more devices in each, fewer sequences, or fewer bytes a weight"
    return StagingConflict(
        what=f"{request.model.name} on {what}", facts=tuple(facts), remedy=remedy
    )


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"
