"""Which candidates a request has: those of the runtimes that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.errors import RequestError
from planner.runtimes.candidates import Among, Candidates
from planner.runtimes.engines import engine_candidates
from planner.runtimes.erdil2025 import erdil_candidates
from planner.runtimes.roofline import roofline_candidates
from planner.specs.architecture import Architecture
from planner.specs.correspondence import architecture_of, model_spec_of
from planner.specs.defaults import DEFAULT_WORKLOAD
from planner.specs.economics.request import MEMORY_RULES
from planner.specs.engine_request import OVERLAPS, PREFERENCES
from planner.specs.meanings import misplaced, refusal_under
from planner.specs.records import ClusterSpec, ModelSpec
from planner.specs.runtimes import ERDIL2025, ROOFLINE
from planner.specs.targets import SolverOptions, Targets

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
    "confidence": 0.0,
    "prefer": PREFERENCES[0],
    "drafting": None,
}
"""Arguments where nothing is said."""

OPTIONS = {
    "prefill_batches": "--prefill-batch",
    "prefill": "--prefill",
    "memory": "--memory",
    "chunks": "--chunk",
    "overlaps": "--overlap",
    "hit_fraction": "--hit-rate",
    "confidence": "--confidence",
    "prefer": "--prefer",
}
"""Arguments that mean something under some runtimes only, by the options that set them."""


def named_runtimes(engine: str | Sequence[str] | None) -> tuple[str, ...]:
    """The runtimes that are asked for."""
    if engine is None:
        return (ROOFLINE.name,)
    return (engine,) if isinstance(engine, str) else tuple(dict.fromkeys(engine))


def candidates_of(
    model: ModelSpec | Architecture,
    cluster: ClusterSpec,
    engine: str | Sequence[str] | None = None,
    *,
    variants: Sequence[ModelSpec | Architecture] = (),
    **asked: Any,  # noqa: ANN401
) -> Among:
    """The candidates of all runtimes that are named, for the model and for its variants.

    Raises:
        RequestError: the request cannot be read; all problems are listed.
    """
    asked = USUAL | asked
    parts: list[Candidates] = []
    said = [key for key in USUAL if asked[key] != USUAL[key]] + ["--variants"] * bool(variants)
    for name in named_runtimes(engine):
        if problems := list(misplaced({OPTIONS.get(key, key): "" for key in said}, (name,))):
            raise RequestError(problems)
        wanted = {key: asked[key] for key in _meant(name)}
        if name == ROOFLINE.name:
            wanted = _of_layouts(model, cluster, wanted)
            parts += roofline_candidates(wanted, variants=[shape_of(one) for one in variants])
        elif name == ERDIL2025.name:
            memory = wanted.pop("memory")
            parts += erdil_candidates(_of_layouts(model, cluster, wanted), memory=memory)
        else:
            served = [layers_of(one) for one in variants]
            parts += engine_candidates(layers_of(model), cluster, name, variants=served, **wanted)
    return Among(parts=tuple(sorted(parts, key=lambda one: one.variant is not None)))


def _meant(runtime: str) -> list[str]:
    """Arguments that mean something under a runtime."""
    return [key for key in USUAL if refusal_under(runtime, OPTIONS.get(key, key)) is None]


def _of_layouts(
    model: ModelSpec | Architecture, cluster: ClusterSpec, wanted: dict[str, Any]
) -> dict[str, Any]:
    """Arguments of `make_request`, and what else the runtime takes."""
    nothing = {key: USUAL[key] for key in ("prefill_batches", "prefill")}
    return {"model": shape_of(model), "cluster": cluster, **nothing, **wanted}


def shape_of(model: ModelSpec | Architecture) -> ModelSpec:
    return model_spec_of(model) if isinstance(model, Architecture) else model


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    return architecture_of(model) if isinstance(model, ModelSpec) else model
