"""`--expert-loads`: how popular the experts of a model are, as a file or as a power law."""

from __future__ import annotations

from planner.commands.options.arguments import Arguments
from planner.errors import Problem
from planner.specs.architecture import Architecture

OPTION = "--expert-loads"
ONE_LAYER = "keep the row of one layer"


def with_expert_loads(
    model: Architecture | None, said: str | None, found: Arguments
) -> Architecture | None:
    """The model with the loads that were said of its experts; problems are collected.

    Args:
        said: path of a file as `plan experts` reads it, or the exponent of a power law.
    """
    from planner.units import UnitError, parse

    if model is None or said is None:
        return model
    counts = model.expert_counts
    if not counts:
        fact, remedy = f"{model.name} has no experts", "leave it out"
        found.problems.append(Problem(where=OPTION, value=said, fact=fact, remedy=remedy))
        return model
    try:
        exponent = parse(said, "1", allow_zero=True)
    except UnitError:
        return _of_file(model, said, found)
    from planner.specs.expert_loads import zipf_loads

    for n_experts in counts:
        model = model.with_loads(zipf_loads(n_experts, exponent).tolist(), said=said)
    return model


def _of_file(model: Architecture, path: str, found: Arguments) -> Architecture:
    from planner.specs.expert_loads import load_loads

    loads = found.collect(lambda: load_loads(path, asked_by=OPTION, one_layer=ONE_LAYER))
    if loads is None:
        return model
    if len(loads) not in model.expert_counts:
        counts = " or ".join(str(one) for one in model.expert_counts)
        fact = f"has {len(loads)} loads for {counts} experts"
        remedy = "write one for each expert of a layer"
        found.problems.append(Problem(where=OPTION, value=path, fact=fact, remedy=remedy))
        return model
    return model.with_loads(loads.tolist(), said=path)
