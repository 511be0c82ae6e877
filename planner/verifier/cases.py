"""The names of a case, held against the request of its answer."""

from __future__ import annotations

from collections.abc import Iterator

from planner.results import AnyRequest
from planner.results.surveys import Case
from planner.specs.economics.request import EconomicsRequest
from planner.specs.engine_request import EngineRequest
from planner.verifier.findings import Finding, Path


def misnamed(case: Case, request: AnyRequest, runtime: str, path: Path) -> Iterator[Finding]:
    """Names that are not those of what was asked.

    Args:
        runtime: that counted the answer.
    """
    if isinstance(request, EconomicsRequest):  # it has models by the format of their weights
        target = request.served[0].target
        yield from _other(path, model=(case.model, target.model.name))
        offered = tuple(one.weights_format for one in request.served)
        caches: tuple[str, ...] = ()
    elif isinstance(request, EngineRequest):
        names = {"model": (case.model, request.model.name)}
        yield from _other(path, **names, topology=(case.topology, request.cluster.name))
        offered = tuple(dict.fromkeys(one.weights for one in request.formats))
        caches = tuple(dict.fromkeys(one.cache for one in request.formats))
    else:
        names = {"model": (case.model, request.model.name)}
        yield from _other(path, **names, topology=(case.topology, request.cluster.name))
        offered, caches = request.weights_formats, request.kv_formats
    if case.engine and case.engine != runtime:
        fact = f"is not {runtime}, whose answer this is"
        yield Finding(path=(*path, "engine"), says=case.engine, fact=fact)
    if case.weights and not set(offered) <= set(case.weights.split(",")):
        fact = f"is not {','.join(offered)}, which was offered"
        yield Finding(path=(*path, "weights"), says=case.weights, fact=fact)
    if case.kv and caches and (case.kv,) != caches:
        fact = f"is not {','.join(caches)}, which was offered"
        yield Finding(path=(*path, "kv"), says=case.kv, fact=fact)


def _other(path: Path, **names: tuple[str, str]) -> Iterator[Finding]:
    for field, (says, true) in names.items():
        if says != true:
            yield Finding(path=(*path, field), says=says, found=true)
