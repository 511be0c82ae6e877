"""Runtimes: who executes a deployment, which phases of it, and how these share the devices.

The schedule of a runtime says what its TPOT is and which caches are held together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ScheduleName = Literal["turns", "interleaved"]
PhaseName = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How phases share devices.

    Args:
        name: one word, in reports and JSON.
        sentence: what follows for TPOT and for the cache.
    """

    name: ScheduleName
    sentence: str


TURNS = Schedule(
    name="turns",
    sentence="phases take turns on the devices: TPOT is a decode pass by itself, and the KV cache "
    "held is the larger of both phases",
)
INTERLEAVED = Schedule(
    name="interleaved",
    sentence="prompts of other requests ride along: TPOT has their share, and the KV cache held "
    "is that of all requests in flight, whichever phase they are in",
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


def engine_runtime(name: str) -> Runtime:
    """The runtime of a serving engine, of one that comes from a user's file too."""
    return RUNTIMES.get(name) or Runtime(name=name, title=name, schedule=INTERLEAVED)
