"""Programs of layouts: the axes of each collective, and what a layout has that none says.

Axes are letters of the mesh, as records of deployments have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from math import ceil, prod
from typing import Any, NamedTuple

from planner.errors import Problem, RequestError, SolverError
from planner.report.launch.writing import rendered, tables
from planner.results.deployments import Deployment, Mesh, PhasePlan
from planner.results.layout_predictions import LayoutPrediction
from planner.results.plans import served_by
from planner.specs.ask.request import Request
from planner.specs.records.devices import ModelSpec

LETTERS = "xyz"


class PhaseAxes(NamedTuple):
    """Axes of a phase, each in the order in which they cut.

    Weights are gathered over `gathered`; of the others `e` cut the model dimension and `f` the FFN
    and the heads. Attention cuts its batch over `gathered` and `moved`, and heads over `over`.
    """

    gathered: str
    e: str
    f: str
    over: str
    moved: str

    def is_in_order(self) -> bool:
        """Whether pieces of hidden numbers, cut over `f` and then `e`, are whole heads once they
        are put together over `moved`: for that `over` has to come first."""
        return self.f + self.e == self.over + self.moved


class Program(NamedTuple):
    """A layout as a program has it.

    Args:
        order: letters of the mesh, in the order in which axes cut.
        phases: by name; None where no order serves both.
    """

    model: ModelSpec
    best: Deployment
    order: str
    phases: Mapping[str, PhaseAxes] | None


def sizes_of(mesh: Mesh) -> dict[str, int]:
    """Devices along each axis that has several."""
    return {it: n for it, n in zip(LETTERS, mesh.axes, strict=True) if n > 1}


def stored_axes(best: Deployment) -> str:
    """Axes that cut the model dimension at rest, of `E_x F_yz`."""
    return best.storage.partition(" ")[0].partition("_")[2]


def program_of(answer: object) -> Program | None:
    """The layout of an answer; None where it has none.

    Weights rest alike in both phases: the last axes that cut them are those that are gathered, so
    that what is left lies together.
    """
    if not isinstance(answer, LayoutPrediction):
        return None
    request, best = answer.plan.request, answer.plan.deployment
    if not (isinstance(request, Request) and isinstance(best, Deployment)):
        return None
    model, names = served_by(request, best).model, "".join(sizes_of(best.mesh))
    for order in map("".join, permutations(names)):
        phases = {it.phase: _axes_of(best, it, order) for it in (best.prefill, best.decode)}
        if all(it.is_in_order() and _ends_gathered(best, it, order) for it in phases.values()):
            return Program(model, best, order, phases)
    return Program(model, best, names, None)


def _axes_of(best: Deployment, phase: PhasePlan, order: str) -> PhaseAxes:
    stored = stored_axes(best)
    rest = [it for it in order if it not in phase.gathered_axes]
    cuts = batch_axes(best.mesh, phase)
    return PhaseAxes(
        gathered="".join(it for it in order if it in phase.gathered_axes),
        e="".join(it for it in rest if it in stored),
        f="".join(it for it in rest if it not in stored),
        over="".join(it for it in rest if it not in cuts),
        moved="".join(it for it in rest if it in cuts),
    )


def _ends_gathered(best: Deployment, axes: PhaseAxes, order: str) -> bool:
    stored = stored_axes(best)
    rests = ("".join(it for it in order if (it in stored) == is_e) for is_e in (True, False))
    return all(it.startswith(left) for it, left in zip(rests, (axes.e, axes.f), strict=True))


def batch_axes(mesh: Mesh, phase: PhasePlan) -> str:
    """Axes over which attention cuts the batch: of those around the gathered ones the largest
    group that the batch fills, the first of several."""
    sizes, cut = sizes_of(mesh), set(phase.gathered_axes)
    if phase.attention == "heads":
        return phase.gathered_axes
    groups = [set(it) for n in range(len(sizes) + 1) for it in combinations(sizes, n)]
    most = max(phase.batch, prod(sizes[it] for it in cut))
    able = [it for it in groups if cut <= it and prod(sizes[name] for name in it) <= most]
    masks = sorted(able, key=lambda it: sum(1 << LETTERS.index(name) for name in it))
    return "".join(sorted(max(masks, key=lambda it: prod(sizes[name] for name in it))))


def obstacles_of(program: Program) -> Iterator[str]:
    """What a layout has and no program says, in words."""
    model, best, says = program.model, program.best, tables()["targets"]["jax"]
    lacks: Mapping[str, str] = says["lacks"]
    yield from (
        it for name, it in lacks.items() if getattr(best if hasattr(best, name) else model, name)
    )
    if best.mesh.n_stages > 1:
        yield f"a pipeline of {best.mesh.n_stages} stages"
    for what, name in (("weights", best.weights_format), ("a KV cache", best.kv_format)):
        if name not in says["formats"]:
            yield f"{what} in {name}, which is no type of numbers of JAX"
    uneven = {it.things: it for phase in (best.prefill, best.decode) for it in phase.divisions}
    yield from (
        f"{it.n_things} {it.things} on {it.n_parts} devices, which do not divide them"
        for it in uneven.values()
        if it.n_parts % it.n_things and it.things != "layers"
    )
    if program.phases is None:
        yield "phases of which no order of axes serves both, as weights rest"
    n = prod(best.mesh.axes)
    sizes = {"model dimension": model.d_model, "FFN dimension": model.d_ff}
    sizes |= {"width of queries": model.d_query, "width of keys": model.d_kv}
    yield from (f"a {it} of {size}, not cut evenly" for it, size in sizes.items() if size % n)


def program_texts(answer: object, command: str) -> dict[str, str]:
    """The program of an answer, by the name of its file.

    Args:
        command: that gave the answer.

    Raises:
        RequestError: it has no layout, or one that no program says.
        SyntaxError: the program is none.
    """
    says, target = tables()["says"], tables()["targets"]["jax"]
    program = program_of(answer)
    lacks = "; ".join(obstacles_of(program)) if program else says["layoutless"]
    if lacks or not isinstance(answer, LayoutPrediction) or program is None:
        fact = f"cannot say this answer: it has {lacks}"
        where, remedy = says["option"], target["able"]
        raise RequestError([Problem(where=where, value="jax", fact=fact, remedy=remedy)])
    about = _context(program, answer) | {"command": command}
    texts = {name: rendered(it, **about) for name, it in target["templates"].items()}
    for name, text in texts.items():
        compile(text, name, "exec")
    return texts


def program_receipt(texts: Mapping[str, str], answer: LayoutPrediction) -> dict[str, Any]:
    """What is known of a program, as `receipt.json` has it; its mesh is read back.

    Raises:
        SolverError: it has another mesh than the plan.
    """
    target, planned = tables()["targets"]["jax"], prod(answer.plan.deployment.mesh.axes)
    literal = re.search(r"^MESH = ({.*})$", "".join(texts.values()), re.M)
    n_devices = prod(json.loads(literal[1]).values()) if literal else 0
    if n_devices != planned:
        raise SolverError(f"the program has a mesh of {n_devices} devices, the plan of {planned}")
    checks = [{"what": it, "by": "Python's compiler", "result": "read"} for it in texts]
    return {
        "title": f"A program for jax: {target['words']}",
        "target": "jax",
        "files": list(texts),
        "gpus": {"files": n_devices, "plan": planned},
        "checks": checks,
        "pools": [],
        "placeholders": {},
        "unchecked": target["unchecked"],
    }


def _context(program: Program, answer: LayoutPrediction) -> dict[str, Any]:
    """What the template knows."""
    model, best, stored = program.model, program.best, stored_axes(program.best)
    sizes, formats = sizes_of(best.mesh), tables()["targets"]["jax"]["formats"]
    sent = {"prefill": answer.prefill_traffic, "decode": answer.decode_traffic}
    workload = answer.plan.request.workload
    phases = {}
    for plan in (best.prefill, best.decode):
        axes = (program.phases or {})[plan.phase]
        ways = prod(sizes[it] for it in axes.gathered + axes.moved)
        phases[plan.phase] = axes._asdict() | {
            "layout": plan.layout,
            "attention": plan.attention,
            "planned": plan.batch,
            "batch": ceil(plan.batch / ways) * ways,
            "sent": sent[plan.phase],
        }
    names = ("n_layers", "d_model", "d_ff", "n_heads_served", "n_kv_heads", "d_head", "vocab_size")
    tokens = (workload.n_input_tokens, workload.n_output_tokens)
    return {
        "model": model,
        "summary": best.summary,
        "storage": best.storage,
        "mesh_words": best.mesh.text,
        "mesh": sizes or {"x": 1},
        "e_axes": [it for it in program.order if it in stored],
        "f_axes": [it for it in program.order if it not in stored],
        "phases": phases,
        "sizes": [*(getattr(model, name) for name in names), *tokens],
        "parallel": model.is_parallel,
        "gated": model.n_ffn_matrices == 3,
        "formats": {
            "weights": formats[best.weights_format],
            "cache": formats[best.kv_format],
            "activations": formats[model.activation_format],
        },
    }
