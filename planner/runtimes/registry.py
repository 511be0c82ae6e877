"""Which candidates a request has: those of the runtimes that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.errors import Problem, RequestError
from planner.estimates.economics.request import MEMORY_RULES
from planner.runtimes.candidates import Among, Candidates
from planner.runtimes.engines import engine_candidates
from planner.runtimes.erdil2025 import erdil_candidates
from planner.runtimes.roofline import roofline_candidates
from planner.specs.architecture import Architecture
from planner.specs.correspondence import architecture_of, model_spec_of
from planner.specs.defaults import DEFAULT_WORKLOAD
from planner.specs.engine_request import OVERLAPS, PREFERENCES
from planner.specs.records import ClusterSpec, ModelSpec
from planner.specs.runtimes import ERDIL2025, ROOFLINE
from planner.specs.targets import SolverOptions, Targets

OF_ALL = (
    "workload",
    "targets",
    "weights_formats",
    "kv_formats",
    "batches",
    "objective",
    "options",
)
OF_ROOFLINE = (*OF_ALL, "prefill_batches", "prefill", "speculation")
OF_ERDIL = (*OF_ALL, "speculation", "memory")
OF_ENGINES = (*OF_ALL, "chunks", "overlaps", "hit_fraction", "confidence", "prefer", "drafting")
"""Arguments that mean something to a runtime."""

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
    "speculation": "--draft",
    "memory": "--memory",
    "chunks": "--chunk",
    "overlaps": "--overlap",
    "hit_fraction": "--hit-rate",
    "confidence": "--confidence",
    "prefer": "--prefer",
    "drafting": "--draft",
}


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
    for name in named_runtimes(engine):
        _refuse_meaningless(name, asked, variants)
        if name == ROOFLINE.name:
            wanted = _of_layouts(model, cluster, asked, OF_ROOFLINE)
            parts += roofline_candidates(wanted, variants=[shape_of(one) for one in variants])
        elif name == ERDIL2025.name:
            wanted = _of_layouts(model, cluster, asked, OF_ERDIL)
            memory = wanted.pop("memory")
            parts += erdil_candidates(wanted, memory=memory)
        else:
            wanted = {key: asked[key] for key in OF_ENGINES}
            served = [layers_of(one) for one in variants]
            parts += engine_candidates(layers_of(model), cluster, name, variants=served, **wanted)
    return Among(parts=tuple(sorted(parts, key=lambda one: one.variant is not None)))


def _of_layouts(
    model: ModelSpec | Architecture, cluster: ClusterSpec, asked: dict[str, Any], of: Sequence[str]
) -> dict[str, Any]:
    """Arguments of `make_request`, and what else the runtime takes."""
    wanted = {key: asked[key] for key in of}
    nothing = {key: USUAL[key] for key in ("prefill_batches", "prefill")}
    return {"model": shape_of(model), "cluster": cluster, **nothing, **wanted}


def _refuse_meaningless(name: str, asked: dict[str, Any], variants: Sequence[object]) -> None:
    """Go on only if nothing was asked that means nothing to a runtime."""
    known = {ROOFLINE.name: OF_ROOFLINE, ERDIL2025.name: OF_ERDIL}.get(name, OF_ENGINES)
    unknown = [key for key, usual in USUAL.items() if key not in known and asked[key] != usual]
    problems = [
        Problem(
            where=OPTIONS[key],
            fact=f"means nothing under `--engine {name}`",
            remedy="leave it out",
        )
        for key in unknown
    ]
    if variants and name == ERDIL2025.name:
        fact = "are chosen among by other engines"
        problems.append(Problem(where="--variants", fact=fact, remedy="leave it out"))
    if problems:
        raise RequestError(problems)


def shape_of(model: ModelSpec | Architecture) -> ModelSpec:
    return model_spec_of(model) if isinstance(model, Architecture) else model


def layers_of(model: ModelSpec | Architecture) -> Architecture:
    return architecture_of(model) if isinstance(model, ModelSpec) else model
