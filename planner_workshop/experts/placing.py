"""Place experts on ranks: loads in, a placement with its proof out."""

import time
from collections.abc import Sequence
from typing import Annotated, cast

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import Problem, RequestError
from planner.results.experts import ExpertBalance, ExpertPlan, ExpertRank
from planner.running.deadlines import solver_limit_s, timed
from planner.solvers.certify import certified
from planner.specs.ask.stages import USUAL_GAP, ExpertsRequest, ExpertWeights
from planner.specs.ask.targets import Provers
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import one_of
from planner.verifier.findings import refuse
from planner_workshop.experts.loads import load_problem, placement_copies
from planner_workshop.experts.program import (
    SPLITS,
    ExpertProgram,
    Placement,
    Split,
    max_load,
    n_moves,
    rank_loads,
    traffic,
)
from planner_workshop.experts.solvers import Result, greedy_placement, solve_experts
from planner_workshop.experts.solvers.joint import split as shared
from planner_workshop.experts.verifier import checks_of, judge_experts

MOST_SLOTS = 16_384  # of all ranks together


@arguments_checked(ranges="heeded")
@timed
def place_experts(
    loads: Sequence[float] | FloatArray,
    *,
    n_ranks: int,
    n_slots: int | None = None,
    n_nodes: int = 1,
    n_groups: int = 0,
    split: Annotated[str, one_of("way to split", SPLITS)] = "equal",
    present: Sequence[Sequence[int]] | None = None,
    move_price: float = 0.0,
    coactivation: Sequence[Sequence[float]] | FloatArray | None = None,
    slack: float = 0.0,
    weights: ExpertWeights | None = None,
    gap: float = USUAL_GAP,
    seed: int = 0,
    time_limit_s: float | None = None,
    proof: Provers = "two",
) -> ExpertPlan:
    """Place and replicate experts so that the fullest rank has the least load.

    Args:
        loads: of each expert, in any unit.
        n_ranks: expert-parallel ranks.
        n_slots: experts that a rank has room for; one more than there must be if None.
        n_nodes: nodes of equally many ranks.
        n_groups: groups of neighbouring experts that stay on one node; 0 without.
        split: `equal`, as engines do, or `weighted`, where the router may choose shares.
        present: experts that each rank holds now.
        move_price: share of the mean load that a moved copy has to save.
        coactivation: tokens that went to both of two experts, symmetric [E, E].
        slack: share of the least load that may be given up for less traffic.
        weights: name, bytes and source of the experts.
        gap: distance to the bound that is good enough, as a share of it.
        seed: of the search.
        time_limit_s: wall time; None for as many steps as are usual.
        proof: how many have to vouch for a bound: `two`, or `one`.

    Raises:
        RequestError: the arguments make no program; all faults are listed.
        SolverError: an answer fails its verification.
    """
    began_s = time.perf_counter()
    load = np.asarray(loads, dtype=float)
    problem = load_problem(load, "--loads", "")
    problems = [problem] if problem else []
    n_slots = len(load) // max(n_ranks, 1) + 1 if n_slots is None else n_slots
    problems += _shape_problems(load, (n_ranks, n_slots, n_nodes), n_groups)
    raise_if_any(problems)
    there, pairs = _tables(load, (n_ranks, n_slots), present, coactivation)
    program = ExpertProgram(
        load=load,
        n_ranks=n_ranks,
        n_slots=n_slots,
        n_nodes=n_nodes,
        split=cast("Split", split),
        group=np.arange(len(load)) // (len(load) // n_groups) if n_groups else None,
        present=there,
        move_price=move_price,
        coactivation=pairs,
    )
    solution = solve_experts(
        program, gap=gap, slack=slack, seed=seed, time_limit_s=solver_limit_s(), proof=proof
    )
    request = from_fields(
        ExpertsRequest,
        program,
        loads=tuple(load.tolist()),
        n_groups=n_groups,
        present=None if present is None else tuple(tuple(map(int, row)) for row in present),
        move_price=float(move_price),
        coactivation=None if pairs is None else tuple(map(tuple, pairs.tolist())),
        slack=float(slack),
        weights=weights or ExpertWeights(),
        gap=float(gap),
        seed=seed,
        time_limit_s=time_limit_s,
        proof=proof,
    )
    plan = _plan(request, program, solution, began_s)
    refuse(judge_experts(plan)[1])
    return plan


def _shape_problems(load: FloatArray, shape: tuple[int, int, int], n_groups: int) -> list[Problem]:
    """Whether experts fit ranks, ranks nodes, and groups both."""
    (n_ranks, n_slots, n_nodes), n_experts = shape, load.size
    if min(shape) < 1:
        return []  # it is told of the argument
    n_all, torn = n_ranks * n_slots, n_experts % n_groups if n_groups else 0
    room = f"{n_ranks} ranks have room for {n_all} of {n_experts} experts"
    enough = f"write `--slots {-(-n_experts // n_ranks)}` or more"
    most = f"makes {n_all} slots, and {MOST_SLOTS} are the most"
    faults = (
        (n_ranks % n_nodes, "--nodes", n_nodes, f"does not divide the {n_ranks} ranks", ""),
        (n_all < n_experts, "--slots", n_slots, room, enough),
        (n_all > MOST_SLOTS, "--slots", n_slots, most, ""),
        (torn, "--groups", n_groups, f"does not divide the {n_experts} experts", ""),
    )
    problems = [
        Problem(where=where, value=str(value), fact=fact, remedy=remedy)
        for is_so, where, value, fact, remedy in faults
        if is_so
    ]
    if n_groups and not problems:
        of_node = n_all // n_nodes // (n_experts // n_groups)
        if of_node * n_nodes < n_groups:
            fact = f"a node has room for {of_node} groups, all nodes for {of_node * n_nodes}"
            remedy = "take more slots, or fewer nodes"
            problems.append(
                Problem(where="--groups", value=str(n_groups), fact=fact, remedy=remedy)
            )
    return problems


def _tables(
    load: FloatArray,
    shape: tuple[int, int],
    present: Sequence[Sequence[int]] | None,
    coactivation: Sequence[Sequence[float]] | FloatArray | None,
) -> tuple[IntArray | None, FloatArray | None]:
    """Present copies [E, G] and co-activations [E, E], where they are given.

    Raises:
        RequestError: either does not fit the program.
    """
    problems: list[Problem] = []
    there = pairs = None
    if present is not None:
        n_ranks, n_slots = shape
        there, problems = placement_copies(
            present, n_experts=len(load), n_ranks=n_ranks, n_slots=n_slots
        )
    if coactivation is not None:
        fact = ""
        try:
            pairs = np.asarray(coactivation, dtype=float)
        except ValueError:
            pairs, fact = np.zeros((len(load), len(load))), "has rows of different lengths"
        if pairs.shape != (len(load), len(load)):
            fact = f"is a table of {' × '.join(map(str, pairs.shape))} for {len(load)} experts"
        elif not (np.isfinite(pairs).all() and (pairs >= 0).all() and (pairs == pairs.T).all()):
            fact = "has to be symmetric, its entries numbers from 0"
        if fact:
            problems.append(Problem(where="--coactivation", fact=fact))
    RequestError.raise_if_any(problems)
    return there, pairs


def _plan(
    request: ExpertsRequest, program: ExpertProgram, solution: Result, began_s: float
) -> ExpertPlan:
    placement = solution.placement
    greedy = greedy_placement(program)
    present = _present(program)
    before = greedy if present is None else present
    pairs = program.coactivation
    n_chosen = program.n_experts * program.n_ranks
    return ExpertPlan(
        request=request,
        n_copies=tuple(placement.n_copies.tolist()),
        ranks=_ranks(program, placement, before),
        max_load=max_load(program, placement),
        mean_load=program.mean_load,
        proof=solution.proof,
        is_cut_short=bool(solution.proved.stopped_by),
        greedy=_balance(program, greedy),
        before="greedy" if present is None else "present",
        present=None if present is None else _balance(program, present),
        traffic=None if pairs is None else traffic(program, placement),
        traffic_all=None if pairs is None else float(pairs.sum() - np.trace(pairs)) / 2.0,
        n_moves=None if program.present is None else n_moves(program, placement),
        certificate=certified(
            solution.proved,
            objective_name="max_load",
            to_si=lambda load: load,
            dimension="1",
            n_candidates=n_chosen,
            n_contexts=1,
            n_solved=n_chosen,
            verified=checks_of(request),
            wall_s=time.perf_counter() - began_s,
        ),
    )


def _present(program: ExpertProgram) -> Placement | None:
    """The present placement, if it is one: every expert is somewhere."""
    if program.present is None or (program.present.sum(axis=1) == 0).any():
        return None
    return shared(program, program.present)


def _balance(program: ExpertProgram, placement: Placement) -> ExpertBalance:
    apart = None if program.coactivation is None else traffic(program, placement)
    return ExpertBalance(max_load=max_load(program, placement), traffic=apart)


def _ranks(
    program: ExpertProgram, placement: Placement, before: Placement
) -> tuple[ExpertRank, ...]:
    loads, loads_before = rank_loads(program, placement), rank_loads(program, before)
    node = program.node_of_rank
    ranks = []
    for g in range(program.n_ranks):
        copies = placement.copies[:, g]
        held = np.repeat(np.arange(program.n_experts), copies)
        shares = placement.shares[held, g] / copies[held]
        moved = 0
        if program.present is not None:
            moved = int(np.maximum(copies - program.present[:, g], 0).sum())
        ranks.append(
            ExpertRank(
                node=int(node[g]),
                experts=tuple(held.tolist()),
                shares=tuple(shares.tolist()),
                load=float(loads[g]),
                load_before=float(loads_before[g]),
                n_moves=moved,
            )
        )
    return tuple(ranks)
