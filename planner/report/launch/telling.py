"""Commands of an engine's deployment: what starts it, and what evaluates it by itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.report.launch import launch_of
from planner.report.launch.words import Started
from planner.results.conflicts import Conflict
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.plans import AnyDeployment, AnyPlan, AnyRequest, Plan
from planner.results.predictions import Launch, Prediction
from planner.specs.ask.defaults import reuse_options
from planner.specs.ask.engine import OVERLAPS, EngineRequest, PredictionRequest, ServingRecords
from planner.specs.ask.targets import EXPERT_DEVICES, MICRO_BATCHES
from planner.specs.files.acceptance import acceptance_text
from planner.specs.files.engines import memory_options
from planner.specs.files.what_if import said_to, text_of
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.correspondence import architecture_of
from planner.specs.records.devices import NodesFabric
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import TOGETHER
from planner.specs.records.served_formats import as_run, checkpoint_of
from planner.specs.validation.hints import from_fields

if TYPE_CHECKING:
    from planner.results.fleets import FleetPlan, FleetPool, OtherFleet
    from planner.results.placements import RunConfig
    from planner.results.surveys import Frontier


def with_commands(request: EngineRequest, best: EngineDeployment) -> EngineDeployment:
    """A deployment with the commands that belong to its figures."""
    named = {one.name: one for one in request.records.models}
    alone = best.alone(request, named[best.model])
    command = as_written(best.command, _predict_command(request, best))
    launch = launched(alone, n_per_node=request.cluster.n_devices_per_node)
    return replace(best, command=command, launch=launch)


def as_written(says: str, command: str) -> str:
    """A command, with files named as it already names them: nobody else knows where they are."""
    mine, words = shlex.split(says), shlex.split(command)
    if len(mine) != len(words):
        return command
    apart = [i for i, (one, word) in enumerate(zip(mine, words, strict=True)) if one != word]
    is_of_files = all(words[i - 1] in ("--model", "--topology") for i in apart)
    return says if is_of_files and all(_is_path(mine[i]) for i in apart) else command


def _is_path(word: str) -> bool:
    return "/" in word or word.endswith((".json", ".toml"))


def with_commands_of(answer: Any) -> object:  # noqa: ANN401 any kind of answer
    """An answer with the commands that belong to its figures, wherever it has some."""
    if isinstance(answer, Prediction):
        return replace(answer, launch=launched(answer.request))
    if isinstance(answer, Plan):
        return _plan_with_commands(answer)
    if isinstance(answer, Conflict):
        return _conflict_with_commands(answer)
    if type(answer).__name__ == "FleetPlan":  # without importing fleets, which takes long
        return _fleet_with_commands(answer)
    if type(answer).__name__ in ("Comparison", "Curves"):
        return _survey_with_commands(answer)
    if isinstance(answer, EngineAudit) and isinstance(request := answer.request, EngineRequest):
        names = ("predicted", "same_devices", "equal_speed", "equal_cost")
        ends: dict[str, Any] = {name: getattr(answer, name) for name in names}
        ends |= {name: with_commands(request, best) for name, best in ends.items() if best}
        return replace(answer, **ends)
    return answer


def _fleet_with_commands(plan: FleetPlan) -> FleetPlan:
    """A fleet, and what stands beside it, with the commands that start their engines."""
    inside, anywhere = (
        fleet and replace(fleet, recipes=tuple(_started_recipes(plan, fleet)))
        for fleet in (plan.inside, plan.anywhere)
    )
    recipes = tuple(_started_recipes(plan, plan))
    return replace(plan, recipes=recipes, inside=inside, anywhere=anywhere)


def _started_recipes(plan: FleetPlan, fleet: FleetPlan | OtherFleet) -> Iterator[RunConfig]:
    """Recipes of a fleet whose engines are started for the longest request that they may get."""
    for number, recipe in enumerate(fleet.recipes):
        pools = [it for it in fleet.pools if it.recipe == number]
        best, launch = recipe.deployment, _recipe_launch(plan, recipe, pools)
        if launch is not None and isinstance(best, EngineDeployment):
            best = replace(best, launch=launch)
        yield replace(recipe, deployment=best)


def _recipe_launch(plan: FleetPlan, recipe: RunConfig, pools: Sequence[FleetPool]) -> Launch | None:
    """How the replicas of a recipe are started; None of what is no engine's."""
    devices = {it.kind: it.device for it in plan.kinds}
    tables = {(it.engine.name, it.kernels.device): it for it in plan.request.tables}
    kernels, best = tables.get((recipe.engine, devices.get(recipe.kind, ""))), recipe.deployment
    models = {it.name: it for each in plan.request.classes for it in each.models}
    if kernels is None or not pools or not isinstance(best, EngineDeployment):
        return None
    model = models[recipe.model]
    started = _started(
        model if isinstance(model, Architecture) else architecture_of(model),
        best,
        kernels,
        n_per_node=max(recipe.pieces),
        n_tokens=max(map(plan.n_longest_tokens, pools)),
    )
    return launch_of(recipe.engine, started)


def _plan_with_commands(answer: AnyPlan) -> AnyPlan:
    """A plan whose deployments have the commands of their own requests."""
    told = teller_of((answer.request, *answer.other_requests))
    return replace(
        answer,
        deployment=told(answer.deployment),
        alternatives=tuple(
            replace(one, deployment=told(one.deployment)) for one in answer.alternatives
        ),
        rivals=tuple(
            replace(rival, deployment=rival.deployment and told(rival.deployment))
            for rival in answer.rivals
        ),
    )


def _conflict_with_commands(answer: Conflict) -> Conflict:
    """A conflict, and the plans that changes of limits have, with their commands."""
    told = teller_of((answer.request, *answer.other_requests))
    relaxed = (replace(it, deployment=told(it.deployment)) for it in answer.relaxations)
    closest = answer.closest and told(answer.closest)
    return replace(answer, relaxations=tuple(relaxed), closest=closest)


def _survey_with_commands(answer: Any) -> Any:  # noqa: ANN401 a comparison, or curves
    """Several answers whose deployments have the commands of their own requests."""
    if hasattr(answer, "rows"):
        rows = (
            replace(row, plan=row.plan and _plan_with_commands(row.plan)) for row in answer.rows
        )
        return replace(answer, rows=tuple(rows))
    curves = (
        replace(curve, frontier=curve.frontier and _frontier_with_commands(curve.frontier))
        for curve in answer.curves
    )
    return replace(answer, curves=tuple(curves))


def _frontier_with_commands(answer: Frontier) -> Frontier:
    told = teller_of((answer.request, *answer.other_requests))
    points = (replace(one, deployment=told(one.deployment)) for one in answer.points)
    return replace(answer, points=tuple(points))


def teller_of(requests: Sequence[AnyRequest]) -> Callable[[AnyDeployment], AnyDeployment]:
    """What gives a deployment the commands of its own engine's request, if it has such."""
    by_engine = {one.engine: one for one in requests if isinstance(one, EngineRequest)}

    def told(best: AnyDeployment) -> AnyDeployment:
        if not isinstance(best, EngineDeployment) or best.engine not in by_engine:
            return best
        return with_commands(by_engine[best.engine], best)

    return told


def launched(request: PredictionRequest, *, n_per_node: int | None = None) -> Launch | None:
    """How the engine is started for a given deployment.

    Args:
        n_per_node: devices of a node that it may have; all of them where it is left out.
    """
    if request.n_expert_devices:
        return None  # no version of an engine that is described has such a mode
    records = request.records
    (model,) = records.models
    fabric = records.cluster.fabric
    if n_per_node is None:
        n_per_node = records.cluster.n_devices
        if isinstance(fabric, NodesFabric):
            n_per_node = fabric.n_devices_per_node
    started = _started(
        model,
        request,
        EngineTables(engine=records.engine, kernels=records.kernels),
        n_per_node=n_per_node,
        n_tokens=request.n_input_tokens + request.n_output_tokens,
    )
    return launch_of(records.engine.name, started)


def _started(
    model: Architecture,
    given: PredictionRequest | EngineDeployment,
    tables: EngineTables,
    *,
    n_per_node: int,
    n_tokens: int,
) -> Started:
    """What an engine is to start, of requests that are no longer than so many tokens."""
    formats, repository = given.formats, model.repository or model.name
    published = next(iter(model.published_weights), "")
    known = checkpoint_of(model, formats.weights) if formats.weights == formats.experts else None
    if known is None:
        formats = as_run(model, formats, tables.engine)
    else:
        repository, published = known.repository or repository, formats.weights
    if isinstance(given, PredictionRequest):
        reuses = bool(given.hit_fraction or given.n_shared_tokens or given.n_samples > 1)
        exchanges, overlaps = given.exchanges, given.overlaps
    else:
        reuses, overlaps = False, given.overlap != OVERLAPS[0]
        exchanges = given.exchanges
    engine = tables.engine
    return from_fields(
        Started,
        given,
        version=f"{engine.title} {engine.started_version or engine.version}",
        model=repository,
        published=published,
        has_experts=any(isinstance(layer.ffn, Experts) for layer in model.layers),
        n_context_tokens=model.n_context_tokens,
        n_per_node=n_per_node,
        formats=formats,
        n_tokens=n_tokens,
        reuses_prefixes=reuses,
        memory_fraction=tables.engine.memory_fraction,
        exchanges=exchanges,
        overlaps=overlaps,
        experts_backend=tables.kernels.experts_backend,
    )


def _of_experts(records: ServingRecords, model: str) -> dict[str, object]:
    """What was said of a model's experts and images."""
    own = next((one for one in records.models if one.name == model), records.models[0])
    said = {"--expert-loads": own.expert_loads, "--images": getattr(own.encoder, "images", "")}
    said["--experts-backend"] = records.kernels.experts_backend
    said |= memory_options(records.engine)
    return {option: value for option, value in said.items() if value}


def _predict_command(request: EngineRequest, best: EngineDeployment) -> str:
    """`plan predict` of a deployment."""
    drafting = request.drafting
    options: dict[str, object] = {
        "--model": best.model,
        "--topology": request.cluster.name,
        "--engine": request.engine,
        "--tp": best.n_tensor,
        "--dp": best.n_data,
        "--pp": best.n_stages,
        "--ep": best.n_expert_parallel,
        "--batch": best.batch,
        "--chunk": best.chunk_tokens,
        "--weights": best.formats.weights,
        "--kv": best.formats.cache,
        "--input": request.workload.n_input_tokens,
        "--output": request.workload.n_output_tokens,
    }
    options |= reuse_options(request.workload)
    options |= _of_experts(request.records, best.model)
    if what_if := said_to("predict", request.records.cluster.device.what_if):
        options["--what-if"] = text_of(what_if)
    if best.overlap != OVERLAPS[0]:
        options["--overlap"] = best.overlap
    if best.n_drafted and drafting:
        options["--draft"] = best.drafter
        options["--lookahead"] = best.n_drafted
        options["--acceptance"] = acceptance_text(drafting.acceptance)
    if best.role != TOGETHER:
        options["--role"] = best.role
    if best.n_expert_devices:
        del options["--ep"]
        options[EXPERT_DEVICES] = best.n_expert_devices
        options[MICRO_BATCHES] = best.n_microbatches
    words = [str(word) for pair in options.items() for word in pair]
    return shlex.join(["plan", "predict", *words])
