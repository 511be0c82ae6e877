"""`place_layers`: layers on mixed machines for the most tokens a second, with a bound on all."""

import time

import numpy as np

from planner.errors import NoPlanError, RequestError
from planner.results.staging import LayerPlacement, MachineLine, StagingConflict
from planner.running.deadlines import solver_limit_s, timed
from planner.solvers.certify import certified
from planner.solvers.proving import Proved
from planner.solvers.solution import Status
from planner.specs.ask.stages import LayersRequest
from planner.specs.ask.targets import Provers
from planner.specs.files.layer_files import LayersSpec, layers_problems
from planner.specs.validation.arguments import arguments_checked
from planner.tools.staging.layers_verifier import judge_layers
from planner.tools.staging.machines import place
from planner.tools.staging.machines.incumbents import Tries
from planner.tools.staging.machines.program import Placement, Pool
from planner.verifier.findings import accounted


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
    type_of: list[int] = []
    region: list[str] = []
    names: list[str] = []
    for machine in layers.machines:
        for _ in range(machine.count):
            type_of.append(types.index((machine.type, machine.rates_tokens_per_s)))
            region.append(machine.region)
            before = sum(name.rpartition(" ")[0] == machine.type for name in names)
            names.append(f"{machine.type} {before + 1}")
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
