"""A class of traffic from what people have in hand: numbers, texts, files."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from planner.errors import Problem
from planner.quantities.units import UnitError
from planner.specs.records.devices import AnyModel
from planner.specs.traffic.arrivals import Arrivals, Trace, arriving
from planner.specs.traffic.distributions import TokenDistribution
from planner.specs.traffic.lengths import AnyLengths, lengths_of
from planner.specs.traffic.percentiles import goodput_of, read_targets
from planner.specs.traffic.records import TrafficClass
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.traffic.trace_files import load_trace
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.problems import Problems

_T = TypeVar("_T")


@arguments_checked()
def traffic_class(
    name: str,
    models: AnyModel | Sequence[AnyModel],
    *,
    rate_per_s: float | None = None,
    input: int | str | TokenDistribution | None = None,  # noqa: A002 as files and options call it
    output: int | str | TokenDistribution | None = None,
    trace: Trace | str | Path | None = None,
    arrivals: Arrivals | str | None = None,
    targets: Mapping[str, float | str] | None = None,
    goodput: str | None = None,
    priority: int = 0,
    cuts: Sequence[int] | str = (),
) -> TrafficClass:
    """A class of traffic.

    Args:
        name: for people.
        models: a model, or several of which any may serve it.
        rate_per_s: requests a second; that of the trace if None.
        input, output: tokens of a request: numbers, or texts like `lognormal:1500:p99=8000`.
        trace: requests as they came, or the file of them, in place of both lengths.
        arrivals: `poisson`, `cv2:4`, `constant` or `trace`; with a trace as in that, else at
            random.
        targets: times by percentile, `{"ttft_p95": 1.0, "tpot_p95": "40 ms"}`; numbers are
            seconds.
        goodput: a share of requests, and limits that each of them keeps: `99% ttft<2s tpot<50ms`.
        priority: where not everybody can be served, the largest goes first.
        cuts: tokens of prompts at which the class is divided among pools; `free`: the planner's.

    Raises:
        RequestError: something of it cannot be read; every problem is listed.
    """
    reading = _Reading(name, has_trace=trace is not None)
    rows = reading.collect(partial(load_trace, trace)) if isinstance(trace, str | Path) else trace
    rate = reading.rate(rows, rate_per_s)
    lengths = reading.lengths(rows, input, output)
    how = arriving(reading.read("arrivals", arrivals, arrivals_of), rows)
    said = {k: it if isinstance(it, str) else f"{it!r} s" for k, it in (targets or {}).items()}
    limited = read_targets(said, name, "targets")
    reading.problems += limited.problems
    within = reading.read("goodput", goodput, goodput_of) or limited.goodput
    reading.settle()
    assert lengths is not None  # or something is wrong with what says them
    return TrafficClass(
        name=name,
        models=(models,) if isinstance(models, AnyModel) else tuple(models),
        rate_per_s=rate,
        lengths=lengths,
        arrivals=how,
        targets=tuple(limited.percentiles),
        goodput=within,
        priority=priority,
        cuts=cuts if isinstance(cuts, str) else tuple(cuts),
    )


class _Reading(Problems):
    """Reads what a class is said to be, and keeps what is wrong with it.

    Args:
        has_trace: whether a trace is given; one that cannot be read says nothing further.
    """

    __slots__ = ("_has_trace", "_name")

    def __init__(self, name: str, *, has_trace: bool) -> None:
        super().__init__()
        self._name, self._has_trace = name, has_trace

    def read(self, key: str, value: object, reader: Callable[[str], _T]) -> _T | None:
        """What a text stands for; a record stands for itself."""
        if not isinstance(value, str | int):
            return value  # type: ignore[return-value]
        try:
            return reader(str(value))
        except UnitError as error:
            self.problems.append(error.problem(self._name, key=key, value=str(value)))
            return None

    def missing(self, key: str, remedy: str) -> None:
        self.problems.append(Problem(where=self._name, key=key, fact="is missing", remedy=remedy))

    def rate(self, trace: Trace | None, said: float | None) -> float:
        """Requests a second; those of the trace where nothing else is said."""
        if said is None and trace is not None:
            return trace.rate_per_s
        if said is None and not self._has_trace:
            self.missing("rate_per_s", "say how many requests come a second, or give a trace")
        return said or 0.0

    def lengths(self, trace: Trace | None, *said: object) -> AnyLengths | None:
        """Of the trace, or input and output as they are said."""
        if self._has_trace:
            return lengths_of(trace)
        both = dict(zip(("input", "output"), said, strict=True))
        for key, value in both.items():
            if value is None:
                self.missing(key, "say tokens, like `lognormal:1500:p99=8000`, or give a trace")
        first, second = (self.read(key, both[key], tokens_of) for key in both)
        return lengths_of(None, first, second)
