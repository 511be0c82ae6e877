"""Arguments as a request, checked all at once; a request as a command line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from planner.errors import Problem, RequestError
from planner.estimates.calibrated import engine_tables
from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.choices import all_degrees, ground_of, traffic_of
from planner.estimates.serving.deployments import deployments, kind_of
from planner.estimates.serving.drafting import KINDS as DRAFTERS, has_drafter, rounds_of
from planner.estimates.serving.grids import whole_requests
from planner.estimates.serving.kernels import backend_problems, outlier_problems, unmeasured
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.overflow import chunk_problems
from planner.estimates.serving.refusals import traffic_problems
from planner.estimates.serving.rules import Run, faults
from planner.programs.engine import KNOWN
from planner.quantities.table import lacking, uncountable
from planner.runtimes.predicting import Machines, records_of
from planner.specs.ask import defaults, quality
from planner.specs.ask.checking import architecture_problems, cluster_problems, demand_problems
from planner.specs.ask.engine import (
    CHUNKS,
    OVERLAPS,
    EngineRequest,
    ModelOption,
    PlanOptions,
    PoolOptions,
)
from planner.specs.ask.targets import DEGREE_OPTIONS, Targets
from planner.specs.files.acceptance import acceptance_text
from planner.specs.files.engines import load_engine, memory_options
from planner.specs.files.what_if import multiplied
from planner.specs.options.counts import batches_text, span_text
from planner.specs.options.meanings import misplaced
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, Workload
from planner.specs.records.kernels import EngineSpec, KernelTable
from planner.specs.records.roles import TOGETHER
from planner.specs.records.served_formats import KNOWN_FORMATS, ServedFormats, as_run, input_format
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Problems

_WEIGHTS = ("gemm", "experts")
"""Families of kernels that read weights."""


def machines_of(
    cluster: ClusterSpec, engine: str, experts_backend: str = "", models: Sequence[str] = ()
) -> Machines:
    """The devices of a pool under an engine, its experts by one of its backends.

    Args:
        models: names of those that are served, whose calibration is taken.

    Raises:
        RequestError: there is no such engine, or its kernels or the network are not known, or no
            calibration is of these models where one is asked for.
    """

    def loaded() -> Machines:
        named = load_engine(engine)
        kernels = kernel_table(cluster.device.name, named.name, experts_backend)
        tables = multiplied(engine_tables(named, kernels, models), cluster.device.what_if)
        return from_fields(Machines, tables, cluster=cluster)

    wrong = Problems()
    machines = wrong.collect(loaded)
    try:
        serving_network(cluster.fabric)
    except ValueError as error:
        wrong.problems.append(Problem(where="--topology", value=cluster.name, fact=str(error)))
    kernels = machines.kernels.kernels.values() if machines else ()
    if machines and not any(one.fit.n_rows for one in kernels):
        fact = f"none of its kernels was measured on {cluster.device.name}"
        remedy = "take a device that `kernels` has a table of, or leave `--engine` out"
        wrong.problems.append(Problem(where="--engine", value=engine, fact=fact, remedy=remedy))
    wrong.settle(RequestError)
    assert machines is not None  # or something is wrong with them
    return machines


@arguments_checked(ranges="heeded")
def engine_request(
    model: Architecture,
    cluster: ClusterSpec,
    machines: Machines,
    choices: PlanOptions,
    variants: Sequence[Architecture] = (),
) -> EngineRequest:
    """A request with its defaults filled in; variants that lose too much are left out.

    Raises:
        RequestError: with every problem, not only the first.
    """
    targets = choices.targets
    weights_formats, kv_formats = choices.weights_formats, choices.kv_formats
    served = [model, *quality.among_variants(model, variants, targets)]
    models = [_asked_model(one, weights_formats, targets, machines.kernels) for one in served]
    models[0] = replace(models[0], quality_loss_fraction=0.0)  # against itself, a variant or not
    weights = dict.fromkeys(name for one in models for name in one.weights_formats)
    weights, unfed = _fed(model, machines.engine, weights, choices.activation_formats or ())
    caches = kv_formats or (model.kv_format,)
    left = {one.name for one in models}
    whole = [model, *(one for one in variants if one.name in left)]
    request = from_fields(
        EngineRequest,
        choices,
        model=models[0],
        cluster=asked_pool(cluster, machines),
        engine=machines.engine.name,
        formats=tuple(
            ServedFormats(weights=name, experts=name, cache=cache)
            for name in weights
            for cache in dict.fromkeys(caches)
        ),
        batches=tuple(sorted({*(choices.batches or defaults.default_batches(targets))})),
        chunks=tuple(sorted({*(choices.chunks or CHUNKS)})),
        variants=tuple(models[1:]),
        overlaps=tuple(dict.fromkeys(choices.overlaps or OVERLAPS[:1])),
        measured_by=machines.kernels.measured_by,
        records=records_of(whole, machines),
    )
    problems = [
        *_problems(request),
        *lacking(request.targets.limits(), cluster.device),
        *demand_problems(request.targets, request.objective),
        *_chunk_problems(served, request, machines.engine),
        *_variant_problems(model, variants),
        *quality.quality_problems(
            model, targets, weights_formats or quality.usual_formats(model, targets), caches
        ),
        *_context_problems(model, variants, choices.workload),
        *_unmeasured(machines.kernels, weights_formats, kv_formats),
        *_backend_problems(model, machines, weights),
        *unfed,
        *_drafting_problems(model, request),
        *_record_problems(model, variants, cluster),
    ]
    raise_if_any(problems)
    raise_if_any(_degree_problems(served, request))
    return request


def _fed(
    model: Architecture, engine: EngineSpec, weights: dict[str, None], sent: Sequence[str]
) -> tuple[dict[str, None], list[Problem]]:
    """Formats of weights whose products take activations as they are asked for; all where none is.

    Formats of activations that none of them takes are problems.
    """
    formats = {name: ServedFormats(weights=name, experts=name, cache=name) for name in weights}
    taken = {name: input_format(as_run(model, formats[name], engine).weights) for name in weights}
    said = ", ".join(f"{inputs} of {name} weights" for name, inputs in taken.items())
    fact, remedy = f"is not what {engine.name}'s products take: {said}", "leave it out"
    where = Problem(where="--activations", fact=fact, remedy=remedy)
    unfed = [replace(where, value=name) for name in sent if name not in taken.values()]
    return {name: None for name in weights if not sent or taken[name] in sent}, unfed


def asked_pool(cluster: ClusterSpec, machines: Machines) -> PoolOptions:
    """What a request says of a pool."""
    return from_fields(
        PoolOptions,
        cluster,
        device=cluster.device.name,
        n_devices_per_node=machines.network.n_per_node,
        tdp_w=cluster.device.tdp_w,
    )


def _record_problems(
    model: Architecture, variants: Sequence[Architecture], cluster: ClusterSpec
) -> Iterator[Problem]:
    """What no file could say of the records: they may be altered."""
    yield from cluster_problems(cluster, "cluster")
    yield from architecture_problems(model, "model")
    for i, one in enumerate(variants):
        yield from architecture_problems(one, f"variants[{i}]")


def _asked_model(
    model: Architecture, named: Sequence[str] | None, targets: Targets, kernels: KernelTable
) -> ModelOption:
    usual = _measured(quality.usual_formats(model, targets), kernels)
    return ModelOption(
        name=model.name,
        title=model.title,
        kind=kind_of(model),
        weights_formats=tuple(named or usual),
        usual_formats=usual,
        quality_loss_fraction=loss_of(model),
        quality=model.variant.quality if model.variant else "",
    )


def _measured(formats: tuple[str, ...], kernels: KernelTable) -> tuple[str, ...]:
    """Those of some formats that the device's kernels were measured in; all if none was."""
    return (
        tuple(
            name
            for name in formats
            if name in KNOWN_FORMATS and not any(unmeasured(kernels, _WEIGHTS, name, asked_by=""))
        )
        or formats
    )


def loss_of(model: Architecture) -> float:
    """What a variant loses of the quality of the model that it stands in for, if it is known [1].

    Of the model itself, nothing; of a variant of which nothing is known, all.
    """
    if model.variant is None:
        return 0.0
    loss = model.variant.quality_loss_fraction
    return 1.0 if loss is None else loss


def _variant_problems(model: Architecture, variants: Sequence[Architecture]) -> Iterator[Problem]:
    """Models that are no variants of the one asked for."""
    for architecture in variants:
        of = architecture.variant.of if architecture.variant else ""
        if of != model.name:
            fact = f"is a variant of {of}" if of else "is not said to be a variant of any model"
            remedy = f'say so in its file: `[variant]`, `of = "{model.name}"`'
            yield Problem(where="--variants", value=architecture.name, fact=fact, remedy=remedy)


def _context_problems(
    model: Architecture, variants: Sequence[Architecture], workload: Workload
) -> Iterator[Problem]:
    """Requests that the model, or a variant, cannot attend to."""
    for asked_by, one in (("--model", model), *(("--variants", one) for one in variants)):
        tokens = workload.n_input_tokens, workload.n_output_tokens
        yield from quality.context_problems(one, *tokens, asked_by=asked_by)


def _drafting_problems(model: Architecture, request: EngineRequest) -> Iterator[Problem]:
    drafting = request.drafting
    if drafting is None:
        return
    if drafting.kind not in DRAFTERS:
        remedy = f"it is {', '.join(DRAFTERS[:-1])} or {DRAFTERS[-1]}"
        fact = "no such drafter of an engine"
        yield Problem(where="--draft", value=drafting.kind, fact=fact, remedy=remedy)
    elif not has_drafter(model, drafting.kind):
        fact = f"{model.name} has no layer that predicts further tokens"
        yield Problem(where="--draft", value=drafting.kind, fact=fact, remedy="write `eagle`")


def _problems(request: EngineRequest) -> Iterator[Problem]:
    traffic = traffic_of(request)
    yield from traffic_problems(traffic)
    if not whole_requests(request.batches, traffic):
        value, fact = batches_text(request.batches), "has none that counts all samples of a request"
        remedy = f"write a multiple of {traffic.n_sequences}"
        yield Problem(where="--batch", value=value, fact=fact, remedy=remedy)
    yield from misplaced(request.targets.said(), (request.engine,))
    yield from uncountable(request.targets.limits(), KNOWN, request.engine, {})


def _chunk_problems(
    models: Sequence[Architecture], request: EngineRequest, engine: EngineSpec
) -> list[Problem]:
    """Chunks of which the largest has no room beside the smallest batch, whichever is served."""
    widest = deployments(
        formats=request.formats, batch=min(request.batches), chunk_tokens=max(request.chunks)
    )
    problems = [list(chunk_problems(widest, engine, rounds_of(one, None, 0, ()))) for one in models]
    return problems[0] if all(problems) else []


def _unmeasured(
    kernels: KernelTable, weights: Sequence[str] | None, caches: Sequence[str] | None
) -> Iterator[Problem]:
    """Formats that are asked for and that the device's kernels were not measured in."""
    for option, names, families in (
        ("--weights", weights, _WEIGHTS),
        ("--kv", caches, ("decode_attention",)),
    ):
        for name in names or ():
            if name in KNOWN_FORMATS:
                yield from unmeasured(kernels, families, name, asked_by=option)


def _backend_problems(
    model: Architecture, machines: Machines, weights: Iterable[str]
) -> Iterator[Problem]:
    for name in weights:
        formats = ServedFormats(weights=name, experts=name, cache="bf16")
        run = as_run(model, formats, machines.engine)
        yield from outlier_problems(name, asked_by="--weights")
        yield from backend_problems(model, machines.kernels, run.experts)


def _degree_problems(models: Sequence[Architecture], request: EngineRequest) -> list[Problem]:
    """Degrees that are asked for, and formats, with which no model has a deployment."""
    facts = [_why_none(model, request) for model in models]
    if not all(facts):
        return []
    fixed = request.targets.degrees.fixed()
    options = " ".join(f"{DEGREE_OPTIONS[name]} {value}" for name, value in fixed.items())
    remedy = f"leave one out: `plan engines {request.engine}` lists what starts"
    where = options or "the pool"
    return [Problem(where=where, fact=str(facts[0]), remedy=remedy if fixed else "")]


FEW_DEVICES = 64
"""Over which a cut that starts is looked for first, since there mostly is one."""


def _why_none(model: Architecture, request: EngineRequest) -> str | None:
    """The rules that every cut breaks in every format; None where the engine starts one."""
    engine, ground = request.records.engine, ground_of(request)
    n_devices, reasons = request.cluster.n_devices, []
    for n, formats in product((min(FEW_DEVICES, n_devices), n_devices), request.formats):
        cuts = all_degrees(model, request, n).with_chunk(max(request.chunks))
        if OVERLAPS[0] not in request.overlaps:
            cuts = replace(cuts, overlaps=np.ones(len(cuts), dtype=np.bool_)).take(cuts.exchanges)
        run = Run(role=TOGETHER, formats=as_run(model, formats, engine))
        reasons.append(faults(model, cuts, replace(ground, run=run)))
        if not np.all(np.any(list(reasons[-1].values()), axis=0)):
            return None
    words = {rule.says: rule.words for rule in engine.rules}
    always = [words.get(key, key) for key in reasons[0] if all(one[key].all() for one in reasons)]
    none = f"no deployment of {request.engine} on the pool cuts {model.name} so"
    return f"{none}: {'; '.join(always)}" if len(cuts) and always else none


def command_of(request: EngineRequest, changes: Mapping[str, str]) -> str:
    """The command line of a request, with some options changed; defaults are left out."""
    model, targets = request.records.models[0], request.targets
    weights = tuple(dict.fromkeys(one.weights for one in request.formats))
    caches = tuple(dict.fromkeys(one.cache for one in request.formats))
    drafting = request.drafting
    usual = dict.fromkeys(name for one in request.models for name in one.usual_formats)
    options = {
        "--engine": (request.engine, None),
        **defaults.served_options(request),
        "--expert-loads": (model.expert_loads, ""),
        "--images": (getattr(model.encoder, "images", ""), ""),
        "--experts-backend": (request.records.kernels.experts_backend, ""),
        **{name: (value, None) for name, value in memory_options(request.records.engine).items()},
        "--weights": (",".join(weights), ",".join(usual)),
        "--variants": (",".join(one.name for one in request.variants), ""),
        "--draft": (drafting and drafting.kind, None),
        "--acceptance": (drafting and acceptance_text(drafting.acceptance), None),
        "--lookahead": (drafting and span_text(drafting.lookaheads), None),
        "--kv": (",".join(caches), model.kv_format),
        "--batch": (batches_text(request.batches), batches_text(defaults.default_batches(targets))),
        "--chunk": (span_text(request.chunks), span_text(CHUNKS)),
        **defaults.limit_options(targets),
        **defaults.plain_options(request),
        **{DEGREE_OPTIONS[name]: (n, None) for name, n in targets.degrees.fixed().items()},
    }
    return defaults.command_line(options, changes)
