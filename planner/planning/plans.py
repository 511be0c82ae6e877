"""`plan`: from a request to a verified plan, one verb after the other, whichever runtime."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Unpack

from planner.errors import NoPlanError, SolverError
from planner.planning.explain import explain
from planner.planning.shadow_prices import reliefs_of, rule_costs, shadow_prices
from planner.planning.ties import beliefs_of, rivals_of, ties_of
from planner.programs.blocks import BlockProgram, Objective
from planner.quantities.table import objective_of
from planner.results.plans import AnyDeployment, AnyPlan, Plan
from planner.running import begin
from planner.running.deadlines import out_of_time, timed
from planner.runtimes.candidates import CandidatePool, variants_of
from planner.runtimes.registry import candidates_of
from planner.solvers.certify import certified, in_si, n_rejected, screens_of
from planner.solvers.search import SearchResult, search
from planner.solvers.solution import Status
from planner.specs.ask.engine import PREFERENCES, PlanKeywords, PlanOptions
from planner.specs.records.architecture import Architecture
from planner.specs.records.certificates import Certificate
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.solving import Progress
from planner.specs.validation.arguments import arguments_checked, conformed
from planner.verifier.findings import accounted
from planner.verifier.plans import judge_plan


@arguments_checked(ranges="later")
@timed
def plan(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    **keywords: Unpack[PlanKeywords],
) -> AnyPlan:
    """Choose the deployment that is provably best, and prove it.

    Args:
        model: what to serve, see `load_model`.
        cluster: the pool of devices, see `load_cluster`; any part of it may be used.
        engine: what runs and times it: `vllm`, `sglang` or `trtllm`, or several of them, one of
            which the plan chooses; `roofline`, layouts on any device; `erdil2025`, decode only.
            Where none is named, all engines whose kernels were measured on the pool's device and
            that can start the model; `roofline` where there is none.
        on_progress: called with incumbent and bound while the solver works.
        keywords: fields of `PlanOptions`.

    Raises:
        RequestError: the request cannot be read; every problem is listed.
        NoPlanError: nothing satisfies it; the conflict says why and what would.
        OutOfTimeError: the time limit ended before a first plan.
        SolverError: an answer failed its verification.
    """
    choices = PlanOptions(**conformed(keywords, PlanOptions))
    began_s = time.perf_counter()
    among = candidates_of(model, cluster, engine, choices)
    best = decide(among, prefer=choices.prefer, on_progress=on_progress, began_s=began_s)
    if choices.targets.demand_tokens_per_s is None:
        return best
    from planner.runtimes.loads import load_of_plan  # the simulator is heavy

    best = replace(best, load=load_of_plan(best.request, best.deployment))
    from planner.planning.mixing import with_mix  # placements are heavy

    return with_mix(best, model, cluster, choices)


@timed
def decide(
    among: CandidatePool,
    *,
    prefer: str = PREFERENCES[0],
    on_progress: Callable[[Progress], None] | None = None,
    began_s: float | None = None,
) -> AnyPlan:
    """The best of some candidates, described, certified and verified.

    Raises:
        NoPlanError, OutOfTimeError, SolverError: as `plan`.
    """
    began_s = time.perf_counter() if began_s is None else began_s
    request = among.request
    aim = Objective(objective=request.objective)
    result = search(
        among.source(aim),
        request.options,
        reliefs=reliefs_of(among),
        on_progress=_progress_in_si(on_progress, request.objective),
    )
    if result.solution.status is Status.INFEASIBLE:
        if result.reduced.is_cut:
            raise out_of_time()
        begin("asking which limits conflict")
        raise NoPlanError(explain(among), requests=among.requests)
    if result.assignment is None:
        raise result.solution.unsettled(in_si(request.objective, result.solution.bound))
    return _answer(among, result, aim, prefer=prefer, began_s=began_s)


def _progress_in_si(
    on_progress: Callable[[Progress], None] | None, objective: str
) -> Callable[[Progress], None] | None:
    if on_progress is None:
        return None

    def told(progress: Progress) -> None:
        values = (progress.incumbent, progress.bound)
        incumbent, bound = (in_si(objective, value) for value in values)
        on_progress(replace(progress, incumbent=incumbent, bound=bound))

    return told


def _answer(
    among: CandidatePool, result: SearchResult, aim: Objective, *, prefer: str, began_s: float
) -> AnyPlan:
    """Describe, certify, verify."""
    assert result.assignment is not None
    begin("asking what limits cost, and what else is as good")
    best = among.deployment(result.posed, result.assignment)
    error = among.of(result.posed, result.assignment).error(aim.objective, best)
    ties = ties_of(among, result, aim, error, prefer=prefer)
    served = among.of(ties.posed, ties.chosen)
    deployment = served.deployment(ties.posed, ties.chosen)
    proof = certificate(among, result, deployment=best, wall_s=time.perf_counter() - began_s)
    request = among.under(served.runtime).request
    inside, anywhere = beliefs_of(among, aim, result, best)
    rivals = rivals_of(among, aim, result, best)
    answer = Plan(
        request=request,
        deployment=deployment,
        alternatives=ties.alternatives,
        limits=tuple(shadow_prices(among, aim, result)),
        certificate=proof,
        provenance=(),
        variants=variants_of(among.parts),
        error_fraction=error,
        n_ties=ties.n_ties,
        given_up_fraction=ties.given_up_fraction,
        rivals=rivals,
        inside=inside,
        anywhere=anywhere,
        rule_costs=rule_costs(among, aim, result, best, rivals),
        other_requests=among.other_requests(request),
    )
    begin("verifying")
    return accounted(answer, judge_plan(answer), ("used", "limit", "provenance", "verified"))


TIE_TOLERANCE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance


def certificate(
    among: CandidatePool, result: SearchResult, *, deployment: AnyDeployment, wall_s: float
) -> Certificate:
    """The proof in numbers, in SI units.

    Three judges look at every plan. `violations` recomputes every row of the unscreened program.
    The verifier recounts seconds and bytes of both phases in plain scalar arithmetic, and the
    request's limits are compared with its count, not with ours.

    Args:
        among: the candidates, of every runtime and model that was chosen among.
        deployment: the one whose objective was optimised.

    Raises:
        SolverError: what was optimised is not what the deployment comes to.
    """
    solution, screened, name = result.solution, result.screened, among.request.objective
    quantity = objective_of(name)
    objective = quantity.in_si(solution.objective)
    reached = quantity.told(deployment)
    if not math.isclose(objective, reached, rel_tol=TIE_TOLERANCE):
        raise SolverError(f"{name} {objective!r} is {reached!r} in the deployment")
    before = before_search(among, result.posed)
    n_unfit = result.posed.n_unfit
    n_seen = result.reduced.n_columns + n_unfit
    # what is listed again when time is short may be listed less far
    n_known = sum(one.n_candidates for one in among.parts) if result.reduced.is_cut else n_seen
    n_all = max(n_seen, n_known)
    rejected = {**before, **n_rejected(screened), "time": n_all - n_seen}
    return certified(
        solution,
        objective_name=name,
        to_si=quantity.in_si,
        dimension=quantity.dimension,
        n_candidates=n_all + sum(before.values()) - n_unfit,
        n_contexts=result.reduced.n_contexts,
        screens=screens_of(rejected),
        n_solved=screened.program.n_columns,
        outside=screened.bound,
        wall_s=wall_s,
    )


def before_search(among: CandidatePool, posed: BlockProgram) -> dict[str, int]:
    """Candidates that never reached the program, by what rejected them."""
    outside = [one.outside for one in among.parts]
    names = dict.fromkeys(name for one in outside for name in one)
    rejected = {name: sum(one.get(name, 0) for one in outside) for name in names}
    return {**rejected, "memory": posed.n_unfit}
