"""Runtimes: who executes which phases of a deployment, on what devices, and how far off they were.

The schedule of a runtime says what its TPOT is and which caches are held together.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeVar, get_type_hints

from planner.quantities.tables import PACKAGES, packaged_table
from planner.specs.validation.hints import LATER

ScheduleName = Literal["turns", "interleaved", "stated"]
PhaseName = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How phases share devices.

    Args:
        name: one word, in reports and JSON: phases take `turns` on the devices, or they are
            `interleaved`: prompts of other requests are read between and within decode passes; or
            it is as whoever `stated` the times had it.
        sentence: what follows for TPOT and for the cache.
    """

    name: ScheduleName
    sentence: str


_SCHEDULES = packaged_table("specs/records/runtimes.toml")["schedules"]
TURNS, INTERLEAVED, STATED = (Schedule(**row) for row in _SCHEDULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Who executes a deployment.

    Args:
        name: as options and answers write it.
        title: for people.
        schedule: how phases share the devices.
        phases: those that it plans; without prefill there is no TTFT.
    """

    name: str
    title: str
    schedule: Schedule
    phases: tuple[PhaseName, ...] = ("prefill", "decode")

    @property
    def schedule_words(self) -> str:
        """How phases share the devices, and what follows, in a line."""
        if "prefill" not in self.phases:
            return f"{self.schedule.name}: TPOT is a decode pass by itself; prefill is not planned"
        return f"{self.schedule.name}: {self.schedule.sentence}"


ROOFLINE = Runtime(name="roofline", title="layouts on a roofline", schedule=TURNS)
ERDIL2025 = Runtime(
    name="erdil2025", title="decoding by Erdil 2025", schedule=TURNS, phases=("decode",)
)
_TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}

ENGINES = tuple(_TITLES)
"""Serving engines that are chosen among where none is named."""

TARGETS = ("shell", "compose", "k8s", "llm-d", "production-stack", "dynamo", "ray", "jax")
"""What launch files are written for; `report/launch/targets.toml` has a row of each."""

_SERVING = (Runtime(name=name, title=_TITLES[name], schedule=INTERLEAVED) for name in ENGINES)

RUNTIMES: Mapping[str, Runtime] = {one.name: one for one in (ROOFLINE, *_SERVING, ERDIL2025)}

LAYOUT_RUNTIMES = (ROOFLINE.name, ERDIL2025.name)
"""Those that read a model as one shape of layers; engines read it layer by layer."""

TABLE = "table"
"""The family of all runtimes that are tables of deployments."""

_OF_TABLES = f"{TABLE}:"


def is_table(name: str) -> bool:
    """Whether a runtime is a table of deployments: `table:measured.csv`."""
    return name.startswith(_OF_TABLES)


def table_file(name: str) -> str:
    """The file of a table's runtime.

    >>> table_file("table:measured.csv")
    'measured.csv'
    """
    return name.removeprefix(_OF_TABLES)


def runtime_of(name: str) -> Runtime:
    """A runtime by its name; what is neither ours nor a table is an engine of the user's own."""
    if is_table(name):
        return Runtime(name=name, title=f"rows of {table_file(name)}", schedule=STATED)
    return RUNTIMES.get(name) or Runtime(name=name, title=name, schedule=INTERLEAVED)


ModelKind = Literal["dense", "mixture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredErrors:
    """Predicted over measured, less one, of the rows of one runtime, device and kind of model.

    The figures are in `judged.csv`, which `python -m research.judged` makes of `tests/data`.

    Args:
        runtime, device: their names.
        kind: `dense`, or `mixture` of experts.
        quantity: what was measured.
        n_rows: measurements.
        mean_error_fraction: mean of the absolute values [1].
        bias_fraction: plain mean: below zero, predictions are too fast for times [1].
        rows: what was measured, and under which circumstances.
        source: where the rows are from.
        n_most_devices: of a measurement; 0 where settings are compared one by one.
        beyond: what is known of more devices.
        beyond_fraction: how far off it is, as the bias: decode passes of more devices are planned
            so much longer [1].
    """

    runtime: str
    device: str
    kind: ModelKind
    quantity: str
    n_rows: int
    mean_error_fraction: float
    bias_fraction: float
    rows: str
    source: str
    n_most_devices: int = field(default=0, metadata={LATER: True})
    beyond: str = field(default="", metadata={LATER: True})
    beyond_fraction: float = field(default=0.0, metadata={LATER: True})

    def has(self, n_devices: int) -> bool:
        """Whether as many devices, or more, were measured; where it is not told, any."""
        return not 0 < self.n_most_devices < n_devices


@cache
def judgements() -> tuple[MeasuredErrors, ...]:
    """All of them, in the order of the file."""
    return packaged_rows("judged.csv", MeasuredErrors)


def quickness(device: str, kind: ModelKind) -> float:
    """Measured over predicted time of decode passes of rooflines on a device, on average [1].

    1 where none were measured, and where they are predicted too slow.
    """
    errors = (it for it in judged_on("roofline", device, kind) if it.quantity == "TPOT")
    return max([1.0, *(1.0 / (1.0 + it.bias_fraction) for it in errors)])


def beyond_measured(device: str, kind: ModelKind) -> tuple[int, float]:
    """Most devices that a roofline was measured on, and how much longer passes of more are [1].

    0 and 1 where nothing is known of more than were measured.
    """
    known = (it for it in judged_on("roofline", device, kind) if it.beyond_fraction)
    return next(((it.n_most_devices, 1.0 / (1.0 + it.beyond_fraction)) for it in known), (0, 1.0))


def judged_on(runtime: str, device: str, kind: ModelKind) -> tuple[MeasuredErrors, ...]:
    """What a runtime was judged on; empty where nothing was measured on the device."""
    wanted = (runtime, device, kind)
    return tuple(one for one in judgements() if (one.runtime, one.device, one.kind) == wanted)


_Row = TypeVar("_Row")


def packaged_rows(file: str, record: type[_Row]) -> tuple[_Row, ...]:
    """All rows of a file beside the modules of `planner.specs`, in its order.

    Args:
        record: a dataclass whose fields are the columns.
    """
    text = PACKAGES.joinpath("planner", "specs", file).read_text(encoding="utf-8")
    read = {name: hint for name, hint in get_type_hints(record).items() if hint in (int, float)}
    return tuple(
        record(**{name: read.get(name, str)(cell) for name, cell in row.items()})
        for row in csv.DictReader(text.splitlines())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRow:
    """One replica of a deployment, as a row of a table says.

    Args:
        line: of the file, from 1.
        name: of the deployment, as whoever wrote the row calls it.
        model: its name, or the repository of one that no file knows.
        kind: of the devices: a group of the pool, or a device.
        n_devices: of one replica.
        role: of `planner.specs.records.roles`.
        engine: that runs it.
        requests_per_s: prompts that one of prefill reads, answers that any other writes.
        ttft_s: until the first token; 0 of decode.
        tpot_s: of an output token; 0 of prefill.
        batch: requests in flight.
        weights_format, kv_format: number formats.
        memory_bytes: that each device holds; None where the row does not say.
        usd_per_hour: rent of the replica; None for what its devices cost.
        n_input_tokens, n_output_tokens: of the requests that it was timed with.
    """

    line: int
    name: str
    model: str
    kind: str
    n_devices: int
    role: str
    engine: str
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    batch: int
    weights_format: str
    kv_format: str
    memory_bytes: float | None
    usd_per_hour: float | None
    n_input_tokens: int
    n_output_tokens: int

    @property
    def output_tokens_per_s(self) -> float:
        """Tokens of the answers; of prefill, of those to the prompts that it reads."""
        return self.requests_per_s * self.n_output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTable:
    """The rows of a table that may be placed.

    Who wrote the table measured them, or had another tool predict them. Nothing of them is timed
    here.

    Args:
        name: of the runtime: `table:measured.csv`.
        made_by: the tool whose predictions they are; empty where the file does not tell.
        rows: in the order of the file.
    """

    name: str
    made_by: str
    rows: tuple[DeploymentRow, ...]
