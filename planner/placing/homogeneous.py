"""What stands beside a placement: replicas all alike, the best measured, the best if predicted so.

Many placements cost the least, since replicas are whole devices. Of these a placement takes what
`plan` takes of its deployments (`planner.programs.amounts.Fleet`): all replicas of one sort, the
smallest, then the one cut into fewest stages and rows, then the one that could serve most, over no
more nodes. Only where no sort by itself is as good are they mixed. Of objectives that are predicted
the simplest within their error is taken where that is asked for.
"""

import math
import operator
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import OutOfTimeError
from planner.estimates.serving.deployments import kind_of
from planner.placing.configurations import AnyConfiguration, ConfigKey, config_key
from planner.placing.describing import placement_choice, placement_of
from planner.placing.engines import EngineOffers
from planner.placing.fabrics.site import NodesOffers
from planner.placing.program import KTOKEN, UNITS, Columns
from planner.placing.searching import Choice, Search, Task, capacity_for, searched, solved
from planner.programs.layout import RELATIVE_TOLERANCE, ceiling, exceeds
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    keeping,
    limited,
    n_sorts,
    placement_objective,
    total,
)
from planner.results.engines import EngineDeployment
from planner.results.placements import OtherPlacement, Placed, Placement
from planner.running.deadlines import is_over
from planner.runtimes.engines import WITHOUT_ERROR
from planner.runtimes.registry import layers_of
from planner.solvers.placement import N_ALWAYS, PlacementSolution
from planner.specs.ask.engine import SIMPLEST
from planner.specs.records.model_errors import engine_error, kernels_share
from planner.specs.records.roles import TOGETHER
from planner.specs.region import INSIDE, MEDIAN
from planner.specs.validation.hints import from_fields


def preferred(task: Task, search: Search) -> Search:
    """The search with what is preferred of placements as good as each other, if that is known."""
    solution = search.solution
    if solution.answer is None or search.is_nothing or not solution.status.is_final:
        return search
    if task.request.objective in WITHOUT_ERROR:
        return _homogeneous(task, search) if len(task.wanted) == 1 else search
    return _simplest(task, search) if task.request.prefer == SIMPLEST else search


def _homogeneous(task: Task, search: Search) -> Search:
    """The simplest of the optima whose replicas are all of one sort, if any is."""
    solution = search.solution
    once = replace(task.options, proof="one", gap=0.0)
    for sort in _sorts(task, search.offered.configurations, solution.objective):
        if is_over():
            break
        posed = search.offered.only((sort,)).posed(task.aim())
        if not posed.program.n_columns:
            continue
        best = solved(posed.program, once)
        if _is_as_good(posed.program, best, search):
            assert best.answer is not None
            return replace(search, choice=Choice(posed=posed, counts=best.answer))
    return search


def _simplest(task: Task, search: Search) -> Search:
    """The simplest of all that lose less of the objective than its error.

    Fewest sorts of replicas, then devices, then stages and rows of these, then the best objective:
    each a program of its own over what those before leave, and over no more nodes and leaves.
    """
    program, columns, counts = search.posed.program, search.posed.columns, search.solution.answer
    assert counts is not None
    cuts, once = _cuts(columns), replace(task.options, proof="one", gap=0.0)
    error = _error(task, columns, counts)
    ties = (cuts[0], *program.ties)
    within = keeping(replace(program, ties=ties, ties_within=error), counts)
    for tie in program.ties[:N_ALWAYS]:
        within = limited(within, tie, ceiling(total(tie, counts)))
    for most in range(1, n_sorts(program, counts) + 1):
        within = replace(within, most_sorts=most)
        if solved(within, once).answer is not None:
            break
    for column in (*cuts, program.objective):
        best = solved(replace(within, objective=column), once)
        if best.answer is None or not best.status.is_final:
            return search
        within, counts = limited(within, column, ceiling(total(column, best.answer))), best.answer
    value = placement_objective(program, counts)
    if abs(value / search.solution.objective - 1.0) > _error(task, columns, counts):
        return search  # its own error is smaller
    simpler = replace(search.solution, answer=counts, objective=value)
    return replace(search, solution=simpler, steps=())


def _error(task: Task, columns: Columns, counts: Counts) -> float:
    """Of an objective that is predicted, its relative standard deviation: replicas err together."""
    copies = columns.replicas(counts.copies)
    used = [(columns.configurations[int(columns.which[j])], n) for j, n in copies]
    is_slow = task.request.objective == "latency"
    weights = [n * (one.tpot_s if is_slow else one.output_tokens_per_s) for one, n in used]
    errors = [_of_kernels(task, one) for one, _ in used]
    return math.fsum(map(operator.mul, weights, errors)) / math.fsum(weights)


def _of_kernels(task: Task, config: AnyConfiguration) -> float:
    it, source = config.deployment(), config.source
    assert isinstance(it, EngineDeployment)
    assert isinstance(source, EngineOffers)
    kind = kind_of(layers_of(task.wanted[config.model].model))
    error = it.tpot_s.high / it.tpot_s.value - 1.0
    return kernels_share(error, engine_error(source.machines.engine, kind, "TPOT"), it.outside)


def _cuts(columns: Columns) -> FloatArray:
    """What replicas had rather have few of, what matters most first, of each column (K, J)."""
    patterns = [columns.configurations[i].pattern for i in columns.which.tolist()]
    each = np.array([one.simplicity for one in patterns], dtype=float).reshape(len(patterns), -1)
    each[:, 1:] -= 1.0
    return np.concatenate([np.zeros((columns.n_parts, each.shape[1])), each]).T


def _is_as_good(program: PlacementProgram, solution: PlacementSolution, search: Search) -> bool:
    """Whether it costs no more than what was found, over no more nodes."""
    counts, other = solution.answer, search.solution.answer
    if counts is None or other is None or exceeds(solution.objective, search.solution.objective):
        return False
    return _spread(program, counts) <= _spread(search.posed.program, other)


def _spread(program: PlacementProgram, counts: Counts) -> float:
    """Nodes beyond one a replica; none where the program does not tell."""
    return total(program.ties[0], counts) if program.ties else 0.0


def _sorts(
    task: Task, configurations: Sequence[AnyConfiguration], most: float
) -> Iterator[ConfigKey]:
    """Those of which enough replicas may cost no more, the simplest first, then the idlest."""
    (wish,) = task.wanted
    demand = (capacity_for(task.request, wish) or 0.0) * KTOKEN
    best: dict[ConfigKey, AnyConfiguration] = {}
    for config in configurations:
        if config.role != TOGETHER:  # by itself it serves nobody
            continue
        sort = config_key(config)
        if sort not in best or config.output_tokens_per_s > best[sort].output_tokens_per_s:
            best[sort] = config
    for sort, config in sorted(best.items(), key=lambda item: _order(item[1])):
        share = demand / (config.output_tokens_per_s * KTOKEN)
        n_replicas = max(math.ceil(share * (1.0 - RELATIVE_TOLERANCE)), wish.replicas or 0)
        each = config.usd_per_hour if task.request.objective == "rent" else float(config.n_devices)
        if not exceeds(n_replicas * each, most):
            yield sort


def _order(config: AnyConfiguration) -> tuple[tuple[int, ...], float]:
    return config.pattern.simplicity, -config.output_tokens_per_s


def beside(task: Task, search: Search, placement: Placement) -> Placement:
    """A placement with the best inside the measured region, and at what is predicted anywhere.

    Nothing is timed for them: the one leaves deployments out, the other counts them otherwise.
    """
    if not task.request.has_region:
        return placement
    best = {belief: _other(task, search, placement, belief) for belief in (INSIDE, MEDIAN)}
    return replace(placement, inside=best[INSIDE], anywhere=best[MEDIAN])


def is_measured(placed: Placed) -> bool:
    """Whether all its replicas are inside the measured region."""
    deployments = [it.deployment for it in placed.recipes]
    return all(isinstance(it, EngineDeployment) and not it.outside for it in deployments)


def _other(task: Task, search: Search, placement: Placement, belief: str) -> OtherPlacement | None:
    """The best by a belief; None where there is none, or nobody knows."""
    if is_over() or not search.solution.status.is_final:
        return None
    best: Placement | None = placement
    if belief == MEDIAN or not is_measured(placement):  # else nothing inside is better
        best = _placed(task, search, belief)
    if best is None:
        return None
    value, least = best.certificate.objective, placement.certificate.objective
    sign = math.copysign(1.0, UNITS[task.request.objective][0])
    return from_fields(
        OtherPlacement,
        best,
        objective=value,
        loss_fraction=sign * (value - least) / abs(least) if least else 0.0,
    )


def _placed(task: Task, search: Search, belief: str) -> Placement | None:
    began_s, request, offered = time.perf_counter(), task.request, search.offered
    assert isinstance(offered, NodesOffers)
    request = replace(request, confidence=0.0) if belief == MEDIAN else request
    task = replace(task, request=request)
    try:
        other = searched(task, offered.believing(belief))
    except OutOfTimeError:
        return None
    if other.solution.answer is None or other.is_nothing or not other.solution.status.is_final:
        return None
    return placement_of(task, placement_choice(preferred(task, other)), began_s=began_s)
