"""What deployments were compared with measurements, and what of a deployment never was.

`measured_region.csv` has the settings of every measurement that times are compared with, and no
time; `region_errors.csv` how much further off times are of settings that nothing was compared with.
Both are written by `python -m research.sets.region --write`.

A deployment is inside where, of each of its properties and of each pair in `PAIRS`, at least
`LEAST_ROWS` measurements of `LEAST_RUNS` runs have the same, batch and lengths within `FACTOR`.
Outside, times err more: by the errors of what is outside, added up in quadrature.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from planner.specs.records.runtimes import ModelKind, packaged_rows

PROPERTIES = (
    "tp",
    "dp",
    "ep",
    "pp",
    "nodes",
    "role",
    "weights",
    "cache",
    "drafts",
    "micro_batches",
)
"""Of which each value has to be measured; degrees, nodes that a replica spans, what it does of a
request, formats as kernels run them (of experts, where there are some), tokens drafted at once."""

PAIRS = (("tp", "ep"), ("pp", "role"))
"""Properties that have to be measured together."""

CLIENT = "client"
"""Who sends requests, where nobody says how; its error is added to TPOT's and TTFT's alike."""

LENGTHS, IN_FLIGHT = LOADS = ("lengths", "batch")
"""Requests' lengths and requests in flight: near which there have to be measurements."""

LEAST_ROWS, LEAST_RUNS, FACTOR = 10, 2, 2.0

CONFIDENCE = 0.9
"""Share of cases in which what is planned outside holds, where nobody asks for another."""


INSIDE, MEDIAN = "inside", "median"
BELIEFS = ("", INSIDE, MEDIAN)
"""What may be believed of deployments, by number of a program's `variant`: as a request says; no
others than those that were measured; all of them as they are predicted, measured or not."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Measurements of one setting on one device; those of one run are not independent.

    Args:
        nodes: that the replica spans.
        weights: number format of matrix products, of experts where there are some.
        drafts: tokens drafted at once.
        in_flight: requests in flight of the whole replica.
        n_rows: measurements.
        runs: model × device × engine × day, by number, with spaces between.
    """

    engine: str
    device: str
    kind: ModelKind
    tp: str
    dp: str
    ep: str
    pp: str
    nodes: str
    role: str
    weights: str
    cache: str
    drafts: str
    micro_batches: str
    in_flight: int
    n_input: int
    n_output: int
    n_rows: int
    runs: str

    @cached_property
    def run_numbers(self) -> frozenset[int]:
        return frozenset(map(int, self.runs.split()))

    def value(self, name: str) -> str:
        """Of a property, or of a pair."""
        return " × ".join(getattr(self, part) for part in name.split(" × "))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionError:
    """How much further off times are where a property was not measured.

    Args:
        property: of `PROPERTIES`, `LOADS`, `CLIENT`, `device`, `engine`, or a pair, like `tp × ep`.
        deviation_fraction: relative standard deviation, added to others in quadrature [1].
        basis: `left out`: found by leaving the property out; or `assumed`.
        source: how, or why.
    """

    property: str
    deviation_fraction: float
    basis: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A property of a deployment that no measurement of its engine, device and kind of model has.

    Args:
        property: as errors name it.
        value: of the deployment; of lengths `in/out`, of a batch the requests in flight.
        deviation_fraction: how much further off times are for it [1].
    """

    property: str
    value: str
    deviation_fraction: float


def is_near(measured: float, value: float) -> bool:
    """Whether they are within `FACTOR` of each other."""
    return max(measured, value) <= FACTOR * min(measured, value)


@cache
def settings() -> tuple[Setting, ...]:
    """All that was compared, in the order of the file."""
    return packaged_rows("region/measured_region.csv", Setting)


@cache
def region_errors() -> dict[str, float]:
    """Relative standard deviations by property [1]."""
    rows = packaged_rows("region/region_errors.csv", RegionError)
    return {one.property: one.deviation_fraction for one in rows}


def further_deviation(some: Iterable[Outside]) -> float:
    """How much further off times are for all of it together, in quadrature [1]."""
    return math.sqrt(sum(one.deviation_fraction**2 for one in some))


@cache
def measured(engine: str, device: str, kind: ModelKind) -> tuple[str, tuple[Setting, ...]]:
    """What stands for a device: what it is that too little was measured of, and settings.

    Where these are too few on the device, those of the engine's other devices, or of all engines.
    """
    of_kind = tuple(one for one in settings() if one.kind == kind)
    of_engine = tuple(one for one in of_kind if one.engine == engine)
    of_device = tuple(one for one in of_engine if one.device == device)
    if are_enough(of_device):
        return "", of_device
    return ("device", of_engine) if are_enough(of_engine) else ("engine", of_kind)


def are_enough(some: Iterable[Setting]) -> bool:
    """Whether measurements are as many, and of as many runs, as a region needs."""
    known = list(some)
    runs = frozenset().union(*(one.run_numbers for one in known))
    return sum(one.n_rows for one in known) >= LEAST_ROWS and len(runs) >= LEAST_RUNS
