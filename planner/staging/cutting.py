"""A model cut into pipeline stages on groups of unequal kinds, with proof."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from planner.certify import certified
from planner.deadlines import solver_limit_s
from planner.equations.arrays import FloatArray
from planner.errors import NoPlanError, SolverError
from planner.estimates.serving.deployments import ServedFormats
from planner.estimates.serving.stages import (
    StageGroup,
    StageWork,
    UnitTable,
    recount,
    unit_table,
)
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
from planner.solvers.solution import Effort, Status
from planner.solvers.stages import cut
from planner.specs.architecture import Architecture
from planner.specs.targets import Wanted
from planner.staging.shortage import stage_conflict
from planner.staging_results import (
    GroupUse,
    StageLine,
    StagePlan,
)

MS_PER_S = 1e3
BYTES_PER_GIB = 2.0**30
RECOUNT_TOLERANCE = 1e-6
"""Relative difference that summing in another order may make."""


def cut_groups(
    model: Architecture,
    groups: Sequence[StageGroup],
    work: StageWork,
    *,
    formats: ServedFormats,
    objective: Objective = "bottleneck",
    solver: str = "highs",
    effort: Effort | None = None,
    proof: Wanted = "two",
) -> StagePlan:
    """Cut a model into pipeline stages on groups of unequal kinds, exactly.

    Which groups are used, in which order, and where the model is cut are chosen together.

    Args:
        groups: kinds of groups, each with how many there are.
        work: what flows through the stages.
        objective: `latency` or `bottleneck`.
        solver: `highs`, `cpsat` or `exhaustive`.
        proof: how many provers have to vouch: `two`, or `one`.

    Raises:
        NoPlanError: nothing fits; its `conflict` says what is missing (`StagingConflict`).
        OutOfTimeError: the time limit came before any cut.
        SolverError: an answer fails its verification.
    """
    began_s = time.perf_counter()
    units = unit_table(model, formats, groups, work)
    program = stage_program(units, groups)
    effort = effort or Effort(time_limit_s=solver_limit_s())
    found = cut(program, objective, solver=solver, effort=effort, proof=proof)
    chosen = found.found.answer
    if chosen is None:
        if found.found.status is Status.INFEASIBLE:
            raise NoPlanError(stage_conflict(model, groups, units))
        raise found.found.unsettled(max(found.found.bound, 0.0) / MS_PER_S, dimension="s")
    verified = _verified(model, formats, groups, work, program, chosen)
    lines = tuple(_line(model, groups, units, program, chosen, i) for i in range(len(chosen)))
    slowest = bottleneck_ms(program, chosen) / MS_PER_S
    return StagePlan(
        model=model.name,
        title=model.title,
        engine=groups[0].clock.engine.name,
        formats={"weights": formats.weights, "experts": formats.experts, "cache": formats.cache},
        phase=work.phase,
        batch=work.batch,
        n_microbatches=work.n_microbatches,
        n_input_tokens=work.n_input_tokens,
        n_output_tokens=work.n_output_tokens,
        objective=objective,
        classes=tuple(layer.name for layer in model.layers),
        order=model.order,
        stages=lines,
        latency_s=latency_ms(program, chosen) / MS_PER_S,
        bottleneck_s=slowest,
        tokens_per_s=_tokens_per_s(work, units, program, chosen),
        even_s=_even_s(program, objective),
        groups=tuple(_use(group, t, chosen) for t, group in enumerate(groups)),
        certificate=certified(
            found.found,
            objective_name=objective,
            to_si=lambda milliseconds: milliseconds / MS_PER_S,
            dimension="s",
            n_candidates=found.n_columns,
            n_contexts=len(groups),
            screens=(),
            n_solved=found.n_columns,
            verified=verified,
            wall_s=time.perf_counter() - began_s,
            n_programs=found.n_solves,
        ),
        provenance=groups[0].clock.engine.provenance,
    )


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
    version = group.clock.table.version
    return GroupUse(kind=group.name, kernels=version, n_groups=group.n_groups, n_used=used)


def _line(
    model: Architecture,
    groups: Sequence[StageGroup],
    units: UnitTable,
    program: StageProgram,
    chosen: Cut,
    index: int,
) -> StageLine:
    stage = chosen[index]
    t, run = stage.kind, slice(stage.first, stage.last)
    total = stage_times_ms(program, chosen)[index]
    alone = float(program.run_ms[t, stage.first, stage.last])
    first, last = max(stage.first, 1) - 1, min(stage.last, program.n_units - 1) - 1
    classes = [model.layers[k].name for k in model.order[first:last]]
    cache = float(units.cache_bytes[t, run].sum())
    fixed = float(units.fixed_bytes[t])
    held = float(program.held_gib[t, stage.first, stage.last]) * BYTES_PER_GIB
    return StageLine(
        kind=groups[t].name,
        device=groups[t].clock.device.name,
        n_devices=groups[t].n_tensor,
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


def _verified(
    model: Architecture,
    formats: ServedFormats,
    groups: Sequence[StageGroup],
    work: StageWork,
    program: StageProgram,
    chosen: Cut,
) -> tuple[str, ...]:
    """Checks that the cut passes.

    Raises:
        SolverError: it fails one.
    """
    broken = violations(program, chosen)
    if broken:
        raise SolverError(f"a cut breaks {broken}")
    for stage in chosen:
        place = (stage.kind, stage.first, stage.last)
        again = recount(model, formats, groups[stage.kind], work, range(stage.first, stage.last))
        stated_s = float(program.run_ms[place]) / MS_PER_S
        stated_bytes = float(program.held_gib[place]) * BYTES_PER_GIB
        for name, counted, stated in (
            ("seconds", again.run_s, stated_s),
            ("bytes", again.held_bytes, stated_bytes),
        ):
            if abs(counted - stated) > RECOUNT_TOLERANCE * abs(counted):
                raise SolverError(f"a stage's {name} are {counted} counted anew, not {stated}")
    return (
        "every layer once, in order, on groups that there are",
        "every stage recounted as a model of its own layers",
    )
