"""One class of traffic as options say it, or those of one trace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from planner.commands.options.commands import options_of
from planner.commands.options.said import Said
from planner.errors import Problem
from planner.placing.fleets.classes import OPTIONS
from planner.specs.architecture import Architecture
from planner.specs.reading import load_architecture
from planner.specs.traffic.arrivals import REPLAYED, arriving
from planner.specs.traffic.lengths import lengths_of
from planner.specs.traffic.percentiles import USUAL_TARGETS, PercentileTarget
from planner.specs.traffic.reading import remark_rate
from planner.specs.traffic.records import FleetTraffic, TrafficClass
from planner.specs.traffic.trace_files import TracePart, load_parts

OF_ONE_CLASS = (
    *("--model", "--rate", "--input", "--output", "--trace", "--arrivals", "--cuts", "--goodput"),
    *USUAL_TARGETS,
)
"""Options that say what one class of traffic is."""

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
    load = partial(load_architecture, asked_by=asked_by)
    models = [said.collect(partial(load, name)) for name in names if name]
    return tuple(one for one in models if one is not None)


def _parts(said: Said) -> tuple[TracePart, ...]:
    """Of a trace its classes, and where `--model` says none its models; else one class."""
    if said.trace is None:
        return (TracePart(),)
    parts = said.collect(partial(load_parts, said.trace, by_model=not said.model)) or ()
    if parts and said.rate is not None:
        own = sum(_rate(part, None) for part in parts)
        remark_rate(own, said.rate, Problem(where="--trace", value=said.trace, fact=""))
    return parts


def _rate(one: TracePart, rate: float | None) -> float:
    """Of a class: its part of the whole, which is as in the trace where nothing is said."""
    if one.trace is None:
        return rate or 0.0
    return one.trace.rate_per_s if rate is None else rate * len(one.trace) / one.trace.n_whole


def _name(one: TracePart, parts: Sequence[TracePart]) -> str:
    """A class by its own name, by its model's where another has that too, or where it has none."""
    others = [it for it in parts if it.of_class == one.of_class]
    words = (one.of_class, one.model if len(others) > 1 or not one.of_class else "")
    return " ".join(filter(None, words)) or "requests"


def _refuse_missing(said: Said, parts: Sequence[TracePart]) -> None:
    """What classes lack, or say twice."""
    if not said.model and not any(part.model for part in parts):
        remedy = "name one, like `--model llama-3.1-70b`; or name a file of traffic"
        said.refuse("--model", "names no model", remedy)
    if said.trace is None:
        _refuse_untraced(said)
        return
    for name in filter(said.is_given, ("--input", "--output")):
        said.refuse(name, "is said by the trace, request by request", "leave one of both out")


def _refuse_untraced(said: Said) -> None:
    """What only a trace could say."""
    if said.text("--arrivals") == REPLAYED:
        fact, remedy = "replays a trace, and there is none", "add `--trace requests.csv`"
        said.refuse("--arrivals", fact, remedy)
    remedies = {"--rate": "write `--rate 8req/s`", "--input": _LENGTHS, "--output": _LENGTHS}
    for name, remedy in remedies.items():
        if not said.is_given(name):
            said.refuse(name, "is missing", remedy)


def _targets(said: Said) -> tuple[PercentileTarget, ...]:
    limits = {name: said.values[options_of("fleet")[name].argument] for name in USUAL_TARGETS}
    return tuple(
        PercentileTarget(quantity=usual.quantity, share=usual.share, at_most_s=limits[name])
        for name, usual in USUAL_TARGETS.items()
        if limits[name] is not None
    )
