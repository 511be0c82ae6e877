"""A request for a fleet from a TOML file.

    connector = "nixl"                      # what hands caches over, for prefill and decode apart

    [[class]]
    name = "chat"
    model = "llama-3.1-70b"                 # or several, of which any may serve it
    rate = "8 req/s"
    input = "lognormal:1500:p99=8000"       # see `planner.specs.traffic.texts`; or a number
    output = 300
    arrivals = "cv2:4"                      # poisson without; constant; trace
    priority = 1                            # where not everybody can be served, larger first
    cuts = "free"                           # prompts among pools by length: or [2048, 8192]

    [class.targets]                         # see `planner.specs.traffic.percentiles`
    ttft_p95 = "1 s"
    tpot_p95 = "40 ms"

    [[class]]
    name = "code"
    model = "llama-3.1-8b"
    trace = "code.csv.gz"                   # lengths, arrivals and rate where nothing else is said;
                                            # of a trace with a column `class`, those of this one
    rate = "20 req/s"                       # with a trace: the trace, faster or slower

    [[kind]]
    device = "h100-sxm"                     # in its usual servers, or: topology = "h100-nvl8-x4"
    count = 32
    price = "$2.10/h"                       # of one; that of its file without
    site = "east"
    failed = ["node3/gpu5"]                 # busy, too; or: state = "state.toml"

In place of `input` and `output`, `total` and `input_share` say what both are together.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.ask.quality import context_problems
from planner.specs.files.ledger import Use, remark
from planner.specs.files.reading import load_architecture, load_connector, record_of
from planner.specs.files.tables import read_table
from planner.specs.records.devices import AnyModel
from planner.specs.traffic.arrivals import REPLAYED, Trace, arriving
from planner.specs.traffic.kinds import ClassEntry, TrafficFile, beside, name_of, read_kind
from planner.specs.traffic.lengths import AnyLengths, DividedLengths, lengths_of
from planner.specs.traffic.percentiles import read_targets
from planner.specs.traffic.records import DeviceInventory, FleetTraffic, TrafficClass
from planner.specs.traffic.trace_files import load_parts
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Problems

_LENGTHS = 'write `input = 1500` and `output = 300`, or `trace = "code.csv"`'


@arguments_checked()
def load_traffic(path: str | Path) -> FleetTraffic:
    """Read a request for a fleet, and all that it names.

    Raises:
        SpecError: there is no such file, or it, or something that it names, has faults; all are
            listed.
    """
    shown = str(path)
    read = read_table(Path(path), shown, use=Use(kind="traffic"))
    file = record_of(TrafficFile, *read, shown=shown)
    wrong = Problems(problems=[*_named_twice("class", [one.name for one in file.classes], shown)])
    wrong.problems += _named_twice("kind", [name_of(one) for one in file.kind], shown)
    classes = wrong.each(partial(_read_class, shown=shown), file.classes, key="class")
    kinds = wrong.each(partial(read_kind, shown=shown), file.kind, key="kind")
    load = partial(load_connector, file.connector or "", asked_by=f"{shown}: connector")
    connector = wrong.collect(load) if file.connector is not None else None
    wrong.settle()
    supply = DeviceInventory(kinds=kinds, connector=connector) if kinds or connector else None
    return FleetTraffic(classes=classes, supply=supply, shown=shown)


def length_problems(
    models: Iterable[AnyModel], lengths: AnyLengths, *, asked_by: str
) -> Iterator[Problem]:
    """Requests that are longer than a model attends to."""
    n_input, n_output = lengths.longest
    for model in models:
        for problem in context_problems(model, n_input, n_output, asked_by=asked_by):
            remedy = "cut lengths, like `lognormal:1500:p99=8000:max=16000`"
            yield replace(problem, remedy=remedy)


def _named_twice(what: str, names: Sequence[str], shown: str) -> Iterator[Problem]:
    for i, name in enumerate(names):
        if name and name in names[:i]:
            fact, remedy = f"is the name of another {what}", "give each a name of its own"
            key = f"{what}[{i}].name"
            yield Problem(where=shown, key=key, value=name, fact=fact, remedy=remedy)


def _read_class(entry: ClassEntry, shown: str, key: str) -> TrafficClass:
    """One class, with all that its entry names.

    Raises:
        SpecError: with every problem.
    """
    targets = read_targets(entry.targets, shown, f"{key}.targets")
    wrong = Problems(problems=[*_entry_problems(entry, shown, key), *targets.problems])
    asked_by = f"{shown}: {key}.model"
    models = wrong.each(partial(load_architecture, asked_by=asked_by), entry.model)
    trace = wrong.collect(lambda: _trace(entry, shown, key))
    lengths = _lengths(entry, trace)
    if lengths is not None:
        wrong.problems += length_problems(models, lengths, asked_by=asked_by)
    arrivals = arriving(entry.arrivals, trace)
    if arrivals.trace is not None and arrivals.trace.duration_s <= 0.0:
        fact = "has all requests at one time, and cannot be replayed"
        remedy = 'write `arrivals = "poisson"`'
        wrong.problems.append(Problem(where=shown, key=f"{key}.trace", fact=fact, remedy=remedy))
    wrong.settle()
    rate = entry.rate if trace is None else entry.rate or trace.rate_per_s
    assert lengths is not None  # or something is wrong with the entry
    assert rate is not None
    return from_fields(
        TrafficClass,
        entry,
        models=models,
        rate_per_s=rate,
        lengths=lengths,
        arrivals=arrivals,
        targets=tuple(targets.percentiles),
        goodput=targets.goodput,
    )


def _entry_problems(entry: ClassEntry, shown: str, key: str) -> Iterator[Problem]:
    """What an entry says too often, or not at all."""
    both = {"input": entry.input, "output": entry.output}
    divided = {"total": entry.total, "input_share": entry.input_share}
    ways = [any(both.values()), any(divided.values()), entry.trace is not None]
    if sum(ways) > 1:
        fact = "says lengths twice"
        yield Problem(where=shown, key=key, fact=fact, remedy=_LENGTHS)
    elif sum(ways) == 0:
        yield Problem(where=shown, key=key, fact="says nothing of lengths", remedy=_LENGTHS)
    for way in (both, divided):
        missing = [name for name, value in way.items() if value is None]
        if len(missing) == 1 and sum(ways) == 1:
            yield Problem(where=shown, key=f"{key}.{missing[0]}", fact="is missing")
    if entry.input_share == 1.0:
        fact, remedy = "leaves no token to be written", "write `0.8` or `80%`"
        yield Problem(where=shown, key=f"{key}.input_share", value="1", fact=fact, remedy=remedy)
    if entry.trace is None:
        yield from _untraced_problems(entry, shown, key)


def _untraced_problems(entry: ClassEntry, shown: str, key: str) -> Iterator[Problem]:
    """What only a trace could say, where there is none."""
    if entry.rate is None:
        remedy = 'write `rate = "8 req/s"`'
        yield Problem(where=shown, key=f"{key}.rate", fact="is missing", remedy=remedy)
    if entry.arrivals is not None and entry.arrivals.pattern == REPLAYED:
        remedy = "name a trace, or leave `arrivals` out"
        fact = "replays a trace, and there is none"
        yield Problem(where=shown, key=f"{key}.arrivals", fact=fact, remedy=remedy)


def _trace(entry: ClassEntry, shown: str, key: str) -> Trace | None:
    if entry.trace is None:
        return None
    asked_by = f"{shown}: {key}.trace"
    parts = load_parts(beside(Path(shown), entry.trace), by_model=False, asked_by=asked_by)
    trace = next((it.trace for it in parts if it.of_class in ("", entry.name)), None)
    if trace is None:
        fact = f"has no `{entry.name}` in its column of classes, but "
        fact += ", ".join(f"`{it.of_class}`" for it in parts)
        raise SpecError([Problem(where=asked_by, value=entry.trace, fact=fact)])
    if entry.rate is not None:
        place = Problem(where=shown, key=f"{key}.trace", value=trace.name, fact="")
        remark_rate(trace.rate_per_s, entry.rate, place)
    return trace


def remark_rate(own_per_s: float, rate_per_s: float, place: Problem) -> None:
    """Say that a trace stands for more requests, or fewer, than are in it.

    Args:
        own_per_s: of the trace; infinite where all came at once.
        place: where it is named.
    """
    if math.isfinite(own_per_s):
        times = rate_per_s / own_per_s
        fact = f"is of {own_per_s:.3g} req/s, and stands for {times:.3g} times as many"
        remark(replace(place, fact=fact))


def _lengths(entry: ClassEntry, trace: Trace | None) -> AnyLengths | None:
    if trace is None and entry.total is not None and entry.input_share is not None:
        return DividedLengths(total=entry.total, input_fraction=entry.input_share)
    return lengths_of(trace, entry.input, entry.output)
