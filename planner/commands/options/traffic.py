"""One class of traffic, as options say it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from planner.commands.options.arguments import Arguments
from planner.commands.options.counts import count
from planner.commands.options.reading import Faults
from planner.commands.options.remade import option
from planner.commands.options.written_fleets import WrittenFleet
from planner.errors import Problem
from planner.placing.fleets.classes import OPTIONS
from planner.specs.reading import load_architecture
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, REPLAYED, Arrivals, replaying
from planner.specs.traffic.distributions import MOST_TOKENS
from planner.specs.traffic.lengths import AnyLengths, IndependentLengths, TraceLengths
from planner.specs.traffic.percentiles import USUAL_TARGETS, PercentileTarget
from planner.specs.traffic.reading import remark_rate
from planner.specs.traffic.records import FREE_CUTS, FleetTraffic, TrafficClass
from planner.specs.traffic.target_texts import goodput_of
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.traffic.trace_files import load_trace
from planner.specs.traffic.traces import Trace
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
    """The class that options say; None where something is wrong with it."""
    n_before = len(found.problems)
    faults = Faults()
    models = [found.collect(partial(load_architecture, name)) for name in written.model]
    trace = None if written.trace is None else found.collect(partial(load_trace, written.trace))
    rate = _rate(written, trace, faults)
    lengths = _lengths(written, trace, faults)
    arrivals = _arrivals(written, trace, faults)
    targets = tuple(_targets(written, faults))
    goodput = faults.read("--goodput", written.goodput, goodput_of)
    cuts = faults.read("--cuts", written.cuts, cuts_of)
    found.problems += [*faults.problems, *_missing(written)]
    if len(found.problems) > n_before or lengths is None:
        return None
    one = TrafficClass(
        name="requests",
        models=tuple(model for model in models if model is not None),
        rate_per_s=rate or 0.0,
        lengths=lengths,
        arrivals=arrivals,
        targets=targets,
        goodput=goodput,
        cuts=cuts or (),
    )
    return FleetTraffic(classes=(one,), shown=OPTIONS)


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


def _missing(written: WrittenFleet) -> Iterator[Problem]:
    """What a class lacks, or says twice."""
    if not written.model:
        remedy = "name one, like `--model llama-3.1-70b`; or name a file of traffic"
        yield Problem(where="--model", fact="names no model", remedy=remedy)
    if written.trace is None and written.rate is None:
        yield Problem(where="--rate", fact="is missing", remedy="write `--rate 8req/s`")
    for name in ("input", "output"):
        value, where = getattr(written, name), option(name)
        if written.trace is None and value is None:
            yield Problem(where=where, fact="is missing", remedy=_LENGTHS)
        elif written.trace is not None and value is not None:
            fact = "is said by the trace, request by request"
            yield Problem(where=where, value=value, fact=fact, remedy="leave one of both out")


def _rate(written: WrittenFleet, trace: Trace | None, faults: Faults) -> float | None:
    """Requests a second: those of the trace where nothing else is said."""
    rate = faults.read("--rate", written.rate, lambda text: parse(text, "request/s"))
    if trace is None or written.rate is None:
        return trace.rate_per_s if trace else rate
    if rate is not None:
        remark_rate(trace, rate, Problem(where="--trace", value=str(written.trace), fact=""))
    return rate


def _lengths(written: WrittenFleet, trace: Trace | None, faults: Faults) -> AnyLengths | None:
    first = faults.read("--input", written.input, tokens_of)
    second = faults.read("--output", written.output, tokens_of)
    if trace is not None:
        return TraceLengths(trace=trace)
    if first is None or second is None:
        return None
    return IndependentLengths(input=first, output=second)


def _arrivals(written: WrittenFleet, trace: Trace | None, faults: Faults) -> Arrivals:
    """As they are said, else as in the trace, else at random."""
    said = faults.read("--arrivals", written.arrivals, arrivals_of)
    is_replayed = said is not None and said.pattern == REPLAYED
    if is_replayed and written.trace is None:
        fact, remedy = "replays a trace, and there is none", "add `--trace requests.csv`"
        faults.problems.append(
            Problem(where="--arrivals", value=REPLAYED, fact=fact, remedy=remedy)
        )
    if trace is not None and (said is None or is_replayed):
        return replaying(trace)
    return said or POISSON_ARRIVALS


def _targets(written: WrittenFleet, faults: Faults) -> Iterator[PercentileTarget]:
    for where, name in _PERCENTILES.items():
        limit = faults.read(where, getattr(written, name), lambda text: parse(text, "s"))
        if limit is not None:
            usual = USUAL_TARGETS[where]
            yield PercentileTarget(quantity=usual.quantity, share=usual.share, at_most_s=limit)
