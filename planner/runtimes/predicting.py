"""Evaluate one given deployment: `plan predict`, and `planner.predict`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.errors import Problem, RequestError
from planner.estimates.serving.balance import balance_points
from planner.estimates.serving.deployments import DeploymentTable, has_experts, kind_of
from planner.estimates.serving.drafting import rounds_of
from planner.estimates.serving.kernels import KernelClock, backend_problems, cache_problems
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.networks import ServingNetwork
from planner.estimates.serving.overflow import Account, overflows
from planner.estimates.serving.passes import parameter_bytes
from planner.estimates.serving.popularity import expert_layers, imbalance
from planner.estimates.serving.refusals import (
    chunk_problems,
    refusals,
    role_problems,
    size_problems,
)
from planner.estimates.serving.region import Settings, outside_of, region
from planner.estimates.serving.rivals import slow_kernels
from planner.estimates.serving.rules import Ground, Run
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import ServingTimes, place_s
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.report.launch.telling import launched
from planner.results.arrivals import Waves
from planner.results.experts import RedundantExperts
from planner.results.predictions import (
    BalanceLine,
    FirstTokenPart,
    MemoryLine,
    PassLine,
    Prediction,
)
from planner.runtimes.loads import load_of
from planner.runtimes.pass_lines import interval, pass_line, relative_error
from planner.specs.architecture import Architecture
from planner.specs.contexts import context_problems
from planner.specs.kernels import EngineSpec, KernelTable
from planner.specs.ledger import remark
from planner.specs.model_errors import QUANTITIES, model_error
from planner.specs.provenance import Provenance
from planner.specs.quality import quality_words
from planner.specs.records import ClusterSpec, DeviceSpec
from planner.specs.region import further_deviation
from planner.specs.roles import DECODE, PREFILL, TOGETHER
from planner.specs.served_formats import ServedFormats, as_run, unpublished
from planner.specs.serving_records import PredictionRequest, ServingRecords
from planner.specs.validation.arguments import arguments_checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What a deployment runs on: devices under an engine, and what connects them.

    Args:
        cluster: that they are in.
        n_devices: how many there are; None where the device was named and no topology of it.
    """

    device: DeviceSpec
    kernels: KernelTable
    engine: EngineSpec
    network: ServingNetwork
    network_name: str
    cluster: ClusterSpec
    n_devices: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculating:
    """Speculative decoding as it is asked for.

    Args:
        kind: `mtp`, `eagle` or `medusa`.
        n_drafted: tokens of a round.
        acceptance: probability that one is accepted, by position.
    """

    kind: str
    n_drafted: int
    acceptance: tuple[float, ...]


@arguments_checked()
def predict(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    speculating: Speculating | None = None,
    n_shared_tokens: float = 0.0,
    requests_per_s: float | None = None,
) -> Prediction:
    """Evaluate one deployment.

    Args:
        table: of that one deployment.
        n_shared_tokens: first tokens that all requests have in common.
        requests_per_s: that arrive at it, on average.

    Raises:
        RequestError: engines do not run it so, or it does not fit; each reason names its option.
    """
    formats = table.formats[int(table.format_index[0])]
    drafts = drafts_for(model, speculating)
    problems = impossible(
        model, machines, table, traffic, drafts=drafts, n_shared_tokens=n_shared_tokens
    )
    if problems:
        raise RequestError(problems)
    for option, word in (("--weights", formats.weights), ("--experts", formats.experts)):
        for problem in unpublished(model, option, word):
            remark(problem, once=word)
    clock = KernelClock(
        device=machines.device,
        table=machines.kernels,
        engine=machines.engine,
        network=machines.network,
    )
    held = holding(
        model,
        table,
        formats,
        machines.engine,
        hbm_bytes=machines.device.hbm_bytes,
        n_tokens=traffic.n_tokens,
        n_held_tokens=traffic.held_tokens(machines.engine.reserved_fraction),
        n_shared_tokens=n_shared_tokens,
        drafts=drafts,
    )
    serving = Serving(model=model, formats=formats, engine=machines.engine, clock=clock)
    times = serving_times(
        serving,
        table,
        traffic,
        largest_batch=held.largest_batch,
        drafts=drafts,
    )
    request = _request(serving, machines, table, traffic, speculating, int(n_shared_tokens))
    request = replace(request, requests_per_s=requests_per_s)
    answer = _prediction(
        serving, clock, machines, table, traffic, held, times, drafts, request=request
    )
    if requests_per_s is None:
        return answer
    load = load_of(
        request,
        request.records,
        model,
        traffic,
        drafts,
        requests_per_s=requests_per_s,
        overlaps=request.overlaps,
        n_shared_tokens=n_shared_tokens,
    )
    return replace(answer, load=load)


def impossible(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    drafts: Drafts | None = None,
    n_shared_tokens: float = 0.0,
) -> list[Problem]:
    """Why a deployment cannot be evaluated, each reason with its option; empty if it can."""
    formats = table.formats[int(table.format_index[0])]
    run = as_run(model, formats, machines.engine)
    ground = Ground(
        rules=machines.engine.rules,
        device=machines.device,
        n_per_node=machines.network.n_per_node,
        run=Run.of(traffic.role, run, drafts),
    )
    problems = refusals(model, table, traffic, n_shared_tokens=n_shared_tokens, ground=ground)
    problems += role_problems(traffic, drafts)
    others = list(context_problems(model, traffic.n_input_tokens, traffic.n_output_tokens))
    others += cache_problems(model, machines.kernels, formats.cache)
    others += backend_problems(model, machines.kernels, run.experts)
    others += chunk_problems(table, machines.engine, drafts, traffic.role)
    if machines.n_devices is not None:
        others += size_problems(table, machines.network_name, machines.n_devices)
    if problems:
        return [*problems, *others]  # of degrees that cannot be, there is no memory to count
    account = Account(
        model=model,
        engine=machines.engine,
        table=table,
        traffic=traffic,
        hbm_bytes=machines.device.hbm_bytes,
        n_shared_tokens=n_shared_tokens,
        drafts=drafts,
    )
    return [*others, *overflows(account)]


def drafts_for(model: Architecture, speculating: Speculating | None) -> Drafts | None:
    """What a decode pass of a model checks and gives, as asked for."""
    if speculating is None:
        return rounds_of(model, None, 0, ())
    return rounds_of(model, speculating.kind, speculating.n_drafted, speculating.acceptance)


def _prediction(
    serving: Serving,
    clock: KernelClock,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    held: Holding,
    times: ServingTimes,
    drafts: Drafts | None,
    *,
    request: PredictionRequest,
) -> Prediction:
    engine, model, formats = machines.engine, serving.model, serving.formats
    weights = serving.run_formats.weights
    for name, one in (("decode", times.decode), ("prefill", times.prefill)):
        for problem in slow_kernels(one.operations, clock, during=name):
            remark(problem, once=f"{problem.where} {problem.key}")
    lines = _lines(times, clock, serving)
    off = {line.name: relative_error(line.total_s) for line in lines}
    decode_error, prefill_error = off.get("decode", 0.0), off.get("prefill", 0.0)
    running, tpot = float(times.n_running[0]), float(times.tpot_s[0])
    n_data, n_devices = int(table.n_data[0]), int(table.n_devices[0])
    ttft = float(times.ttft_s[0])
    n_out = traffic.n_output_tokens
    there_s = place_s(traffic, ttft_s=times.ttft_s, tpot_s=times.tpot_s, prompt_s=times.prompt_s)
    total = running * n_data * n_out / float(there_s[0])
    read = tpot - float(times.itl_s[0]) / (drafts.yields if drafts else 1.0)
    tpot_off = math.hypot(decode_error * (tpot - read), prefill_error * read)
    kind = kind_of(model)
    outside = outside_of(
        region(engine.name, machines.device.name, kind, traffic.n_input_tokens, n_out),
        Settings(
            table=table,
            run_formats=serving.run_formats,
            role=traffic.role,
            n_drafted=drafts.n_drafted if drafts and drafts.n_passes else 0,
            n_per_node=machines.network.n_per_node,
        ),
    )
    tpot_model, ttft_model = (
        math.hypot(model_error(engine.name, kind, name), further_deviation(outside))
        for name in QUANTITIES
    )
    ridge = clock.peak_flop_per_s(weights) / machines.device.hbm_bytes_per_s
    provenance = _provenance(lines, machines)
    return Prediction(
        request=request,
        model=model.name,
        title=model.title,
        model_kind=kind,
        device=machines.device.name,
        engine=engine.name,
        network=machines.network_name,
        degrees=_degrees(table),
        n_devices=n_devices,
        n_copies=1 if has_experts(model) else n_data,
        batch=int(table.batch[0]),
        n_running=int(running),
        formats=_formats(formats),
        quality=quality_words(model, formats.weights, formats.cache),
        n_input_tokens=int(traffic.n_input_tokens),
        n_output_tokens=int(traffic.n_output_tokens),
        hit_fraction=traffic.hit_fraction,
        overlap="two-batch" if table.overlaps[0] else "none",
        tokens_per_step=drafts.yields if drafts else 1.0,
        ttft_s=interval(ttft, math.hypot(prefill_error, ttft_model)),
        tpot_s=interval(tpot, math.hypot(tpot_off / tpot, tpot_model) if tpot else 0.0),
        itl_s=interval(float(times.itl_s[0]), math.hypot(decode_error, tpot_model)),
        ttft_parts=_first_token(times, traffic, engine),
        queue_s=float(times.queue_s[0]),
        user_tokens_per_s=1.0 / tpot if tpot else 0.0,
        device_tokens_per_s=total / n_devices,
        total_tokens_per_s=total,
        peak_flop_per_s=dict(machines.device.peak_flop_per_s),
        hbm_bytes_per_s=machines.device.hbm_bytes_per_s,
        ridge_flop_per_byte=ridge,
        memory=_memory_line(held, table, machines, traffic, running),
        passes=lines,
        balance=_balance(serving, clock, machines, running * n_data, running),
        n_assumed=sum(one.source.startswith("assumed") for one in provenance),
        provenance=provenance,
        launch=launched(request),
        measured_by=machines.kernels.measured_by,
        waves=_waves(times),
        outside=outside,
        redundant_experts=_redundant_experts(model, table, serving.run_formats),
    )


def _waves(times: ServingTimes) -> Waves | None:
    """First tokens by wave, where there are waves; of most requests, where there are several."""
    if not times.n_waves:
        return None
    first, later = float(times.first_wave_s[0]), float(times.later_waves_s[0])
    median = first if times.n_waves == 1 else later
    return Waves(n_waves=times.n_waves, first_s=first, later_s=later, median_s=median)


def _lines(times: ServingTimes, clock: KernelClock, serving: Serving) -> tuple[PassLine, ...]:
    """The passes that it runs."""
    passes = (
        ("decode", times.decode, serving.decode_host_s),
        ("prefill", times.prefill, serving.prefill_host_s),
    )
    return tuple(
        pass_line(name, timed, clock, host_s=host_s, formats=serving.run_formats)
        for name, timed, host_s in passes
        if timed.operations
    )


def _request(
    serving: Serving,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    speculating: Speculating | None,
    n_shared_tokens: int,
) -> PredictionRequest:
    """What was asked, whole."""
    return PredictionRequest(
        records=ServingRecords(
            models=(serving.model,),
            cluster=machines.cluster,
            engine=machines.engine,
            kernels=replace(machines.kernels, rivals={}),
        ),
        formats=serving.formats,
        n_tensor=int(table.n_tensor[0]),
        n_data=int(table.n_data[0]),
        n_stages=int(table.n_stages[0]),
        n_expert_parallel=int(table.n_expert_parallel[0]),
        n_expert_tensor=int(table.n_expert_tensor[0]),
        exchanges=bool(table.exchanges[0]),
        batch=int(table.batch[0]),
        chunk_tokens=int(table.chunk_tokens[0]),
        overlaps=bool(table.overlaps[0]),
        n_input_tokens=int(traffic.n_input_tokens),
        n_output_tokens=int(traffic.n_output_tokens),
        hit_fraction=traffic.hit_fraction,
        n_shared_tokens=n_shared_tokens,
        drafter=speculating.kind if speculating else "",
        n_drafted=speculating.n_drafted if speculating else 0,
        acceptance=speculating.acceptance if speculating else (),
        role=traffic.role,
        n_waves=traffic.n_waves,
        n_redundant_experts=int(table.n_redundant[0]),
    )


REST_OF = {
    TOGETHER: "rest of a pass under way",
    PREFILL: "rest of the prompts under way",
    DECODE: "",
}
"""What a request finds under way."""


def _first_token(
    times: ServingTimes, traffic: Traffic, engine: EngineSpec
) -> tuple[FirstTokenPart, ...]:
    """What a request waits for until its first token, in that order; what is zero left out."""
    source = {one.key: one.source for one in engine.provenance}
    n_chunks = int(times.n_chunks[0])
    passes = f" in {n_chunks} passes" if n_chunks > 1 else ""
    words = {
        "request": ("receiving the request", "steps.request"),
        "step": (REST_OF[traffic.role], ""),
        "others": ("others' prompts before it", ""),
        "reading": (f"reading {traffic.n_new_tokens:.0f} tokens{passes}", ""),
        "decodes": ("decodes beside them", ""),
        "wave": ("the first wave, its share of all", ""),
    }
    seconds = {name: float(part[0]) for name, part in times.ttft_parts.items()}
    return tuple(
        FirstTokenPart(name=text, seconds=seconds[name], source=source.get(key, ""))
        for name, (text, key) in words.items()
        if seconds.get(name)
    )


def _degrees(table: DeploymentTable) -> dict[str, int]:
    return {
        "tensor": int(table.n_tensor[0]),
        "data": int(table.n_data[0]),
        "pipeline": int(table.n_stages[0]),
        "expert": int(table.n_expert_parallel[0]),
    }


def _formats(formats: ServedFormats) -> dict[str, str]:
    return {"weights": formats.weights, "experts": formats.experts, "cache": formats.cache}


def _redundant_experts(
    model: Architecture, table: DeploymentTable, formats: ServedFormats
) -> RedundantExperts | None:
    """Of the layer that is balanced least."""
    n_ranks, n_redundant = int(table.n_expert_parallel[0]), int(table.n_redundant[0])
    if not n_redundant:
        return None
    plain = replace(table, n_redundant=0 * table.n_redundant)
    held, less = (float(parameter_bytes(model, it, formats)[0]) for it in (table, plain))
    worst = max(imbalance(one, n_ranks, n_redundant) for one in expert_layers(model))
    return RedundantExperts(n_redundant=n_redundant, fullest_factor=worst, copies_bytes=held - less)


def _memory_line(
    held: Holding, table: DeploymentTable, machines: Machines, traffic: Traffic, running: float
) -> MemoryLine:
    sequence, each = float(held.sequence_bytes[0]), float(held.held_bytes[0])
    room = float(held.room_bytes[0])
    return MemoryLine(
        hbm_bytes=machines.device.hbm_bytes,
        limit_bytes=float(held.limit_bytes),
        weights_bytes=float(held.weights_bytes[0]),
        drafter_bytes=float(held.drafter_bytes[0]),
        cache_bytes=running * each + float(held.shared_bytes[0]),
        longest_cache_bytes=running * sequence + float(held.shared_bytes[0]),
        activation_bytes=float(held.activation_bytes[0]),
        workspace_bytes=held.workspace_bytes,
        largest_batch=int(held.largest_batch[0]),
        longest_context=int(room / running * traffic.n_tokens / sequence) if sequence else 0,
    )


def _balance(
    serving: Serving, clock: KernelClock, machines: Machines, everywhere: float, tokens: float
) -> tuple[BalanceLine, ...]:
    bandwidth, formats = machines.device.hbm_bytes_per_s, serving.run_formats
    points = balance_points(
        serving.model,
        matrix_ridge=clock.peak_flop_per_s(formats.weights) / bandwidth,
        attention_ridge=clock.peak_flop_per_s("bf16") / bandwidth,
        weights_format=formats.weights,
        experts_format=formats.experts,
        cache_format=formats.cache,
        tokens=tokens,
        tokens_of_experts=everywhere,
    )
    return tuple(
        BalanceLine(name=p.name, balanced=p.balanced, present=p.present, rule=p.rule)
        for p in points
    )


def _provenance(lines: Sequence[PassLine], machines: Machines) -> tuple[Provenance, ...]:
    """Sources of all constants that times come from, each once."""
    found = {
        f"{line.formula}.{line.format}": line.source for one in lines for line in one.operations
    }
    kernels = (Provenance(key=key, source=source) for key, source in sorted(found.items()))
    return (*kernels, *machines.engine.provenance)
