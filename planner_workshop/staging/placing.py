"""Answers with proof: a model cut into pipeline stages on groups of unequal kinds, and
`place_layers`, layers on mixed machines for the most tokens a second, with a bound on all.
"""

import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import NoPlanError, RequestError
from planner.results.staging import (
    LayerPlacement,
    MachineLine,
    StageLine,
    StagePlan,
    StagingConflict,
)
from planner.running.deadlines import solver_limit_s, timed
from planner.solvers.certify import certified
from planner.solvers.proving import Proved
from planner.solvers.solution import Effort, Status
from planner.specs.ask.stages import LayersRequest, StageGroup, StagesRequest
from planner.specs.ask.targets import Provers
from planner.specs.files.layer_files import LayersSpec, layers_problems
from planner.specs.validation.arguments import arguments_checked
from planner.verifier.findings import accounted
from planner_workshop.staging.cuts import cut
from planner_workshop.staging.cuts.program import Objective, Stage, StageProgram
from planner_workshop.staging.groups import UnitTable, unit_table
from planner_workshop.staging.layers_verifier import judge_layers
from planner_workshop.staging.machines import place
from planner_workshop.staging.machines.incumbents import Tries
from planner_workshop.staging.machines.program import Placement, Pool
from planner_workshop.staging.stages_verifier import judge_stages

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


@arguments_checked()
@timed
def place_layers(
    layers: LayersSpec,
    *,
    gap: float = 1e-4,
    time_limit_s: float | None = None,
    seed: int = 0,
    proof: Provers = "two",
) -> LayerPlacement:
    """Place layers on mixed machines for the most tokens a second, with a bound on any placement.

    Args:
        gap: relative distance of rate and bound at which to stop.
        proof: how many solvers have to vouch for what solvers prove: `two`, or `one`.

    Raises:
        RequestError: rates of links are not as many as the machines; all that are not are told.
        NoPlanError: the machines cannot hold the layers, or no links join them.
        OutOfTimeError: the time limit came before any placement.
        UnsettledError: none was found, and that there is none is not proven.
        SolverError: the placement fails its replay as a maximum flow.
    """
    began_s = time.perf_counter()
    request = LayersRequest(
        layers=layers, gap=gap, time_limit_s=time_limit_s, seed=seed, proof=proof
    )
    RequestError.raise_if_any(layers_problems(layers, "layers"))
    pool = pool_of(layers)
    _check_size(layers, pool)
    best = place(pool, Tries(gap=gap, time_limit_s=solver_limit_s(), seed=seed, proof=proof))
    proved = best.proved
    if proved.answer is None:
        raise _nothing(request, proved)
    placement = LayerPlacement(
        request=request,
        tokens_per_s=best.rate,
        machines=tuple(
            MachineLine(
                machine=pool.names[held.machine],
                type="",
                first_layer=held.first,
                n_layers=held.n_layers,
                tokens_per_s=0.0,
            )
            for held in sorted(proved.answer, key=lambda it: (it.first, it.machine))
        ),
        idle=(),
        certificate=certified(
            proved,
            objective_name="throughput",
            to_si=lambda value: -value,
            dimension="token/s",
            n_candidates=best.n_spans,
            n_contexts=1,
            n_solved=best.n_spans,
            wall_s=time.perf_counter() - began_s,
            n_programs=best.n_solves,
        ),
    )
    return accounted(placement, judge_layers(placement), ("machines", "idle", "verified"))


def _check_size(layers: LayersSpec, pool: Pool) -> None:
    """Whether there is memory for all layers.

    Raises:
        NoPlanError: there is not.
    """
    most = sum(len(pool.rates[int(t)]) for t in pool.type_of)
    if most < layers.n_layers:
        missing = layers.n_layers - most
        facts = (f"together they hold {most} layers at most, {missing} are missing",)
        remedy = "add machines, or rates of more layers"
        raise NoPlanError(StagingConflict(what=_what(layers), facts=facts, remedy=remedy))


def _what(layers: LayersSpec) -> str:
    return f"{layers.n_layers} layers on {layers.n_machines} machines of `{layers.name}`"


def _nothing(request: LayersRequest, proved: Proved[Placement]) -> BaseException:
    """Why there is no placement: it is proven, time is up, or none was found."""
    if proved.status is not Status.INFEASIBLE:
        return proved.unsettled(-proved.bound, dimension="token/s")
    provers = ", ".join(proved.vouched.by)
    fact = f"links join no placement from end to end, as is proven by {provers}"
    conflict = StagingConflict(what=_what(request.layers), facts=(fact,), remedy="add links")
    return NoPlanError(conflict)


def pool_of(layers: LayersSpec) -> Pool:
    """Machines one by one: names like `A100 3`, links from the matrix or by region."""
    types = list(dict.fromkeys((one.type, one.rates_tokens_per_s) for one in layers.machines))
    each = [one for one in layers.machines for _ in range(one.count)]
    type_of = [types.index((one.type, one.rates_tokens_per_s)) for one in each]
    kinds = [one.type for one in each]
    names = [f"{kind} {kinds[: i + 1].count(kind)}" for i, kind in enumerate(kinds)]
    regions = np.array([one.region for one in each])
    links = np.where(
        regions[:, None] == regions[None, :],
        layers.between_tokens_per_s,
        layers.across_tokens_per_s,
    )
    if layers.matrix_tokens_per_s:
        links = np.array(layers.matrix_tokens_per_s)
    np.fill_diagonal(links, 0.0)
    usual = [layers.coordinator_tokens_per_s] * len(names)
    return Pool(
        n_layers=layers.n_layers,
        types=tuple(name for name, _ in types),
        rates=tuple(np.array(rates) for _, rates in types),
        names=tuple(names),
        type_of=np.array(type_of, dtype=np.int64),
        links=links,
        from_coordinator=np.array(layers.from_coordinator_tokens_per_s or usual),
        to_coordinator=np.array(layers.to_coordinator_tokens_per_s or usual),
        enters_within=layers.enters_within,
    )
