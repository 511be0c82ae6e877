"""`plan stages` and `plan layers`: models over unequal devices, cut into stages or placed."""

from __future__ import annotations

from pathlib import Path

from planner.commands.options.parsing import Said
from planner.commands.reporting import reported
from planner.report.files import Answer


def stages(said: Said) -> Answer:
    """A model cut into pipeline stages."""
    from planner.placing.staging.asking import cut_stages, read_groups
    from planner.specs.engines.files import load_engine
    from planner.specs.reading import load_architecture
    from planner.specs.records import Workload

    model = said.collect(lambda: load_architecture(said.model))
    engine = said.collect(lambda: load_engine(said.engine))
    groups = None
    if said.groups is not None and engine is not None:
        groups = said.collect(lambda: read_groups(said.groups, engine))
    said.check()
    assert model is not None
    assert groups is not None
    best = cut_stages(
        model,
        groups,
        engine=said.engine,
        workload=Workload(**said.sets("Workload")),
        batch=said.batch,
        n_microbatches=said.micro_batches,
        phase=said.phase,
        weights_format=said.weights,
        experts_format=said.experts,
        cache_format=said.kv,
        objective=said.objective,
        solver=said.solver,
        proof=said.proof,
        time_limit_s=said.time_limit,
    )
    return reported(said, best)


def layers(said: Said) -> Answer:
    """Layers placed on mixed machines."""
    from planner.placing.staging.placing import place_layers
    from planner.specs.layer_files import load_layers

    path = said.machines
    spec = None if path is None else said.collect(lambda: load_layers(Path(path)))
    said.check()
    assert spec is not None
    best = place_layers(spec, gap=said.gap, time_limit_s=said.time_limit, proof=said.proof)
    return reported(said, best)
