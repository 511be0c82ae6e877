"""`plan predict`: one given deployment, as options say it, evaluated without a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_predictions import WrittenPrediction
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.estimates.serving.deployments import DeploymentTable
    from planner.estimates.serving.traffic import Traffic
    from planner.results.predictions import Prediction
    from planner.runtimes.predicting import Machines, Speculating
    from planner.specs.architecture import Architecture

USUAL_LOOKAHEAD = "1"
_NOTHING_ASKED = WrittenPrediction()


def predict(
    written: Annotated[WrittenPrediction, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Evaluate a deployment as given: times, work and bounds of every operation, memory."""
    from planner.commands.options.expert_loads import with_expert_loads
    from planner.runtimes.predicting import predict as evaluate
    from planner.specs.reading import load_architecture

    found = said
    found.refuse((written.engine,))
    numbers = _numbers(written, found)
    model = found.collect(lambda: load_architecture(written.model))
    model = with_expert_loads(model, written.expert_loads, found)
    machines = _machines(written, found)
    speculating = _speculating(written, model, found)
    _check_files(written, found)
    rate = _rate(written, found)
    table = _table(written, model, machines, numbers, found)
    traffic = _traffic(written, numbers, found)
    if not {problem.where for problem in found.problems} & numbers.keys():  # all of them are read
        found.problems += _impossible(
            model, machines, table, traffic, numbers["--shared"], speculating
        )
    found.check()
    assert model is not None
    assert machines is not None
    assert table is not None
    if rate is not None:
        _say_how_they_arrive(rate)
    answer = evaluate(
        model,
        machines,
        table,
        traffic,
        speculating=speculating,
        n_shared_tokens=numbers["--shared"],
        requests_per_s=rate,
    )
    return _answer(written, answer)


def _answer(written: WrittenPrediction, answer: Prediction) -> Answer:
    from planner.report.prediction import prediction_line, prediction_text
    from planner.report.roofline import roofline_page

    def text() -> str:
        if written.quiet:
            return prediction_line(answer)
        return prediction_text(answer, width(), explains=written.explain)

    files = () if written.html is None else ((written.html, roofline_page(answer)),)
    return answered(answer, text, is_json=written.json, files=files)


def _numbers(written: WrittenPrediction, found: Arguments) -> dict[str, float]:
    """Counts and fractions; what cannot be read is 1, and a problem."""
    from planner.commands.options.counts import count
    from planner.commands.options.loops import loop_problems
    from planner.commands.options.reading import Faults, below_one

    faults = Faults()

    def spare(text: str) -> float:
        return float(count(text, least=0))

    reads: dict[str, tuple[str | None, Any]] = {
        "--tp": (written.tp, count),
        "--pp": (written.pp, count),
        "--ep": (written.ep, count),
        "--redundant-experts": (written.redundant_experts, spare),
        "--dp": (written.dp, count),
        "--batch": (written.batch, count),
        "--in-flight": (written.in_flight, count),
        "--waves": (written.waves, count),
        "--input": (written.input, count),
        "--output": (written.output, count),
        "--chunk": (written.chunk, count),
        "--shared": (written.shared, spare),
        "--hit-rate": (written.hit_rate, below_one("90%")),
    }
    values = {option: faults.read(option, text, read) for option, (text, read) in reads.items()}
    found.problems += [*faults.problems, *loop_problems(written)]
    usual = {
        "--ep": 0.0,
        "--redundant-experts": 0.0,
        "--chunk": 0.0,
        "--in-flight": 0.0,
        "--waves": 0.0,
    }
    return {k: float(v) if v is not None else usual.get(k, 1.0) for k, v in values.items()}


def _rate(written: WrittenPrediction, found: Arguments) -> float | None:
    """Requests that arrive a second."""
    from planner.commands.options.reading import Faults
    from planner.units import parse

    faults = Faults()
    rate = faults.read("--rate", written.rate, lambda text: parse(text, "request/s"))
    found.problems += faults.problems
    return rate


def _say_how_they_arrive(rate: float) -> None:
    from planner.specs.ledger import remark
    from planner.units import show

    fact = "arrive at random times: bursts beyond that are not counted"
    remark(Problem(where="--rate", value=show(rate, "request/s"), fact=fact))


def _machines(written: WrittenPrediction, found: Arguments) -> Machines | None:
    from planner.estimates.calibration.kernel_files import backend_problems, kernel_table
    from planner.estimates.serving.networks import serving_network
    from planner.runtimes.predicting import Machines
    from planner.specs.engines.files import load_engine
    from planner.specs.reading import load_cluster, load_device

    engine = found.collect(lambda: load_engine(written.engine))
    backend = written.experts_backend or ""
    if bool(written.device) == bool(written.topology):
        both = "cannot go with `--topology`" if written.device else "is not given"
        remedy = "write `--device h20`, or `--topology h20-nvl8-x1` for its network"
        found.problems.append(Problem(where="--device", fact=both, remedy=remedy))
        found.problems += backend_problems(backend, engine.name) if backend and engine else ()
        return None
    cluster = device = None
    if written.topology:
        name = written.topology
        cluster = found.collect(lambda: load_cluster(name, asked_by="--topology"))
        device = cluster.device if cluster else None
    else:
        name = str(written.device)
        device = found.collect(lambda: load_device(name))
        usual = _usual_servers(device.name) if device else None
        cluster = load_cluster(usual) if usual else None
    if device is None or engine is None:
        return None
    kernels = found.collect(lambda: kernel_table(device.name, engine.name, backend))
    if kernels is None:
        return None
    if cluster is None:
        remedy = "name a topology of it: `--topology`, see `plan topologies`"
        fact = "no servers of this device are known, so its network is not"
        found.problems.append(Problem(where="--device", value=name, fact=fact, remedy=remedy))
        return None
    try:
        network = serving_network(cluster.fabric)
    except ValueError as error:
        found.problems.append(Problem(where="--topology", value=name, fact=str(error)))
        return None
    return Machines(
        device=device,
        kernels=kernels,
        engine=engine,
        network=network,
        network_name=cluster.name,
        cluster=replace(cluster, device=device),
        n_devices=cluster.n_devices if written.topology else None,
    )


def _usual_servers(device: str) -> str | None:
    """The topology of a device's usual servers, with as many of them as it allows."""
    from planner.specs.finding import patterns
    from planner.specs.places import Kind

    for _, pattern in patterns(Kind.CLUSTER):
        if pattern.name.startswith(f"{device.removesuffix('-sxm')}-nvl"):
            return pattern.fill({key: values[-1] for key, values in pattern.allowed.items()})
    return None


def _table(
    written: WrittenPrediction,
    model: Architecture | None,
    machines: Machines | None,
    numbers: dict[str, float],
    found: Arguments,
) -> DeploymentTable | None:
    from planner.commands.options.loops import batch_of
    from planner.estimates.serving.deployments import deployments, has_experts
    from planner.estimates.serving.operations import FORMAT_BYTES, STATIC
    from planner.estimates.serving.popularity import with_copies
    from planner.estimates.serving.refusals import completed
    from planner.estimates.serving.rules import Ground, Run
    from planner.specs.quality import as_published
    from planner.specs.served_formats import ServedFormats, as_run

    known = (*FORMAT_BYTES, *(name + STATIC for name in ("fp8", "nvfp4")))
    weights = written.weights or (as_published(model)[0] if model else "bf16")
    cache = written.kv or (model.kv_format if model else "bf16")
    experts = written.experts or weights
    asked = (("--weights", weights), ("--experts", written.experts), ("--kv", cache))
    for option, name in asked:
        if name is not None and name not in known:
            remedy = f"it is {', '.join(known[:-1])} or {known[-1]}"
            fact = "no such number format"
            found.problems.append(Problem(where=option, value=name, fact=fact, remedy=remedy))
    if written.overlap not in ("none", "two-batch"):
        fact, remedy = "no such overlap", "it is none or two-batch"
        found.problems.append(
            Problem(where="--overlap", value=written.overlap, fact=fact, remedy=remedy)
        )
    for option, said in (
        ("--experts", written.experts),
        ("--redundant-experts", written.redundant_experts),
    ):
        if said and model is not None and not has_experts(model):
            fact, remedy = f"{model.name} has no experts", "leave it out"
            found.problems.append(Problem(where=option, value=said, fact=fact, remedy=remedy))
    formats_known = all(name is None or name in known for _, name in asked)
    if model is None or machines is None or not formats_known:
        return None
    tensor = int(numbers["--tp"])
    data, expert = completed(
        model,
        tensor=tensor,
        data=None if written.dp is None else int(numbers["--dp"]),
        expert=int(numbers["--ep"]) or None,
    )
    table = deployments(
        formats=ServedFormats(weights=weights, experts=experts, cache=cache),
        n_tensor=tensor,
        n_data=data,
        n_stages=int(numbers["--pp"]),
        n_expert_parallel=expert,
        batch=batch_of(numbers, int(data), found.problems),
        chunk_tokens=numbers["--chunk"] or float(machines.engine.n_chunk_tokens),
        n_redundant=numbers["--redundant-experts"],
        overlaps=written.overlap == "two-batch",
    )
    if written.redundant_experts is not None:
        return table
    run = Run(role=written.role, formats=as_run(model, table.formats[0], machines.engine))
    ground = Ground(rules=machines.engine.rules, device=machines.device, run=run)
    return with_copies(model, table, machines.engine, ground)


def _impossible(
    model: Architecture | None,
    machines: Machines | None,
    table: DeploymentTable | None,
    traffic: Traffic,
    n_shared_tokens: float,
    speculating: Speculating | None,
) -> list[Problem]:
    """What cannot be about a deployment whose options can be read."""
    from planner.runtimes.predicting import drafts_for, impossible

    if model is None or machines is None or table is None:
        return []
    return impossible(
        model,
        machines,
        table,
        traffic,
        drafts=drafts_for(model, speculating),
        n_shared_tokens=n_shared_tokens,
    )


def _traffic(written: WrittenPrediction, numbers: dict[str, float], found: Arguments) -> Traffic:
    from planner.estimates.serving.refusals import unknown_role
    from planner.estimates.serving.traffic import Traffic
    from planner.specs.roles import TOGETHER

    unknown = [*unknown_role(written.role)]
    found.problems += unknown
    return Traffic(
        n_input_tokens=numbers["--input"],
        n_output_tokens=numbers["--output"],
        hit_fraction=numbers["--hit-rate"],
        role=TOGETHER if unknown else written.role,
        n_waves=int(numbers["--waves"]),
    )


def _speculating(
    written: WrittenPrediction, model: Architecture | None, found: Arguments
) -> Speculating | None:
    from planner.commands.options.counts import count
    from planner.commands.options.engines import acceptances
    from planner.commands.options.reading import Faults
    from planner.estimates.serving.drafting import KINDS, drafter_of
    from planner.runtimes.predicting import Speculating
    from planner.specs.acceptance import PUBLISHED

    faults = Faults()
    n_drafted = faults.read("--lookahead", written.lookahead or USUAL_LOOKAHEAD, count)
    acceptance = faults.read("--acceptance", written.acceptance, acceptances)
    if written.draft is None:
        for option, value in (
            ("--lookahead", written.lookahead),
            ("--acceptance", written.acceptance),
        ):
            if value:
                fact = "means nothing without `--draft`"
                faults.problems.append(Problem(where=option, fact=fact))
        found.problems += faults.problems
        return None
    if written.draft not in KINDS:
        fact, remedy = "no such drafter", f"it is {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        faults.problems.append(
            Problem(where="--draft", value=written.draft, fact=fact, remedy=remedy)
        )
    elif model is not None:
        try:
            drafter_of(model, written.draft)
        except ValueError as error:
            faults.problems.append(Problem(where="--draft", value=written.draft, fact=str(error)))
    if acceptance is not None and max(acceptance) >= 1.0:
        fact = "is a probability below 1"
        faults.problems.append(
            Problem(where="--acceptance", value=written.acceptance or "", fact=fact)
        )
    found.problems += faults.problems
    if faults.problems or n_drafted is None:
        return None
    rates = acceptance or PUBLISHED[written.draft].rates
    return Speculating(kind=written.draft, n_drafted=n_drafted, acceptance=rates)


def _check_files(written: WrittenPrediction, found: Arguments) -> None:
    if written.json and written.quiet:
        found.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
