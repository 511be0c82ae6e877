"""Which candidates a request has: those of the runtimes that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.errors import RequestError
from planner.estimates.serving.usual_engines import engines_of
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.specs.ask.checking import model_problems
from planner.specs.ask.defaults import DEFAULT_WORKLOAD
from planner.specs.ask.engine import OVERLAPS, PREFERENCES
from planner.specs.ask.placement import shape_of
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.ledger import remark
from planner.specs.options.meanings import misplaced, refusal_under
from planner.specs.options.table import set_by
from planner.specs.records.architecture import Architecture
from planner.specs.records.correspondence import architecture_of
from planner.specs.records.devices import ClusterSpec, ModelSpec
from planner.specs.records.economics import MEMORY_RULES
from planner.specs.records.runtimes import ERDIL2025, ROOFLINE
from planner.specs.validation.arguments import raise_if_any

USUAL: dict[str, Any] = {
    "workload": DEFAULT_WORKLOAD,
    "targets": Targets(),
    "weights_formats": None,
    "kv_formats": None,
    "batches": None,
    "objective": "cost",
    "options": SolverOptions(),
    "prefill_batches": None,
    "prefill": None,
    "speculation": None,
    "memory": MEMORY_RULES[0],
    "chunks": None,
    "overlaps": OVERLAPS[:1],
    "hit_fraction": 0.0,
    "experts_backend": "",
    "confidence": None,
    "prefer": PREFERENCES[0],
    "drafting": None,
}
"""Arguments where nothing is said."""


def named_runtimes(
    engine: str | Sequence[str] | None, model: ModelSpec | Architecture, cluster: ClusterSpec
) -> tuple[str, ...]:
    """The runtimes that are asked for, or those that plan where none is."""
    if not engine:
        return engines_of(model, cluster) or (ROOFLINE.name,)
    return (engine,) if isinstance(engine, str) else tuple(dict.fromkeys(engine))


def candidates_of(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None = None,
    *,
    variants: Sequence[ModelSpec | Architecture] = (),
    **keywords: Any,  # noqa: ANN401
) -> CandidatePool:
    """The candidates of all runtimes that are named, for the model and for its variants.

    Where none is named, engines that cannot be asked so are left out, with a warning.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
    """
    keywords = USUAL | keywords
    parts: list[Candidates] = []
    said = [key for key in USUAL if keywords[key] != USUAL[key]] + ["--variants"] * bool(variants)
    refused: list[tuple[str, RequestError]] = []
    for name in named_runtimes(engine, model, cluster):
        if problems := list(misplaced({set_by().get(key, key): "" for key in said}, (name,))):
            raise RequestError(problems)
        try:
            parts += _candidates(name, model, cluster, variants, keywords)
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


def _meant(runtime: str) -> list[str]:
    """Arguments that mean something under a runtime."""
    return [key for key in USUAL if refusal_under(runtime, set_by().get(key, key)) is None]


def _candidates(
    name: str,
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    variants: Sequence[ModelSpec | Architecture],
    keywords: dict[str, Any],
) -> Sequence[Candidates]:
    """The candidates of one runtime.

    Raises:
        RequestError: it cannot be asked so; all problems are listed.
    """
    wanted = {key: keywords[key] for key in _meant(name)}
    if name == ROOFLINE.name:
        from planner.runtimes.roofline import roofline_candidates

        wanted = _of_layouts(model, cluster, wanted)
        return roofline_candidates(wanted, variants=[shape_of(one) for one in variants])
    if name == ERDIL2025.name:
        from planner.runtimes.erdil2025 import erdil_candidates

        memory = wanted.pop("memory")
        return erdil_candidates(_of_layouts(model, cluster, wanted), memory=memory)
    from planner.runtimes.engines import engine_candidates

    served = [layers_of(one) for one in variants]
    return engine_candidates(layers_of(model), cluster, name, variants=served, **wanted)


def _of_layouts(
    model: ModelSpec | Architecture, cluster: ClusterSpec, wanted: dict[str, Any]
) -> dict[str, Any]:
    """Arguments of `make_request`, and what else the runtime takes."""
    nothing = {key: USUAL[key] for key in ("prefill_batches", "prefill")}
    return {"model": shape_of(model), "cluster": cluster, **nothing, **wanted}


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    """The model layer by layer.

    Raises:
        RequestError: the record says what no file could; all problems are listed.
    """
    if not isinstance(model, ModelSpec):
        return model
    raise_if_any(model_problems(model, "model"))
    return architecture_of(model)
