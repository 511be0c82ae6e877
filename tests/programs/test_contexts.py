"""The optimum of every context, against the exhaustive solver on that context alone."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimates.candidates import machine_of, table_of
from planner.programs.blocks import Objective, joined
from planner.programs.contexts import optima
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment, restrict, violations
from planner.solvers import solve
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import Workload


@pytest.mark.parametrize("targets", [Targets(), Targets(tpot_s=0.03, ttft_s=1.0, min_batch=4)])
@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_each_contexts_optimum_is_the_exhaustive_one(targets: Targets, objective: str) -> None:
    request = make_request(
        load_model("llama-3.1-70b"),
        load_cluster("h100-nvl8-x1"),
        PlanOptions(
            workload=Workload(n_input_tokens=2048, n_output_tokens=64),
            targets=targets,
            weights_formats=["bf16", "fp8"],
            batches=(1, 4, 32, 128, 512),
            prefill_batches=(1, 4, 16),
            prefill=None,
            objective=objective,
            options=SolverOptions(),
        ),
    )
    machine = machine_of(request.cluster, request.model)
    posing = Posing(table_of(request, machine), request, Objective(objective=objective))
    posed = joined(list(posing.blocks()))
    program = posed.program
    value, prefill, decode = optima(posed)
    assert program.n_contexts > 10
    for k in range(program.n_contexts):
        columns = np.flatnonzero(program.column_context == k)
        alone = restrict(program, contexts=np.array([k]), columns=columns)
        best = solve(alone, solver="exhaustive")
        if best.answer is None:
            assert value[k] == np.inf
            continue
        assert value[k] == pytest.approx(best.objective, rel=1e-12)
        found = Assignment(context=k, columns=(int(prefill[k]), int(decode[k])))
        assert violations(program, found) == {}
