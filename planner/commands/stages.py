"""`plan stages` and `plan layers`: models over unequal devices, cut into stages or placed."""

from __future__ import annotations

from functools import partial

from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.report.files import Answer


def stages(said: Said) -> Answer:
    """A model cut into pipeline stages."""
    from planner.placing.staging.asking import cut_stages, read_groups
    from planner.specs.engines.files import load_engine
    from planner.specs.reading import load_architecture
    from planner.specs.records import Workload

    model = said.load("--model", load_architecture)
    engine = said.load("--engine", load_engine)
    groups = engine and said.load("--groups", partial(read_groups, engine=engine))
    said.check()
    assert model is not None
    assert groups is not None
    asked = said.sets() | said.sets("SolverOptions") | {"groups": groups}
    best = cut_stages(model, **asked, workload=Workload(**said.sets("Workload")))
    return reported(said, best)


def layers(said: Said) -> Answer:
    """Layers placed on mixed machines."""
    from planner.placing.staging.placing import place_layers
    from planner.specs.layer_files import load_layers

    spec = said.load("--machines", load_layers)
    said.check()
    assert spec is not None
    best = place_layers(spec, **said.sets("SolverOptions"))
    return reported(said, best)
