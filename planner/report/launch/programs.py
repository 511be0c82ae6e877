"""Programs of layouts: the axes of each collective, and what a layout has that none says.

Axes are letters of the mesh, in the order in which they cut.
"""

from __future__ import annotations

import json
import re
from itertools import permutations
from math import ceil, prod
from typing import Any, NamedTuple

from planner.errors import Problem, RequestError, SolverError
from planner.report.launch.flags import tables
from planner.report.launch.writing import rendered
from planner.results.audits import LayoutPrediction
from planner.results.deployments import Deployment, Mesh, PhasePlan
from planner.results.plans import Plan, served_by
from planner.specs.ask.request import Request
from planner.verifier.layouts.predictions import layout_prediction


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
    return {it: n for it, n in zip("xyz", mesh.axes, strict=True) if n > 1}


def order_of(best: Deployment) -> str:
    """An order of the axes in which both phases find whole heads together; empty if none is.

    Weights rest alike in both. What a phase gathers has to cut them last, so that what is left lies
    together; and pieces of hidden numbers, cut over `f` and then `e`, are put together over
    `moved`, so that `over` has to come first.
    """
    for order in map("".join, permutations(sizes_of(best.mesh))):
        phases = [axes_of(best, it, order) for it in (best.prefill, best.decode)]
        over_e, over_f = resting(best, order)
        is_left = (over_e.startswith(it.e) and over_f.startswith(it.f) for it in phases)
        if all(is_left) and all(it.f + it.e == it.over + it.moved for it in phases):
            return order
    return ""


def resting(best: Deployment, order: str) -> tuple[str, str]:
    """Axes that cut weights at rest, as in `E_x F_yz`: the model dimension, and the rest."""
    stored = best.storage.partition(" ")[0]
    return _inside(order, stored), _inside(order, stored, lies=False)


def axes_of(best: Deployment, phase: PhasePlan, order: str) -> PhaseAxes:
    rest, cuts = _inside(order, phase.gathered_axes, lies=False), batch_axes(best.mesh, phase)
    halves = (*resting(best, rest), _inside(rest, cuts, lies=False), _inside(rest, cuts))
    return PhaseAxes(_inside(order, phase.gathered_axes), *halves)


def _inside(order: str, names: str, *, lies: bool = True) -> str:
    return "".join(it for it in order if (it in names) == lies)


def batch_axes(mesh: Mesh, phase: PhasePlan) -> str:
    """Axes over which attention cuts the batch: those that are gathered, and over the batch the
    largest group around them that the batch fills, the first of several."""
    sizes, cut = sizes_of(mesh), phase.gathered_axes
    groups = [_inside("".join(sizes), it) for it in ("", "x", "y", "xy", "z", "xz", "yz", "xyz")]
    n_ways = {it: prod(sizes[name] for name in it) for it in groups if {*cut} <= {*it}}
    most = max(phase.batch, n_ways[cut]) if phase.attention == "batch" else n_ways[cut]
    return max((it for it in n_ways if n_ways[it] <= most), key=n_ways.__getitem__)


def obstacles_of(request: Request, best: Deployment) -> list[str]:
    """What a layout has and no program says, in words."""
    model, says = served_by(request, best).model, tables()["targets"]["jax"]
    n, n_stages = prod(best.mesh.axes), best.mesh.n_stages
    numbers = {"weights": best.weights_format, "a KV cache": best.kv_format}
    dealt = (
        it for it in (*best.prefill.divisions, *best.decode.divisions) if it.things != "layers"
    )
    widths = {"a model dimension": model.d_model, "an FFN dimension": model.d_ff}
    widths |= {"a width of queries": model.d_query, "a width of keys": model.d_kv}
    has = {it: getattr(best if hasattr(best, it) else model, it) for it in says["lacks"]}
    facts: dict[str, object] = {says["lacks"][it]: stands for it, stands in has.items()}
    facts[f"a pipeline of {n_stages} stages"] = n_stages > 1
    facts["phases of which no order of axes serves both"] = n > 1 > len(order_of(best))
    facts |= {f"{it} in {name}": name not in says["formats"] for it, name in numbers.items()}
    facts |= {
        f"{it.n_things} {it.things}, dealt to {it.n_parts}": it.n_parts % it.n_things
        for it in dealt
    }
    facts |= {f"{it} of {d}, which {n} do not divide": d % n for it, d in widths.items()}
    return [words for words, stands in facts.items() if stands]


def program_of(answer: object, command: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The program of an answer, by the name of its file, and its receipt.

    Args:
        command: that gave the answer.

    Raises:
        RequestError: it has no layout, or one that no program says.
        SolverError: the program has another mesh.
    """
    says, target = tables()["says"], tables()["targets"]["jax"]
    plan: Any = getattr(answer, "plan", answer)
    lacks = [says["layoutless"]]
    if isinstance(plan, Plan) and isinstance(best := plan.deployment, Deployment):
        lacks = obstacles_of(plan.request, best)
    if lacks:
        where, fact = says["option"], f"cannot say this answer: it has {'; '.join(lacks)}"
        raise RequestError([Problem(where=where, value="jax", fact=fact, remedy=target["able"])])
    mesh, about = plan.deployment.mesh, _context(layout_prediction(plan)) | {"command": command}
    texts = {it: rendered(name, **about) for it, name in target["templates"].items()}
    return texts, _receipt(texts, prod(mesh.axes))


def _receipt(texts: dict[str, str], planned: int) -> dict[str, Any]:
    """What is known of a program, as `receipt.json` has it; it is compiled, its mesh read back."""
    for name, text in texts.items():
        compile(text, name, "exec")
    literal = re.search(r"^MESH = ({.*})$", "".join(texts.values()), re.M)
    n_devices = prod(json.loads(literal[1]).values()) if literal else 0
    if n_devices != planned:
        raise SolverError(f"the program has a mesh of {n_devices} devices, the plan of {planned}")
    checks = [{"what": it, "by": "Python's compiler", "result": "read"} for it in texts]
    counts = {"files": n_devices, "plan": planned}
    receipt = tables()["targets"]["jax"]["receipt"]
    return {**receipt, "files": list(texts), "gpus": counts, "checks": checks}


def _context(answer: LayoutPrediction) -> dict[str, Any]:
    """What the template knows."""
    request, best = answer.plan.request, answer.plan.deployment
    assert isinstance(request, Request)
    assert isinstance(best, Deployment)
    model, order, sizes = served_by(request, best).model, order_of(best), sizes_of(best.mesh)
    formats, phases = tables()["targets"]["jax"]["formats"], {}
    sent = {"prefill": answer.prefill_traffic, "decode": answer.decode_traffic}
    for it in (best.prefill, best.decode):
        axes = axes_of(best, it, order)
        n_ways = prod(sizes[name] for name in axes.gathered + axes.moved)
        padded = ceil(it.batch / n_ways) * n_ways
        phases[it.phase] = {"plan": it, "batch": padded, "axes": axes, "sent": sent[it.phase]}
    names = ("n_layers", "d_model", "d_ff", "n_heads_served", "n_kv_heads", "d_head", "vocab_size")
    numbers = (best.weights_format, best.kv_format, model.activation_format)
    tokens = (request.workload.n_input_tokens, request.workload.n_output_tokens)
    return {
        "model": model,
        "best": best,
        "mesh": sizes or {"x": 1},
        "resting": resting(best, order),
        "phases": phases,
        "sizes": [*(getattr(model, name) for name in names), *tokens],
        "types": [formats[it] for it in numbers],
    }
