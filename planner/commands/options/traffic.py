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
    n_before = len(found.problems)
    faults = Faults()
    asked = tuple(found.collect(partial(load_architecture, name)) for name in written.model)
    parts = _parts(written, found)
    rate = faults.read("--rate", written.rate, lambda text: parse(text, "request/s"))
    said = faults.read("--arrivals", written.arrivals, arrivals_of)
    tokens = [
        faults.read(option(it), getattr(written, it), tokens_of) for it in ("input", "output")
    ]
    targets = tuple(_targets(written, faults))
    goodput = faults.read("--goodput", written.goodput, goodput_of)
    cuts = faults.read("--cuts", written.cuts, cuts_of)
    found.problems += [*faults.problems, *_missing(written, parts)]
    whole = sum(one.trace.rate_per_s for one in parts)
    if parts and rate is not None:
        remark_rate(whole, rate, Problem(where="--trace", value=str(written.trace), fact=""))
    classes = []
    for one in parts or [None]:
        trace = one.trace if one else None
        lengths = lengths_of(trace, *tokens)
        models = asked or ((_model(one, found),) if one else ())
        own = trace.rate_per_s * (rate / whole if rate else 1.0) if trace else rate
        if lengths is not None:
            classes.append(
                TrafficClass(
                    name=_name(one, parts) if one else "requests",
                    models=tuple(model for model in models if model is not None),
                    rate_per_s=own or 0.0,
                    lengths=lengths,
                    arrivals=arriving(said, trace),
                    targets=targets,
                    goodput=goodput,
                    cuts=cuts or (),
                )
            )
    is_wrong = len(found.problems) > n_before or not classes
    return None if is_wrong else FleetTraffic(classes=tuple(classes), shown=OPTIONS)


def _parts(written: WrittenFleet, found: Arguments) -> tuple[TracePart, ...]:
    """Of a trace its classes, and where `--model` says none its models; nothing without a trace."""
    if written.trace is None:
        return ()
    by_model = not written.model
    return found.collect(partial(load_parts, written.trace, by_model=by_model)) or ()


def _model(one: TracePart, found: Arguments) -> Architecture | None:
    """That a column of a trace says."""
    return found.collect(partial(load_architecture, one.model, asked_by=one.said_at))


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
    if written.trace is None and written.rate is None:
        yield Problem(where="--rate", fact="is missing", remedy="write `--rate 8req/s`")
    if written.trace is None and written.arrivals == REPLAYED:
        fact, remedy = "replays a trace, and there is none", "add `--trace requests.csv`"
        yield Problem(where="--arrivals", value=REPLAYED, fact=fact, remedy=remedy)
    for name in ("input", "output"):
        value, where = getattr(written, name), option(name)
        if written.trace is None and value is None:
            yield Problem(where=where, fact="is missing", remedy=_LENGTHS)
        elif written.trace is not None and value is not None:
            fact = "is said by the trace, request by request"
            yield Problem(where=where, value=value, fact=fact, remedy="leave one of both out")


def _targets(written: WrittenFleet, faults: Faults) -> Iterator[PercentileTarget]:
    for where, name in _PERCENTILES.items():
        limit = faults.read(where, getattr(written, name), lambda text: parse(text, "s"))
        if limit is not None:
            usual = USUAL_TARGETS[where]
            yield PercentileTarget(quantity=usual.quantity, share=usual.share, at_most_s=limit)
