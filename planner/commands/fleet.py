"""`plan fleet`: options or a file of traffic to pools of replicas, their answer to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from planner.commands.options.commands import OF_ONE_CLASS, options_of
from planner.commands.options.parsing import STDOUT
from planner.commands.options.reading import read_roles
from planner.commands.options.said import Said
from planner.commands.placements import DEFAULT_SITE, read_limits
from planner.commands.reporting import reported
from planner.errors import Problem
from planner.placing.fleets.asking import engine_problems, fleet_request
from planner.placing.fleets.classes import OPTIONS
from planner.placing.floorplans import floorplan_of
from planner.report.files import Answer
from planner.report.progress import FleetLine
from planner.running import begin
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture
from planner.specs.files.state import load_state
from planner.specs.records.architecture import Architecture
from planner.specs.traffic.arrivals import REPLAYED, arriving
from planner.specs.traffic.lengths import lengths_of
from planner.specs.traffic.percentiles import USUAL_TARGETS, PercentileTarget
from planner.specs.traffic.reading import load_traffic, remark_rate
from planner.specs.traffic.records import FleetTraffic, TrafficClass
from planner.specs.traffic.trace_files import TracePart, load_parts

_LENGTHS = "write `--input 1500 --output 300`, or `--trace requests.csv`"


def read_traffic(said: Said) -> FleetTraffic | None:
    """The classes that options say; None where something is wrong with them.

    Of a trace that says several, each is one; `--rate` is of all of them together.
    """
    n_before = len(said.problems)
    models = _models(said.model, "--model", said)
    parts = _parts(said)
    _refuse_missing(said, parts)
    classes = tuple(
        TrafficClass(
            name=_name(part, parts),
            models=models or _models([part.model], part.said_at, said),
            rate_per_s=_rate(part, said.rate),
            lengths=lengths,
            arrivals=arriving(said.arrivals, part.trace),
            targets=_targets(said),
            goodput=said.goodput,
            cuts=said.cuts or (),
        )
        for part in parts
        if (lengths := lengths_of(part.trace, said.input, said.output)) is not None
    )
    is_unread = any(problem.where in OF_ONE_CLASS for problem in said.problems)
    is_wrong = is_unread or len(said.problems) > n_before or not classes
    return None if is_wrong else FleetTraffic(classes=classes, shown=OPTIONS)


def _models(names: Sequence[str], asked_by: str, said: Said) -> tuple[Architecture, ...]:
    """Those that there are."""
    return said.each(partial(load_architecture, asked_by=asked_by), filter(None, names))


def _parts(said: Said) -> tuple[TracePart, ...]:
    """Of a trace its classes, and where `--model` says none its models; else one class."""
    if said.trace is None:
        return (TracePart(),)
    parts = said.collect(partial(load_parts, said.trace, by_model=not said.model)) or ()
    if parts and said.rate is not None:
        own = sum(_rate(part, None) for part in parts)
        remark_rate(own, said.rate, Problem(where="--trace", value=said.trace, fact=""))
    return parts


def _rate(part: TracePart, rate: float | None) -> float:
    """Of a class: its part of the whole, which is as in the trace where nothing is said."""
    if part.trace is None:
        return rate or 0.0
    return part.trace.rate_per_s if rate is None else rate * len(part.trace) / part.trace.n_whole


def _name(part: TracePart, parts: Sequence[TracePart]) -> str:
    """A class by its own name, by its model's where another has that too, or where it has none."""
    others = [it for it in parts if it.of_class == part.of_class]
    words = (part.of_class, part.model if len(others) > 1 or not part.of_class else "")
    return " ".join(filter(None, words)) or "requests"


def _refuse_missing(said: Said, parts: Sequence[TracePart]) -> None:
    """What classes lack, or say twice."""
    if not said.model and not any(part.model for part in parts):
        remedy = "name one, like `--model llama-3.1-70b`; or name a file of traffic"
        said.refuse("--model", "names no model", remedy)
    if said.trace is not None:
        for name in filter(said.is_given, ("--input", "--output")):
            said.refuse(name, "is said by the trace, request by request", "leave one of both out")
        return
    if said.text("--arrivals") == REPLAYED:
        fact, remedy = "replays a trace, and there is none", "add `--trace requests.csv`"
        said.refuse("--arrivals", fact, remedy)
    remedies = {"--rate": "write `--rate 8req/s`", "--input": _LENGTHS, "--output": _LENGTHS}
    for name, remedy in remedies.items():
        if not said.is_given(name):
            said.refuse(name, "is missing", remedy)


def _targets(said: Said) -> tuple[PercentileTarget, ...]:
    rows = options_of("fleet")
    return tuple(
        PercentileTarget(quantity=usual.quantity, share=usual.share, at_most_s=limit_s)
        for name, usual in USUAL_TARGETS.items()
        if (limit_s := said.values[rows[name].argument]) is not None
    )


def fleet(said: Said) -> Answer:
    """The cheapest fleet that serves traffic within percentiles."""
    request = read_fleet(said)
    begin("simulating what replicas carry")
    line = FleetLine(rate_per_s=request.rate_per_s)
    steps = None
    if said.staircase is not None:
        from planner.placing.fleets.choosing.staircase import staircase

        lowest, highest = said.staircase
        limits = {"lowest_per_s": lowest, "highest_per_s": highest}
        steps = staircase(request, **limits, workers=said.workers, on_step=line.on_step)
    is_for_programs = said.json or said.csv == STDOUT
    if steps is not None and is_for_programs and said.html is None:
        return reported(said, steps)
    from planner.placing.fleets.planning import fleet as find

    best = find(request, on_round=line.on_round)
    floorplan = floorplan_of(request.site, request.state)
    return reported(said, best, record=steps, staircase=steps, floorplan=floorplan)


def read_fleet(said: Said) -> FleetRequest:
    """Everything that was asked for.

    Raises:
        RequestError: with the problems of words, options, files and the request together.
    """
    said.problems += engine_problems(said.engine)
    traffic = _read_traffic(said)
    keywords: dict[str, Any] = {
        **said.sets(),
        "engines": said.engine or None,
        "sharing": not said.no_sharing,
        "limits": read_limits(said),
        "quality_loss_fraction": said.max_quality_loss,
        "options": SolverOptions(**said.sets("SolverOptions")),
        **_read_site(said, traffic),
        **read_roles(said),
    }
    request = None
    if traffic is not None and (keywords["site"] is not None or _has_devices(traffic)):
        request = said.collect(partial(fleet_request, traffic, **keywords))
    said.check()
    assert request is not None  # or something is wrong with what it is made of
    return request


def _read_traffic(said: Said) -> FleetTraffic | None:
    """The classes of options, or of a file, beside which options of one class say nothing."""
    file = said.traffic
    if file is None:
        return read_traffic(said)
    for name in filter(said.is_given, OF_ONE_CLASS):
        fact = f"is of one class, and `{file}` says what the classes are"
        said.refuse(name, fact, "leave it out, or write it there", value=said.texts[name][0])
    return said.collect(partial(load_traffic, file))


def _has_devices(traffic: FleetTraffic | None) -> bool:
    """Whether a file of traffic says what serves it."""
    return traffic is not None and traffic.supply is not None and bool(traffic.supply.kinds)


def _read_site(said: Said, traffic: FleetTraffic | None) -> Mapping[str, Any]:
    """What serves, where the traffic says nothing of it."""
    name = said.topology or (None if _has_devices(traffic) else DEFAULT_SITE)
    if "" in said.count:
        said.refuse("--count", "is of which kind?", "write `--count h100-sxm=16`", value="")
    return {
        "site": None if name is None else said.collect(partial(load_site, name)),
        "state": said.load("--state", load_state),
        "counts": {key: n for key, n in said.count.items() if key} or None,
        "prices": said.price,
    }
