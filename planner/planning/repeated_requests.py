"""The candidates of a request, made again of the records that it holds."""

from collections.abc import Sequence

from planner.planning.engine_audit import set_beside
from planner.results.engines import EngineAudit
from planner.results.plans import AnyRequest
from planner.results.surveys import Frontier
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.runtimes.engines import EngineCandidates
from planner.runtimes.erdil2025 import ErdilCandidates
from planner.runtimes.predicting import Machines
from planner.runtimes.roofline import candidates_of_request
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.runtimes import ERDIL2025


def among_again(requests: Sequence[AnyRequest], order: Sequence[str] = ()) -> CandidatePool:
    """Of all that was asked together; models that were asked for before their variants.

    Args:
        order: names of the runtimes as they were asked, where there were several.
    """
    parts = [one for request in requests for one in candidates_again(request)]
    ranks = {name: i for i, name in enumerate(order)}
    parts.sort(
        key=lambda candidates: (candidates.variant is not None, ranks.get(candidates.runtime, 0))
    )
    return CandidatePool(parts=tuple(parts))


def traced_again(says: Frontier) -> CandidatePool:
    """Of a frontier; a request of layouts says names where `erdil2025`, which has none, counts."""
    first, others = says.request, says.other_requests
    by_own = [one for one in others if isinstance(one, EconomicsRequest)]
    if by_own and isinstance(first, Request) and says.cost_model.name == ERDIL2025.name:
        return CandidatePool(parts=(ErdilCandidates(request=by_own[0], asked=first),))
    return among_again((first, *others))


def candidates_again(request: AnyRequest) -> tuple[Candidates, ...]:
    """Of one runtime: of the model and of its variants."""
    if isinstance(request, Request):
        return candidates_of_request(request)
    if not isinstance(request, EngineRequest):
        return (ErdilCandidates(request=request),)
    machines, records = _machines(request), request.records
    return tuple(
        EngineCandidates(
            request=request,
            model=architecture,
            asked=records.models[0],
            machines=machines,
            cluster=records.cluster,
        )
        for architecture in records.models
    )


def _machines(request: EngineRequest) -> Machines:
    records = request.records
    return Machines(kernels=records.kernels, engine=records.engine, cluster=records.cluster)


def prefer_of(requests: Sequence[AnyRequest]) -> str:
    """What is preferred of plans as good as each other; the best, where nothing says otherwise."""
    said = (one.prefer for one in requests if isinstance(one, EngineRequest))
    return next(said, "objective")


def audited_again(audit: EngineAudit) -> dict[str, object]:
    """What an audit sets beside what runs, by its names."""
    (free,) = candidates_again(audit.request)
    observed = audit.observed_tpot_s, audit.observed_usd_per_token
    return set_beside(free, audit.predicted, *observed)
