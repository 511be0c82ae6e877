"""`cut_stages`: what is asked in words becomes groups, work and formats; all faults at once."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from planner.errors import Problem, RequestError
from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.kernels import cache_problems
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.rules import faults
from planner.results.staging import StagePlan
from planner.running.deadlines import timed
from planner.specs.ask.checking import architecture_problems
from planner.specs.ask.quality import context_problems, diffusion_problems
from planner.specs.ask.stages import PHASES, StageGroup, StagesRequest, StageWork
from planner.specs.ask.targets import DEFAULT_WORKLOAD, Provers
from planner.specs.files.engines import load_engine
from planner.specs.files.patterns import patterns
from planner.specs.files.places import Kind, files
from planner.specs.files.reading import load_cluster, load_device
from planner.specs.files.what_if import multiplied
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, Workload
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.served_formats import KnownFormat, ServedFormats, as_published
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.problems import Problems
from planner.specs.validation.values import one_of
from planner_workshop.staging.cuts import STAGE_SOLVERS
from planner_workshop.staging.cuts.program import Objective
from planner_workshop.staging.groups import group_table
from planner_workshop.staging.placing import cut_groups

OBJECTIVES: tuple[Objective, ...] = ("bottleneck", "latency")
MOST_GROUPS = 1024

_GROUP = re.compile(r"(?P<name>.+?):tp(?P<tp>\d{1,9})(?:ep(?P<ep>\d{1,9}))?(?:x(?P<n>\d{1,9}))?")
_EXAMPLE = "write `h100-sxm:tp8x2`: two groups of eight devices"


@arguments_checked(ranges="heeded")
@timed
def cut_stages(
    model: Architecture,
    groups: str | Sequence[StageGroup],
    *,
    engine: str = "vllm",
    workload: Workload | None = None,
    batch: int = 1,
    n_microbatches: int | None = None,
    phase: Annotated[str, one_of("phase", PHASES)] = "decode",
    weights_format: KnownFormat | None = None,
    experts_format: KnownFormat | None = None,
    cache_format: KnownFormat | None = None,
    objective: Objective = "bottleneck",
    solver: Annotated[str, one_of("solver", STAGE_SOLVERS)] = "highs",
    time_limit_s: float | None = None,
    proof: Provers = "two",
) -> StagePlan:
    """Cut a model into pipeline stages on groups of unequal kinds, exactly.

    Which groups are used, in which order, and where the model is cut are chosen together.

    Args:
        groups: `h100-sxm:tp8x2,a100-80gb:tp4x3`: two groups of eight H100 and three of four
            A100; a name is of a device, which is then in its usual servers, or of a topology.
        engine: whose kernels time the layers.
        batch: sequences of a micro-batch.
        n_microbatches: that are in flight; one for each group if None, or one for `latency`.
        phase: `decode` or `prefill`.
        weights_format, experts_format, cache_format: as the model is published if None.
        objective: `latency` of one pass through all stages, or `bottleneck`: the slowest.
        proof: how many provers have to vouch: `two`, or `one`.

    Raises:
        RequestError: what is asked cannot be read; all reasons are listed.
        NoPlanError: nothing fits; its `conflict` says what is missing (`StagingConflict`).
        OutOfTimeError: the time limit came before any cut.
        SolverError: an answer fails its verification.
    """
    served_by = load_engine(engine)
    chosen = read_groups(groups, served_by) if isinstance(groups, str) else list(groups)
    usual = DEFAULT_WORKLOAD if workload is None else workload
    if n_microbatches is None:
        n_microbatches = 1 if objective == "latency" else sum(one.n_groups for one in chosen)
    formats = served_formats(model, weights_format, experts_format, cache_format)
    work = StageWork(
        phase=phase,
        batch=batch,
        n_microbatches=n_microbatches,
        n_input_tokens=usual.n_input_tokens,
        n_output_tokens=usual.n_output_tokens,
    )
    problems = [
        *architecture_problems(model, "model"),
        *context_problems(model, usual.n_input_tokens, usual.n_output_tokens),
        *diffusion_problems(model),
    ]
    raise_if_any(problems)
    request = StagesRequest(
        model=model,
        engine=multiplied(served_by, (*(it.cluster.device.what_if for it in chosen), {})[0]),
        groups=tuple(chosen),
        work=work,
        formats=formats,
        objective=objective,
        solver=solver,
        time_limit_s=time_limit_s,
        proof=proof,
    )
    if not problems:
        problems = [p for group in chosen for p in unfit(group, request)]
        tables = {group.kernels.device: group.kernels for group in chosen}
        problems += [
            p for one in tables.values() for p in cache_problems(model, one, formats.cache)
        ]
    raise_if_any(problems)
    return cut_groups(request)


def served_formats(
    model: Architecture, weights: str | None, experts: str | None, cache: str | None
) -> ServedFormats:
    """Formats as asked; else as published."""
    weights = weights or as_published(model)[0]
    return ServedFormats(
        weights=weights, experts=experts or weights, cache=cache or model.kv_format
    )


def unfit(group: StageGroup, request: StagesRequest) -> list[Problem]:
    """Rules of engines that a group breaks."""
    broken = faults(request.model, group_table(group, request))
    return [
        Problem(where="--groups", value=group.name, fact=fact)
        for fact, hit in broken.items()
        if hit[0]
    ]


def read_groups(text: str, engine: EngineSpec) -> list[StageGroup]:
    """Groups as they are written, `h100-sxm:tp8x2,a100-80gb:tp4x3`.

    Raises:
        RequestError: some cannot be read; all reasons are listed.
    """
    collected = Problems()
    words = filter(None, (part.strip() for part in text.split(",")))
    groups = collected.each(partial(_group, engine=engine), words)
    names = [group.name for group in groups]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        collected.problems.append(_unread(name, "is named twice", "write it once").problems[0])
    if not groups and not collected.problems:
        raise _unread(text, "is empty")
    collected.settle(RequestError)
    return list(groups)


def _group(word: str, engine: EngineSpec) -> StageGroup:
    match = _GROUP.fullmatch(word)
    if match is None:
        raise _unread(word, "is no kind of group")
    tensor, n_groups = int(match["tp"]), int(match["n"] or 1)
    if not tensor or not n_groups or not int(match["ep"] or 1):
        raise _unread(word, "has a zero")
    if n_groups > MOST_GROUPS:
        raise _unread(word, f"are more than {MOST_GROUPS} groups")
    cluster = _cluster(match["name"])
    if match["name"] == cluster.name and tensor * n_groups > cluster.n_devices:
        fact = f"takes {tensor * n_groups} devices, and `{cluster.name}` has {cluster.n_devices}"
        raise _unread(word, fact, remedy="fewer groups, or more servers")
    expert = int(match["ep"] or 1)
    try:
        serving_network(cluster.fabric)
    except ValueError as error:
        raise _unread(word, str(error)) from None
    experts = f" EP {expert}" if expert > 1 else ""
    kernels = kernel_table(cluster.device.name, engine.name)
    return StageGroup(
        name=f"{match['name']} TP {tensor}{experts}",
        cluster=cluster,
        kernels=multiplied(replace(kernels, rivals={}), cluster.device.what_if),
        n_tensor=tensor,
        n_expert_parallel=expert,
        n_groups=n_groups,
    )


def _unread(word: str, fact: str, remedy: str = _EXAMPLE) -> RequestError:
    return RequestError([Problem(where="--groups", value=word, fact=fact, remedy=remedy)])


def _cluster(name: str) -> ClusterSpec:
    """The topology of a name, or the usual servers of the device of that name."""
    devices = {path.stem for path in files(Kind.DEVICE)}
    if name in devices:
        device = load_device(name, asked_by="--groups")
        for _, pattern in patterns(Kind.CLUSTER):
            if pattern.name.startswith((f"{name.removesuffix('-sxm')}-", f"{name[:4]}-")):
                usual = {key: values[-1] for key, values in pattern.allowed.items()}
                cluster = load_cluster(pattern.fill(usual), asked_by="--groups")
                if cluster.device.name == device.name:
                    return cluster
        raise _unread(
            name, "no servers of this device are known", "name a topology: `plan topologies`"
        )
    close = sorted(device for device in devices if device.startswith(name))
    try:
        return load_cluster(name, asked_by="--groups")
    except RequestError as error:
        if len(error.problems) == 1 and error.problems[0].fact == "no such topology" and close:
            fact, remedy = "no such device or topology", f"did you mean `{close[0]}`?"
            raise _unread(name, fact, remedy) from None
        raise
