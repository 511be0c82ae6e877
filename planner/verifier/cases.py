"""The names of a case, held against the request of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.results import AnyRequest
from planner.results.surveys import Case
from planner.specs.economics.request import EconomicsRequest
from planner.specs.engine_request import EngineRequest
from planner.specs.placement_request import PlacementRequest
from planner.verifier.findings import Finding, Path
from planner.verifier.runtimes.counting import counting_of


def misnamed(case: Case, request: AnyRequest, runtime: str, path: Path) -> Iterator[Finding]:
    """Names that are not those of what was asked.

    Args:
        runtime: that counted the answer.
    """
    yield from _other(case, request, path)
    offered, caches = _formats(request)
    if case.engine and case.engine != runtime:
        fact = f"is not {runtime}, whose answer this is"
        yield Finding(path=(*path, "engine"), says=case.engine, fact=fact)
    if case.weights and not set(offered) <= set(case.weights.split(",")):
        fact = f"is not {','.join(offered)}, which was offered"
        yield Finding(path=(*path, "weights"), says=case.weights, fact=fact)
    if case.kv and caches and (case.kv,) != caches:
        fact = f"is not {','.join(caches)}, which was offered"
        yield Finding(path=(*path, "kv"), says=case.kv, fact=fact)


def denied(
    case: Case, reason: str, asked: Sequence[AnyRequest | PlacementRequest], path: Path
) -> Iterator[Finding]:
    """What is wrong with a case that is said to have no answer; that it has none is proved.

    Args:
        asked: its requests; none of what could not be read, or of which time ended.
        path: of the case, with what is said of it.
    """
    if not asked and not reason.startswith(("no plan within ", "`")):
        fact = "is of no request, and neither of what could not be read nor of time that ended"
        yield Finding(path=(*path, "reason"), says=reason, fact=fact)
    for one in asked[:1]:
        if isinstance(one, PlacementRequest):
            yield from called_otherwise(case, one, (*path, "case"))
        else:
            yield from misnamed(case, one, counting_of(one).runtime, (*path, "case"))


def called_otherwise(case: Case, asked: PlacementRequest, path: Path) -> Iterator[Finding]:
    """Names of a case that are not those of what replicas were asked."""
    names = {
        "model": (case.model, ", ".join(one.model.name for one in asked.models)),
        "topology": (case.topology, asked.site.name),
        "engine": (case.engine, case.engine and ", ".join(asked.engines)),
        "roles": (case.roles, asked.roles.name),
        "weights": (case.weights, ",".join(asked.models[0].weights_formats or ())),
        "kv": (case.kv, case.kv and ",".join(asked.models[0].kv_formats or ())),
    }
    for name, (said, true) in names.items():
        if said != true:
            yield Finding(path=(*path, name), says=said, found=true)


def _other(case: Case, request: AnyRequest, path: Path) -> Iterator[Finding]:
    """Another model or pool; `erdil2025` has models by the format of their weights, and no pool."""
    if isinstance(request, EconomicsRequest):
        names = {"model": request.served[0].target.model.name}
    else:
        names = {"model": request.model.name, "topology": request.cluster.name}
    for field, true in names.items():
        if getattr(case, field) != true:
            yield Finding(path=(*path, field), says=getattr(case, field), found=true)


def _formats(request: AnyRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Formats of weights and cache that were offered; of a cache without formats none."""
    if isinstance(request, EconomicsRequest):
        return tuple(one.weights_format for one in request.served), ()
    if isinstance(request, EngineRequest):
        pairs = request.formats
        weights = tuple(dict.fromkeys(one.weights for one in pairs))
        return weights, tuple(dict.fromkeys(one.cache for one in pairs))
    return request.weights_formats, request.kv_formats
