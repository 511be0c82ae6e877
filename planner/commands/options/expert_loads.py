"""`--expert-loads`: how popular the experts of a model are, as a file or as a power law."""

from __future__ import annotations

from planner.commands.options.arguments import Arguments
from planner.errors import Problem
from planner.specs.architecture import Architecture

OPTION = "--expert-loads"
ONE_LAYER = "keep the row of one layer"

LARGEST_EXPONENT = 10.0
"""Of a power law: beyond it the busiest expert has 999 of 1,000 visits [1]."""

LEAST_SHARE = 1e-12
"""Of all visits, below which an expert is never visited [1]."""


def with_expert_loads(
    model: Architecture | None, said: str | None, found: Arguments
) -> Architecture | None:
    """The model with the loads that were said of its experts; problems are collected.

    Args:
        said: path of a file as `plan experts` reads it, or the exponent of a power law.
    """
    if model is None or said is None:
        return model
    from planner.specs.expert_loads import zipf_loads

    counts = model.expert_counts
    if not counts:
        fact, remedy = f"{model.name} has no experts", "leave it out"
        found.problems.append(Problem(where=OPTION, value=said, fact=fact, remedy=remedy))
        return model
    if said.strip() and not _is_number(said):
        return _of_file(model, said, found)
    exponent = _exponent(said, found)
    for n_experts in counts if exponent is not None else ():
        assert exponent is not None
        loads = zipf_loads(n_experts, exponent)
        loads[loads < LEAST_SHARE] = 0.0
        model = model.with_loads(loads.tolist(), said=said)
    return model


def _is_number(said: str) -> bool:
    """Whether a word is a number, if only one that no law has; a file may be called otherwise."""
    try:
        float(said)
    except ValueError:
        return False
    return True


def _exponent(said: str, found: Arguments) -> float | None:
    """The exponent of a power law; None, and why, of what is none."""
    from planner.units import UnitError, parse

    fact = "is no exponent of a power law" if said.strip() else "is empty"
    try:
        exponent = parse(said, "1", allow_zero=True)
        if exponent <= LARGEST_EXPONENT:
            return exponent
        fact = "leaves one expert with all visits"
    except UnitError:
        pass
    remedy = f"write one from 0 to {LARGEST_EXPONENT:g}, or the path of a file"
    found.problems.append(Problem(where=OPTION, value=said, fact=fact, remedy=remedy))
    return None


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
