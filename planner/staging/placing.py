"""`place_layers`: layers on mixed machines for the most tokens a second, with a bound on all."""

from __future__ import annotations

import numpy as np

from planner.certificates import Certificate, Proof
from planner.errors import NoPlanError, OutOfTimeError
from planner.programs.machines import Pool
from planner.solvers.machines import place
from planner.solvers.machines.rows import Tries
from planner.specs.arguments import arguments_checked
from planner.specs.layer_files import LayersSpec
from planner.specs.layers_request import LayersRequest
from planner.staging_results import (
    LayerPlacement,
    MachineLine,
    StagingConflict,
)
from planner.verifier.findings import refuse
from planner.verifier.layer_placements import CHECKS, judge_layers


@arguments_checked()
def place_layers(
    layers: LayersSpec,
    *,
    gap: float = 1e-4,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> LayerPlacement:
    """Place layers on mixed machines for the most tokens a second, with a bound on any placement.

    Args:
        gap: relative distance of rate and bound at which to stop.

    Raises:
        NoPlanError: the machines cannot hold the layers, or no links join them.
        SolverError: the placement fails its replay as a maximum flow.
    """
    pool = pool_of(layers)
    most = sum(len(pool.rates[int(t)]) for t in pool.type_of)
    what = f"{layers.n_layers} layers on {layers.n_machines} machines of `{layers.name}`"
    if most < layers.n_layers:
        missing = layers.n_layers - most
        facts = (f"together they hold {most} layers at most, {missing} are missing",)
        remedy = "add machines, or rates of more layers"
        raise NoPlanError(StagingConflict(what=what, facts=facts, remedy=remedy))
    found = place(pool, Tries(gap=gap, time_limit_s=time_limit_s, seed=seed))
    if found.placement is None:
        if time_limit_s is not None and found.wall_s > time_limit_s:
            raise OutOfTimeError(time_limit_s=time_limit_s, bound=found.bound, dimension="token/s")
        facts = ("no row of stages was found that links join from end to end",)
        raise NoPlanError(StagingConflict(what=what, facts=facts, remedy="add links"))
    used = {held.machine for held in found.placement}
    placement = LayerPlacement(
        request=LayersRequest(layers=layers, gap=gap, time_limit_s=time_limit_s, seed=seed),
        tokens_per_s=found.rate,
        machines=tuple(
            MachineLine(
                machine=pool.names[held.machine],
                type=pool.types[int(pool.type_of[held.machine])],
                first_layer=held.first,
                n_layers=held.n_layers,
                tokens_per_s=pool.rate(held.machine, held.n_layers),
            )
            for held in found.placement
        ),
        idle=tuple(name for m, name in enumerate(pool.names) if m not in used),
        certificate=Certificate(
            status="optimal" if found.gap <= gap else "feasible",
            objective_name="throughput",
            objective=found.rate,
            bound=found.bound,
            gap=found.gap,
            dimension="token/s",
            proofs=(
                Proof(
                    prover=found.proof,
                    outcome="stopped",
                    value=found.rate,
                    bound=found.bound,
                    wall_s=found.wall_s,
                ),
            ),
            vouched_by=(found.proof,),
            vouched_bound=found.bound,
            n_candidates=found.n_patterns,
            n_contexts=found.n_regions,
            screens=(),
            n_solved=found.n_patterns,
            verified=CHECKS,
            wall_s=found.wall_s,
            solve_s=found.wall_s,
            n_programs=found.n_rates + found.n_rounds,
        ),
    )
    refuse(judge_layers(placement)[1])
    return placement


def pool_of(layers: LayersSpec) -> Pool:
    """Machines one by one: names like `A100 3`, links from the matrix or by region."""
    types = list(dict.fromkeys((one.type, one.rates_tokens_per_s) for one in layers.machines))
    type_of: list[int] = []
    region: list[str] = []
    names: list[str] = []
    for one in layers.machines:
        for _ in range(one.count):
            type_of.append(types.index((one.type, one.rates_tokens_per_s)))
            region.append(one.region)
            before = sum(name.rpartition(" ")[0] == one.type for name in names)
            names.append(f"{one.type} {before + 1}")
    regions = np.array(region)
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
