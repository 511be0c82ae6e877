"""Which constants are fitted to what servers did from end to end, kernels' own apart."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.specs.records.model_errors import model_errors
from research.sets.folds import fitted_rows, rows

ROOT = Path(__file__).parents[2]

FOLDERS = ("engines", "engines/common", "kernels", "topologies", "topologies/devices", "models")

SETS = re.compile(r"silicon_sample|InferenceX(?!-app gpu)|perf-overview|tests/data/serving")
"""How a source names one of the three sets; prices that InferenceX-app collects are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A constant that is fitted to rows of the sets."""

    file: str
    name: str
    source: str


def scalars() -> list[Scalar]:
    """All of the shipped files; kernels that one factor of a fit made slower are one of it."""
    found = [one for folder in FOLDERS for one in scalars_of(folder)]
    factors = {one.source: one for one in reversed(found) if one.name == "fit"}
    return [*(one for one in found if one.name != "fit"), *factors.values()]


def scalars_of(folder: str) -> list[Scalar]:
    return [
        Scalar(file=f"{folder}/{path.name}", name=name, source=source)
        for path in sorted((ROOT / folder).glob("*.toml"))
        for name, source in _sources(tomllib.loads(path.read_text(encoding="utf-8")))
        if source.startswith("fitted") and SETS.search(source)
    ]


def _sources(entries: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names of constants and where they come from."""
    for key, value in entries.items() if isinstance(entries, dict) else ():
        if key == "source" and isinstance(value, str):
            yield name, value
        yield from _sources(value, key)
    for one in entries if isinstance(entries, list) else ():
        yield from _sources(one, name)


def text() -> str:
    """How many there are, beside the rows that they saw and those that they are judged on."""
    found = scalars()
    lines = [f"{len(found)} constants are fitted to servers from end to end:"]
    lines += [f"  {one.file} {one.name}: {one.source}" for one in found]
    n_seen, n_judged = len(fitted_rows()), len(rows())
    lines.append(f"rows that they may see: {n_seen}; that they are judged on, by fold: {n_judged}")
    lines.append(f"deviations of intervals, which no time depends on: {len(model_errors())}")
    return "\n".join(lines)
