"""The best of each runtime that was asked, counted anew and held against what is listed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.results.engines import EngineDeployment
from planner.results.plans import AnyDeployment, AnyPlan, Rival, RuleCost, runtime_name
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.engine_rules import EngineRule
from planner.verifier.findings import Finding, Path, near
from planner.verifier.quantities import Measure
from planner.verifier.runtimes.counting import Countings
from planner.verifier.serving.measured import correlation

CLOSE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance
LEAST_GAIN = 0.05
"""Share of the objective that a rule costs at least where an answer names it."""

Rivals = tuple[Rival[AnyDeployment], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What plans of a request are compared by.

    Args:
        measure: the objective.
        least: the best of all that are listed, less being better.
        error: relative standard deviation of that best one's objective.
    """

    measure: Measure
    least: float
    error: float

    def lost(self, deployment: AnyDeployment) -> float:
        """What a deployment loses of the best."""
        return value_of(self.measure, deployment) / self.least - 1 if self.least else 0.0

    def is_tie(self, deployment: AnyDeployment) -> bool:
        most = self.least * (1 + self.error) * (1 + CLOSE)
        return bool(self.error) and value_of(self.measure, deployment) <= most


def value_of(measure: Measure, deployment: AnyDeployment) -> float:
    """An objective, less being better."""
    value = measure.of(deployment)
    return 1 / value if measure.is_rate else value


def judged_rivals(
    says: Rivals,
    among: Countings,
    listed: Sequence[AnyDeployment],
    scale: Scale,
    leader: AnyDeployment,
    kinds: Mapping[str, str],
) -> tuple[Rivals, list[Finding]]:
    """The rivals that are true of their deployments, and what cannot be of them.

    Args:
        listed: the plan and the next best ones, counted: none may be better than the best of
            its own runtime.
        leader: the best of them.
        kinds: of models, by name.
    """
    wrong = list(_unasked(says, among))
    rivals: list[Rival[AnyDeployment]] = []
    for i, rival in enumerate(says):
        here: Path = ("rivals", str(i))
        if rival.deployment is None:  # time ended, or nothing of it satisfies the request
            rivals.append(replace(rival, objective=None, loss_fraction=None))
            continue
        best, more = among.counted(rival.deployment, (*here, "deployment"))
        wrong += [*more, *_misplaced(rival, best, here, listed, scale)]
        rivals.append(
            Rival(
                runtime=rival.runtime,
                deployment=best,
                objective=near(rival.objective, scale.measure.of(best), rel_tol=CLOSE),
                loss_fraction=scale.lost(best),
                error_fraction=_error_between(scale.measure, leader, best, kinds),
            )
        )
    return tuple(rivals), wrong


def _error_between(
    measure: Measure, leader: AnyDeployment, other: AnyDeployment, kinds: Mapping[str, str]
) -> float:
    """What one loses of another engine's while it is two to one at most which is better.

    Of rent there is no error. The law of errors, t of two degrees, says one third of all cases
    where q / √(1 − q²) of its deviations does, q its share of both sides. Errors of deployments
    that are cut alike, at batches within a factor of two, are correlated.
    """
    if not isinstance(leader, EngineDeployment) or not isinstance(other, EngineDeployment):
        return 0.0
    is_rent = measure.name == "cost" and leader.demand_tokens_per_s is not None
    if leader.engine == other.engine or is_rent or measure.name in ("rent", "devices"):
        return 0.0
    name = "TTFT" if measure.name == "ttft" else "TPOT"
    first, second = ((it.ttft_s if name == "TTFT" else it.tpot_s) for it in (leader, other))
    a, b = first.high / first.value - 1, second.high / second.value - 1
    both = correlation(kinds[leader.model], name) if _are_alike(leader, other) else 0.0
    deviation = math.sqrt(a * a + b * b - 2 * both * a * b)
    confidence = math.erf(math.sqrt(0.5))  # of all cases are within one deviation
    return deviation * math.sqrt((1 / 9) / (8 / 9) / (confidence**2 / (1 - confidence**2)))


def _are_alike(deployment: EngineDeployment, other: EngineDeployment) -> bool:
    """Whether two are cut alike, of one model and formats, at batches within a factor of two."""
    names = ("model", "formats", "n_tensor", "n_data", "n_stages", "n_expert_parallel")
    is_near = max(deployment.batch, other.batch) <= 2 * min(deployment.batch, other.batch)
    return is_near and all(getattr(deployment, name) == getattr(other, name) for name in names)


def judged_costs(plan: AnyPlan, scale: Scale) -> tuple[tuple[RuleCost, ...], list[Finding]]:
    """What rules of engines cost, true of deployments that these rules alone forbid."""
    questions = (plan.request, *plan.other_requests)
    requests = {one.engine: one for one in questions if isinstance(one, EngineRequest)}
    costs: list[RuleCost] = []
    wrong: list[Finding] = []
    for i, says in enumerate(plan.rule_costs):
        here: Path = ("rule_costs", str(i))
        request = requests.get(says.deployment.engine)
        rules = request.records.engine.rules if request else ()
        broken = next((one for one in rules if one.name == says.rule), None)
        if request is None or broken is None:
            fact = f"is no rule of {says.deployment.engine}, or that was not asked"
            return plan.rule_costs, [Finding(path=(*here, "rule"), says=says.rule, fact=fact)]
        cost, more = _judged_cost(says, request, broken, scale)
        costs.append(cost)
        wrong += [finding.below(here) for finding in more]
    return tuple(costs), [*wrong, *_costs_out_of_order(costs)]


def _judged_cost(
    says: RuleCost, request: EngineRequest, rule: EngineRule, scale: Scale
) -> tuple[RuleCost, list[Finding]]:
    """Counted by the request without the rule, which has to be what forbids the deployment."""
    _, wrong = Countings.of([request]).counted(says.deployment, ())
    is_forbidden = any(one.fact == rule.words for one in wrong)
    rest = tuple(one for one in request.records.engine.rules if one != rule)
    records = replace(request.records, engine=replace(request.records.engine, rules=rest))
    among = Countings.of([replace(request, records=records)])
    best, wrong = among.counted(says.deployment, ("deployment",))
    if not is_forbidden:
        fact = "does not forbid this deployment"
        wrong = [*wrong, Finding(path=("rule",), says=says.rule, fact=fact)]
    assert isinstance(best, EngineDeployment)
    cost = RuleCost(
        rule=says.rule,
        deployment=replace(best, command="", launch=None),
        objective=near(says.objective, scale.measure.of(best), rel_tol=CLOSE),
        gain_fraction=near(says.gain_fraction, -scale.lost(best), abs_tol=CLOSE),
    )
    return cost, wrong


def _costs_out_of_order(costs: Sequence[RuleCost]) -> Iterator[Finding]:
    """Rules that are named twice, cost little, or stand behind one that costs less."""
    met, before = set(), math.inf
    for i, cost in enumerate(costs):
        key = (cost.deployment.engine, cost.rule)
        if key in met or not LEAST_GAIN - CLOSE <= cost.gain_fraction <= before + CLOSE:
            fact = f"is below {LEAST_GAIN}, out of order, or of a rule that is named before"
            path = ("rule_costs", str(i), "gain_fraction")
            yield Finding(path=path, says=cost.gain_fraction, fact=fact)
        met.add(key)
        before = cost.gain_fraction


def _unasked(says: Rivals, among: Countings) -> Iterator[Finding]:
    """Runtimes that were asked and of which nothing is said, or that were not, or said twice."""
    options = sorted(among.by_name) if len(among.by_name) > 1 else []
    said = sorted(one.runtime for one in says)
    if said != options:
        fact = f"are not {', '.join(options) or 'none'}, which were asked"
        yield Finding(path=("rivals",), says=", ".join(said), fact=fact)


def _misplaced(
    says: Rival[AnyDeployment],
    best: AnyDeployment,
    here: Path,
    listed: Sequence[AnyDeployment],
    scale: Scale,
) -> Iterator[Finding]:
    """The best of a runtime that is of another, beats the plan, or is beaten by what is listed."""
    if runtime_name(best) != says.runtime:
        fact = f"is of {runtime_name(best)}"
        yield Finding(path=(*here, "runtime"), says=says.runtime, fact=fact)
    lost = scale.lost(best)
    if lost < -CLOSE:
        yield Finding(
            path=(*here, "objective"), says=says.objective, fact="is better than the plan"
        )
    of_it = [scale.lost(one) for one in listed if runtime_name(one) == says.runtime]
    if of_it and min(of_it) < lost - CLOSE:
        fact = f"is not the best of {says.runtime}: one is listed here that is better"
        yield Finding(path=(*here, "objective"), says=says.objective, fact=fact)
