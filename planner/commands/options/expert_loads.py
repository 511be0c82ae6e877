"""`--expert-loads`: how popular the experts of a model are, as a file or as a power law."""

from __future__ import annotations

from planner.commands.options.parsing import Said
from planner.specs.architecture import Architecture
from planner.units import UnitError, parse

OPTION = "--expert-loads"
ONE_LAYER = "keep the row of one layer"

LARGEST_EXPONENT = 10.0
"""Of a power law: beyond it the busiest expert has 999 of 1,000 visits [1]."""

LEAST_SHARE = 1e-12
"""Of all visits, below which an expert is never visited [1]."""


def with_expert_loads(model: Architecture | None, said: Said) -> Architecture | None:
    """The model with the loads that were said of its experts; problems are collected.

    They are a file as `plan experts` reads it, or the exponent of a power law.
    """
    text = said.expert_loads
    if model is None or text is None:
        return model
    from planner.specs.expert_loads import zipf_loads

    counts = model.expert_counts
    if not counts:
        said.refuse(OPTION, f"{model.name} has no experts", "leave it out")
        return model
    if text.strip() and not _is_number(text):
        return _of_file(model, text, said)
    exponent = said.read_as(OPTION, _exponent)
    for n_experts in counts if exponent is not None else ():
        loads = zipf_loads(n_experts, exponent)
        loads[loads < LEAST_SHARE] = 0.0
        model = model.with_loads(loads.tolist(), said=text)
    return model


def _is_number(text: str) -> bool:
    """Whether a word is a number, if only one that no law has; a file may be called otherwise."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _exponent(text: str) -> float:
    """The exponent of a power law."""
    fact = "is no exponent of a power law" if text.strip() else "is empty"
    remedy = f"write one from 0 to {LARGEST_EXPONENT:g}, or the path of a file"
    try:
        exponent = parse(text, "1", allow_zero=True)
    except UnitError:
        raise UnitError(text, fact, remedy) from None
    if exponent > LARGEST_EXPONENT:
        raise UnitError(text, "leaves one expert with all visits", remedy)
    return exponent


def _of_file(model: Architecture, path: str, said: Said) -> Architecture:
    from planner.specs.expert_loads import load_loads

    loads = said.collect(lambda: load_loads(path, asked_by=OPTION, one_layer=ONE_LAYER))
    if loads is None:
        return model
    if len(loads) not in model.expert_counts:
        counts = " or ".join(str(count) for count in model.expert_counts)
        fact = f"has {len(loads)} loads for {counts} experts"
        said.refuse(OPTION, fact, "write one for each expert of a layer")
        return model
    return model.with_loads(loads.tolist(), said=path)
