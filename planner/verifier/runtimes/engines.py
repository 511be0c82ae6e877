"""Deployments of a serving engine, each by the records of its request."""

from __future__ import annotations

import math

from planner.results import Considered
from planner.results.engines import EngineDeployment
from planner.specs.engine_request import EngineRequest
from planner.specs.tables import Provenance
from planner.specs.validation.hints import from_fields
from planner.verifier.engine_deployments import CHECKS, counted_engine
from planner.verifier.findings import Finding, Path
from planner.verifier.model_errors import deviation

WITHOUT_ERROR = ("rent", "devices")
"""Objectives of which nothing is predicted."""


class EngineCounting:
    """See `Counting`."""

    checks = CHECKS
    may_lack = False

    def __init__(self, request: EngineRequest) -> None:
        self._request = request
        self.runtime = request.engine

    @property
    def considered(self) -> tuple[Considered, ...]:
        return tuple(from_fields(Considered, one) for one in self._request.variants)

    def counted(self, says: EngineDeployment, path: Path) -> tuple[EngineDeployment, list[Finding]]:
        return counted_engine(self._request, says, path)

    def way(self, one: EngineDeployment) -> tuple[object, ...]:
        degrees = (one.n_tensor, one.n_data, one.n_stages, one.n_expert_parallel)
        return (one.model, one.formats, *degrees)

    def error(self, objective: str, best: EngineDeployment) -> float:
        """Of the time that the objective is made of: rent and devices have none."""
        is_rent = objective == "cost" and best.demand_tokens_per_s is not None
        if is_rent or objective in WITHOUT_ERROR:
            return 0.0
        name = "TTFT" if objective == "ttft" else "TPOT"
        times = best.ttft_s if name == "TTFT" else best.tpot_s
        kind = next(one.kind for one in self._request.models if one.name == best.model)
        of_all = times.high / times.value - 1
        common = (one.deviation_fraction for one in best.outside)
        common_error = math.hypot(deviation(best.engine, kind, name), *common)
        return math.sqrt(max(0.0, of_all**2 - common_error**2))

    def provenance(self, best: EngineDeployment | None = None) -> tuple[Provenance, ...]:
        records = self._request.records
        name = best.model if best else records.models[0].name
        served = [one.provenance for one in records.models if one.name == name]
        model = served[0] if served else ()
        return (*model, *records.cluster.provenance, *records.cluster.device.provenance)
