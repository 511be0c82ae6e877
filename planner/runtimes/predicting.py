"""Evaluate one given deployment: `plan predict`, and `planner.predict`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import Problem, RequestError, SolverError
from planner.estimates.serving.deployments import DeploymentTable, kind_of
from planner.estimates.serving.drafting import rounds_of
from planner.estimates.serving.kernels import (
    KernelClock,
    backend_problems,
    cache_problems,
    outlier_problems,
)
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.networks import ServingNetwork, serving_network
from planner.estimates.serving.overflow import (
    Account,
    chunk_problems,
    overflows,
    pool_overflows,
    pool_problems,
    size_problems,
)
from planner.estimates.serving.refusals import refusals, role_problems
from planner.estimates.serving.region import Settings, outside_error
from planner.estimates.serving.rules import Context, Run
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import ServingTimes, serving_errors
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.report.launch.telling import launched
from planner.results.predictions import Prediction
from planner.runtimes.describe import agree
from planner.runtimes.loads import load_of
from planner.specs.ask.engine import PredictionRequest, ServingRecords
from planner.specs.ask.quality import context_problems
from planner.specs.files.ledger import remark
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, DeviceSpec
from planner.specs.records.kernels import EngineSpec, KernelTable
from planner.specs.records.served_formats import as_run, unpublished
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.hints import from_fields
from planner.verifier.pass_lines import slow_kernels
from planner.verifier.predictions import prediction
from planner.verifier.serving.evaluation import Evaluation, evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What a deployment runs on: devices of a cluster under an engine.

    Args:
        n_devices: how many there are; None where the device was named and no topology of it.
    """

    kernels: KernelTable
    engine: EngineSpec
    cluster: ClusterSpec
    n_devices: int | None = None

    @property
    def device(self) -> DeviceSpec:
        return self.cluster.device

    @property
    def network(self) -> ServingNetwork:
        """What connects the devices of a node, and nodes."""
        return serving_network(self.cluster.fabric)

    def serving(self, traffic: Traffic) -> Traffic:
        """Requests as they come here: as long as the client sends them, by blocks of the engine,
        beside the memory of the host."""
        share = traffic.client.mean_length if traffic.client else 1.0
        return replace(
            traffic,
            n_input_tokens=share * traffic.n_input_tokens,
            n_output_tokens=share * traffic.n_output_tokens,
            n_block_tokens=self.engine.n_block_tokens,
            host_bytes_per_s=self.device.host_bytes_per_s,
        )

    @property
    def clock(self) -> KernelClock:
        """What times operations on them."""
        return KernelClock(
            device=self.device, table=self.kernels, engine=self.engine, network=self.network
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDeployment:
    """One deployment and its traffic.

    Args:
        table: of that one deployment.
    """

    model: Architecture
    machines: Machines
    table: DeploymentTable
    traffic: Traffic
    speculating: Speculating | None = None

    def times(self) -> ServingTimes:
        """Its times, by the arrays that searches are made of."""
        sent, drafts = self.machines.serving(self.traffic), drafts_for(self.model, self.speculating)
        return _in_arrays(self.model, self.machines, self.table, sent, drafts)[2]


def _in_arrays(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    drafts: Drafts | None,
) -> tuple[Holding, Serving, ServingTimes]:
    """Memory and times of one deployment, and what times it."""
    formats, engine = table.formats[int(table.format_index[0])], machines.engine
    held = holding(
        model,
        table,
        formats,
        engine,
        hbm_bytes=machines.device.hbm_bytes,
        n_tokens=traffic.n_tokens,
        n_held_tokens=traffic.held_tokens(engine.reserved_fraction),
        **traffic.sharing(),
        drafts=drafts,
    )
    serving = Serving(model=model, formats=formats, engine=engine, clock=machines.clock)
    times = serving_times(serving, table, traffic, largest_batch=held.largest_batch, drafts=drafts)
    return held, serving, times


@arguments_checked()
def predict(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    speculating: Speculating | None = None,
    requests_per_s: float | None = None,
) -> Prediction:
    """Evaluate one deployment.

    Args:
        table: of that one deployment.
        requests_per_s: that arrive at it, on average.

    Raises:
        RequestError: engines do not run it so, or it does not fit; each reason names its option.
        SolverError: the arrays that searches are made of say otherwise.
    """
    drafts = drafts_for(model, speculating)
    RequestError.raise_if_any(impossible(model, machines, table, traffic, drafts=drafts))
    given = given_deployment(model, machines, table, traffic, speculating)
    given = replace(given, requests_per_s=requests_per_s)
    counted = account(given, machines)
    _hold_against_arrays(counted, machines, table, machines.serving(traffic), drafts)
    answer = replace(prediction(given, counted), launch=launched(given))
    if requests_per_s is None:
        return answer
    return replace(answer, load=load_of(given, requests_per_s))


def account(given: PredictionRequest, machines: Machines) -> Evaluation:
    """The account of a deployment, and what is to be said of its formats and kernels."""
    counted = evaluation(given)
    kernels, formats = counted.rank.kernels, given.formats
    for option, word in (("--weights", formats.weights), ("--experts", formats.experts)):
        for problem in unpublished(counted.rank.model, option, word):
            remark(problem, once=word)
    for name, timed in counted.times.passes.items():
        for problem in slow_kernels(name, timed, kernels, machines.kernels.rivals):
            remark(problem, once=f"{problem.where} {problem.key}")
    return counted


_HELD = (
    "weights_bytes",
    "drafter_bytes",
    "activation_bytes",
    "limit_bytes",
    "sequence_bytes",
    "held_bytes",
    "shared_bytes",
    "largest_batch",
    "pool_weights_bytes",
    "pool_activation_bytes",
)
"""What arrays and account say of the memory of a device."""


def _hold_against_arrays(
    counted: Evaluation,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    drafts: Drafts | None,
) -> None:
    """Hold the account of one deployment against the arrays, kernel by kernel.

    Raises:
        SolverError: they differ.
    """
    model, device, engine = counted.rank.model, machines.device, machines.engine
    held, serving, times = _in_arrays(model, machines, table, traffic, drafts)
    settings = Settings(
        table=table,
        run_formats=serving.run_formats,
        role=traffic.role,
        n_drafted=drafts.n_drafted if drafts and drafts.n_passes else 0,
        n_per_node=machines.network.n_per_node,
    )
    errors = serving_errors(
        times,
        engine,
        kind=kind_of(model),
        prefill_host_s=serving.prefill_host_s,
        yields=drafts.yields if drafts else 1.0,
        outside=outside_error(engine.name, device.name, kind_of(model), traffic, settings),
    )
    scalar = counted.times
    agree(
        {
            "TPOT": (times.tpot_s[0], scalar.tpot_s),
            "TTFT": (times.ttft_s[0], scalar.ttft_s),
            "ITL": (times.itl_s[0], scalar.itl_s),
            "error of TPOT": (errors[0][0], scalar.tpot_error),
            "error of TTFT": (errors[1][0], scalar.ttft_error),
            "wait for a place": (times.queue_s[0], scalar.queue_s),
            "sequences that run": (times.n_running[0], scalar.n_running),
            **{
                name: (np.ravel(getattr(held, name))[0], getattr(counted.held, name))
                for name in _HELD
            },
        }
    )
    for timed, name in ((times.decode, "decode"), (times.prefill, "prefill")):
        runs = [(one.operation.name, one.run_s[0]) for one in timed.operations]
        runs = [(kernel, seconds) for kernel, seconds in runs if seconds > 0]
        entries = scalar.passes[name].spent if runs else ()
        again = [(one.run.name, one.seconds) for _, _, one in entries if one.seconds > 0]
        if [kernel for kernel, _ in runs] != [kernel for kernel, _ in again]:
            raise SolverError(f"the account has other kernels of {name} than the search")
        pairs = enumerate(zip(runs, again, strict=True), 1)
        agree({f"{kernel}, {i} of {name}": (run_s, s) for i, ((kernel, run_s), (_, s)) in pairs})


def impossible(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    drafts: Drafts | None = None,
) -> list[Problem]:
    """Why a deployment cannot be evaluated, each reason with its option; empty if it can."""
    formats = table.formats[int(table.format_index[0])]
    run = as_run(model, formats, machines.engine)
    ground = Context(
        rules=machines.engine.rules,
        device=machines.device,
        n_per_node=machines.network.n_per_node,
        run=Run.of(traffic.role, run, drafts),
    )
    others = list(context_problems(model, traffic.n_input_tokens, traffic.n_output_tokens))
    traffic = machines.serving(traffic)
    if table.has_pools and (wrong := [*pool_problems(model, table, traffic, drafts)]):
        return wrong
    problems = refusals(model, table, traffic, ground=ground)
    problems += role_problems(traffic, drafts)
    others += cache_problems(model, machines.kernels, formats.cache)
    others += outlier_problems(formats.weights, asked_by="--weights")
    others += backend_problems(model, machines.kernels, run.experts)
    others += pool_overflows(model, machines.engine, table, machines.device.hbm_bytes)
    others += chunk_problems(table, machines.engine, drafts, traffic.role)
    if machines.n_devices is not None:
        others += size_problems(table, machines.cluster.name, machines.n_devices)
    if problems:
        return [*problems, *others]  # of degrees that cannot be, there is no memory to count
    room = Account(
        model=model,
        engine=machines.engine,
        table=table,
        traffic=traffic,
        hbm_bytes=machines.device.hbm_bytes,
        drafts=drafts,
    )
    return [*others, *overflows(room)]


def drafts_for(model: Architecture, speculating: Speculating | None) -> Drafts | None:
    """What a decode pass of a model checks and gives, as asked for."""
    if speculating is None:
        return rounds_of(model, None, 0, ())
    return rounds_of(model, speculating.kind, speculating.n_drafted, speculating.acceptance)


_COUNTS = (
    *("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor"),
    *("batch", "chunk_tokens", "n_expert_devices", "n_microbatches"),
)


def records_of(models: Sequence[Architecture], machines: Machines) -> ServingRecords:
    return ServingRecords(
        models=tuple(models),
        cluster=machines.cluster,
        engine=machines.engine,
        kernels=replace(machines.kernels, rivals={}),
    )


def given_deployment(
    model: Architecture,
    machines: Machines,
    table: DeploymentTable,
    traffic: Traffic,
    speculating: Speculating | None,
) -> PredictionRequest:
    """One deployment of a table and its traffic, in records."""
    return from_fields(
        PredictionRequest,
        traffic,
        records=records_of((model,), machines),
        formats=table.formats[int(table.format_index[0])],
        **{name: int(getattr(table, name)[0]) for name in _COUNTS},
        exchanges=bool(table.exchanges[0]),
        overlaps=bool(table.overlaps[0]),
        n_input_tokens=int(traffic.n_input_tokens),
        n_output_tokens=int(traffic.n_output_tokens),
        n_shared_tokens=int(traffic.n_shared_tokens),
        drafter=speculating.kind if speculating else "",
        n_drafted=speculating.n_drafted if speculating else 0,
        acceptance=speculating.acceptance if speculating else (),
        n_redundant_experts=int(table.n_redundant[0]),
    )
