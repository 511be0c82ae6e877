"""`plan predict`: one given deployment, as options say it, evaluated without a search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.commands.options.reading import as_said
from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.errors import Problem, RequestError
from planner.estimates.calibrated import engine_tables
from planner.estimates.kernel_files import backend_problems, kernel_table
from planner.estimates.serving.deployments import DeploymentTable, deployments, has_experts
from planner.estimates.serving.drafting import drafter_of
from planner.estimates.serving.traffic import Traffic
from planner.estimates.serving.usual_engines import engines_on, usual_servers
from planner.quantities.units import show
from planner.report.files import Answer
from planner.runtimes.predicting import (
    GivenDeployment,
    Machines,
    Speculating,
    drafts_for,
    impossible,
    predict as evaluate,
)
from planner.specs.ask.targets import DEGREE_OPTIONS, Degrees, Layouts, Targets
from planner.specs.files import reading
from planner.specs.files.engines import load_engine
from planner.specs.files.ledger import remark
from planner.specs.files.what_if import multiplied
from planner.specs.records.devices import ClusterSpec, DeviceSpec, Workload
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import TOGETHER
from planner.specs.records.runtimes import LAYOUT_RUNTIMES, ROOFLINE
from planner.specs.records.served_formats import ServedFormats, as_published, as_run
from planner.specs.validation.hints import from_fields

if TYPE_CHECKING:
    from planner.results.audits import LayoutPrediction
    from planner.results.predictions import Prediction
    from planner.specs.records.architecture import Architecture


def predict(said: Said) -> Answer:
    """Times, work and bounds of every operation, and memory, of one deployment."""
    return reported(said, prediction_of(said))


def prediction_of(said: Said) -> Prediction | LayoutPrediction:
    """What `plan predict` answers, and raises."""
    said.values["engine"] = said.engine or _usual_engine(said)
    said.refuse_under((said.engine,))
    if said.engine in LAYOUT_RUNTIMES:
        return _of_layouts(said)
    given = given_of(said)
    if said.rate is not None:
        fact = "arrive at random times: bursts beyond that are not counted"
        remark(Problem(where="--rate", value=show(said.rate, "request/s"), fact=fact))
    whole = (given.model, given.machines, given.table, given.traffic)
    return evaluate(*whole, speculating=given.speculating, requests_per_s=said.rate)


def given_of(said: Said) -> GivenDeployment:
    """The deployment of an engine that options of `plan predict` give.

    Raises:
        RequestError: with all that is wrong with it.
    """
    from planner.specs.options.table import named

    _refuse_loops(said)
    model = as_said(said.load("--model", reading.load_architecture), said)
    machines = _machines(said, [model.name] if model else [])
    speculating = _speculating(said, model)
    workload = Workload(**said.sets("Workload"))
    table = _table(said, model, machines, workload.n_samples)
    client = said.load("--client", reading.load_client)
    n_waves = said.waves or (client.n_waves if client else 0)
    traffic = from_fields(Traffic, workload, role=said.role, n_waves=n_waves, client=client)
    unread = {problem.where for problem in said.problems}
    if model and machines and table and not unread & {*_NUMBERS, *named("requests degrees")}:
        drafts = drafts_for(model, speculating)
        said.problems += impossible(model, machines, table, traffic, drafts=drafts)
    said.check()
    assert model is not None
    assert machines is not None
    assert table is not None
    return GivenDeployment(
        model=model, machines=machines, table=table, traffic=traffic, speculating=speculating
    )


USUAL_MICROBATCHES = 3
"""That hide what goes to and fro, if links take less than half as long as experts. Source:
MegaScale-Infer, arXiv 2504.02263, §4.1."""

_NUMBERS = ("--redundant-experts", "--batch", "--chunk", "--expert-devices", "--micro-batches")
"""Options without which nothing can be said of a deployment as a whole, beside what is asked."""


def _usual_engine(said: Said) -> str:
    """The usual engine; layouts on a pool of devices on which no engine was measured."""
    with suppress(RequestError):  # which is told where the pool is loaded
        if said.topology and not engines_on(reading.load_cluster(said.topology)):
            return ROOFLINE.name
    return "vllm"


def _of_layouts(said: Said) -> LayoutPrediction:
    """Layouts, or the reference model: a plan of what is given, of the rest the fastest."""
    from planner.planning.plans import plan
    from planner.verifier.layouts.predictions import layout_prediction

    model = said.load("--model", reading.load_model)
    cluster = said.load("--topology", reading.load_cluster)
    if said.topology is None:
        remedy = "name a pool: `--topology tpu-v4-4x4x4`, see `plan topologies`"
        said.refuse("--topology", "is not given", remedy, value="")
    said.check()
    assert model is not None
    assert cluster is not None
    given = {n: said.values[one[2:]] for n, one in DEGREE_OPTIONS.items() if said.is_given(one)}
    batch = said.batch or 1
    prefill = (said.prefill_batch or batch,) if said.engine == ROOFLINE.name else None
    answer = plan(
        model,
        cluster,
        said.engine,
        workload=Workload(**said.sets("Workload")),
        targets=Targets(degrees=Degrees(**given), layouts=said.layout or Layouts()),
        weights_formats=said.weights and (said.weights,),
        kv_formats=said.kv and (said.kv,),
        batches=(batch,),
        prefill_batches=prefill,
        objective="throughput" if prefill else "latency",
    )
    return layout_prediction(answer)


def _refuse_loops(said: Said) -> None:
    """Numbers of requests in flight that exclude each other."""
    facts = {
        "--batch": "says what `--batch` says of each rank",
        "--rate": "is of a closed loop, and `--rate` is of none",
    }
    for name, fact in facts.items():
        if said.is_given("--in-flight") and said.is_given(name):
            said.refuse("--in-flight", fact, "write one of the two")
    for name in ("--client", "--polled") if said.role != TOGETHER else ():
        if said.is_given(name):
            said.refuse(name, "is of replicas that read prompts and write answers", "leave it out")
            said.values[name[2:]] = None


def _batch(said: Said, n_ranks: int, n_samples: int) -> int:
    """Sequences in flight on each rank; a closed loop is dealt to all of them alike.

    Args:
        n_samples: sequences of a request.
    """
    in_flight: int | None = said.in_flight
    if in_flight is None:
        return int(said.batch or n_samples)
    if in_flight % n_ranks:
        below = in_flight - in_flight % n_ranks
        nearest = [f"`--in-flight {n}`" for n in (below, below + n_ranks) if n]
        fact = f"cannot be dealt to {n_ranks} ranks alike"
        said.refuse("--in-flight", fact, f"write {' or '.join(nearest)}")
    return max(1, in_flight // n_ranks) * n_samples


def _machines(said: Said, models: Sequence[str]) -> Machines | None:
    from planner.estimates.serving.networks import serving_network

    engine = _engine(said)
    backend: str = said.experts_backend or ""
    both = "cannot go with `--topology`"
    remedy = "write `--device h20`, or `--topology h20-nvl8-x1` for its network"
    if not said.need_one("--device", "--topology", both=both, remedy=remedy):
        if engine is not None:
            said.problems += backend_problems(backend, engine.name)
        return None
    device, cluster = _servers(said)
    if device is None or engine is None:
        return None
    kernels = partial(kernel_table, device.name, engine.name, backend)
    tables = said.collect(lambda: engine_tables(engine, kernels(), models))
    if tables is None:
        return None
    if cluster is None:
        remedy = "name a topology of it: `--topology`, see `plan topologies`"
        fact = "no servers of this device are known, so its network is not"
        said.refuse("--device", fact, remedy)
        return None
    try:
        serving_network(cluster.fabric)
    except ValueError as error:
        shown = said.text("--topology") or said.text("--device")
        said.refuse("--topology", str(error), value=shown)
        return None
    n_devices = cluster.n_devices if said.topology else None
    tables, cluster = multiplied(tables, device.what_if), replace(cluster, device=device)
    return from_fields(Machines, tables, cluster=cluster, n_devices=n_devices)


def _engine(said: Said) -> EngineSpec | None:
    """The engine, which looks for new requests as often as is said."""
    engine = said.load("--engine", load_engine)
    return replace(engine, n_polled_rounds=said.polled) if engine and said.polled else engine


def _servers(said: Said) -> tuple[DeviceSpec | None, ClusterSpec | None]:
    """The device that is named, and servers of it: those named, or what is usual."""
    cluster = said.load("--topology", reading.load_cluster)
    device = cluster.device if cluster else said.load("--device", reading.load_device)
    if device and not cluster and (usual := usual_servers(device.name)):
        cluster = reading.load_cluster(usual, asked_by="--device")
    return device, cluster


def _table(
    said: Said, model: Architecture | None, machines: Machines | None, n_samples: int
) -> DeploymentTable | None:
    from planner.estimates.serving.popularity import with_copies
    from planner.estimates.serving.rules import Context, Run

    if model is not None and not has_experts(model):
        for name in filter(said.is_given, ("--experts", "--redundant-experts", "--expert-devices")):
            said.refuse(name, f"{model.name} has no experts", "leave it out")
    if model is None or machines is None:
        return None
    data, expert = _ranks(said, model)
    batch = _batch(said, int(data), n_samples)
    table = deployments(
        formats=_formats(said, model),
        n_tensor=said.tp,
        n_data=data,
        n_stages=said.pp,
        n_expert_parallel=expert,
        batch=batch,
        chunk_tokens=float(said.chunk or machines.engine.n_chunk_tokens),
        n_redundant=float(said.redundant_experts or 0),
        overlaps=said.overlap == "two-batch",
        **_pools(said, batch),
    )
    if said.redundant_experts is not None:
        return table
    run = Run(role=said.role, formats=as_run(model, table.formats[0], machines.engine))
    ground = Context(rules=machines.engine.rules, device=machines.device, run=run)
    return with_copies(model, table, machines.engine, ground)


def _ranks(said: Said, model: Architecture) -> tuple[int, int]:
    """Attention ranks, and groups that experts are dealt to: each device of their own is one."""
    from planner.estimates.serving.refusals import completed

    if not said.expert_devices:
        return completed(model, tensor=said.tp, data=said.dp, expert=said.ep)
    if said.is_given("--ep"):
        fact = "is of experts on devices of attention, and these have their own"
        said.refuse("--ep", fact, "leave it out: each of `--expert-devices` is a group")
    return said.dp or 1, said.expert_devices


def _pools(said: Said, batch: int) -> dict[str, int]:
    """Devices of experts, and micro-batches between them and those of attention."""
    if not said.expert_devices:
        return {}
    parts = said.micro_batches or min(USUAL_MICROBATCHES, batch)
    return {"n_expert_devices": said.expert_devices, "n_microbatches": parts}


def _formats(said: Said, model: Architecture) -> ServedFormats:
    """Of weights as they are published, of caches as the model has them, where nothing is said."""
    weights = said.weights or as_published(model)[0]
    cache = said.kv or model.kv_format
    return ServedFormats(weights=weights, experts=said.experts or weights, cache=cache)


def _speculating(said: Said, model: Architecture | None) -> Speculating | None:
    from planner.specs.files.acceptance import PUBLISHED

    kind = said.draft
    if kind is None:
        return None
    if model is not None:
        try:
            drafter_of(model, kind)
        except ValueError as error:
            said.refuse("--draft", str(error))
            return None
    rates = said.acceptance or PUBLISHED[kind].rates
    return Speculating(kind=kind, n_drafted=said.lookahead, acceptance=rates)
