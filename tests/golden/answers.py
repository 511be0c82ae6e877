"""The numbers and short names of an answer's JSON, by path: no prose, no wall times.

A number of a list with many entries is kept as the first, the last and the sum of all; which of
equal devices were picked is left out. What a search says of itself is set apart: it may change
where the answer must not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Value = float | int | bool | str

PROSE = frozenset(
    [
        "request",
        "other_requests",
        "requests",
        "speculation",
        "launch",
        "times",
        "wall_s",
        "solve_s",
        "provenance",
        "title",
        "summary",
        "reason",
        "note",
        "rule",
        "verified",
        "command",
        "source",
        "message",
        "hint",
        "fact",
        "remedy",
        "description",
        "state",
        "vouched_by",
        "moved_vouched_by",
        "prover",
        "program",
        "arguments",
        "constants",
    ]
)
"""Fields that say something in words, name what was asked, or are taken by a clock."""

AMONG_EQUALS = frozenset(
    [
        "ranks",
        "devices",
        "link",
        "nodes",
        "leaves",
        "n_copies",
        "experts",
        "shares",
        "coordinate",
        "moves",
    ]
)
"""Lists in which equal devices or experts stand for each other."""

STATISTICS = frozenset(
    [
        "n_candidates",
        "n_contexts",
        "n_solved",
        "n_programs",
        "n_branches",
        "screens",
        "proofs",
        "moved_proofs",
    ]
)
"""Fields in which a search says how it went."""

OF_ALTERNATIVES = frozenset(
    [
        "objective",
        "loss_fraction",
        "is_tie",
        "n_devices",
        "usd_per_token",
        "usd_per_hour",
        "tpot_s",
        "ttft_s",
        "value",
    ]
)
"""Fields that say what an alternative gives up."""

MOST_ENTRIES = 4
"""Of a list of records that are kept one by one."""

LONGEST_NAME = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept of one answer.

    Args:
        values: of the answer, by path.
        statistics: of the search, by path.
    """

    values: Mapping[str, Value]
    statistics: Mapping[str, Value]


def kept(code: int, answer: Mapping[str, Any]) -> Kept:
    """What is kept of an exit code and the JSON that came with it."""
    values: dict[str, Value] = {"code": code}
    statistics: dict[str, Value] = {}
    if "kind" in answer:
        values["kind"] = answer["kind"]
    parts = (("", answer.get("answer")), ("certificate", answer.get("certificate")))
    for name, part in parts:
        for path, value, is_statistic in _leaves(part, name, False):
            (statistics if is_statistic else values)[path] = value
    return Kept(values=values, statistics=statistics)


def agrees(path: str, old: Value, new: Value) -> bool:
    """Whether a value is as it was, but for noise of rounding."""
    if isinstance(old, bool | str) or isinstance(new, bool | str):
        return type(old) is type(new) and old == new
    return math.isclose(old, new, rel_tol=1e-7, abs_tol=1e-7 if _is_share(path) else 1e-18)


def _leaves(part: Any, path: str, is_statistic: bool) -> Iterator[tuple[str, Value, bool]]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key in PROSE or (key in AMONG_EQUALS and isinstance(value, list)):
                continue
            if "alternatives" in path and _is_minor(key, value):
                continue
            inner = f"{path}.{key}" if path else key
            yield from _leaves(value, inner, is_statistic or key in STATISTICS)
    elif isinstance(part, list):
        yield from _entries(part, path, is_statistic)
    elif (
        part is not None and part != "" and not (isinstance(part, str) and len(part) > LONGEST_NAME)
    ):
        yield path, _rounded(path, part), is_statistic


def _is_minor(key: str, value: Any) -> bool:
    return not isinstance(value, Mapping | list) and key not in OF_ALTERNATIVES


def _entries(part: list[Any], path: str, is_statistic: bool) -> Iterator[tuple[str, Value, bool]]:
    if not part:
        return
    if not any(isinstance(entry, Mapping | list) for entry in part):
        yield path, " ".join(_short(entry) for entry in part[:12]), is_statistic
        if len(part) > 12:
            yield f"{path}.n", len(part), is_statistic
        return
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in part]
    if all(names) and len(set(names)) == len(names):
        for name, entry in zip(names, part, strict=True):
            rest = {key: value for key, value in entry.items() if key != "name"}
            yield from _leaves(rest, f"{path}[{name}]", is_statistic)
        return
    if len(part) <= MOST_ENTRIES:
        for i, entry in enumerate(part):
            yield from _leaves(entry, f"{path}[{i}]", is_statistic)
        return
    yield from _condensed(part, path, is_statistic)


def _condensed(part: list[Any], path: str, is_statistic: bool) -> Iterator[tuple[str, Value, bool]]:
    """First, last and sum of each number of a long list, and how often each name stands in it."""
    yield f"{path}.n", len(part), is_statistic
    found: dict[str, list[Value]] = {}
    for entry in part:
        for inner, value, _ in _leaves(entry, path, is_statistic):
            found.setdefault(inner, []).append(value)
    for inner, values in found.items():
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            numbers = [float(value) for value in values]
            yield f"{inner}.first", _rounded(inner, numbers[0]), is_statistic
            yield f"{inner}.last", _rounded(inner, numbers[-1]), is_statistic
            yield f"{inner}.sum", _rounded(inner, math.fsum(numbers)), is_statistic
            continue
        counted = sorted(Counter(map(_short, values)).items())
        yield f"{inner}.of", ", ".join(f"{n}×{name}" for name, n in counted[:12]), is_statistic


def _rounded(path: str, value: Value) -> Value:
    """Nine digits; what is a gap or a share of something, to as many after the point."""
    if not isinstance(value, float):
        return value
    return round(value, 9) + 0.0 if _is_share(path) else float(f"{value:.9g}")


def _is_share(path: str) -> bool:
    """Whether a number is a difference of nearly equal ones, of which noise is all there may be."""
    return re.search(r"(gap|fraction|excess|share)(\.first|\.last|\.sum)?$", path) is not None


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
