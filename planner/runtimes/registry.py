"""Which candidates a request has: those of the runtimes that it names."""

from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from planner.errors import RequestError
from planner.estimates.serving.usual_engines import engines_of
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.specs.ask.checking import model_problems
from planner.specs.ask.defaults import reuse_options
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.placement import shape_of
from planner.specs.files.ledger import remark
from planner.specs.options.meanings import misplaced
from planner.specs.options.table import set_by
from planner.specs.records.architecture import Architecture
from planner.specs.records.correspondence import architecture_of
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.runtimes import ERDIL2025, ROOFLINE
from planner.specs.validation.arguments import raise_if_any


def named_runtimes(
    engine: str | Sequence[str] | None, model: ModelSpec | Architecture, cluster: ClusterSpec
) -> tuple[str, ...]:
    """The runtimes that are asked for, or those that plan where none is."""
    if not engine:
        return engines_of(model, cluster) or (ROOFLINE.name,)
    return (engine,) if isinstance(engine, str) else tuple(dict.fromkeys(engine))


def options_said(choices: PlanOptions, *, but: Collection[str] = ()) -> list[str]:
    """Options, or arguments that none sets, of which something else than is usual is said."""
    usual, names = PlanOptions(), [one.name for one in fields(PlanOptions) if one.name not in but]
    said = [name for name in names if getattr(choices, name) != getattr(usual, name)]
    return [set_by().get(name, "--" + name if name == "variants" else name) for name in said]


def candidates_of(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None,
    choices: PlanOptions,
) -> CandidatePool:
    """The candidates of all runtimes that are named, for the model and for its variants.

    Where none is named, engines that cannot be asked so are left out, with a warning.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
    """
    parts: list[Candidates] = []
    refused: list[tuple[str, RequestError]] = []
    said = dict.fromkeys(options_said(choices), "") | reuse_options(choices.workload)
    for name in named_runtimes(engine, model, cluster):
        if problems := list(misplaced(said, (name,))):
            raise RequestError(problems)
        try:
            parts += _candidates(name, model, cluster, choices)
        except RequestError as error:
            if engine:
                raise
            refused.append((name, error))
    if not parts:
        raise refused[0][1]
    for name, refusal in refused:
        for one in refusal.problems:
            fact = f"{one.fact}: {name} is left out"
            remark(replace(one, fact=fact, remedy=""), once=f"{name} {one.where} {one.fact}")
    return CandidatePool(
        parts=tuple(sorted(parts, key=lambda candidates: candidates.variant is not None))
    )


def _candidates(
    name: str,
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    choices: PlanOptions,
) -> Sequence[Candidates]:
    """The candidates of one runtime.

    Raises:
        RequestError: it cannot be asked so; all problems are listed.
    """
    if name == ROOFLINE.name:
        from planner.runtimes.roofline import roofline_candidates

        shapes = [shape_of(one) for one in choices.variants]
        return roofline_candidates(shape_of(model), cluster, choices, shapes)
    if name == ERDIL2025.name:
        from planner.runtimes.erdil2025 import erdil_candidates

        return erdil_candidates(shape_of(model), cluster, choices)
    from planner.runtimes.engines import engine_candidates

    variants = [layers_of(one) for one in choices.variants]
    return engine_candidates(layers_of(model), cluster, name, choices, variants)


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    """The model layer by layer.

    Raises:
        RequestError: the record says what no file could; all problems are listed.
    """
    if not isinstance(model, ModelSpec):
        return model
    raise_if_any(model_problems(model, "model"))
    return architecture_of(model)
