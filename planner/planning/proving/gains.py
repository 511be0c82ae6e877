"""What more of each resource of a machine would gain, by solving a plan's request again."""

from collections.abc import Mapping

from planner.errors import NoPlanError, OutOfTimeError, Problem
from planner.planning.proving.comparing import decided_again
from planner.quantities.table import objective_of
from planner.results.plans import AnyPlan, ResourceGain
from planner.running import begin
from planner.specs.ask.targets import WHAT_IF
from planner.specs.files.ledger import remark
from planner.specs.files.what_if import has, multiplied, resources
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import inner_records


def resource_gains(plan: AnyPlan, factors: Mapping[str, float]) -> tuple[ResourceGain, ...]:
    """What the best would gain of so many times as much of each resource by itself, most first.

    What the machine does not have is left out; so is what time ended before, with a remark.
    """
    requests, proof = (plan.request, *plan.other_requests), plan.certificate
    is_rate, gains = objective_of(proof.objective_name).is_rate, []
    pools = [pool for _, pool in inner_records(requests, ClusterSpec)]
    for name in (name for name in factors if any(has(pool, name) for pool in pools)):
        begin(f"solving with other {resources()[name]['words']}")
        more = [multiplied(request, {name: factors[name]}) for request in requests]
        try:
            again = decided_again(more, [rival.runtime for rival in plan.rivals])
        except (NoPlanError, OutOfTimeError) as error:
            remark(Problem(where=WHAT_IF, value=name, fact=f"is not known: {error}"))
            continue
        best = again.certificate.objective
        gain = best / proof.objective - 1.0 if is_rate else 1.0 - best / proof.objective
        gains.append(
            ResourceGain(name=name, factor=factors[name], objective=best, gain_fraction=gain)
        )
    return tuple(sorted(gains, key=lambda gain: -gain.gain_fraction))
