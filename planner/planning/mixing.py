"""Replicas that together serve what is asked of a plan: of one sort, of several, or of one phase.

What `plan` chooses for a demand is the best number of replicas that are all alike. The placement
program chooses among all numbers of all of them, on the devices of the pool: it proves that alike
replicas do, or finds others that serve the demand for less.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import NoPlanError, OutOfTimeError, Problem, RequestError, UnsettledError
from planner.placing.planning import place
from planner.quantities.table import QUANTITIES, placed
from planner.results.placements import Placement
from planner.results.plans import AnyPlan, runtime_name
from planner.running.deadlines import is_over
from planner.runtimes.registry import options_said
from planner.specs.ask.engine import PREFERENCES, PlanOptions
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import Targets
from planner.specs.files.ledger import remark
from planner.specs.options.meanings import LEAVE_OUT
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.runtimes import ERDIL2025, ROOFLINE

OBJECTIVES = {"cost": "rent", "rent": "rent", "devices": "devices"}
"""Objectives of plans that replicas have together; of a demand the cost is its rent over it."""

OF_ONE = {name: name for name in ("cost", "rent", "devices", "latency", "throughput")}
"""Objectives of plans that a replica by itself has."""

MOST = "throughput"
"""The objective of replicas with roles that serve no demand, but as much as they can."""

PASSED = ("weights_formats", "kv_formats")
"""Arguments of `planning.plan` that are of a model that is served."""

SEARCH_S = 10.0
"""Longest search for replicas of several sorts: alike ones are an answer without it."""

OF_ALIKE = "is of replicas that are all alike"

_SAME = ("workload", "batches", "confidence", "options")
"""Arguments that a placement has by the same name."""

_LEFT = ("memory", "objective", "targets", "variants", *PASSED, *_SAME)
"""Arguments that change nothing of what replicas there are, or that are passed otherwise."""


def unasked_of_replicas(choices: PlanOptions, said: Collection[str] = ()) -> list[Problem]:
    """What is asked of a plan and cannot be of replicas that need not be alike.

    Args:
        said: arguments of `place` that only such replicas have.
    """
    targets = choices.targets
    problems, objectives = [], _objectives(targets)
    if targets.demand_tokens_per_s is None and choices.objective != MOST:
        fact = "is of replicas that serve a demand, or as much as they can"
        remedy = f"say how much: `--rate 8req/s`; or write `--objective {MOST}`"
        named = [f"--{one.replace('_', '-')}" for one in said]
        problems += [Problem(where=one, fact=fact, remedy=remedy) for one in named]
    if targets.n_replicas is not None:
        problems.append(Problem(where="--replicas", fact=OF_ALIKE, remedy=LEAVE_OUT))
    kept = {"demand", *(one.name for one in placed("each", "all"))}
    problems += [
        Problem(where=QUANTITIES[name].option, fact="is of one deployment", remedy=LEAVE_OUT)
        for name in targets.limits()
        if name not in kept
    ]
    if choices.objective not in objectives:
        fact, remedy = "is not of several replicas", f"one of {', '.join(objectives)}"
        where, value = "--objective", choices.objective
        problems.append(Problem(where=where, value=value, fact=fact, remedy=remedy))
    return [*problems, *_of_alike_replicas(choices)]


def _of_alike_replicas(choices: PlanOptions) -> Iterator[Problem]:
    """Arguments that only replicas that are all alike have."""
    for name in options_said(choices, but=_LEFT):
        where = "--draft" if name in ("speculation", "drafting") else name
        yield Problem(where=where, fact=OF_ALIKE, remedy=LEAVE_OUT)
    if choices.variants:
        fact = "are chosen among by replicas that are all alike"
        yield Problem(where="--variants", fact=fact, remedy=LEAVE_OUT)


def _objectives(targets: Targets) -> dict[str, str]:
    """Objectives of placements by those of plans."""
    return OF_ONE if targets.demand_tokens_per_s is None else OBJECTIVES


def replicas_of(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None,
    choices: PlanOptions,
    **roles: Any,  # noqa: ANN401
) -> Placement:
    """The replicas that serve what is asked of a plan best, of however many sorts.

    Without a demand that is one replica; of roles that are said as many as the pool has room for.

    Args:
        roles: `roles`, `connector` and devices of each role, as `place` has them.

    Raises:
        as `place`.
    """
    targets = choices.targets
    together = [one.name for one in placed("all")]
    wish = Serve(
        model=model,
        demand_tokens_per_s=targets.demand_tokens_per_s,
        replicas=1 if targets.demand_tokens_per_s is None and not roles else None,
        weights_formats=choices.weights_formats,
        kv_formats=choices.kv_formats,
    )
    return place(
        cluster,
        wish,
        engine=engine,
        targets=targets.without(*(one.name for one in placed("all", "model"))),
        objective=_objectives(targets)[choices.objective],
        limits={name: most for name, most in targets.limits().items() if name in together},
        **{name: value for name in _SAME if (value := getattr(choices, name)) is not None},
        **roles,
    )


def with_mix(
    best: AnyPlan, model: ModelSpec | Architecture, cluster: ClusterSpec, choices: PlanOptions
) -> AnyPlan:
    """A plan of a demand beside the best replicas of several sorts, whose certificate bounds them.

    Where there are none, or none in time, or the placement program does not know what the plan
    is asked for, nothing is said of them: replicas that are all alike are an answer by themselves.
    """
    alike = replace(choices, prefer=PREFERENCES[0])  # ties are of alike ones
    is_of_erdil = runtime_name(best.deployment) == ERDIL2025.name
    if is_of_erdil or is_over() or unasked_of_replicas(alike):
        return best
    requests: tuple[Any, ...] = (best.request, *best.other_requests)
    named = dict.fromkeys(getattr(request, "engine", ROOFLINE.name) for request in requests)
    options = choices.options
    limit_s = min(SEARCH_S, math.inf if options.time_limit_s is None else options.time_limit_s)
    within = replace(choices, options=replace(options, time_limit_s=limit_s))
    try:
        return replace(best, mix=replicas_of(model, cluster, (*named,), within))
    except (NoPlanError, RequestError):
        return best
    except (OutOfTimeError, UnsettledError):
        fact = f"is not known to need replicas that are all alike: {limit_s:g} s were too few"
        remedy = "`plan place` looks for others as long as it takes"
        remark(Problem(where="--demand", fact=fact, remedy=remedy))
        return best
