"""What an engine's own scheduler does with workloads: driven here, or as it was recorded."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.schedulers.workloads import Work

ROOT = Path(__file__).parents[2]
VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23"}
SOURCES = {
    "vllm": "vLLM 0.33.0, vllm.v1.core.sched, driven by python -m tests.schedulers record",
    "sglang": "SGLang 0.5.23, sglang.srt.managers, driven by python -m tests.schedulers record",
}


def file_of(engine: str) -> Path:
    return Path(__file__).with_name(f"{engine}-{VERSIONS[engine]}.json")


def driven(folder: str, works: Sequence[Work]) -> Iterator[dict[str, Any]]:
    """What becomes of requests, in a process that imports the engine."""
    lines = "".join(json.dumps(work) + "\n" for work in works)
    command = [sys.executable, "-m", f"tests.schedulers.{works[0]['engine']}", folder]
    told = subprocess.run(
        command, input=lines, capture_output=True, text=True, cwd=ROOT, check=False, timeout=590
    )
    if told.returncode:
        raise RuntimeError(told.stderr[-2000:])
    yield from map(json.loads, told.stdout.splitlines())


def recorded(engine: str) -> list[dict[str, Any]]:
    """Workloads with what became of them."""
    kept = json.loads(file_of(engine).read_text(encoding="utf-8"))["workloads"]
    return [{"engine": engine, **one} for one in kept]


def differing(ours: tuple[list[float], list[float]], outcome: dict[str, Any]) -> list[int]:
    """Requests whose first or last token comes at another time."""
    rows = zip(*ours, outcome["first"], outcome["last"], strict=True)
    return [
        request
        for request, (first_s, last_s, its_first_s, its_last_s) in enumerate(rows)
        if not math.isclose(first_s, its_first_s, rel_tol=1e-9)
        or not math.isclose(last_s, its_last_s, rel_tol=1e-9)
    ]
