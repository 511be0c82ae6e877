"""One class of traffic as options say it, or those of one trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from planner.commands.options.arguments import Arguments
from planner.commands.options.counts import count
from planner.commands.options.reading import Faults
from planner.commands.options.remade import option
from planner.commands.options.written_fleets import WrittenFleet
from planner.errors import Problem
from planner.placing.fleets.classes import OPTIONS
from planner.specs.architecture import Architecture
from planner.specs.reading import load_architecture
from planner.specs.traffic.arrivals import REPLAYED, arriving
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.lengths import lengths_of
from planner.specs.traffic.percentiles import USUAL_TARGETS, PercentileTarget
from planner.specs.traffic.reading import remark_rate
from planner.specs.traffic.records import FREE_CUTS, FleetTraffic, TrafficClass
from planner.specs.traffic.target_texts import goodput_of
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.traffic.trace_files import TracePart, load_parts
from planner.units import UnitError, parse

_PERCENTILES = {
    one: one.removeprefix("--").replace("-", "_").replace(".", "_") for one in USUAL_TARGETS
}
"""Names of options of percentiles in Python."""

OF_ONE_CLASS = (
    *("model", "rate", "input", "output", "trace", "arrivals", "cuts", "goodput"),
    *_PERCENTILES.values(),
)
"""Options that say what one class of traffic is."""

_LENGTHS = "write `--input 1500 --output 300`, or `--trace requests.csv`"


def read_traffic(written: WrittenFleet, found: Arguments) -> FleetTraffic | None:
    """The classes that options say; None where something is wrong with them.

    Of a trace that says several, each is one; `--rate` is of all of them together.
    """
    n_before, faults = len(found.problems), Faults()
    asked = _models(written.model, "--model", found)
    rate = faults.read("--rate", written.rate, lambda text: parse(text, "request/s"))
    parts = _parts(written, rate, found)
    said = faults.read("--arrivals", written.arrivals, arrivals_of)
    texts = ((option(name), getattr(written, name)) for name in ("input", "output"))
    tokens = [faults.read(where, text, tokens_of) for where, text in texts]
    targets = tuple(_targets(written, faults))
    goodput = faults.read("--goodput", written.goodput, goodput_of)
    cuts = faults.read("--cuts", written.cuts, cuts_of)
    found.problems += [*faults.problems, *_missing(written, parts)]
    classes = tuple(
        TrafficClass(
            name=_name(one, parts),
            models=asked or _models([one.model], one.said_at, found),
            rate_per_s=_rate(one, rate),
            lengths=lengths,
            arrivals=arriving(said, one.trace),
            targets=targets,
            goodput=goodput,
            cuts=cuts or (),
        )
        for one in parts
        if (lengths := lengths_of(one.trace, *tokens)) is not None
    )
    is_wrong = len(found.problems) > n_before or not classes
    return None if is_wrong else FleetTraffic(classes=classes, shown=OPTIONS)


def _models(names: Sequence[str], asked_by: str, found: Arguments) -> tuple[Architecture, ...]:
    """Those that there are."""
    load = partial(load_architecture, asked_by=asked_by)
    models = [found.collect(partial(load, name)) for name in names if name]
    return tuple(one for one in models if one is not None)


def _parts(written: WrittenFleet, rate: float | None, found: Arguments) -> tuple[TracePart, ...]:
    """Of a trace its classes, and where `--model` says none its models; else one class."""
    if written.trace is None:
        return (TracePart(),)
    parts = found.collect(partial(load_parts, written.trace, by_model=not written.model)) or ()
    if parts and rate is not None:
        own = sum(_rate(one, None) for one in parts)
        remark_rate(own, rate, Problem(where="--trace", value=str(written.trace), fact=""))
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


def cuts_of(text: str) -> tuple[int, ...] | str:
    """AnyLengths of prompts that part pools.

    >>> cuts_of("2048,8192"), cuts_of("free")
    ((2048, 8192), 'free')
    """
    if text.strip() == FREE_CUTS:
        return FREE_CUTS
    found = tuple(count(part, most=MOST_TOKENS) for part in text.split(","))
    if list(found) != sorted(set(found)):
        raise UnitError(text, "is not in ascending order", "write `2048,8192`")
    return found


def _missing(written: WrittenFleet, parts: Sequence[TracePart]) -> Iterator[Problem]:
    """What classes lack, or say twice."""
    if not written.model and not any(one.model for one in parts):
        remedy = "name one, like `--model llama-3.1-70b`; or name a file of traffic"
        yield Problem(where="--model", fact="names no model", remedy=remedy)
    if written.trace is None:
        yield from _untraced(written)
        return
    for name in ("input", "output"):
        if (value := getattr(written, name)) is not None:
            fact = "is said by the trace, request by request"
            remedy = "leave one of both out"
            yield Problem(where=option(name), value=value, fact=fact, remedy=remedy)


def _untraced(written: WrittenFleet) -> Iterator[Problem]:
    """What only a trace could say."""
    if written.arrivals == REPLAYED:
        fact, remedy = "replays a trace, and there is none", "add `--trace requests.csv`"
        yield Problem(where="--arrivals", value=REPLAYED, fact=fact, remedy=remedy)
    remedies = {"rate": "write `--rate 8req/s`", "input": _LENGTHS, "output": _LENGTHS}
    for name, remedy in remedies.items():
        if getattr(written, name) is None:
            yield Problem(where=option(name), fact="is missing", remedy=remedy)


def _targets(written: WrittenFleet, faults: Faults) -> Iterator[PercentileTarget]:
    for where, name in _PERCENTILES.items():
        limit = faults.read(where, getattr(written, name), lambda text: parse(text, "s"))
        if limit is not None:
            usual = USUAL_TARGETS[where]
            yield PercentileTarget(quantity=usual.quantity, share=usual.share, at_most_s=limit)
