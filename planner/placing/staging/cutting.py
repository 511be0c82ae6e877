"""A model cut into pipeline stages on groups of unequal kinds, with proof."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import NoPlanError
from planner.estimates.serving.stages import UnitTable, unit_table
from planner.programs.stages import (
    Cut,
    Objective,
    Stage,
    StageProgram,
    bottleneck_ms,
    latency_ms,
    stage_times_ms,
    value_ms,
    violations,
)
from planner.results.staging import GroupUse, StageLine, StagePlan, StagingConflict
from planner.running.deadlines import solver_limit_s
from planner.solvers.certify import certified
from planner.solvers.solution import Effort, Status
from planner.solvers.stages import cut
from planner.specs.stages_request import StageGroup, StagesRequest, StageWork
from planner.verifier.findings import refuse
from planner.verifier.stage_plans import CHECKS, judge_stages

MS_PER_S = 1e3
BYTES_PER_GIB = 2.0**30


def cut_groups(asked: StagesRequest) -> StagePlan:
    """Cut a model into pipeline stages on groups of unequal kinds, exactly.

    Which groups are used, in which order, and where the model is cut are chosen together.

    Raises:
        NoPlanError: nothing fits; its `conflict` says what is missing (`StagingConflict`).
        OutOfTimeError: the time limit came before any cut.
        SolverError: an answer fails its verification.
    """
    began_s = time.perf_counter()
    objective = cast("Objective", asked.objective)
    units = unit_table(asked)
    program = stage_program(units, asked.groups)
    effort = Effort(time_limit_s=solver_limit_s())
    found = cut(program, objective, solver=asked.solver, effort=effort, proof=asked.proof)
    chosen = found.found.answer
    if chosen is None:
        if found.found.status is Status.INFEASIBLE:
            raise NoPlanError(_conflict(asked, units))
        raise found.found.unsettled(max(found.found.bound, 0.0) / MS_PER_S, dimension="s")
    plan = StagePlan(
        request=asked,
        stages=tuple(_line(asked, units, program, chosen, i) for i in range(len(chosen))),
        latency_s=latency_ms(program, chosen) / MS_PER_S,
        bottleneck_s=bottleneck_ms(program, chosen) / MS_PER_S,
        tokens_per_s=_tokens_per_s(asked.work, units, program, chosen),
        even_s=_even_s(program, objective),
        groups=tuple(_use(group, t, chosen) for t, group in enumerate(asked.groups)),
        certificate=certified(
            found.found,
            objective_name=objective,
            to_si=lambda milliseconds: milliseconds / MS_PER_S,
            dimension="s",
            n_candidates=found.n_columns,
            n_contexts=len(asked.groups),
            screens=(),
            n_solved=found.n_columns,
            verified=CHECKS,
            wall_s=time.perf_counter() - began_s,
            n_programs=found.n_solves,
        ),
        provenance=asked.engine.provenance,
    )
    refuse(judge_stages(plan)[1])
    return plan


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


def _tokens_per_s(work: StageWork, units: UnitTable, program: StageProgram, chosen: Cut) -> float:
    """Tokens of as many passes as are in flight, over the time in which each comes back."""
    full = bottleneck_ms(program, chosen)
    round_ms = max(full, latency_ms(program, chosen) / work.n_microbatches)
    return units.n_tokens / (round_ms / MS_PER_S)


def _even_s(program: StageProgram, objective: Objective) -> float | None:
    """Layers in equal numbers over all groups in the order given; None if that does not fit."""
    kinds = [t for t, n in enumerate(program.n_groups.tolist()) for _ in range(n)]
    n_layers = program.n_units - 2
    if len(kinds) > n_layers:
        return None
    ends = [n_layers * i // len(kinds) for i in range(len(kinds) + 1)]
    ends = [0, *(end + 1 for end in ends[1:-1]), program.n_units]
    even = tuple(Stage(kind=kind, first=ends[i], last=ends[i + 1]) for i, kind in enumerate(kinds))
    if violations(program, even):
        return None
    return value_ms(program, even, objective) / MS_PER_S


def _use(group: StageGroup, kind: int, chosen: Cut) -> GroupUse:
    used = sum(stage.kind == kind for stage in chosen)
    version = group.kernels.version
    return GroupUse(kind=group.name, kernels=version, n_groups=group.n_groups, n_used=used)


def _line(
    asked: StagesRequest, units: UnitTable, program: StageProgram, chosen: Cut, index: int
) -> StageLine:
    stage, model = chosen[index], asked.model
    t, run = stage.kind, slice(stage.first, stage.last)
    total = stage_times_ms(program, chosen)[index]
    alone = float(program.run_ms[t, stage.first, stage.last])
    first, last = max(stage.first, 1) - 1, min(stage.last, program.n_units - 1) - 1
    classes = [model.layers[k].name for k in model.order[first:last]]
    cache = float(units.cache_bytes[t, run].sum())
    fixed = float(units.fixed_bytes[t])
    held = float(program.held_gib[t, stage.first, stage.last]) * BYTES_PER_GIB
    return StageLine(
        kind=asked.groups[t].name,
        device=asked.groups[t].cluster.device.name,
        n_devices=asked.groups[t].n_tensor,
        first_layer=first,
        n_layers=len(classes),
        layers={name: classes.count(name) for name in dict.fromkeys(classes)},
        has_embedding=stage.first == 0,
        has_head=stage.last == program.n_units,
        run_s=alone / MS_PER_S,
        hand_s=(total - alone) / MS_PER_S,
        weights_bytes=held - cache - fixed,
        cache_bytes=cache,
        fixed_bytes=fixed,
        limit_bytes=float(units.limit_bytes[t]),
    )


def _conflict(asked: StagesRequest, units: UnitTable) -> StagingConflict:
    """Why nothing fits: units too large for a device, or all devices together too small."""
    groups = asked.groups
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
    return StagingConflict(what=f"{asked.model.name} on {what}", facts=tuple(facts), remedy=remedy)


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"
