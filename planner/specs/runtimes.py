"""Runtimes: who executes a deployment, which phases of it, and how these share the devices.

The schedule of a runtime says what its TPOT is and which caches are held together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


TURNS = Schedule(
    name="turns",
    sentence="TPOT is a decode pass by itself; the KV cache held is the larger of both phases",
)
INTERLEAVED = Schedule(
    name="interleaved",
    sentence="TPOT has others' prompts in it; the KV cache is of all requests in flight",
)
STATED = Schedule(
    name="stated",
    sentence="times and rates are what rows of the table say, whatever the links of the pool",
)


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
VLLM = Runtime(name="vllm", title="vLLM", schedule=INTERLEAVED)
SGLANG = Runtime(name="sglang", title="SGLang", schedule=INTERLEAVED)
TRTLLM = Runtime(name="trtllm", title="TensorRT-LLM", schedule=INTERLEAVED)

RUNTIMES: Mapping[str, Runtime] = {
    runtime.name: runtime for runtime in (ROOFLINE, VLLM, SGLANG, TRTLLM, ERDIL2025)
}


ENGINES = (VLLM.name, SGLANG.name, TRTLLM.name)
"""Serving engines that are chosen among where none is named."""

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
