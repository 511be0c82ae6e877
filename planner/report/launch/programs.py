"""Programs of layouts: the axes of each collective, and what a layout has that none says.

Axes are letters of the mesh, in the order in which they cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import permutations
from math import ceil, prod
from typing import Any, NamedTuple

from planner.errors import Problem, RequestError, SolverError
from planner.report.launch.writing import rendered, tables
from planner.results.deployments import Deployment, Mesh, PhasePlan
from planner.results.layout_predictions import LayoutPrediction
from planner.results.plans import served_by
from planner.specs.ask.request import Request

LETTERS = "xyz"


class PhaseAxes(NamedTuple):
    """Axes of a phase: weights are gathered over `gathered`; of the others `e` cut the model
    dimension, `f` the FFN and the heads. Attention cuts its batch over `gathered` and `moved`, its
    heads over `over`.
    """

    gathered: str
    e: str
    f: str
    over: str
    moved: str


def sizes_of(mesh: Mesh) -> dict[str, int]:
    """Devices along each axis that has several."""
    return {it: n for it, n in zip(LETTERS, mesh.axes, strict=True) if n > 1}


def order_of(best: Deployment) -> str:
    """An order of the axes in which both phases find whole heads together; empty if none is.

    Weights rest alike in both. What a phase gathers has to cut them last, so that what is left lies
    together; and pieces of hidden numbers, cut over `f` and then `e`, are put together over
    `moved`, so that `over` has to come first.
    """
    for order in map("".join, permutations(sizes_of(best.mesh))):
        phases = [(it, axes_of(best, it, order)) for it in (best.prefill, best.decode)]
        if all(it.f + it.e == it.over + it.moved for _, it in phases) and all(
            axes.startswith(left)
            for _, it in phases
            for axes, left in zip(resting(best, order), (it.e, it.f), strict=True)
        ):
            return order
    return ""


def resting(best: Deployment, order: str) -> tuple[str, str]:
    """Axes that cut weights at rest, as in `E_x F_yz`: the model dimension, and the rest."""
    stored = best.storage.partition(" ")[0]
    over_e = "".join(it for it in order if it in stored)
    return over_e, "".join(it for it in order if it not in stored)


def axes_of(best: Deployment, phase: PhasePlan, order: str) -> PhaseAxes:
    rest = "".join(it for it in order if it not in phase.gathered_axes)
    over_e, over_f = resting(best, rest)
    cuts = batch_axes(best.mesh, phase)
    return PhaseAxes(
        gathered="".join(it for it in order if it in phase.gathered_axes),
        e=over_e,
        f=over_f,
        over="".join(it for it in rest if it not in cuts),
        moved="".join(it for it in rest if it in cuts),
    )


def batch_axes(mesh: Mesh, phase: PhasePlan) -> str:
    """Axes over which attention cuts the batch: those that are gathered, and over the batch the
    largest group around them that the batch fills, the first of several."""
    sizes, cut = sizes_of(mesh), phase.gathered_axes
    groups = ["".join(it for it in sizes if mask >> LETTERS.index(it) & 1) for mask in range(8)]
    n_ways = {it: prod(sizes[name] for name in it) for it in groups if {*cut} <= {*it}}
    most = max(phase.batch, n_ways[cut]) if phase.attention == "batch" else n_ways[cut]
    return max((it for it in n_ways if n_ways[it] <= most), key=n_ways.__getitem__)


def obstacles_of(request: Request, best: Deployment) -> Iterator[str]:
    """What a layout has and no program says, in words."""
    model, says, n = (
        served_by(request, best).model,
        tables()["targets"]["jax"],
        prod(best.mesh.axes),
    )
    for name, words in says["lacks"].items():
        if getattr(best if hasattr(best, name) else model, name):
            yield words
    if best.mesh.n_stages > 1:
        yield f"a pipeline of {best.mesh.n_stages} stages"
    for what, number in (("weights", best.weights_format), ("a KV cache", best.kv_format)):
        if number not in says["formats"]:
            yield f"{what} in {number}, which is no type of numbers of JAX"
    for it in dict.fromkeys((*best.prefill.divisions, *best.decode.divisions)):
        if it.things.endswith("heads") and it.n_parts % it.n_things:
            yield f"{it.n_things} {it.things} for {it.n_parts} devices, which do not come out even"
    if n > 1 and not order_of(best):
        yield "phases of which no order of axes serves both, as weights rest"
    widths = {"model dimension": model.d_model, "FFN dimension": model.d_ff}
    widths |= {"width of queries": model.d_query, "width of keys": model.d_kv}
    yield from (f"a {it} of {d}, which {n} do not divide" for it, d in widths.items() if d % n)


def program_of(answer: object, command: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The program of an answer, by the name of its file, and its receipt.

    Args:
        command: that gave the answer.

    Raises:
        RequestError: it has no layout, or one that no program says.
        SolverError: the program has another mesh.
    """
    says, target = tables()["says"], tables()["targets"]["jax"]
    lacks, about = [says["layoutless"]], dict[str, Any]()
    if (
        isinstance(answer, LayoutPrediction)
        and isinstance(request := answer.plan.request, Request)
        and isinstance(best := answer.plan.deployment, Deployment)
    ):
        lacks = list(obstacles_of(request, best))
        about = {} if lacks else _context(request, best, answer)
    if lacks:
        fact = f"cannot say this answer: it has {'; '.join(lacks)}"
        where, remedy = says["option"], target["able"]
        raise RequestError([Problem(where=where, value="jax", fact=fact, remedy=remedy)])
    texts = {
        it: rendered(name, **about, command=command) for it, name in target["templates"].items()
    }
    return texts, _receipt(texts, target, prod(about["mesh"].values()))


def _receipt(texts: dict[str, str], target: dict[str, Any], planned: int) -> dict[str, Any]:
    """What is known of a program, as `receipt.json` has it; it is compiled, its mesh read back."""
    for name, text in texts.items():
        compile(text, name, "exec")
    literal = re.search(r"^MESH = ({.*})$", "".join(texts.values()), re.M)
    n_devices = prod(json.loads(literal[1]).values()) if literal else 0
    if n_devices != planned:
        raise SolverError(f"the program has a mesh of {n_devices} devices, the plan of {planned}")
    return {
        "title": f"A program for jax: {target['words']}",
        "target": "jax",
        "files": list(texts),
        "gpus": {"files": n_devices, "plan": planned},
        "checks": [{"what": it, "by": "Python's compiler", "result": "read"} for it in texts],
        "pools": [],
        "placeholders": {},
        "unchecked": target["unchecked"],
    }


def _context(request: Request, best: Deployment, answer: LayoutPrediction) -> dict[str, Any]:
    """What the template knows."""
    model, order, sizes = served_by(request, best).model, order_of(best), sizes_of(best.mesh)
    formats, phases = tables()["targets"]["jax"]["formats"], {}
    sent = {"prefill": answer.prefill_traffic, "decode": answer.decode_traffic}
    for it in (best.prefill, best.decode):
        axes = axes_of(best, it, order)
        n_ways = prod(sizes[name] for name in axes.gathered + axes.moved)
        padded = ceil(it.batch / n_ways) * n_ways
        phases[it.phase] = {"plan": it, "batch": padded, "axes": axes, "sent": sent[it.phase]}
    names = ("n_layers", "d_model", "d_ff", "n_heads_served", "n_kv_heads", "d_head", "vocab_size")
    tokens = (request.workload.n_input_tokens, request.workload.n_output_tokens)
    return {
        "model": model,
        "best": best,
        "mesh": sizes or {"x": 1},
        "resting": resting(best, order),
        "phases": phases,
        "sizes": [*(getattr(model, name) for name in names), *tokens],
        "types": [
            formats[it] for it in (best.weights_format, best.kv_format, model.activation_format)
        ],
    }
